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
	"github.com/heapcam/heapcam/internal/bucket"
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
- STOPS: pauses that heapcam caused itself: for reference listings, and where no collection came for a sync point.
- SAMPLING: time of application threads in sampling. heapcam writes it once a minute, and when the recording ends.
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
			cost, err := readCost(out, args)
			if cost == nil {
				return err
			}
			cost.Close()
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
func readCost(out string, args []string) (sum *cost.Cost, err error) {
	where := strings.Join(append(slices.Clone(args), outDirs(out)...), ", ")
	var (
		mu   sync.Mutex // of what is read: who is left behind may come back
		read *cost.Cost
	)
	err, answered := untilStuck(costWait, func(tick func()) error {
		path := ""
		if len(args) == 1 {
			if _, err := os.Stat(args[0]); err == nil || bucket.Is(args[0]) {
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
				return orDenied(err, out, args...)
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
		var damage damageLog
		defer damage.warn(rec)
		for _, f := range rec.Files {
			for b, err := range f.BlocksWithoutReferences() {
				tick()
				mu.Lock()
				if err == nil {
					err = read.Add(b)
				}
				late := tooNew(err) // a figure would lack what it says
				if late {
					read = nil
				} else {
					damage.see(b, err)
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
		err = fmt.Errorf("the disk has not answered for %s: %s could not be read, or not to the end; check that disk",
			ui.Duration(costWait), where)
	}
	return read, err
}

// costEnds is how many of the first and of the last events are printed.
const costEnds = 20

// printCost prints the share of all, then each minute, then what changed it.
func printCost(w io.Writer, c *cost.Cost) error {
	at := func(ns uint64) time.Time { return time.UnixMilli(int64(c.T0WallMS)).Add(time.Duration(ns)) }
	sum := &c.Total
	share, stopped := ui.Flow(ui.Share(sum.Share())), ui.Flow(ui.Nanoseconds(sum.Stopped()))
	longest := ui.Flow(ui.Nanoseconds(sum.Longest))
	if c.Until == nil {
		ui.Headline(w, ui.Bold, ui.Flowf("heapcam cost %s of the recorded time: it stopped the application for "+
			"%s, and "+
			"sampling took %s of its threads. It lengthened no pause by more than %s.", share, stopped,
			ui.Flow(ui.Nanoseconds(sum.Sampling)), longest))
	} else {
		ui.Headline(w, ui.Bold, ui.Flowf("heapcam cost at least %s of the recorded time: it stopped the "+
			"application for "+
			"%s. It lengthened no pause by more than %s. What sampling took is known until %s only: %s. heapcam "+
			"writes it "+
			"once a minute, and when the recording ends.", share, stopped, longest,
			ui.Flow(at(*c.Until).Format(time.TimeOnly)), ui.Flow(ui.Nanoseconds(sum.Sampling))))
	}
	if b := &c.Busiest; b.Stopped > 0 && b.Span == cost.Stretch {
		ui.Fprintf(w, "In the busiest ten seconds, from %s on, it stopped the application for %s (%s).\n",
			at(b.From).Format(time.TimeOnly), ui.Nanoseconds(b.Stopped), ui.Part(b.Stopped, b.Span))
	}
	ui.Fprintf(w, "\n")
	t := ui.NewColumns(0, "MINUTE", ">GCS", ">PAUSES", ">IN PAUSES", ">SYNC POINTS", ">STOPS", ">SAMPLING", ">LONGEST",
		">SHARE")
	row := func(what string, m *cost.Minute) {
		sync := ui.Nanoseconds(m.Sync)
		if m.SyncPoints > 0 {
			sync = fmt.Sprintf("%d: %s", m.SyncPoints, sync)
		}
		least := ""
		if !c.Known(m.From + m.Span) {
			least = "≥ "
		}
		t.Row(what, m.Collections, ui.Nanoseconds(m.Pauses), ui.Nanoseconds(m.Probe), sync, ui.Nanoseconds(m.Walks),
			least+ui.Nanoseconds(m.Sampling), ui.Nanoseconds(m.Longest),
			least+ui.Part(m.Stopped()+m.Sampling, m.Span)) // "-" of a minute that the window only touches
	}
	for i := range c.Minutes {
		row(at(c.Minutes[i].From).Format("01-02 15:04:05"), &c.Minutes[i])
	}
	row("all", sum)
	t.Write(w)
	ui.Fprintf(w, "\n")
	ui.Paragraph(w, "", 0, "MINUTE: local time at which it begins; the last may be shorter. PAUSES: all GC pauses, "+
		"heapcam's part included. "+
		"The other times are what heapcam took. IN PAUSES: what it added to ordinary pauses. SYNC POINTS: their "+
		"number, and what they added to pauses. STOPS: pauses that heapcam caused itself, as for reference listings. "+
		"SAMPLING: time that the application's threads spent in sampling. LONGEST: the most that heapcam added to "+
		"one pause. SHARE: heapcam's share of the time. ≥: at least, because the newest cost of sampling is not "+
		"in the recording yet.")
	if len(c.Events) > 0 {
		ui.Section(w, "What changed the cost")
	}
	for i, e := range c.Events {
		if left := len(c.Events) - 2*costEnds; left > 0 && i >= costEnds && i < costEnds+left {
			if i == costEnds {
				ui.Fprintf(w, "  … %d more; --json lists all\n", left)
			}
			continue
		}
		text, _, cut := strings.Cut(e.Text, " largest classes: ") // of a listing that was left out
		if cut {
			text = strings.TrimSuffix(text, ".")
		}
		ui.Beside(w, ui.Text(at(e.Time).Format("01-02 15:04:05")+"  "), ui.Prose(text))
	}
	return nil
}
