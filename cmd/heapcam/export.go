package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

type exportOptions struct {
	format, table, at, value, file string
	references                     bool
}

// exportTables are the tables of parquet, csv and json.
var exportTables = []string{"state", "samples", "history", "sites", "stacks", "leaks",
	"collections"}

func newExportCmd() *cobra.Command {
	o := exportOptions{at: "last", table: "state", value: "inuse_space"}
	c := &cobra.Command{
		Use:   "export FILE|DIR|JVM --format FORMAT -o OUT",
		Short: "Write a recording for other tools: pprof, flame graphs, HPROF, Parquet, CSV, JSON",
		Long: `Formats:

- ` + "`pprof`" + `: alloc_objects, alloc_space, inuse_objects and inuse_space by stack, with the class as label "type".
  For go tool pprof and Pyroscope.
- ` + "`collapsed`" + `: one line per stack and class, for flame graphs. --value chooses one of the four figures.
- ` + "`parquet`, `csv`, `json`" + `: a table, which --table chooses. ` + "`state`" + ` has every object after --at, ` +
			"`samples`" + ` every sampled allocation and when the object died, ` + "`history`" + ` every class after
  each collection. For many recordings: ` + "`sites`" + ` has live and allocated bytes by class and site, ` +
			"`stacks`" + ` the
  stacks of ` + "`stack_id`, `leaks`" + ` the verdicts, and ` + "`collections`" + ` each collection with its pause.
- ` + "`hprof`" + `: a heap dump of the state after --at, for VisualVM and Eclipse MAT. It has classes, objects with
  address and size, lengths of arrays, and stacks of sampled objects. A recording has no field values, so all values
  are zero. The file is as large as the heap, and compresses well: -o - | gzip. Without --references each object is
  a root and retains only itself. With it the dump is of the newest reference listing up to --at, with all
  references and the roots, and without stacks.

Live figures of pprof and collapsed are those of ` + "`heapcam group --by 'type, site'`" + ` after --at, and add up
to the exact state. Allocation figures are estimates from all samples up to --at. With --sites exact the live figures
are counted, and can be above them. The schema of a table has a version.
OUT appears when it is complete.

With --sites exact, callers are drawn as in ` + "`heapcam group`" + `, and what has such callers is marked. Pprof has
the label callers=drawn, collapsed stacks have _[callers_drawn] behind the class, tables the column callers_drawn, and
stacks of HPROF a last frame. The table ` + "`leaks`" + ` has the most frequent callers, with their share. ` + fileHelp,
		Example: `  heapcam export --format pprof -o heap.pb.gz incident.heapcam && go tool pprof -top heap.pb.gz
  heapcam export --format collapsed --value alloc_space -o alloc.folded incident.heapcam
  heapcam export --format hprof --at peak -o heap.hprof incident.heapcam
  heapcam export --format parquet --table samples -o samples.parquet incident.heapcam`,
		Args: exactly(1, "one FILE: a pulled recording, a ring folder, a ring file, or a recorded JVM"),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&o.format, "format", "", "Format to write: pprof, collapsed, hprof, parquet, csv or json. "+
		"Required.")
	c.Flags().StringVar(&o.table, "table", o.table, "Table for parquet, csv and json: state, samples, history, "+
		"sites, stacks, leaks or collections.")
	c.Flags().StringVar(&o.at, "at", o.at, "Collection to write: a number, first, last, peak, or a time. Not for "+
		"samples, history, leaks and collections.")
	c.Flags().StringVar(&o.value, "value", o.value,
		"Figure for collapsed: alloc_objects, alloc_space, inuse_objects or inuse_space.")
	c.Flags().BoolVar(&o.references, "references", false,
		"With --format hprof: write the reference listing, which heapcam references takes.")
	c.Flags().StringVarP(&o.file, "output", "o", "", "File to write; - is stdout. A file of that name is "+
		"replaced. Required.")
	return c
}

func (o *exportOptions) check() error {
	switch o.format {
	case "pprof", "collapsed", "hprof":
	default:
		if o.format == "" {
			return usage("export needs --format FORMAT: pprof, collapsed, hprof, %s",
				strings.Join(export.TableFormats, ", "))
		}
		if !slices.Contains(export.TableFormats, o.format) {
			return usage("--format %q is not one of pprof, collapsed, hprof, %s", o.format,
				strings.Join(export.TableFormats, ", "))
		}
	}
	if !slices.Contains(exportTables, o.table) {
		return usage("--table %q is not one of %s", o.table, strings.Join(exportTables, ", "))
	}
	if !slices.Contains([]string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}, o.value) {
		return usage("--value %q is not one of alloc_objects, alloc_space, inuse_objects, inuse_space", o.value)
	}
	if o.references && o.format != "hprof" {
		return usage("--references needs --format hprof")
	}
	if o.file == "" {
		return usage("export needs -o OUT (-o - for stdout)")
	}
	if o.file == "-" && o.format != "collapsed" && o.format != "csv" && o.format != "json" &&
		ui.IsTerminal(ui.RawStdout()) {
		return usage("export -o -: stdout is a terminal; redirect it, or give -o FILE")
	}
	return nil
}

func (o *exportOptions) run(ctx context.Context, path string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	p := &replays{rec: rec}
	defer p.close()
	return whole(o.file, func(w io.Writer) error {
		switch {
		case o.references:
			h, err := (&retaining{at: o.at}).load(rec)
			if err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "%s: %d objects after collection %d\n", ui.Path(o.file), h.Graph.Objects(),
				h.About.GC)
			return export.NewHprofReferences(h).Write(ctx, w)
		case o.table == "leaks" && o.isTable():
			return exportLeaks(w, o.format, rec)
		case o.table == "collections" && o.isTable():
			return export.Collections(ctx, w, o.format, p.open())
		case o.format == "pprof", o.format == "collapsed", o.isTable() && (o.table == "sites" || o.table == "stacks"):
			var prof *export.Profile
			if err := collection.Locate(o.at, o.at, p.count, p.open, func(gc, _ uint64) (err error) {
				prof, err = export.NewProfile(p.open(), gc)
				return err
			}); err != nil {
				return refError(rec, "at", err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return o.writeProfile(ctx, w, prof)
		case o.table == "samples" && o.format != "hprof":
			return export.Samples(ctx, w, o.format, p.open())
		case o.table == "history" && o.format != "hprof":
			return export.ClassHistory(ctx, w, o.format, p.open())
		}
		var callers *sites.Callers
		r, c, err := collection.OpenWatched(o.at, p.count, p.open, func(r *heap.Cursor) func(*heap.Collection) {
			callers = &sites.Callers{}
			return func(*heap.Collection) { callers.Follow(r) }
		})
		if err != nil {
			return refError(rec, "at", err)
		}
		if o.format == "hprof" {
			h, err := export.NewHprof(r, callers.Frozen())
			if err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "%s: %d objects after collection %d, about %s\n", ui.Path(o.file), h.Objects,
				c.GC, ui.Bytes(h.Bytes))
			return h.Write(ctx, w)
		}
		return export.State(ctx, w, o.format, r, c, callers.Frozen())
	})
}

// isTable says that a table is to be written.
func (o *exportOptions) isTable() bool { return slices.Contains(export.TableFormats, o.format) }

// writeProfile writes what is made of a profile.
func (o *exportOptions) writeProfile(ctx context.Context, w io.Writer, p *export.Profile) error {
	switch {
	case o.format == "pprof":
		return p.WritePprof(w)
	case o.format == "collapsed":
		return p.WriteCollapsed(w, o.value)
	case o.table == "stacks":
		return p.Stacks(ctx, w, o.format)
	}
	return p.Sites(ctx, w, o.format)
}

// exportLeaks writes the verdicts on a recording.
func exportLeaks(w io.Writer, format string, rec *ringstore.Recording) error {
	return countFirst(rec, func(r heap.Reader) (enough bool, err error) {
		l, err := leak.Find(r, leakOptions(rec, leak.DefaultMinGrowth))
		if l == nil || err != nil {
			return false, ifNot(err, leak.ErrOpen)
		}
		return true, export.Leaks(w, format, l, r.Position())
	})
}

// cannotCreate says which file the user wanted, which is not always the one that was to be opened.
func cannotCreate(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("cannot create %s: %w", name, err)
}

// whole writes a file that appears when it is complete. Until then it has another name, and an error removes it.
func whole(name string, f func(io.Writer) error) error {
	if name == "-" {
		w := bufio.NewWriterSize(ui.RawStdout(), 1<<16)
		if err := f(w); err != nil {
			return err
		}
		return w.Flush()
	}
	if s, err := stream(name); s != nil || err != nil {
		if err != nil {
			return err
		}
		w := bufio.NewWriterSize(s, 1<<20)
		return closing(s)(cmp.Or(f(w), w.Flush()))
	}
	t, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return cannotCreate(name, err)
	}
	unfinished.Store(t.Name())
	defer unfinished.Store("")
	w := bufio.NewWriterSize(t, 1<<20)
	err = f(w)
	if err == nil {
		err = w.Flush()
	}
	if cerr := t.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(t.Name(), name)
	}
	if err != nil {
		os.Remove(t.Name())
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted: %s was not written", name)
		}
	}
	return err
}
