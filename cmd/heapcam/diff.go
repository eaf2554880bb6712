package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/compare"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

type diffOptions struct {
	grouper
	from, to  string
	fold      ui.Percent
	json, csv bool
	apart     bool // garbage is known
}

func newDiffCmd() *cobra.Command {
	o := diffOptions{from: "first", to: "last", fold: 0.01, grouper: grouper{by: "type"}}
	c := &cobra.Command{
		Use:   "diff FILE|DIR|JVM [AFTER]",
		Short: "Compare the heap after two collections, or two recordings",
		Long: `With one recording, the verb shows what happened to the objects of each group between two
collections. Died: live only at the first. Kept (in JSON: permanent): live at both. Born: live only at the second.
` + groupingHelp + `

Addresses change with each collection, so you cannot group by them here. Grouping by space means eden, survivor or old
here, not single regions. For objects that died, age and space are those at the first collection; for all others,
those at the second. A full collection in between can hide whether an object is old or new. The figures of such
objects are ranges, shown as LOW–HIGH. If references were listed after the second collection, the verb shows which part
of it is garbage. Figures below allocation sites are estimates, as in ` + "`heapcam group`" + `, and callers are drawn
as there: of objects that died among samples that died, and so on.

With two recordings, from before and after a change of the program, the verb compares how fast live bytes grow: by
allocation site, by time, and by allocated bytes. It matches sites by their methods, so lines may move. The output
begins with a summary: the slopes and their intervals. ` + fileHelp,
		Example: `  heapcam diff incident.heapcam
  heapcam diff --from first --to peak --by 'type, ages' incident.heapcam
  heapcam diff before.heapcam after.heapcam
  heapcam diff --json before.heapcam after.heapcam | jq -r .sentence`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usage("diff needs one recording, or two: before and after")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				for _, f := range []string{"from", "to", "by", "where"} {
					if c.Flags().Changed(f) {
						return usage("diff: --%s needs one recording, not two", f)
					}
				}
				return o.two(c.OutOrStdout(), args[0], args[1])
			}
			return o.run(c.OutOrStdout(), args[0])
		},
	}
	c.Flags().StringVar(&o.from, "from", o.from, "First collection: a number, first, last, peak, or a time.")
	c.Flags().StringVar(&o.to, "to", o.to, "Second collection, as --from.")
	o.grouper.add(c)
	c.Flags().Var(&o.fold, "fold", "Combine groups with less than this share of the objects that died, stayed or were "+
		"born; 0 = show all groups.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.diff/1; for two recordings heapcam.diff2/1) with "+
		"all groups.")
	c.Flags().BoolVar(&o.csv, "csv", false, "Print CSV: one row per group, all groups.")
	return c
}

// replays opens a recording from its start, as often as needed. It reports damage once.
type replays struct {
	rec    *ringstore.Recording
	srcs   []*source
	warned bool
}

func (p *replays) open() *heap.Replay {
	s := newSource(p.rec.Files...)
	p.srcs = append(p.srcs, s)
	return heap.NewReplay(s)
}

// count gives a replay that only counts.
func (p *replays) count() *heap.Census {
	s := newCensusSource(p.rec.Files...)
	p.srcs = append(p.srcs, s)
	return heap.NewCensus(s)
}

// warn says what is damaged, once.
func (p *replays) warn() {
	for _, s := range p.srcs {
		if len(s.Damage) > 0 && !p.warned {
			p.warned = true
			s.warn(p.rec)
		}
	}
}

func (p *replays) close() {
	p.warn()
	for _, s := range p.srcs {
		s.Close()
	}
}

// refError gives an error of a reference to a collection its exit code.
func refError(rec *ringstore.Recording, flag string, err error) error {
	var bad *collection.RefError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return usage("--%s %v", flag, err)
	}
	return fmt.Errorf("%s: %w", rec.Path, err)
}

func (o *diffOptions) run(w io.Writer, path string) error {
	if o.json && o.csv {
		return usage("diff: --json and --csv exclude each other")
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
	var d *analysis.DiffReport
	flag := "from, --to:"
	err = collection.Locate(o.from, o.to, p.count, p.open, func(from, to uint64) (err error) {
		if flag = "from"; from > to {
			for _, gc := range []uint64{from, to} {
				if _, err := collection.At(p.count(), gc); errors.Is(err, collection.ErrNotThere) {
					return err
				}
			}
			return usage("--from is collection %d, which is after --to, collection %d: exchange them", from, to)
		}
		d, err = analysis.Diff(p.open(), from, to, o.by_, o.filters)
		if errors.Is(err, analysis.ErrMoves) || errors.Is(err, analysis.ErrRefs) {
			return usage("--by: %w", err)
		}
		return err
	})
	var wrong *codeError
	switch {
	case errors.As(err, &wrong):
		return err
	case err != nil:
		return refError(rec, flag, err)
	}
	p.warn()
	if err := o.bury(rec, d); err != nil {
		return err
	}
	switch {
	case o.json:
		return ui.JSON(w, d)
	case o.csv:
		return d.WriteCSV(w)
	}
	o.write(w, d)
	return nil
}

// bury says what is garbage at the two collections, if references were listed there.
func (o *diffOptions) bury(rec *ringstore.Recording, d *analysis.DiffReport) error {
	lists := listingsOf(rec)
	var trees [2]*grouping.Node
	for i, gc := range []uint64{d.From.GC, d.To.GC} {
		if !lists.after(gc) {
			continue
		}
		v, c, _, err := stateAt(rec, strconv.FormatUint(gc, 10), false)
		if err != nil {
			return err
		}
		world, spaces := analysis.World(v, c)
		if known, err := lists.label(v, gc, world, 0); err != nil || !known {
			continue
		}
		by, filters := o.again()
		g, err := analysis.GroupApart(v, c, world, spaces, by, filters)
		if err != nil {
			return fmt.Errorf("%s: %w", rec.Path, err)
		}
		trees[i] = g.Tree
	}
	d.Bury(trees[0], trees[1])
	return nil
}

// write prints a diff of one recording.
func (o *diffOptions) write(w io.Writer, d *analysis.DiffReport) {
	ui.Fprintf(w, "From %s\n  to %s\nGrouped by %s\n", collectionName(d.From.GC, d.From.JVMGC, d.From.Time),
		collectionName(d.To.GC, d.To.JVMGC, d.To.Time), ui.Join(d.By, ", "))
	if d.Lost > 0 {
		ui.Paragraph(w, "", 0, ui.Flowf("A full collection moved objects, and for %s of them heapcam cannot "+
			"tell whether they are old or new. Their figures are ranges (LOW–HIGH).", ui.Flow(ui.Count(d.Lost))))
	}
	ui.Fprintf(w, "\n")
	if x := d.Tree.DeadBefore; x != nil {
		ui.Paragraph(w, "", 0, ui.Flowf("Garbage that was not collected yet at the first collection: %s.",
			ui.Flow(ui.Bytes(x.Bytes))))
	}
	if x := d.Tree.DeadAfter; x != nil {
		ui.Paragraph(w, "", 0, ui.Flowf("Garbage that was not collected yet at the second collection: %s.",
			ui.Flow(ui.Bytes(x.Bytes))))
	}
	columns := []string{">DIED", ">KEPT", ">BORN", ">NET", ">GARBAGE", "GROUP"}
	if o.apart = d.Tree.DeadAfter != nil; !o.apart {
		columns = slices.Delete(columns, 4, 5)
	}
	t := ui.NewColumns(0, columns...)
	all := d.Tree.Bytes
	o.print(t, d.Tree, 0, false, float64(o.fold)*float64(max(all.Died.High, all.Permanent.High, all.Born.High)))
	t.Write(w)
	ui.Fprintf(w, "\n")
	legend := ui.Flow("DIED: bytes at the first collection only. KEPT: at both. BORN: at the second only. NET: change.")
	if estimates(d.Tree) {
		legend += " ~ marks estimates from samples."
	}
	if counted(d.Tree) {
		legend += " Sites are estimated and types are counted, so the sites of a type need not add up to it."
	}
	if d.MayFill {
		legend += " " + mayFill
	}
	if d.Tree.DeadAfter != nil {
		legend += " GARBAGE: what nothing keeps alive at the second, but was not collected yet."
	}
	if drawn(d.Tree) {
		legend += " " + drawnLegend + " Callers of what died are as in samples that died, " +
			"and so on. --json and --csv have bounds."
	}
	ui.Paragraph(w, "", 0, legend)
}

// drawn says whether callers of an object were drawn.
func drawn(c *analysis.Change) bool { return c.Drawn > 0 || slices.ContainsFunc(c.Children, drawn) }

// mayFill is said of figures that may have fillers in them.
const mayFill = ui.Flow("int[] and java.lang.Object are upper bounds: G1 of this JDK fills gaps with such objects.")

// estimates says whether a group is an estimate.
func estimates(c *analysis.Change) bool {
	return c.Estimated || slices.ContainsFunc(c.Children, estimates)
}

// counted says whether estimates are below a group that is counted.
func counted(c *analysis.Change) bool {
	return !c.Estimated && slices.ContainsFunc(c.Children, isEstimate) || slices.ContainsFunc(c.Children, counted)
}

func isEstimate(c *analysis.Change) bool { return c.Estimated }

// bounds shows a number of bytes, or how many they are at least and at most.
func bounds(mark string, r analysis.Range) string {
	if low, high := ui.Bytes(r.Low), ui.Bytes(r.High); low != high {
		return mark + low + "–" + high
	}
	return mark + ui.Bytes(r.Value)
}

// signed shows a change of bytes; 0 has no sign.
func signed(n int64) string {
	switch {
	case n < 0:
		return "−" + ui.Bytes(uint64(-n))
	case n == 0:
		return ui.Bytes(n)
	}
	return "+" + ui.Bytes(n)
}

func (o *diffOptions) print(t *ui.Columns, c *analysis.Change, depth int, estimated bool, least float64) {
	indent := ui.Text("")
	if depth > 0 {
		indent = ui.Text(strings.Repeat("  ", depth-1) + "• ")
	}
	mark := ""
	if estimated || c.Estimated {
		mark = "~"
	}
	// What is left beside an estimate, as of no known site, is one as well.
	estimated = estimated || slices.ContainsFunc(c.Children, isEstimate)
	below := map[bool]string{true: "~"}[estimated]
	name := ui.Sprintf("%s%s", indent, c.Key) + fillerMark(c.Key) + drawnMark(c.Drawn, c.Share)
	shown := bounds
	if c.Drawn > 0 { // they may be none or all, which says less than their share
		shown = func(mark string, r analysis.Range) string { return mark + ui.Bytes(r.Value) }
	}
	figures := []any{shown(mark, c.Bytes.Died), shown(mark, c.Bytes.Permanent), shown(mark, c.Bytes.Born),
		mark + signed(c.Net())}
	if o.apart {
		dead := ""
		if c.DeadAfter != nil {
			dead = mark + ui.Bytes(c.DeadAfter.Bytes)
		}
		figures = append(figures, dead)
	}
	t.Row(append(figures, name)...)
	small, net := 0, int64(0)
	for _, x := range c.Children {
		b := x.Bytes
		if float64(max(b.Died.High, b.Permanent.High, b.Born.High)) < least {
			small++
			net += x.Net()
			continue
		}
		o.print(t, x, depth+1, estimated, least)
	}
	if small > 0 {
		figures := []any{"", "", "", below + signed(net)}
		if o.apart {
			figures = append(figures, "")
		}
		t.Row(append(figures, ui.Sprintf("%s• (%d smaller)", ui.Text(strings.Repeat("  ", depth)), small))...)
	}
}

// two compares two recordings.
func (o *diffOptions) two(w io.Writer, before, after string) error {
	var growth [2]*compare.Growth
	var found [2]*leak.Report
	for i, path := range []string{before, after} {
		rec, err := openReading(path)
		if err != nil {
			return err
		}
		p := &replays{rec: rec}
		if growth[i], err = compare.GrowthOf(p.open()); err == nil {
			found[i], err = leak.Find(p.open(), leakOptions(rec, leak.DefaultMinGrowth))
		}
		p.close()
		rec.Close()
		if err != nil {
			return refError(rec, "", err)
		}
	}
	d := compare.Recordings(growth[0], growth[1])
	d.Judge(found[0], found[1])
	if o.json {
		return ui.JSON(w, d)
	}
	d.WriteText(w)
	return nil
}
