// Package analysis turns a replayed recording into what people ask for first: the report.
// It renders to JSON (schema heapcam.report/1) and to text that fits one screen. It reads through package heap and never touches files.
package analysis

import (
	"fmt"
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
	Native bool   `json:"native,omitempty"`
}

func (f StackFrame) String() string {
	if f.Line != nil {
		return fmt.Sprintf("%s.%s(%s:%d)", f.Class, f.Method, f.File, *f.Line)
	}
	if f.Native {
		return fmt.Sprintf("%s.%s(native)", f.Class, f.Method)
	}
	return fmt.Sprintf("%s.%s", f.Class, f.Method)
}

// Stack resolves the trie node frame to frames, innermost first, at most max of them.
func Stack(r *heap.Symbols, frame uint64, max int) []StackFrame {
	out := []StackFrame{}
	for frame != 0 && len(out) < max {
		f, ok := r.Frames[frame]
		if !ok {
			break
		}
		m := r.Methods[f.Method]
		s := StackFrame{Class: trace.PrettySignature(m.Class), Method: m.Name, File: m.File, Native: m.Flags&trace.MethodNative != 0}
		if n := m.Line(f.BCI); n > 0 {
			s.Line = &n
		}
		out = append(out, s)
		frame = f.Parent
	}
	return out
}

// wall is the time of day, UTC, of a stream time.
func wall(r *heap.Symbols, ns uint64) time.Time {
	// A hostile anchor must not give a year that JSON refuses.
	return time.UnixMilli(int64(min(r.JVM.T0WallMS, 1<<47))).Add(time.Duration(ns)).UTC()
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
