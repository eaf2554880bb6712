package sites

import (
	"io"
	"strings"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/site"
)

// MaxFrames bounds the frames of a site in what is printed.
const MaxFrames = site.MaxFrames

// StackFrame is one frame of a site, innermost first. Line is nil when it is not known.
type StackFrame struct {
	Class  string `json:"class"`
	Method string `json:"method"`
	File   string `json:"file,omitempty"`
	Line   *int   `json:"line"`
	Native bool   `json:"native,omitempty"`
}

func (f StackFrame) String() string { return f.frame().String() }

func (f StackFrame) frame() site.Frame {
	x := site.Frame{Class: f.Class, Method: f.Method, File: f.File, Native: f.Native}
	if f.Line != nil {
		x.Line = *f.Line
	}
	return x
}

// Stack resolves the trie node frame to frames, innermost first, at most max of them.
func Stack(r *heap.Symbols, frame uint64, max int) []StackFrame {
	out := []StackFrame{}
	for frame != 0 && len(out) < max {
		f, ok := r.Frames[frame]
		if !ok {
			break
		}
		out = append(out, frameOf(r.Methods[f.Method], f.BCI))
		frame = f.Parent
	}
	return out
}

func frameOf(m trace.Method, bci int64) StackFrame {
	s := StackFrame{Class: trace.PrettySignature(m.Class), Method: m.Name, File: m.File,
		Native: m.Flags&trace.MethodNative != 0}
	if n := m.Line(bci); n > 0 {
		s.Line = &n
	}
	return s
}

// JoinStack is a stack as one text.
func JoinStack(frames []StackFrame) string {
	s := make([]string, len(frames))
	for i, f := range frames {
		s[i] = f.String()
	}
	return strings.Join(s, "; ")
}

// WriteStack prints the first n frames.
func WriteStack(w io.Writer, site []StackFrame, n int) {
	for j, f := range site[:min(n, len(site))] {
		more := ui.Text("")
		if j == n-1 && len(site) > n {
			more = ui.Sprintf("  (%d more)", len(site)-n)
		}
		ui.Beside(w, "       at ", ui.Sprintf("%s%s", f, more))
	}
}

func Top(site []StackFrame) string {
	if len(site) == 0 {
		return "at an unknown site"
	}
	return "at " + site[0].String()
}

// Place is Top as a part of a sentence, and the innermost frame of the application behind it.
func Place(site []StackFrame) ui.Flow { return placeText(site, 0) }

// Places gives the places of several rows, which say of what each has objects. Where two would read alike, the first
// frame that differs is in them.
func Places(of []ui.Flow, stacks [][]StackFrame) []ui.Flow {
	out := make([]ui.Flow, len(stacks))
	alike := map[ui.Flow][]int{}
	for i, s := range stacks {
		out[i] = Place(s)
		key := of[i] + "\n" + out[i]
		alike[key] = append(alike[key], i)
	}
	for _, is := range alike {
		if j := differs(stacks, is); j > 0 {
			for _, i := range is {
				out[i] = placeText(stacks[i], j)
			}
		}
	}
	return out
}

// differs gives the index of the first frame that differs in some of the stacks; 0 if none does.
func differs(stacks [][]StackFrame, is []int) int {
	first := stacks[is[0]]
	for j := 0; ; j++ {
		for _, i := range is[1:] {
			s := stacks[i]
			if j < len(s) != (j < len(first)) || j < len(s) && s[j].String() != first[j].String() {
				return j
			}
		}
		if j >= len(first) {
			return 0
		}
	}
}

// placeText names the innermost frame, the frame also if it has one, and the application's own.
func placeText(site []StackFrame, also int) ui.Flow {
	if len(site) == 0 {
		return "at an unknown site"
	}
	s, last := ui.Flowf("at %s", site[0]), 0
	for _, i := range []int{min(also, Own(site)), max(also, Own(site))} {
		if i <= last || i >= len(site) {
			continue
		}
		if i > last+1 {
			s += " …"
		}
		s += ui.Flowf(" from %s", site[i])
		last = i
	}
	return s
}
