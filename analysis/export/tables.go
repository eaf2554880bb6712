// Package export writes recordings for other tools: tables (Parquet, CSV, JSON) of a state, of samples and of class
// histories, pprof profiles and collapsed stacks, and heap dumps without values (HPROF). Columns and their meaning are
// the version of a schema.
package export

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// StateRow is an object of the table "state". Names and meaning of columns are the version of the schema.
type StateRow struct {
	Address uint64 `json:"address" parquet:"address"`              // bytes
	Class   string `json:"class" parquet:"class,dict"`             // Class.getTypeName
	Loader  string `json:"loader" parquet:"loader,dict"`           // class of the loader
	Bytes   uint64 `json:"bytes" parquet:"bytes"`                  // shallow size
	Length  uint64 `json:"length" parquet:"length"`                // elements of arrays, else 0
	Space   string `json:"space" parquet:"space,dict"`             // or region
	Birth   uint32 `json:"birth" parquet:"birth,delta"`            // collection that saw it first
	AtLeast bool   `json:"at_least" parquet:"at_least"`            // it may be older than that
	Age     uint32 `json:"age" parquet:"age,delta"`                // collections since
	Sample  uint64 `json:"sample,omitempty" parquet:"sample"`      // id in the table "samples", 0: none
	Stack   string `json:"stack,omitempty" parquet:"stack,dict"`   // of the sample, innermost first, "; " between
	Thread  string `json:"thread,omitempty" parquet:"thread,dict"` // of the sample
	// The innermost frame of the stack is exact, and the callers are drawn among samples (--sites exact).
	Drawn bool `json:"callers_drawn,omitempty" parquet:"callers_drawn"`
}

// SampleRow is a sampled allocation of the table "samples".
type SampleRow struct {
	ID       uint64  `json:"id" parquet:"id"`
	TimeMS   int64   `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"` // Unix
	Thread   string  `json:"thread" parquet:"thread,dict"`
	Class    string  `json:"class" parquet:"class,dict"`
	Bytes    uint64  `json:"bytes" parquet:"bytes"`       // of the object
	Interval uint64  `json:"interval" parquet:"interval"` // mean bytes between samples then
	Weight   float64 `json:"weight" parquet:"weight"`     // objects that it stands for
	Birth    uint64  `json:"birth" parquet:"birth"`       // collection of its phase
	// collection that found it dead, 0: alive at the end, or not known
	Died  uint64 `json:"died" parquet:"died"`
	Stack string `json:"stack" parquet:"stack,dict"`
	// It is no sample, but an object whose innermost frame is exact (--sites exact). The callers are drawn among
	// samples that live at the end, or that died at the same collection.
	Drawn bool `json:"callers_drawn,omitempty" parquet:"callers_drawn"`
}

// HistoryRow is a class after a collection, of the table "history".
type HistoryRow struct {
	GC      uint64 `json:"gc" parquet:"gc"`
	JVMGC   uint64 `json:"jvm_gc" parquet:"jvm_gc"`
	TimeMS  int64  `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"`
	PauseNS uint64 `json:"pause_ns" parquet:"pause_ns"`
	Class   string `json:"class" parquet:"class,dict"`
	Objects uint64 `json:"objects" parquet:"objects"`
	Bytes   uint64 `json:"bytes" parquet:"bytes"`
}

// table takes rows one by one.
type table[T any] interface {
	put(T) error
	end() error
}

// TableFormats are the formats of tables.
var TableFormats = []string{"parquet", "csv", "json"}

func newTable[T any](w io.Writer, format, schema string) (table[T], error) {
	switch format {
	case "parquet":
		return parquetTable[T]{tables.NewParquet[T](w, schema)}, nil
	case "csv":
		t := &csvTable[T]{}
		var heading []string
		for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
			if !f.Anonymous {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				heading, t.columns = append(heading, name), append(t.columns, f.Index)
			}
		}
		t.w, t.row = ui.NewCSV(w, heading...), make([]any, len(heading))
		return t, nil
	case "json":
		b := bufio.NewWriter(w)
		_, err := ui.Fprintf(b, `{"schema":%q,"rows":[`, schema)
		return &jsonTable[T]{w: b}, err
	}
	return nil, fmt.Errorf("format %q is not one of %s", format, strings.Join(TableFormats, ", "))
}

type parquetTable[T any] struct{ *tables.Parquet[T] }

func (t parquetTable[T]) put(r T) error { return t.Put(r) }
func (t parquetTable[T]) end() error    { return t.End() }

type csvTable[T any] struct {
	w       *ui.CSV
	row     []any
	columns [][]int // of fields
}

func (t *csvTable[T]) put(r T) error {
	v := reflect.ValueOf(r)
	for i := range t.row {
		t.row[i] = v.FieldByIndex(t.columns[i]).Interface()
	}
	return t.w.Row(t.row...)
}

func (t *csvTable[T]) end() error { return t.w.Flush() }

type jsonTable[T any] struct {
	w *bufio.Writer
	n int
}

func (t *jsonTable[T]) put(r T) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if t.n++; t.n > 1 {
		t.w.WriteByte(',')
	}
	t.w.WriteByte('\n')
	_, err = t.w.Write(ui.EscapeJSON(b))
	return err
}

func (t *jsonTable[T]) end() error {
	t.w.WriteString("\n]}\n")
	return t.w.Flush()
}

// stacks caches the texts of stacks.
type stacks struct {
	r    *heap.Symbols
	text map[uint64]string
}

func (s *stacks) of(frame uint64) string {
	t, ok := s.text[frame]
	if !ok {
		t = sites.JoinStack(sites.Stack(s.r, frame, sites.MaxFrames))
		s.text[frame] = t
	}
	return t
}

// State writes each object of the state of r, which is positioned after c.
func State(
	ctx context.Context,
	w io.Writer,
	format string,
	r *heap.View,
	c *heap.Collection,
	from *sites.Callers,
) error {
	t, err := newTable[StateRow](w, format, "heapcam.export.state/1")
	if err != nil {
		return err
	}
	st, callers := stacks{r.Symbols, map[uint64]string{}}, from.Among(r.Symbols, r.Live.Values())
	spaces := r.Spaces(c.Spaces)
	names := make([]string, len(spaces))
	for i, s := range spaces {
		names[i] = analysis.SpaceName(r.Symbols, s)
	}
	space, n := 0, 0
	type named struct{ class, loader string }
	classes := map[uint32]named{}
	r.State.Each(func(o heap.Object) bool {
		if n++; n%65536 == 0 && ctx.Err() != nil {
			err = ctx.Err()
			return false
		}
		k, ok := classes[o.Type]
		if !ok {
			k = named{r.TypeName(o.Type), r.Loaders[r.Types[uint64(o.Type)].Loader].Name}
			classes[o.Type] = k
		}
		row := StateRow{Address: r.JVM.HeapBase + o.Addr*8, Class: k.class, Loader: k.loader, Bytes: o.Words * 8,
			Length: o.Length, Birth: o.Birth, AtLeast: o.AtLeast, Age: uint32(c.GC - min(c.GC, uint64(o.Birth))),
			Sample: o.Sample}
		for space < len(spaces) && spaces[space].End <= o.Addr {
			space++
		}
		if space < len(spaces) && spaces[space].Start <= o.Addr {
			row.Space = names[space]
		}
		if s := r.Live.Get(o.Sample); s != nil {
			frame := callers.Of(r.Symbols, s.Frame, s.ID)
			row.Stack, row.Thread, row.Drawn = st.of(frame), r.Threads[s.Thread].Name, frame != s.Frame
		}
		err = t.put(row)
		return err == nil
	})
	if err != nil {
		return err
	}
	return t.end()
}

// Samples replays r and writes each sample that was taken, when it is known what became of it.
func Samples(ctx context.Context, w io.Writer, format string, r *heap.Replay) error {
	t, err := newTable[SampleRow](w, format, "heapcam.export.samples/1")
	if err != nil {
		return err
	}
	st := stacks{r.Symbols, map[uint64]string{}}
	var callers sites.Callers
	put := func(s *heap.Sample, died uint64, among *sites.Callers) error {
		frame := among.Of(r.Symbols, s.Frame, s.ID)
		weight, _ := s.Stands()
		return t.put(SampleRow{ID: s.ID, TimeMS: collection.Wall(r.Symbols, s.Time).UnixMilli(),
			Thread: r.Threads[s.Thread].Name, Class: r.TypeName(uint32(s.Type)), Bytes: s.Size, Interval: s.Interval,
			Weight: weight, Birth: s.Birth, Died: died, Stack: st.of(frame),
			Drawn: frame != s.Frame})
	}
	wait := map[uint64]*heap.Sample{}
	if rerr := collection.Each(r, func(c *heap.Collection) bool {
		callers.Follow(&r.Cursor)
		for _, s := range r.Sampled {
			wait[s.ID] = s
		}
		gone := slices.Clone(r.Died)
		for _, s := range gone {
			delete(wait, s.ID)
		}
		for id, s := range wait { // in eden until a collection resolves it
			if s.Birth <= c.GC && c.Flags&trace.PauseEdenKept == 0 {
				delete(wait, id)
				if r.Live.Get(id) == nil {
					gone = append(gone, s)
				}
			}
		}
		slices.SortFunc(gone, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) })
		among := callers.Among(r.Symbols, slices.Values(gone))
		for _, s := range gone {
			err = cmp.Or(err, put(s, c.GC, among))
		}
		err = cmp.Or(err, ctx.Err())
		return err == nil
	}); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	for _, s := range r.Live.All() {
		wait[s.ID] = s
	}
	rest := make([]*heap.Sample, 0, len(wait))
	for _, s := range wait {
		rest = append(rest, s)
	}
	slices.SortFunc(rest, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) })
	among := callers.Among(r.Symbols, slices.Values(rest))
	for _, s := range rest {
		if err := put(s, 0, among); err != nil {
			return err
		}
	}
	return t.end()
}

// ClassHistory replays r and writes each class after each collection whose state is known.
func ClassHistory(ctx context.Context, w io.Writer, format string, r *heap.Replay) error {
	t, err := newTable[HistoryRow](w, format, "heapcam.export.history/1")
	if err != nil {
		return err
	}
	if rerr := collection.Each(r, func(c *heap.Collection) bool {
		if !c.Known {
			return true
		}
		for _, k := range sites.MakeHistogram(r.View(), c, nil).Classes {
			err = cmp.Or(err, t.put(HistoryRow{GC: c.GC, JVMGC: c.JVMGC,
				TimeMS: collection.Wall(r.Symbols, c.End()).UnixMilli(), PauseNS: c.Dur,
				Class: sites.WithLoader(k.Class, k.Loader), Objects: k.Objects, Bytes: k.Bytes}))
		}
		err = cmp.Or(err, ctx.Err())
		return err == nil
	}); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	return t.end()
}
