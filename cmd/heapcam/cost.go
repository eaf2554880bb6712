package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/internal/ui"
)

// costWait is how long the disk has to give the next piece of a recording.
const costWait = 20 * time.Second

func newCostCmd() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "cost [JVM|FILE]",
		Short: "Show what heapcam itself cost a JVM, minute by minute", Annotations: mayLeaveDisk,
		Long: `Use it when somebody suspects heapcam of slowing a program down. It needs no agent.

For each minute of the recording the verb shows how long heapcam stopped the application, and how long sampling took,
by the probe's own clock. Below it lists each attach, pause, sync point, loss, and change of depth or sampling. Columns:

- PAUSES: all pauses of the JVM, heapcam's part included.
- IN PAUSES: how much heapcam lengthened ordinary collections.
- SYNC POINTS: number of sync points, and what listing all objects added to their pauses.
- STOPS: pauses that heapcam caused itself.
- SAMPLING: time of application threads in sampling.
- LONGEST: the most that heapcam added to one pause.
- SHARE: all of it, divided by the wall time.

The figures do not include the CPU time of the agent, nor what the JVM spends to choose allocations to sample.`,
		Example: "  heapcam cost shop\n  heapcam cost --json incident.heapcam | jq .total",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("cost takes one JVM or FILE, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cost, bad, err := readCost(out, args)
			if cost == nil {
				return err
			}
			cost.Close()
			if bad > 0 {
				ui.Fprintf(ui.Stderr, "heapcam: left out: %s that can not be read (`heapcam verify` says where)\n",
					ui.Plural(bad, "place"))
			}
			if asJSON {
				return errors.Join(ui.JSON(c.OutOrStdout(), cost), err)
			}
			return errors.Join(printCost(c.OutOrStdout(), cost), err)
		},
	}
	addOut(c, &out)
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.cost/1).")
	return c
}

// readCost reads the recording that args name. Where the disk hangs it gives what it has read until then, or nil,
// and an error.
func readCost(out string, args []string) (sum *cost.Cost, bad uint64, err error) {
	where := strings.Join(append(slices.Clone(args), outDirs(out)...), ", ")
	var (
		mu   sync.Mutex // of what is read: who is left behind may come back
		read *cost.Cost
	)
	err, answered := untilStuck(costWait, func(tick func()) error {
		path := ""
		if len(args) == 1 {
			if _, err := os.Stat(args[0]); err == nil {
				path = args[0]
			}
		}
		if path == "" {
			recs, err := allRecordings(out)
			if err != nil {
				return err
			}
			dir, err := recordingAmong(recs, out, args)
			if err != nil {
				return err
			}
			path = dir
		}
		tick()
		rec, err := openRecording(path)
		if err != nil {
			return err
		}
		defer rec.Close()
		mu.Lock()
		read, where = cost.New(), path
		mu.Unlock()
		for _, f := range rec.Files {
			for b, err := range f.Blocks() {
				tick()
				mu.Lock()
				if err == nil {
					err = read.Add(b)
				}
				late := tooNew(err) // a figure would lack what it says
				if late {
					read = nil
				} else if err != nil {
					bad++
				}
				mu.Unlock()
				if late {
					return err
				}
			}
		}
		return nil
	})
	mu.Lock() // for good: what comes late is not added
	if !answered {
		err = fmt.Errorf("the disk has not answered for %v: not read, or not to the end: %s", costWait, where)
	}
	return read, bad, err
}

func printCost(w io.Writer, c *cost.Cost) error {
	clock := func(ns uint64) string {
		return time.UnixMilli(int64(c.T0WallMS)).Add(time.Duration(ns)).Format("2006-01-02 15:04:05")
	}
	ms := func(ns uint64) string { return fmt.Sprintf("%.1f ms", float64(ns)/1e6) }
	row := func(t io.Writer, what string, m *cost.Minute) {
		ui.Fprintf(t, "%s\t%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%.3f%%\t\n", what, m.Collections, ms(m.Pauses),
			ms(m.Probe), m.SyncPoints, ms(m.Sync), ms(m.Walks),
			ms(m.Sampling), ms(m.Longest), 100*m.Share())
	}
	t := ui.NewTable(w)
	ui.Fprintf(t, "MINUTE\tGCS\tALL PAUSES\tIN PAUSES\tSYNC POINTS\tSYNC\tSTOPS\tSAMPLING\tLONGEST\tSHARE\t\n")
	for i := range c.Minutes {
		row(t, clock(c.Minutes[i].From), &c.Minutes[i])
	}
	row(t, "all", &c.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	ui.Fprintf(w, "\n")
	for _, e := range c.Events {
		if _, err := ui.Fprintf(w, "%s  %s\n", clock(e.Time), ui.Prose(e.Text)); err != nil {
			return err
		}
	}
	return nil
}
