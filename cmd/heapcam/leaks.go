package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

type leaksOptions struct {
	json, fail, suspects bool
	settle               bool
	socket               string
	least                ui.Percent
}

func newLeaksCmd() *cobra.Command {
	o := leaksOptions{least: leak.DefaultMinGrowth}
	c := &cobra.Command{
		Use:   "leaks FILE|DIR|JVM",
		Short: "Name what leaks or fills the heap, where it is allocated, and how certain that is",
		Long: `Use it to find a leak, or as a gate in CI (--fail-on-leak).

Each verdict is a data structure: allocation sites whose objects survive collections, are not released, and grow in
number through the recording. What matters most is first. There are three kinds:

  fills-heap   The heap was full, and this filled it.
  leak         Two or more collections of old space each left more of it, so its objects live.
  suspect      It grows like a leak, but nothing shows that its objects live and grow further.
               It may be garbage, or a cache that fills up. To settle it, use --settle.

Caches that have filled up, the start of a program, and batches that are released again have no verdict. Record at least
one minute and ten collections; the output says how slow a leak it can see. With fewer data it says "Cannot tell". ` +
			fileHelp + `

The JSON document has a list "verdicts". The list is empty if nothing grows, and if "cannot_tell" says why nothing is
known. "near_misses" has what grew and is not named, and why.`,
		Example: `  heapcam leaks incident.heapcam
  heapcam leaks --fail-on-leak heapcam-recordings
  heapcam leaks --json incident.heapcam | jq -r '.verdicts[].sentence'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.leaks/2).")
	c.Flags().BoolVar(&o.fail, "fail-on-leak", false, "Exit with code 9 if there is a leak or the heap was filled, 11 "+
		"if the recording cannot tell. Suspects do not count.")
	c.Flags().BoolVar(&o.suspects, "fail-on-suspect", false, "As --fail-on-leak, and suspects count, too.")
	c.Flags().Var(&o.least, "min-growth", "Share of the maximum heap that must be added in a day; less is listed as "+
		"small growth. Default 0.1%; 0% = all growth.")
	c.Flags().BoolVar(&o.settle, "settle", false, "Ask the agent that records this JVM to find out first which "+
		"objects live. It stops the JVM once, for at most 250 ms, and at most once in ten minutes. Operators only.")
	addSocket(c, &o.socket)
	exitsWith(c, "0", "There is no leak, or neither --fail-on-leak nor --fail-on-suspect is set.")
	exitsWith(c, "9", "There is a leak and --fail-on-leak is set, or a suspect and --fail-on-suspect is set.")
	exitsWith(c, "11", "The recording cannot tell, and --fail-on-leak or --fail-on-suspect is set.")
	return c
}

func (o *leaksOptions) run(c *cobra.Command, path string) error {
	if o.settle {
		dir, err := settle(c.Context(), o.socket, path)
		if err != nil {
			return err
		}
		path = dir
	}
	rec, err := openReading(path)
	if exitCode(err) == exitNotFound { // an agent may record into a folder of its own
		if dir := recordedIn(c.Context(), o.socket, path); dir != "" {
			rec, err = openReading(dir)
		}
	}
	if err != nil {
		return err
	}
	defer rec.Close()
	leaking := leakOptions(rec, float64(o.least))
	var l *leak.Report
	listed := false // references were
	watch := func(b trace.Block) { listed = listed || b.Kind == trace.KindRefs }
	if err := countWatched(rec, watch, func(r heap.Reader) (enough bool, err error) {
		l, err = leak.Find(r, leaking)
		return l != nil, ifNot(err, leak.ErrOpen)
	}); err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.json {
		if listed {
			l.Garbage = garbage(rec)
		}
		if err := ui.JSON(c.OutOrStdout(), l); err != nil {
			return err
		}
	} else {
		l.WriteText(c.OutOrStdout(), path)
	}
	switch {
	case (o.fail || o.suspects) && (l.Leaks() > 0 || l.Full != nil), o.suspects && len(l.Verdicts) > 0:
		return status(exitLeak)
	case (o.fail || o.suspects) && l.CannotTell != "":
		return status(exitUnclear)
	}
	return nil
}
