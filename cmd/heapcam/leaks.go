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
		Short: "Name the allocation sites that leak, and how certain that is",
		Long: `Use it to find a leak, or as a gate in CI (--fail-on-leak).

A site leaks if its objects survive collections, are not dropped, and grow in number through the whole recording. The
fastest leak is first. heapcam judges a site by what full collections and G1's remarks left over, so uncollected garbage
is not counted as growth. If the recording has none of these, part of the growth may be garbage: the verdict says so,
and its confidence is at most 95 %. Caches that have filled up, the
start of a program, and batches that are dropped again are not leaks. A recording of one minute with ten collections
is long enough; with fewer, a leak may not be named. ` + fileHelp + `

The JSON document has a list "verdicts": for each leak the class, the site (innermost frame first), the confidence,
bytes_per_second and a sentence. The list is empty if nothing leaks.`,
		Example: `  heapcam leaks incident.heapcam
  heapcam leaks --fail-on-leak heapcam-recordings
  heapcam leaks --json incident.heapcam | jq -r '.verdicts[].sentence'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.leaks/1).")
	c.Flags().BoolVar(&o.fail, "fail-on-leak", false, "Exit with code 9 if a site leaks.")
	exitsWith(c, "0", "No site leaks, or --fail-on-leak is not set.")
	exitsWith(c, "9", "A site leaks, and --fail-on-leak is set.")
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
