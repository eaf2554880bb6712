package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

type leaksOptions struct{ json, fail bool }

func newLeaksCmd() *cobra.Command {
	var o leaksOptions
	c := &cobra.Command{
		Use:   "leaks FILE|DIR|JVM",
		Short: "Which allocation sites leak, and how sure that is",
		Long: `Names the allocation sites whose objects survive collections, are not let go and grow all through
the window, the fastest first, with one sentence each. What has only not been collected yet is no
growth: sites are judged by what full collections and remarks left, and where the window has none of
them the verdict says so. Caches that filled up and stopped, start-up, and batches that are dropped
again are no leaks. FILE is a pulled file, a ring folder, one ring file or a recorded JVM. A window
of a minute with ten collections is a good one.

With --json the document has "verdicts": for each leak class, site (frames innermost first),
confidence, bytes_per_second and sentence, besides the figures behind them; the list is empty when
there is no leak. Exit status 9 with --fail-on-leak if there is one, else 0.`,
		Example: "  heapcam leaks incident.heapcam\n  heapcam leaks --fail-on-leak --json ring/ | jq -r " +
			"'.verdicts[].sentence'",
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (heapcam.leaks/1)")
	c.Flags().BoolVar(&o.fail, "fail-on-leak", false, "exit with status 9 if there is a leak")
	return c
}

func (o *leaksOptions) run(c *cobra.Command, path string) error {
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	var l *leak.Report
	if err := countFirst(rec, func(r heap.Reader) (enough bool, err error) {
		l, err = leak.Find(r)
		return l != nil, ifNot(err, leak.ErrOpen)
	}); err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.json {
		if err := ui.JSON(c.OutOrStdout(), l); err != nil {
			return err
		}
	} else {
		l.WriteText(c.OutOrStdout(), path)
	}
	if o.fail && len(l.Verdicts) > 0 {
		return status(exitLeak)
	}
	return nil
}
