package export

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// stackValue is what a stack and a class have: allocated in the window up to the collection, and live after it.
type stackValue struct {
	frame       uint64
	note        string // instead of frames, of what has no sample
	typ         uint32
	alloc, live [2]float64 // objects, bytes
	drawn       [2]float64 // of live: the innermost frame is exact, and the callers are drawn (sites.Callers)
}

// Profile is what pprof and collapsed stacks are made of.
type Profile struct {
	r      *heap.Replay
	c      *heap.Collection
	first  time.Time
	values []stackValue
	drawn  uint64 // objects with drawn callers
}

// NewProfile replays r up to collection gc. Live figures are those of `group --by type, site`, so that they add up to
// the exact state; what was allocated is estimated from all samples of the window. Errors are those of At.
func NewProfile(r *heap.Replay, gc uint64) (*Profile, error) {
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
	var callers sites.Callers
	for p.c == nil {
		c, err := r.Next()
		if err != nil {
			if err == io.EOF {
				return nil, collection.NotThere(fmt.Sprintf("collection %d is not in the recording", gc))
			}
			return nil, err
		}
		if p.first.IsZero() {
			p.first = collection.Wall(r.Symbols, c.Start)
		}
		callers.Follow(&r.Cursor)
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
		return nil, collection.NotThere(
			fmt.Sprintf("the state after collection %d is not known (`heapcam report` shows where it is)", gc),
		)
	}
	w, spaces := analysis.World(r.View(), p.c)
	analysis.DrawCallers(w, r.View(), callers.Frozen())
	ts, err := analysis.Tuples(r.View(), w, spaces, classify.AttrSite, 8, nil)
	if err != nil {
		return nil, err
	}
	objects, bytes := grouping.Estimate(w, ts)
	for i := range ts {
		t := &ts[i]
		k := key{frame: t.Frame, typ: t.Type}
		if !t.Sampled {
			k = key{note: w.NoSite(t), typ: t.Type}
		}
		v := at(k)
		v.live[0] += objects[i]
		v.live[1] += bytes[i]
		if t.Drawn {
			v.drawn[0] += objects[i]
			v.drawn[1] += bytes[i]
			p.drawn += t.Objects
		}
	}
	for _, v := range by {
		p.values = append(p.values, *v)
	}
	slices.SortFunc(p.values, func(a, b stackValue) int {
		return cmp.Or(cmp.Compare(b.live[1], a.live[1]), cmp.Compare(b.alloc[1], a.alloc[1]),
			cmp.Compare(a.frame, b.frame), cmp.Compare(a.typ, b.typ), cmp.Compare(a.note, b.note))
	})
	return p, nil
}

func round(x float64) int64 { return int64(math.Round(max(0, min(x, 1<<62)))) }

// WritePprof writes a gzipped profile with alloc_objects, alloc_space, inuse_objects and inuse_space, and the class as
// label "type". What has drawn callers is apart, with the label "callers". It is checked with pprof's own validation
// before.
func (p *Profile) WritePprof(w io.Writer) error {
	out := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
			{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            int64(min(p.c.Interval, math.MaxInt64)),
		DefaultSampleType: "inuse_space",
		TimeNanos:         p.first.UnixNano(),
		DurationNanos:     int64(collection.Wall(p.r.Symbols, p.c.Start+p.c.Dur).Sub(p.first)),
		Comments: []string{fmt.Sprintf("heapcam: live after collection %d (GC(%d) of the JVM's log); "+
			"allocated in the window up to it, estimated from samples", p.c.GC, p.c.JVMGC)},
	}
	if p.drawn > 0 {
		out.Comments = append(out.Comments, fmt.Sprintf("heapcam: the callers of %d objects are drawn among live "+
			"samples with the same innermost frame, which is exact; these objects have the label callers=drawn",
			p.drawn))
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
	for _, v := range p.values {
		objects, bytes := round(v.drawn[0]), round(v.drawn[1])
		s := &profile.Sample{Value: []int64{round(v.alloc[0]), round(v.alloc[1]), round(v.live[0]) - objects,
			round(v.live[1]) - bytes}, Label: map[string][]string{"type": {string(ui.Name(p.r.TypeName(v.typ)))}}}
		for _, f := range sites.Stack(p.r.Symbols, v.frame, sites.MaxFrames) {
			line := int64(0)
			if f.Line != nil {
				line = int64(*f.Line)
			}
			s.Location = append(s.Location,
				location(function(string(ui.Name(f.Class+"."+f.Method)), string(ui.Name(f.File))), line))
		}
		if len(s.Location) == 0 {
			s.Location = []*profile.Location{location(function(cmp.Or(v.note, "(no Java frame)"), ""), 0)}
		}
		if objects == 0 || slices.Max(s.Value) > 0 {
			out.Sample = append(out.Sample, s)
		}
		if objects > 0 {
			out.Sample = append(out.Sample, &profile.Sample{Location: s.Location, Value: []int64{0, 0, objects, bytes},
				Label: map[string][]string{"type": s.Label["type"], "callers": {"drawn"}}})
		}
	}
	if err := out.CheckValid(); err != nil {
		return fmt.Errorf("pprof: %w", err)
	}
	return out.Write(w)
}

// WriteCollapsed writes a line for each stack and class, outermost frame first, the class last: frame;frame;class
// VALUE. value is one of alloc_objects, alloc_space, inuse_objects, inuse_space. What has drawn callers has a line of
// its own, with drawnMark behind the class, as other tools mark frames.
func (p *Profile) WriteCollapsed(w io.Writer, value string) error {
	pick, ok := map[string]func(*stackValue) (all, drawn float64){
		"alloc_objects": func(v *stackValue) (all, drawn float64) { return v.alloc[0], 0 },
		"alloc_space":   func(v *stackValue) (all, drawn float64) { return v.alloc[1], 0 },
		"inuse_objects": func(v *stackValue) (all, drawn float64) { return v.live[0], v.drawn[0] },
		"inuse_space":   func(v *stackValue) (all, drawn float64) { return v.live[1], v.drawn[1] },
	}[value]
	if !ok {
		return fmt.Errorf("value %q is not one of alloc_objects, alloc_space, inuse_objects, inuse_space", value)
	}
	separators := strings.NewReplacer(";", ":", " ", "_")
	clean := func(name string) ui.Text { return ui.Text(separators.Replace(string(ui.Name(name)))) }
	b := bufio.NewWriter(w)
	for i := range p.values {
		v := &p.values[i]
		all, drawn := pick(v)
		all, drawn = math.Round(all), math.Round(drawn)
		frames := sites.Stack(p.r.Symbols, v.frame, sites.MaxFrames)
		slices.Reverse(frames)
		stack := ui.Text("")
		if len(frames) == 0 {
			stack = clean(cmp.Or(v.note, "(no Java frame)")) + ";"
		}
		for _, f := range frames {
			stack += clean(f.Class+"."+f.Method) + ";"
		}
		stack += clean(p.r.TypeName(v.typ))
		if all > drawn {
			ui.Fprintf(b, "%s %.0f\n", stack, all-drawn)
		}
		if drawn > 0 {
			ui.Fprintf(b, "%s%s %.0f\n", stack, drawnMark, drawn)
		}
	}
	return b.Flush()
}

const drawnMark ui.Text = "_[callers_drawn]"
