package sites

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// names are the definitions of a replay as coverage.Proofs needs them.
type names struct{ *heap.Symbols }

func (n names) Type(id uint64) (t trace.Type, ok bool)     { t, ok = n.Types[id]; return t, ok }
func (n names) Method(id uint64) (m trace.Method, ok bool) { m, ok = n.Methods[id]; return m, ok }
func (n names) Frame(id uint64) (f trace.Frame, ok bool)   { f, ok = n.Frames[id]; return f, ok }
func (n names) CandidatesOf(typ uint64) []trace.Candidate  { return n.Candidates[typ] }
func (n names) Rounds() []trace.Scanned                    { return n.Scans }

// FromFew is what is proven of a type: so many of its objects, without those that were sampled, come from one of these
// bytecodes.
type FromFew struct {
	heap.Count
	Places []StackFrame
}

// placesOf gives candidates as frames.
func placesOf(s *heap.Symbols, from []trace.Candidate) (out []StackFrame) {
	for _, c := range from {
		out = append(out, frameOf(s.Methods[c.Method], int64(c.BCI)))
	}
	return out
}

// FromFew gives what one of few bytecodes has made of a type, after the newest call of Quality.
func (f *CoverageFollower) FromFew(s *heap.Symbols, typ uint32) FromFew {
	n, from := f.Recording.FromFew(typ)
	return FromFew{heap.Count(n), placesOf(s, from)}
}
