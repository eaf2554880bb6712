package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

type historyOptions struct {
	json, sync    bool
	survived, top int
}

func newHistoryCmd() *cobra.Command {
	var o historyOptions
	c := &cobra.Command{
		Use:   "history FILE|DIR|JVM",
		Short: "Show live bytes, births, deaths and ages of each class and site over time",
		Long: `Use it to see when a class or an allocation site began to grow.

For each class and each site it shows live bytes after each collection, births and deaths (of sites: of samples), and
the mean age in collections. It also shows how much has survived --survived collections. Classes are exact. Sites are
estimated from samples; the last value is that of ` + "`heapcam report`" + ` and all other verbs. Objects that die
before their first collection do not appear. "Live" means not known to be dead.

A long recording takes time to replay. --sync-points reads only the summaries that the recorder wrote at sync
points, and answers at once. Summaries have no ages. They have only the 1,024 largest classes and sites, and end at the
last sync point. The result of a replay stays in the reader's cache folder, so the same recording opens at once the
next time. ` +
			fileHelp,
		Example: `  heapcam history incident.heapcam
  heapcam history --sync-points incident.heapcam
  heapcam history --json incident.heapcam | jq '.classes[] | select(.class=="byte[]")'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.history/1) with all classes and sites, and values "+
		"where they change.")
	c.Flags().BoolVar(&o.sync, "sync-points", false, "Read only the summaries at sync points, without a replay.")
	c.Flags().IntVar(&o.survived, "survived", 2, "Collections that an object must survive to count as older, 1 to 100.")
	c.Flags().IntVar(&o.top, "top", 20, "Number of classes and sites to print; 0 = all.")
	return c
}

func (o *historyOptions) run(c *cobra.Command, path string) error {
	if o.survived < 1 || o.survived > 100 {
		return usage("--survived %d: it must be from 1 to 100", o.survived)
	}
	if o.sync && c.Flags().Changed("survived") {
		return usage("history: --survived needs a replay, and --sync-points does without one: leave out one of the two")
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	var h *history.HeapHistory
	if o.sync {
		src := newSummarySource(rec.Files...)
		defer src.Close()
		h, err = history.AtSyncPoints(heap.NewReplay(src))
		src.warn(rec)
	} else {
		kind, damaged := heapHistoryResult(o.survived), false
		pack := kind.pack
		kind.pack = func(h *history.HeapHistory) ([]byte, error) {
			if damaged {
				return nil, errDamaged
			}
			return pack(h)
		}
		h, err = indexed(ownIndex(), kind, rec.Path, func() (*history.HeapHistory, error) {
			src := newSource(rec.Files...)
			defer src.Close()
			h, err := history.Make(heap.NewReplay(src), o.survived)
			src.warn(rec)
			damaged = len(src.Damage) > 0
			return h, err
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.sync && len(h.Collections) == 0 {
		return fmt.Errorf("%s: it has no summaries, which --sync-points reads: a recorder writes one at each sync "+
			"point but the first. Leave out --sync-points", rec.Path)
	}
	if o.json {
		return ui.JSON(c.OutOrStdout(), h)
	}
	h.WriteText(c.OutOrStdout(), o.top)
	return nil
}
