package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/internal/ui"
)

type trendOptions struct {
	grouper
	top       int
	survival  bool
	json, csv bool
}

func newTrendCmd() *cobra.Command {
	o := trendOptions{top: 20, grouper: grouper{by: "type"}}
	c := &cobra.Command{
		Use:   "trend FILE|DIR|JVM",
		Short: "Show how groups grow over the recording, or how long objects survive",
		Long: `Use it to see which part of the heap grows. The verb groups the heap after every collection. It shows the
groups that changed most from the first to the last one, each with its curve. ` + groupingHelp + `

With --survival it shows, by type and by site, which share of the objects survives 1, 2, 4, 8 and 16 collections. It
also names the sites of which nearly all objects reach old space. Young collections copy these objects in vain, and the
report says how many bytes. Types are counted exactly, from the first collection that saw an object. Sites are
estimated from samples, from the allocation on. ` + fileHelp,
		Example: `  heapcam trend incident.heapcam
  heapcam trend --by package --where 'age > 2' incident.heapcam
  heapcam trend --survival incident.heapcam`,
		Args: exactly(1, "one FILE: a pulled recording, a ring folder, a ring file, or a recorded JVM"),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	o.grouper.add(c)
	c.Flags().IntVar(&o.top, "top", o.top, "Number of groups to show; 0 = all.")
	c.Flags().BoolVar(&o.survival, "survival", false, "Show survival by type and site, and which sites to pretenure.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.trend/1; with --survival heapcam.survival/1).")
	c.Flags().BoolVar(&o.csv, "csv", false, "Print CSV: one row per group and collection.")
	return c
}

func (o *trendOptions) run(c *cobra.Command, path string) error {
	if o.json && o.csv {
		return usage("trend: --json or --csv")
	}
	if o.survival && (o.csv || c.Flags().Changed("by") || c.Flags().Changed("where")) {
		return usage("trend: --survival has no --by, --where and --csv")
	}
	if err := o.parse(); err != nil {
		return err
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	p := &replays{rec: rec}
	defer p.close()
	w := c.OutOrStdout()
	if o.survival {
		s, err := history.Survival(p.open(), o.top)
		if err != nil {
			return fmt.Errorf("%s: %w", rec.Path, err)
		}
		if o.json {
			return ui.JSON(w, s)
		}
		printSurvival(w, s)
		return nil
	}
	t, err := analysis.Trend(p.open(), o.again, o.top)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	switch {
	case o.json:
		return ui.JSON(w, t)
	case o.csv:
		return trendCSV(w, t)
	}
	printTrend(w, t)
	return nil
}

func printTrend(w io.Writer, t *analysis.TrendReport) {
	n := len(t.Collections)
	if n == 0 {
		ui.Fprintf(w, "the state is known after no collection\n")
		return
	}
	a, b := t.Collections[0], t.Collections[n-1]
	ui.Fprintf(w, "from %s\n  to %s; by %s\n", collectionName(a.GC, a.JVMGC, a.Time),
		collectionName(b.GC, b.JVMGC, b.Time), ui.Join(t.By, ", "))
	ui.Fprintf(w, "%s with known state, %d without; live bytes %s to %s\n", ui.Plural(uint64(n), "collection"),
		t.Unknown, ui.Bytes(int64(a.Bytes)), ui.Bytes(int64(b.Bytes)))
	if !t.Exact {
		ui.Fprintf(w, "~ is an estimate from samples\n")
	}
	ui.Fprintf(w, "%14s %14s %14s  %-24s  %s\n", "FIRST", "LAST", "CHANGE (bytes)", "COURSE", "GROUP")
	for _, r := range t.Rows {
		mark := ""
		if r.Estimated {
			mark = "~"
		}
		ui.Fprintf(w, "%14s %14s %14s  %-24s  %s\n", mark+strconv.FormatUint(r.First, 10),
			mark+strconv.FormatUint(r.Last, 10), mark+fmt.Sprintf("%+d", int64(r.Last)-int64(r.First)),
			r.Spark(24), ui.Join(r.Path, " / "))
	}
	if t.Left > 0 {
		ui.Fprintf(w, "and %d more groups (--top 0 shows all)\n", t.Left)
	}
}

func trendCSV(w io.Writer, t *analysis.TrendReport) error {
	out := ui.NewCSV(w, "gc", "jvm_gc", "time", "path", "estimated", "objects", "bytes")
	for _, r := range t.Rows {
		for i, p := range t.Collections {
			out.Row(p.GC, p.JVMGC, p.Time.Format("2006-01-02T15:04:05.000Z07:00"), strings.Join(r.Path, " / "),
				r.Estimated, r.Objects[i], r.Bytes[i])
		}
	}
	return out.Flush()
}

func printSurvival(w io.Writer, s *history.SurvivalReport) {
	ages := []int{1, 2, 4, 8, 16}
	table := func(what string, curves []history.Curve) {
		ui.Fprintf(w, "%12s", "OBJECTS")
		for _, k := range ages {
			ui.Fprintf(w, " %7s", fmt.Sprintf("LIVE %d", k))
		}
		ui.Fprintf(w, "  %-20s %s\n", "", what)
		for _, c := range curves {
			ui.Fprintf(w, "%12d", c.Objects)
			for _, k := range ages {
				if k < len(c.Survive) {
					ui.Fprintf(w, " %6.1f%%", 100*c.Survive[k])
				} else {
					ui.Fprintf(w, " %7s", "")
				}
			}
			ui.Fprintf(w, "  %-20s %s\n", ui.Spark(append(c.Survive[:len(c.Survive):len(c.Survive)], 0), 20), c.Class)
			if len(c.Site) > 0 {
				ui.Fprintf(w, "%76s at %s\n", "", c.Site[0])
			}
		}
	}
	table("TYPE (from the first collection that saw them)", s.Types)
	table("SITE (from the allocation, by samples)", s.Sites)
	if len(s.Advice) == 0 {
		ui.Fprintf(w, "no site allocates what nearly always reaches old space: nothing to pretenure\n")
		return
	}
	ui.Fprintf(w, "Nearly all objects of these sites reach old space; young collections copied them on the "+
		"way:\n%12s %8s %14s  %s\n", "OBJECTS", "TENURED", "COPIED (bytes)", "CLASS AND SITE")
	for _, a := range s.Advice {
		ui.Fprintf(w, "%12d %7.1f%% %14d  %s\n", a.Objects, 100*a.Tenured, a.Copied, a.Class)
		for _, f := range a.Site[:min(3, len(a.Site))] {
			ui.Fprintf(w, "%40s at %s\n", "", f)
		}
	}
}
