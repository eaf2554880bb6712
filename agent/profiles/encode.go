package profiles

import (
	"bytes"
	"cmp"
	"fmt"
	"sync"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"

	"github.com/heapcam/heapcam/agent/session"
)

// valueNames are the values of a profile; each has objects and bytes.
var valueNames = [session.ProfileValues]string{"inuse", "alloc", "survived", "freed"}

// Encode gives a profile in pprof's format, gzipped. Values that are not known are not in it. It has no labels: a
// server makes a series of each. Errors: those of pprof's own check.
func Encode(p *session.Profile) ([]byte, error) {
	e := encoder{functions: map[functionKey]*profile.Function{},
		locations: map[session.ProfileFrame]*profile.Location{}}
	out := &e.out
	from := session.InUse
	out.DefaultSampleType = "inuse_space"
	if !p.Known {
		from, out.DefaultSampleType = session.Allocated, "alloc_space"
	}
	for _, n := range valueNames[from:] {
		out.SampleType = append(out.SampleType, &profile.ValueType{Type: n + "_objects", Unit: "count"},
			&profile.ValueType{Type: n + "_space", Unit: "bytes"})
	}
	out.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
	out.Period = int64(min(p.Of.Interval, 1<<40))
	out.TimeNanos, out.DurationNanos = p.From.UnixNano(), int64(p.To.Sub(p.From))
	if p.Known {
		out.Comments = []string{fmt.Sprintf("heapcam: in use after collection %d", p.GC)}
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		s := &profile.Sample{Location: make([]*profile.Location, 0, 1+len(r.Stack)),
			Value: make([]int64, 0, 2*session.ProfileValues)}
		if r.Class != "" {
			s.Location = append(s.Location, e.location(session.ProfileFrame{Name: r.Class}))
		}
		for _, f := range r.Stack {
			s.Location = append(s.Location, e.location(f))
		}
		any := false
		for v := from; v < session.ProfileValues; v++ {
			objects, bytes := r.Value(v)
			s.Value = append(s.Value, objects, bytes)
			any = any || objects > 0 || bytes > 0
		}
		if any {
			out.Sample = append(out.Sample, s)
		}
	}
	if err := out.CheckValid(); err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	var b bytes.Buffer
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(&b)
	if err := out.WriteUncompressed(z); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

// zippers are kept, since a new one clears 1 MB. Of a large profile, pprof's own would take four times as long for 2 %
// less.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, 5) // a level that exists
	return z
}}

type functionKey struct{ name, file string }

// encoder gives functions and locations their ids.
type encoder struct {
	out       profile.Profile
	functions map[functionKey]*profile.Function
	locations map[session.ProfileFrame]*profile.Location
}

func (e *encoder) location(at session.ProfileFrame) *profile.Location {
	l := e.locations[at]
	if l != nil {
		return l
	}
	name := cmp.Or(at.Name, "(unknown method)")
	f := e.functions[functionKey{name, at.File}]
	if f == nil {
		f = &profile.Function{ID: uint64(len(e.functions) + 1), Name: name, SystemName: name, Filename: at.File}
		e.functions[functionKey{name, at.File}] = f
		e.out.Function = append(e.out.Function, f)
	}
	l = &profile.Location{ID: uint64(len(e.locations) + 1),
		Line: []profile.Line{{Function: f, Line: int64(at.Line)}}}
	e.locations[at] = l
	e.out.Location = append(e.out.Location, l)
	return l
}
