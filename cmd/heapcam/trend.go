package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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
groups that changed most, each with its curve. First come those that change steadily, the fastest first: PER SECOND is
the median slope. It is - where its 95 % interval contains 0, and where it contradicts CHANGE. Then come the largest
changes from the first collection to the last one. Callers of exact sites are drawn as in ` + "`heapcam group`" + `,
after each collection. ` + groupingHelp + `

With --survival it shows, by type and by site, which share of the objects survives 1, 2, 4, 8 and 16 collections. It
also names the sites of which nearly all objects reach old space. Young collections copy these objects in vain; the
output says how many bytes. Types are counted exactly, from the first collection that saw an object. Sites are
estimated from samples, from the allocation on. ` + fileHelp,
		Example: `  heapcam trend incident.heapcam
  heapcam trend --by package --where 'age > 2' incident.heapcam
  heapcam trend --survival incident.heapcam`,
		Args: exactly(1, "one FILE: a pulled recording, a ring folder, a ring file, or a recorded JVM"),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	o.grouper.add(c)
	c.Flags().IntVar(&o.top, "top", o.top, "Number of groups to show; 0 = all.")
	c.Flags().BoolVar(&o.survival, "survival", false, "Show which share of objects survives, by type and site.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.trend/1; with --survival heapcam.survival/1).")
	c.Flags().BoolVar(&o.csv, "csv", false, "Print CSV: one row for each of the --top groups and each collection.")
	return c
}

func (o *trendOptions) run(c *cobra.Command, path string) error {
	if o.json && o.csv {
		return usage("trend: --json and --csv exclude each other")
	}
	if o.survival && (o.csv || c.Flags().Changed("by") || c.Flags().Changed("where")) {
		return usage("trend: --survival does not take --by, --where or --csv")
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
		p.warn()
		if o.json {
			return ui.JSON(w, s)
		}
		printSurvival(w, s)
		return nil
	}
	t, err := analysis.Trend(p.open(), o.again, o.top)
	if errors.Is(err, analysis.ErrRefs) {
		return usage("--by: %w", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	p.warn()
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
		ui.Headline(w, ui.Doubt, "The heap state is unknown after each collection: there is no trend.")
		return
	}
	a, b := t.Collections[0], t.Collections[n-1]
	what := ui.Text("Live bytes")
	if len(t.Where) > 0 {
		what += ui.Sprintf(" where %s", ui.Join(t.Where, " and "))
	}
	ui.Fprintf(w, "%s: %s to %s\n", what, ui.Bytes(a.Bytes), ui.Bytes(b.Bytes))
	ui.Fprintf(w, "From %s\n  to %s\nGrouped by %s\n", collectionName(a.GC, a.JVMGC, a.Time),
		collectionName(b.GC, b.JVMGC, b.Time), ui.Join(t.By, ", "))
	if t.Unknown > 0 {
		ui.Fprintf(w, "The heap state is not known, or not all of it, after %s, which are left out.\n",
			ui.Plural(uint64(t.Unknown), "other collection"))
	}
	if !t.Exact {
		ui.Fprintf(w, "~ marks estimates from samples.\n")
	}
	if t.MayFill {
		ui.Paragraph(w, "", 0, mayFill)
	}
	ui.Fprintf(w, "\n")
	c := ui.NewColumns(0, ">FIRST", ">LAST", ">CHANGE", ">PER SECOND", "BYTES OVER TIME", "GROUP")
	for _, r := range t.Rows {
		mark := ""
		if r.Estimated {
			mark = "~"
		}
		c.Row(mark+ui.Bytes(r.First), mark+ui.Bytes(r.Last), mark+signed(int64(r.Last)-int64(r.First)),
			perSecond(&r, mark), ui.Text(r.Spark(16)),
			groupPath(r.Path)+drawnMark(uint64(len(r.Drawn)), r.Share))
	}
	c.Write(w)
	if t.Left > 0 {
		ui.Fprintf(w, "%d more groups; --top 0 shows all\n", t.Left)
	}
	if slices.ContainsFunc(t.Rows, func(r analysis.TrendRow) bool { return r.Drawn != nil }) {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, drawnLegend+" It is that after the last collection; --json has bounds.")
	}
}

// perSecond is how fast a group changes, if it does so steadily.
func perSecond(r *analysis.TrendRow, mark string) string {
	if !r.Steady() {
		return "-"
	}
	n := int64(math.Round(r.Slope.PerSecond))
	if n == 0 {
		return mark + "under 1 B"
	}
	return mark + signed(n)
}

// groupPath shows the first and the last key of a group: the rows above have those between.
func groupPath(keys []string) ui.Text {
	n := len(keys)
	switch {
	case n == 0:
		return ""
	case n > 2:
		return ui.Sprintf("%s / … / %s", keys[0], keys[n-1]) + fillerMark(keys[n-1])
	}
	return ui.Join(keys, " / ") + fillerMark(keys[n-1])
}

// fillerMark says of the classes with which collectors fill gaps, from JDK 20 on, that the program has no such objects.
func fillerMark(class string) ui.Text {
	if strings.HasPrefix(class, "jdk.internal.vm.Filler") {
		return " (filler space)"
	}
	return ""
}

func trendCSV(w io.Writer, t *analysis.TrendReport) error {
	out := ui.NewCSV(w, "gc", "jvm_gc", "time", "path", "estimated", "objects", "bytes", "callers_drawn")
	for _, r := range t.Rows {
		for i, p := range t.Collections {
			drawn := uint64(0)
			if r.Drawn != nil {
				drawn = r.Drawn[i]
			}
			out.Row(p.GC, p.JVMGC, p.Time.Format("2006-01-02T15:04:05.000Z07:00"), strings.Join(r.Path, " / "),
				r.Estimated, r.Objects[i], r.Bytes[i], drawn)
		}
	}
	return out.Flush()
}

func printSurvival(w io.Writer, s *history.SurvivalReport) {
	ages := []int{1, 2, 4, 8, 16}
	heads := []string{">OBJECTS"}
	for _, k := range ages {
		heads = append(heads, fmt.Sprintf(">AFTER %d", k))
	}
	table := func(what ui.Flow, class string, curves []history.Curve) {
		ui.Headline(w, ui.Bold, what)
		t := ui.NewColumns(0, append(heads[:len(heads):len(heads)], "AFTER 0 TO 32", class)...)
		for _, c := range curves {
			row := []any{c.Objects}
			for _, k := range ages {
				if k < len(c.Survive) {
					row = append(row, ui.Share(c.Survive[k]))
				} else {
					row = append(row, "")
				}
			}
			t.Row(append(row, ui.Text(fromZero(c.Survive)), c.Class)...)
			if len(c.Site) > 0 {
				t.Under(6, ui.Sprintf("at %s", c.Site[0]))
			}
		}
		t.Write(w)
		ui.Fprintf(w, "\n")
	}
	ui.Paragraph(w, "", 0, "AFTER N: share of the objects that are still live N collections later; empty if the "+
		"recording "+
		"has no object of that age. AFTER 0 TO 32: the same as a curve.")
	ui.Fprintf(w, "\n")
	counted := ui.Flow("exact")
	if n := uint64(s.Uncounted); n > 0 {
		counted = "counted"
		ui.Paragraph(w, "", 0, ui.Flowf("The curves of classes leave out %s, such as full ones and those soon after "+
			"them: it is not known which objects died there. The true shares may be lower. The curves of "+
			"allocation sites have these deaths.",
			ui.Flow(ui.Plural(n, "collection"))))
		ui.Fprintf(w, "\n")
	}
	table(ui.Flowf("Classes: of the objects that survived their first collection (%s)", counted), "CLASS", s.Types)
	table("Allocation sites: of all objects that were allocated (estimated from samples)", "CLASS AND "+
		"ALLOCATION SITE", s.Sites)
	if len(s.Advice) == 0 {
		ui.Fprintf(w, "At no allocation site do nearly all objects reach old space.\n")
		return
	}
	ui.Headline(w, ui.Bold, "Allocation sites whose objects nearly all reach old space")
	t := ui.NewColumns(0, ">OBJECTS", ">IN OLD SPACE", ">COPIED", "CLASS AND ALLOCATION SITE")
	for _, a := range s.Advice {
		t.Row(a.Objects, ui.Share(a.Tenured), ui.Bytes(a.Copied), a.Class)
		for _, f := range a.Site[:min(3, len(a.Site))] {
			t.Under(6, ui.Sprintf("at %s", f))
		}
	}
	t.Write(w)
	ui.Paragraph(w, "", 0, "OBJECTS: allocated. COPIED: bytes that young collections copied before the objects "+
		"were in "+
		"old space. Allocate fewer of these objects, or reuse them, to save that work. A smaller young "+
		"generation or a "+
		"lower MaxTenuringThreshold copies them less often.")
}

// fromZero draws shares in at most 12 columns, on a scale that begins at 0.
func fromZero(v []float64) string {
	return ui.SparkFrom(0, v, 12)
}
