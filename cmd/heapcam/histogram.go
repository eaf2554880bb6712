package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

type histogramOptions struct {
	at          string
	top         int
	json, sites bool
}

func newHistogramCmd() *cobra.Command {
	o := histogramOptions{at: "last", top: 40}
	c := &cobra.Command{
		Use:   "histogram FILE|DIR|JVM",
		Short: "Show the classes with most live objects after one collection",
		Long: `Use it like jmap -histo, for any collection in the recording.

Of eden only what a full collection left there counts. "Live" means not known to be dead: in old space a dead object
stays until a collection of its space removes it. Where references were listed after the collection (heapcam
references), the verb shows what of each class is such garbage. "(filler space)" marks classes with which the collector
fills gaps.

--sites also shows live objects by allocation site. The site of a sampled object is exact. Each sample stands for other
objects of its class, as many as its size and the sampling interval say. These are the figures of all verbs. The
intervals contain the true number with 95 % probability. In a recording with --sampling 0 every object is a sample,
and the numbers are exact unless samples were lost. Objects whose site is not known have a row of their own, and so
have objects that may be older than the recording. The rows of one class add up to the figure of the class. ` +
			fileHelp,
		Example: `  heapcam histogram incident.heapcam
  heapcam histogram --at peak incident.heapcam
  heapcam histogram --sites --json incident.heapcam | jq '.sites[0]'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.OutOrStdout(), args[0]) },
	}
	c.Flags().StringVar(&o.at, "at", o.at, atUsage)
	c.Flags().IntVar(&o.top, "top", o.top, "Number of classes and sites to print; 0 = all.")
	c.Flags().BoolVar(&o.sites, "sites", false, "Also show live objects by allocation site.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.histogram/1), with all classes and sites.")
	return c
}

func (o *histogramOptions) run(w io.Writer, path string) error {
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	r, c, known, err := stateAt(rec, o.at, !o.sites)
	if err != nil {
		return err
	}
	h := sites.MakeHistogram(r, c, deadAfter(rec, r, c))
	if o.sites {
		h.Sites = sites.Live(r, known)
		h.Coverage = &known.Newest
	}
	if o.json {
		return ui.JSON(w, h)
	}
	ui.Paragraph(w, "", 0, ui.Flowf("Live after %s: %d objects, %s", ui.Flow(collectionName(h.GC, h.JVMGC, h.Time)),
		h.Objects, ui.Flow(ui.Bytes(h.Bytes))))
	ui.Paragraph(w, "", 0, edenText(&c.Pause, c.Spaces))
	if h.Uncompacted {
		ui.Paragraph(w, "", 0, collection.MayCountDead)
	}
	dead := func(uint64) ui.Text { return "" }
	if h.Reached {
		ui.Paragraph(w, "", 0, ui.Flowf("Nothing keeps %s of these alive (%s, %s): they are garbage that has not been "+
			"collected yet.", ui.Flow(ui.Plural(h.DeadObjects, "object")), ui.Flow(ui.Bytes(h.DeadBytes)),
			ui.Flow(ui.Part(h.DeadBytes, h.Bytes))))
		dead = func(n uint64) ui.Text { return ui.Sprintf("%11s  ", ui.Bytes(n)) }
		ui.Fprintf(w, "\n%12s  %11s  %11s  %8s  %s\n", "OBJECTS", "BYTES", "GARBAGE", "SHARE", "CLASS")
	} else {
		ui.Fprintf(w, "\n%12s  %11s  %8s  %s\n", "OBJECTS", "BYTES", "SHARE", "CLASS")
	}
	for i, r := range h.Classes {
		if o.top > 0 && i == o.top {
			ui.Fprintf(w, "%d more classes; --top 0 shows all\n", len(h.Classes)-o.top)
			break
		}
		ui.Beside(w, ui.Sprintf("%12d  %11s  %s%8s  ", r.Objects, ui.Bytes(r.Bytes), dead(r.DeadBytes),
			ui.Part(r.Bytes, h.Bytes)),
			ui.Sprintf("%s", sites.WithLoader(r.Class, r.Loader))+fillerMark(r.Class))
	}
	if o.sites {
		o.printSites(w, h)
	}
	return nil
}

// edenText says what of eden belongs to the state after a collection: what a full one left there.
func edenText(p *trace.Pause, spaces []trace.Space) ui.Flow {
	if _, eden, _, _, _ := trace.InUse(spaces); p.Kind == trace.PauseFull && eden > 0 {
		return ui.Flowf("With %s in eden, which the full collection left there.", ui.Flow(ui.Bytes(eden)))
	}
	return "Without eden, where the JVM allocates new objects."
}

func (o *histogramOptions) printSites(w io.Writer, h *sites.Histogram) {
	rows := slices.DeleteFunc(slices.Clone(h.Sites), func(s sites.Row) bool { return s.Objects == 0 })
	slices.SortStableFunc(rows, func(a, b sites.Row) int { return cmp.Compare(b.Bytes, a.Bytes) })
	shown := rows
	if o.top > 0 {
		shown = rows[:min(len(rows), o.top)]
	}
	ui.Section(w, ui.Flowf("Allocation sites (%s)", sites.Basis(shown)))
	ui.Fprintf(w, "%8s  %12s  %22s  %11s  %s\n", "SAMPLES", "OBJECTS", "95 % INTERVAL", "BYTES", "CLASS")
	for _, s := range shown {
		name := sites.WithLoader(s.Class, s.Loader)
		if s.Child != "" {
			name += " " + s.Child
		}
		ui.Beside(w, ui.Sprintf("%8d  %12d  %22s  %11s  ", s.Samples, s.Objects,
			fmt.Sprintf("%d to %d", s.ObjectsLow, s.ObjectsHigh), ui.Bytes(s.Bytes)), ui.Sprintf("%s", name))
		sites.WriteStack(w, s.Site, 4)
		s.WriteFew(w)
	}
	if n := len(rows) - len(shown); n > 0 {
		ui.Fprintf(w, "%d more rows; --top 0 shows all\n", n)
	}
	ui.Fprintf(w, "\n")
	ui.Paragraph(w, "Sites known:", 13, h.Coverage.Sentence())
}

// stateAt replays rec up to the collection that ref means, and says what is known of the sites there. With types no
// more is asked of the state than what there is of each type, and nothing is said of sites.
func stateAt(
	rec *ringstore.Recording,
	ref string,
	types bool,
) (*heap.View, *heap.Collection, *sites.CoverageFollower, error) {
	p := &replays{rec: rec}
	defer p.close()
	var (
		r     *heap.View
		c     *heap.Collection
		known *sites.CoverageFollower
		err   error
	)
	if types {
		r, c, err = collection.OpenTypes(ref, p.count, p.open)
	} else {
		r, c, err = collection.OpenWatched(ref, p.count, p.open, func(r *heap.Cursor) func(*heap.Collection) {
			f := &sites.CoverageFollower{}
			known = f
			return func(c *heap.Collection) { f.Collection(r, c) }
		})
	}
	var bad *collection.RefError
	switch {
	case errors.As(err, &bad):
		return nil, nil, nil, usage("--at %v", err)
	case err != nil:
		return nil, nil, nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	return r, c, known, nil
}
