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

A site leaks if its objects survive collections, are not released, and grow in number through the whole recording. The
fastest leak is first. Where old space was collected, heapcam judges a site by what full collections and G1's remarks
left over, so garbage does not count. Where it was not, part of the growth may be garbage: the verdict says so, and its
confidence is 95 % at most. Caches that have filled up, the start of a program, and batches that are released again are
not leaks. Record at least one minute and ten collections; a longer recording finds slower leaks, and the output says
how slow. With fewer data the verdict is "Cannot tell". ` + fileHelp + `

The JSON document has a list "verdicts": for each leak the class, the site (innermost frame first), the confidence,
bytes_per_second and a sentence. The list is empty if nothing leaks, and if "cannot_tell" says why nothing is known.`,
		Example: `  heapcam leaks incident.heapcam
  heapcam leaks --fail-on-leak heapcam-recordings
  heapcam leaks --json incident.heapcam | jq -r '.verdicts[].sentence'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.leaks/1).")
	c.Flags().BoolVar(&o.fail, "fail-on-leak", false, "Exit with code 9 if a site leaks, 11 if the recording cannot "+
		"tell.")
	exitsWith(c, "0", "No site leaks, or --fail-on-leak is not set.")
	exitsWith(c, "9", "A site leaks, and --fail-on-leak is set.")
	exitsWith(c, "11", "The recording cannot tell, and --fail-on-leak is set.")
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
	switch {
	case o.fail && len(l.Verdicts) > 0:
		return status(exitLeak)
	case o.fail && l.CannotTell != "":
		return status(exitUnclear)
	}
	return nil
}
