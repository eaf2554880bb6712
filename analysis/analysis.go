// Package analysis turns a replayed recording into what people ask for: the report, the class histogram of a collection, verification.
// It renders to JSON (schema heapcam.NAME/1) and to text that fits one screen. It reads through package heap and never touches files.
package analysis

import (
	"errors"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// StackFrame is one frame of a site, innermost first. Line is nil when it is not known.
type StackFrame struct {
	Class  string `json:"class"`
	Method string `json:"method"`
	File   string `json:"file,omitempty"`
	Line   *int   `json:"line"`
}

func (f StackFrame) String() string {
	if f.Line != nil {
		return fmt.Sprintf("%s.%s(%s:%d)", f.Class, f.Method, f.File, *f.Line)
	}
	return fmt.Sprintf("%s.%s", f.Class, f.Method)
}

// Stack resolves the trie node frame to frames, innermost first, at most max of them.
func Stack(r *heap.Replayer, frame uint64, max int) []StackFrame {
	out := []StackFrame{}
	for frame != 0 && len(out) < max {
		f, ok := r.Frames[frame]
		if !ok {
			break
		}
		m := r.Methods[f.Method]
		s := StackFrame{Class: trace.PrettySignature(m.Class), Method: m.Name, File: m.File}
		if n := m.Line(f.BCI); n > 0 {
			s.Line = &n
		}
		out = append(out, s)
		frame = f.Parent
	}
	return out
}

// ClassRow is a row of a class histogram.
type ClassRow struct {
	Class   string `json:"class"`
	VMClass string `json:"vm_class,omitempty"` // of hidden classes
	Loader  string `json:"loader,omitempty"`   // where one name has several
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// Histogram is the class histogram of the state after one collection.
type Histogram struct {
	Schema  string     `json:"schema"`
	GC      uint64     `json:"gc"`
	JVMGC   uint64     `json:"jvm_gc"` // the JVM's own count of collections
	Known   bool       `json:"known"`
	Objects uint64     `json:"objects"`
	Bytes   uint64     `json:"bytes"`
	Classes []ClassRow `json:"classes"`
}

// ErrNoGC says that a recording does not hold the collection asked for.
var ErrNoGC = errors.New("this recording does not hold that collection")

// HistogramAt replays to the collection that at names (a number, first, last, peak, or a time: RFC 3339 or HH:MM:SS) and counts.
// open gives a fresh replayer of the same recording each time it is called.
func HistogramAt(open func() (*heap.Replayer, error), at string) (*Histogram, error) {
	want, err := findGC(open, at)
	if err != nil {
		return nil, err
	}
	r, err := open()
	if err != nil {
		return nil, err
	}
	for {
		c, err := r.Next()
		if err == io.EOF {
			return nil, fmt.Errorf("--at %s: %w", at, ErrNoGC)
		}
		if err != nil {
			return nil, err
		}
		if c.GC == want {
			if !c.Known {
				return nil, fmt.Errorf("collection %d is in the recording, but the state after it is not known (no sync point since the last loss): choose another", c.GC)
			}
			return histogram(r, c), nil
		}
	}
}

func histogram(r *heap.Replayer, c *heap.Collection) *Histogram {
	h := &Histogram{Schema: "heapcam.histogram/1", GC: c.GC, JVMGC: c.JVMGC, Known: c.Known, Objects: c.Objects, Bytes: c.Bytes, Classes: []ClassRow{}}
	loaders := map[string]map[uint64]bool{}
	for id, n := range r.State.PerType() {
		if n.Objects > 0 {
			name, t := r.TypeName(uint32(id)), r.Types[uint64(id)]
			if loaders[name] == nil {
				loaders[name] = map[uint64]bool{}
			}
			loaders[name][t.Loader] = true
		}
	}
	type key struct {
		name   string
		loader uint64
	}
	rows := map[key]*ClassRow{}
	for id, n := range r.State.PerType() {
		if n.Objects == 0 {
			continue
		}
		name, t := r.TypeName(uint32(id)), r.Types[uint64(id)]
		k := key{name: name}
		if len(loaders[name]) > 1 {
			k.loader = t.Loader
		}
		row := rows[k]
		if row == nil {
			row = &ClassRow{Class: name}
			if t.Flags&trace.TypeHidden != 0 {
				row.VMClass = trace.CleanString([]byte(t.Name))
			}
			if k.loader != 0 {
				row.Loader = trace.PrettyClass(r.Loaders[k.loader].Name)
			}
			rows[k] = row
		}
		row.Objects += n.Objects
		row.Bytes += n.Bytes
	}
	for _, row := range rows {
		h.Classes = append(h.Classes, *row)
	}
	sort.Slice(h.Classes, func(i, j int) bool {
		a, b := h.Classes[i], h.Classes[j]
		if a.Bytes != b.Bytes {
			return a.Bytes > b.Bytes
		}
		return a.Class+a.Loader < b.Class+b.Loader
	})
	return h
}

// WriteText prints the histogram like jcmd's.
func (h *Histogram) WriteText(w io.Writer, top int) {
	fmt.Fprintf(w, "collection %d (GC(%d) of the JVM): %d objects, %s\n", h.GC, int64(h.JVMGC)-1, h.Objects, Bytes(h.Bytes))
	fmt.Fprintf(w, "%12s %14s  %s\n", "objects", "bytes", "class")
	for i, c := range h.Classes {
		if top > 0 && i >= top {
			fmt.Fprintf(w, "%27s  … %d more classes\n", "", len(h.Classes)-i)
			break
		}
		name := c.Class
		if c.Loader != "" {
			name += " (" + c.Loader + ")"
		}
		fmt.Fprintf(w, "%12d %14d  %s\n", c.Objects, c.Bytes, name)
	}
}

// findGC turns a reference into a collection number. peak is the collection with the most known live bytes.
func findGC(open func() (*heap.Replayer, error), at string) (uint64, error) {
	if n, err := strconv.ParseUint(at, 10, 64); err == nil {
		return n, nil
	}
	r, err := open()
	if err != nil {
		return 0, err
	}
	var clock time.Time
	if at != "first" && at != "last" && at != "peak" {
		if clock, err = time.Parse(time.RFC3339, at); err != nil {
			if clock, err = time.Parse("15:04:05", at); err != nil {
				return 0, fmt.Errorf("--at %q is not a collection number, first, last, peak, an RFC 3339 time or HH:MM:SS", at)
			}
		}
	}
	var found, best uint64
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		t := wall(r, c.Start)
		switch {
		case at == "first" && c.Known:
			return c.GC, nil
		case at == "last" && c.Known, at == "peak" && c.Known && c.Bytes > best:
			found, best = c.GC, max(best, c.Bytes)
		case !clock.IsZero() && c.Known:
			if clock.Year() == 0 {
				clock = time.Date(t.Year(), t.Month(), t.Day(), clock.Hour(), clock.Minute(), clock.Second(), 999999999, time.UTC)
			}
			if !t.After(clock) {
				found = c.GC
			}
		}
	}
	if found == 0 {
		return 0, fmt.Errorf("--at %s: %w", at, ErrNoGC)
	}
	return found, nil
}

// wall is the time of day, UTC, of a stream time.
func wall(r *heap.Replayer, ns uint64) time.Time {
	return time.UnixMilli(int64(r.JVM.T0WallMS)).Add(time.Duration(ns)).UTC()
}

// Bytes renders a size for people.
func Bytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Spark draws values as one line of at most width characters.
func Spark(v []float64, width int) string {
	if len(v) == 0 {
		return ""
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	var b strings.Builder
	n := min(width, len(v))
	for i := range n {
		x := v[i*len(v)/n]
		k := 0
		if hi > lo {
			k = int((x - lo) / (hi - lo) * 7.99)
		}
		b.WriteRune(bars[k])
	}
	return b.String()
}
