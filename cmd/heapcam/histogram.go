package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
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

The figures do not include eden. "Live" means not known to be dead: in old space a dead object stays until a
collection of its space removes it.

--sites also shows live objects by allocation site. The site of a sampled object is exact. For other objects heapcam
infers the site from samples of the same type, size and age. The intervals contain the true number with 95 %
probability. In a recording with --sampling 0 every object is a sample, and the numbers are exact. Objects whose site
is not known have a row of their own, and so have objects that may be older than the recording. The rows of a class
add up to the figure of the class. ` + fileHelp,
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
	r, c, err := stateAt(rec, o.at, !o.sites)
	if err != nil {
		return err
	}
	h := sites.MakeHistogram(r, c)
	if o.sites {
		h.Sites = sites.Live(r, c.GC)
	}
	if o.json {
		return ui.JSON(w, h)
	}
	ui.Fprintf(w, "after collection %d (%s): %d objects, %s\n", h.GC, h.Time.Local().Format(time.DateTime),
		h.Objects, ui.Bytes(int64(h.Bytes)))
	if h.Uncompacted {
		ui.Fprintf(w, "%s\n", ui.Text(collection.MayCountDead))
	}
	ui.Fprintf(w, "%12s %14s  %s\n", "OBJECTS", "BYTES", "CLASS")
	for i, r := range h.Classes {
		if o.top > 0 && i == o.top {
			ui.Fprintf(ui.Stderr, "heapcam: and %d more classes (--top 0 shows all)\n", len(h.Classes)-o.top)
			break
		}
		name := r.Class
		if r.Loader != "" {
			name += " (" + r.Loader + ")"
		}
		ui.Fprintf(w, "%12d %14d  %s\n", r.Objects, r.Bytes, name)
	}
	if o.sites {
		o.printSites(w, h.Sites)
	}
	return nil
}

func (o *histogramOptions) printSites(w io.Writer, rows []sites.Row) {
	ui.Fprintf(w, "%8s %12s %25s %14s  %s\n", "SAMPLES", "OBJECTS", "(95 %)", "BYTES", "CLASS AND SITE")
	for i, s := range rows {
		if o.top > 0 && i == o.top {
			ui.Fprintf(ui.Stderr, "heapcam: and %d more rows (--top 0 shows all)\n", len(rows)-o.top)
			break
		}
		name := s.Class
		if s.Loader != "" {
			name += " (" + s.Loader + ")"
		}
		if s.Child != "" {
			name += " " + s.Child
		}
		ui.Fprintf(w, "%8d %12d %25s %14d  %s\n", s.Samples, s.Objects,
			fmt.Sprintf("%d to %d", s.ObjectsLow, s.ObjectsHigh), s.Bytes, name)
		for j, f := range s.Site {
			if j == 4 {
				ui.Fprintf(w, "%63s   … %d more\n", "", len(s.Site)-j)
				break
			}
			ui.Fprintf(w, "%63s   at %s\n", "", f)
		}
	}
	var exact, inferred, unknown, before uint64
	for _, s := range rows {
		switch s.Child {
		case "":
			exact += s.ExactBytes
			inferred += s.Bytes - min(s.Bytes, s.ExactBytes)
		case sites.SiteUnknown:
			unknown += s.Bytes
		case sites.BeforeRecording:
			before += s.Bytes
		}
	}
	ui.Fprintf(w, "in all: exact %s, inferred %s, unknown %s, before the tape at most %s\n",
		ui.Bytes(int64(exact)), ui.Bytes(int64(inferred)), ui.Bytes(int64(unknown)), ui.Bytes(int64(before)))
}

// stateAt replays rec up to the collection that ref means. With types no more is asked of the state than what there
// is of each type.
func stateAt(rec *ringstore.Recording, ref string, types bool) (*heap.View, *heap.Collection, error) {
	p := &replays{rec: rec}
	defer p.close()
	opened := collection.Open[*heap.Census]
	if types {
		opened = collection.OpenTypes[*heap.Census]
	}
	r, c, err := opened(ref, p.count, p.open)
	var bad *collection.RefError
	switch {
	case errors.As(err, &bad):
		return nil, nil, usage("--at %v", err)
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	return r, c, nil
}
