package analysis

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/parquet-go/parquet-go"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
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
	Died     uint64  `json:"died" parquet:"died"`         // collection that found it dead, 0: alive at the end, or not known
	Stack    string  `json:"stack" parquet:"stack,dict"`
}

// HistoryRow is a class after a collection, of the table "histories".
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
		return &parquetTable[T]{w: parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Snappy), parquet.KeyValueMetadata("heapcam.schema", schema))}, nil
	case "csv":
		ty := reflect.TypeFor[T]()
		heading := make([]string, ty.NumField())
		for i := range heading {
			heading[i], _, _ = strings.Cut(ty.Field(i).Tag.Get("json"), ",")
		}
		return &csvTable[T]{w: ui.NewCSV(w, heading...), row: make([]any, len(heading))}, nil
	case "json":
		b := bufio.NewWriter(w)
		_, err := ui.Fprintf(b, `{"schema":%q,"rows":[`, schema)
		return &jsonTable[T]{w: b}, err
	}
	return nil, fmt.Errorf("format %q is not one of %s", format, strings.Join(TableFormats, ", "))
}

type parquetTable[T any] struct {
	w   *parquet.GenericWriter[T]
	buf []T
	n   int
}

// rowGroup is how many rows a group of a Parquet file has: what the writer holds in memory.
const rowGroup = 1 << 19

func (t *parquetTable[T]) put(r T) error {
	if t.buf = append(t.buf, r); len(t.buf) < 4096 {
		return nil
	}
	return t.flush()
}

func (t *parquetTable[T]) flush() error {
	_, err := t.w.Write(t.buf)
	if t.n += len(t.buf); err == nil && t.n >= rowGroup {
		t.n, err = 0, t.w.Flush()
	}
	t.buf = t.buf[:0]
	return err
}

func (t *parquetTable[T]) end() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.w.Close()
}

type csvTable[T any] struct {
	w   *ui.CSV
	row []any
}

func (t *csvTable[T]) put(r T) error {
	v := reflect.ValueOf(r)
	for i := range t.row {
		t.row[i] = v.Field(i).Interface()
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

// joined is a stack as one text.
func joined(frames []StackFrame) string {
	s := make([]string, len(frames))
	for i, f := range frames {
		s[i] = f.String()
	}
	return strings.Join(s, "; ")
}

// stacks caches the texts of stacks.
type stacks struct {
	r    *heap.Symbols
	text map[uint64]string
}

func (s *stacks) of(frame uint64) string {
	t, ok := s.text[frame]
	if !ok {
		t = joined(Stack(s.r, frame, maxFrames))
		s.text[frame] = t
	}
	return t
}

// ExportState writes each object of the state of r, which stands after c.
func ExportState(ctx context.Context, w io.Writer, format string, r *heap.View, c *heap.Collection) error {
	t, err := newTable[StateRow](w, format, "heapcam.export.state/1")
	if err != nil {
		return err
	}
	st := stacks{r.Symbols, map[uint64]string{}}
	spaces := r.Spaces(c.Spaces)
	names := make([]string, len(spaces))
	for i, s := range spaces {
		names[i] = spaceName(r.Symbols, s)
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
		row := StateRow{Address: r.JVM.HeapBase + o.Addr*8, Class: k.class, Loader: k.loader, Bytes: o.Words * 8, Length: o.Length, Birth: o.Birth, AtLeast: o.AtLeast,
			Age: uint32(c.GC - min(c.GC, uint64(o.Birth))), Sample: o.Sample}
		for space < len(spaces) && spaces[space].End <= o.Addr {
			space++
		}
		if space < len(spaces) && spaces[space].Start <= o.Addr {
			row.Space = names[space]
		}
		if s := r.Live[o.Sample]; s != nil {
			row.Stack, row.Thread = st.of(s.Frame), r.Threads[s.Thread].Name
		}
		err = t.put(row)
		return err == nil
	})
	if err != nil {
		return err
	}
	return t.end()
}

// ExportSamples replays r and writes each sample that was taken, when it is known what became of it.
func ExportSamples(ctx context.Context, w io.Writer, format string, r *heap.Replay) error {
	t, err := newTable[SampleRow](w, format, "heapcam.export.samples/1")
	if err != nil {
		return err
	}
	st := stacks{r.Symbols, map[uint64]string{}}
	put := func(s *heap.Sample, died uint64) error {
		return t.put(SampleRow{ID: s.ID, TimeMS: wall(r.Symbols, s.Time).UnixMilli(), Thread: r.Threads[s.Thread].Name, Class: r.TypeName(uint32(s.Type)), Bytes: s.Size, Interval: s.Interval,
			Weight: s.Weight, Birth: s.Birth, Died: died, Stack: st.of(s.Frame)})
	}
	wait := map[uint64]*heap.Sample{}
	if rerr := Each(r, func(c *heap.Collection) bool {
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
				if r.Live[id] == nil {
					gone = append(gone, s)
				}
			}
		}
		slices.SortFunc(gone, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) })
		for _, s := range gone {
			err = cmp.Or(err, put(s, c.GC))
		}
		err = cmp.Or(err, ctx.Err())
		return err == nil
	}); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	for _, s := range r.Live {
		wait[s.ID] = s
	}
	rest := make([]*heap.Sample, 0, len(wait))
	for _, s := range wait {
		rest = append(rest, s)
	}
	slices.SortFunc(rest, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) })
	for _, s := range rest {
		if err := put(s, 0); err != nil {
			return err
		}
	}
	return t.end()
}

// ExportHistories replays r and writes each class after each collection whose state is known.
func ExportHistories(ctx context.Context, w io.Writer, format string, r *heap.Replay) error {
	t, err := newTable[HistoryRow](w, format, "heapcam.export.histories/1")
	if err != nil {
		return err
	}
	if rerr := Each(r, func(c *heap.Collection) bool {
		if !c.Known {
			return true
		}
		for _, k := range MakeHistogram(r.View(), c).Classes {
			err = cmp.Or(err, t.put(HistoryRow{GC: c.GC, JVMGC: c.JVMGC, TimeMS: wall(r.Symbols, c.Start+c.Dur).UnixMilli(), PauseNS: c.Dur, Class: withLoader(k.Class, k.Loader), Objects: k.Objects, Bytes: k.Bytes}))
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

// stackValue is what a stack and a class have: allocated in the window up to the collection, and live after it.
type stackValue struct {
	frame       uint64
	note        string // instead of frames, of what has no sample
	typ         uint32
	alloc, live [2]float64 // objects, bytes
}

// Profile is what pprof and collapsed stacks are made of.
type Profile struct {
	r      *heap.Replay
	c      *heap.Collection
	first  time.Time
	values []stackValue
}

// MakeProfile replays r up to collection gc. Live figures are those of `group --by type, site`, so that they add up to the exact state; what was
// allocated is estimated from all samples of the window. Errors are those of At.
func MakeProfile(r *heap.Replay, gc uint64) (*Profile, error) {
	p := &Profile{r: r}
	type key struct {
		frame uint64
		note  string
		typ   uint32
	}
	by := map[key]*stackValue{}
	at := func(k key) *stackValue {
		v := by[k]
		if v == nil {
			v = &stackValue{frame: k.frame, note: k.note, typ: k.typ}
			by[k] = v
		}
		return v
	}
	for p.c == nil {
		c, err := r.Next()
		if err != nil {
			if err == io.EOF {
				return nil, notThere(fmt.Sprintf("collection %d is not in it", gc))
			}
			return nil, err
		}
		if p.first.IsZero() {
			p.first = wall(r.Symbols, c.Start)
		}
		for _, s := range r.Sampled {
			v := at(key{frame: s.Frame, typ: uint32(s.Type)})
			v.alloc[0] += s.Weight
			v.alloc[1] += s.Weight * float64(s.Size)
		}
		if c.GC == gc {
			p.c = c
		}
	}
	if !p.c.Known {
		return nil, notThere(fmt.Sprintf("the state after collection %d is not known (`heapcam report` shows where it is)", gc))
	}
	w, spaces := World(r.View(), p.c)
	ts, err := Tuples(r.View(), p.c.GC, spaces, classify.AttrSite, 8, nil)
	if err != nil {
		return nil, err
	}
	objects, bytes := classify.Estimate(w, ts)
	for i := range ts {
		t := &ts[i]
		k := key{frame: t.Frame, typ: t.Type}
		if !t.Sampled {
			k = key{note: w.NoSite(t), typ: t.Type}
		}
		v := at(k)
		v.live[0] += objects[i]
		v.live[1] += bytes[i]
	}
	for _, v := range by {
		p.values = append(p.values, *v)
	}
	slices.SortFunc(p.values, func(a, b stackValue) int {
		return cmp.Or(cmp.Compare(b.live[1], a.live[1]), cmp.Compare(b.alloc[1], a.alloc[1]), cmp.Compare(a.frame, b.frame), cmp.Compare(a.typ, b.typ), cmp.Compare(a.note, b.note))
	})
	return p, nil
}

// WritePprof writes a gzipped profile with alloc_objects, alloc_space, inuse_objects and inuse_space, and the class as label "type". It is
// checked with pprof's own validation before.
func (p *Profile) WritePprof(w io.Writer) error {
	out := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: int64(min(p.c.Interval, math.MaxInt64)), DefaultSampleType: "inuse_space",
		TimeNanos: p.first.UnixNano(), DurationNanos: int64(wall(p.r.Symbols, p.c.Start+p.c.Dur).Sub(p.first)),
		Comments: []string{fmt.Sprintf("heapcam: live after collection %d (GC(%d) of the JVM's log); allocated in the window up to it, estimated from samples", p.c.GC, p.c.JVMGC)},
	}
	functions := map[string]*profile.Function{}
	function := func(name, file string) *profile.Function {
		k := name + "\x00" + file
		f := functions[k]
		if f == nil {
			f = &profile.Function{ID: uint64(len(functions) + 1), Name: name, SystemName: name, Filename: file}
			functions[k] = f
			out.Function = append(out.Function, f)
		}
		return f
	}
	type place struct {
		f    *profile.Function
		line int64
	}
	locations := map[place]*profile.Location{}
	location := func(f *profile.Function, line int64) *profile.Location {
		k := place{f, line}
		l := locations[k]
		if l == nil {
			l = &profile.Location{ID: uint64(len(locations) + 1), Line: []profile.Line{{Function: f, Line: line}}}
			locations[k] = l
			out.Location = append(out.Location, l)
		}
		return l
	}
	round := func(x float64) int64 { return int64(math.Round(max(0, min(x, 1<<62)))) }
	for _, v := range p.values {
		s := &profile.Sample{Value: []int64{round(v.alloc[0]), round(v.alloc[1]), round(v.live[0]), round(v.live[1])}, Label: map[string][]string{"type": {string(ui.Name(p.r.TypeName(v.typ)))}}}
		for _, f := range Stack(p.r.Symbols, v.frame, maxFrames) {
			line := int64(0)
			if f.Line != nil {
				line = int64(*f.Line)
			}
			s.Location = append(s.Location, location(function(string(ui.Name(f.Class+"."+f.Method)), string(ui.Name(f.File))), line))
		}
		if len(s.Location) == 0 {
			s.Location = []*profile.Location{location(function(cmp.Or(v.note, "(no Java frame)"), ""), 0)}
		}
		out.Sample = append(out.Sample, s)
	}
	if err := out.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return out.Write(w)
}

// WriteCollapsed writes a line for each stack and class, outermost frame first, the class last: frame;frame;class VALUE. value is one of
// alloc_objects, alloc_space, inuse_objects, inuse_space.
func (p *Profile) WriteCollapsed(w io.Writer, value string) error {
	pick, ok := map[string]func(*stackValue) float64{
		"alloc_objects": func(v *stackValue) float64 { return v.alloc[0] }, "alloc_space": func(v *stackValue) float64 { return v.alloc[1] },
		"inuse_objects": func(v *stackValue) float64 { return v.live[0] }, "inuse_space": func(v *stackValue) float64 { return v.live[1] },
	}[value]
	if !ok {
		return fmt.Errorf("value %q is not one of alloc_objects, alloc_space, inuse_objects, inuse_space", value)
	}
	separators := strings.NewReplacer(";", ":", " ", "_")
	clean := func(name string) ui.Text { return ui.Text(separators.Replace(string(ui.Name(name)))) }
	b := bufio.NewWriter(w)
	for i := range p.values {
		v := &p.values[i]
		n := math.Round(pick(v))
		if n <= 0 {
			continue
		}
		frames := Stack(p.r.Symbols, v.frame, maxFrames)
		slices.Reverse(frames)
		if len(frames) == 0 {
			ui.Fprintf(b, "%s;", clean(cmp.Or(v.note, "(no Java frame)")))
		}
		for _, f := range frames {
			ui.Fprintf(b, "%s;", clean(f.Class+"."+f.Method))
		}
		ui.Fprintf(b, "%s %.0f\n", clean(p.r.TypeName(v.typ)), n)
	}
	return b.Flush()
}
