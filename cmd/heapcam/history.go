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
		Short: "How each class and site went over the window: live, born, dead, age, survivors",
		Long: `Prints the history of each class, exactly, and of each allocation site, estimated from samples:
bytes alive after each collection, objects born and dead in the window, the mean age in collections
of what lives at its end, and how much of that has survived --survived collections. What died before
its first collection is in no history. "Live" means not known dead. --sync-points tells of the
collections with a sync point alone, from the summaries that the recorder wrote there, and so opens
a long window without replaying it: without ages, of the 1,024 largest classes and sites of each,
and up to the last sync point. What was replayed once is kept in the reader's cache folder and opens
at once. FILE is a pulled file, a ring folder, one ring file or a recorded JVM.`,
		Example: "  heapcam history --survived 5 incident.heapcam\n" +
			"  heapcam history --sync-points incident.heapcam\n" +
			"  heapcam history --json incident.heapcam | jq '.classes[] | select(.class==\"byte[]\")'",
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (heapcam.history/1), all classes and sites, values where "+
		"they change")
	c.Flags().BoolVar(&o.sync, "sync-points", false, "only the collections with a sync point, without a replay")
	c.Flags().IntVar(&o.survived, "survived", 2, "collections that an object must have survived to count as old, 1 "+
		"to 100")
	c.Flags().IntVar(&o.top, "top", 20, "how many classes and sites to print; 0: all")
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
	var h *history.Histories
	if o.sync {
		src := newSummarySource(rec.Files...)
		defer src.Close()
		h, err = history.AtSyncPoints(heap.NewReplay(src))
	} else {
		h, err = indexed(ownIndex(), keptHistories(o.survived), rec.Path, func() (*history.Histories, error) {
			src := newSource(rec.Files...)
			defer src.Close()
			return history.Make(heap.NewReplay(src), o.survived)
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
