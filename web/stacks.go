package web

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
)

// flows are the groups of a heap state with all frames of their sites. The cache keeps them: they are only read.
type flows struct {
	gc    uint64
	heap  uint64   // bytes of all live objects
	sites bool     // the classifiers have a site: there are frames
	names []string // of keys, by number
	kinds []string // of keys, by number; "" for those that no stack has
	list  []stack
}

// stack is a group, with what no group below it has. Its keys are those before the site, the frames, innermost first,
// and those after the site.
type stack struct {
	keys           []int32
	from, to       int32 // keys[from:to] are frames
	bytes, objects float64
	drawn          float64 // of the objects: their callers were drawn
	sure           int32   // so many keys do not depend on drawn callers; with the root frame first at most from
	estimated      bool
	was            bool // of the state before, where two are compared
}

// size is how much memory the flows take, in bytes, roughly.
func (f *flows) size() int {
	n := 0
	for i := range f.list {
		n += 80 + 4*len(f.list[i].keys)
	}
	return n + 80*len(f.names)
}

// stacks returns the groups of a state with all frames of their sites, from the cache or from a grouping.
func (s *Server) stacks(ctx context.Context, at string, q question) (*flows, error) {
	by, _, err := q.make(s)
	if err != nil {
		return nil, err
	}
	site := slices.IndexFunc(by, func(c classify.Classifier) bool {
		return c.Name == "site" || strings.HasPrefix(c.Name, "site(")
	})
	names := make([]string, len(by))
	for i, c := range by {
		if names[i] = c.Name; i == site {
			names[i] = fmt.Sprintf("site(%d)", flameDepth)
		}
	}
	q = question{strings.Join(names, ", "), q.where}
	st, err := s.asked(ctx, at, q)
	if err != nil {
		return nil, err
	}
	return s.data.flows.get(ctx, st.key+"\x00"+q.String(), func(ctx context.Context) (*flows, error) {
		g, err := st.group(ctx, s)
		if err != nil {
			return nil, err
		}
		f, err := flowsOf(g, site, by)
		if err == nil {
			f.heap = st.c.Bytes
		}
		return f, err
	})
}

// flowsOf takes the stacks of a grouping. Classifier number site gives the frames.
func flowsOf(g *groups, site int, by []classify.Classifier) (*flows, error) {
	out := &flows{gc: g.GC, sites: site >= 0, names: g.tree.Keys()}
	out.kinds = make([]string, len(out.names))
	n := g.tree.Tuples()
	out.list = make([]stack, 0, n)
	m := merger{of: out, slot: make([]uint64, 1<<bits.Len(uint(2*n)))}
	err := g.tree.Leaves(func(l *grouping.Leaf) {
		if l.Bytes <= 0 {
			return
		}
		x := stack{bytes: l.Bytes, objects: l.Objects, estimated: l.Estimated, drawn: l.Drawn, sure: math.MaxInt32}
		m.keys = m.keys[:0]
		for i, step := range l.Path {
			m.keys = append(m.keys, step.Key)
			if int(step.Level) == site {
				if x.to == 0 {
					x.from = int32(i)
				}
				x.to = int32(i + 1)
				x.sure = min(x.sure, x.from+1)
			} else if by[step.Level].Callers > 0 {
				x.sure = min(x.sure, int32(i))
			}
			if out.kinds[step.Key] == "" {
				out.kinds[step.Key] = kindAt(out.names[step.Key], int(step.Level) == site, by[step.Level].Name)
			}
		}
		m.add(x)
	})
	if err == nil && len(out.list) > grouping.MaxNodes {
		err = grouping.ErrTooMany
	}
	if err != nil {
		return nil, badRequest{err}
	}
	return out, nil
}

// merger adds stacks with the same keys up.
type merger struct {
	of   *flows
	keys []int32  // of the stack that is added
	slot []uint64 // half of a hash, and 1 + place in of.list
	room []int32  // for the keys of many stacks, in one piece
}

func (m *merger) add(x stack) {
	if 2*len(m.of.list) >= len(m.slot) {
		old := m.slot
		m.slot = make([]uint64, max(1<<10, 2*len(old)))
		for _, s := range old {
			if s != 0 {
				*m.find(s, nil) = s
			}
		}
	}
	hash := uint64(len(m.keys))
	for _, k := range m.keys {
		hash = (hash ^ uint64(k)) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	at := m.find(hash, m.keys)
	if *at > 0 {
		y := &m.of.list[uint32(*at)-1]
		y.bytes, y.objects, y.estimated = y.bytes+x.bytes, y.objects+x.objects, y.estimated || x.estimated
		y.drawn += x.drawn
		return
	}
	n := len(m.keys)
	if len(m.room) < n {
		m.room = make([]int32, max(n, 1<<14))
	}
	x.keys = m.room[:n:n]
	m.room = m.room[n:]
	copy(x.keys, m.keys)
	m.of.list = append(m.of.list, x)
	*at = hash>>32<<32 | uint64(len(m.of.list))
}

// find returns the slot of keys with a hash, or the empty one that they take. Without keys it returns an empty one.
func (m *merger) find(hash uint64, keys []int32) *uint64 {
	mask := uint64(len(m.slot) - 1)
	for h := hash >> 32 & mask; ; h = (h + 1) & mask {
		s := m.slot[h]
		if s == 0 || keys != nil && s>>32 == hash>>32 && slices.Equal(m.of.list[uint32(s)-1].keys, keys) {
			return &m.slot[h]
		}
	}
}

// kindAt is what a key of a classifier is.
func kindAt(key string, frame bool, by string) string {
	switch {
	case frame:
		return kindOf(classOf(key))
	case by == "type" || strings.HasPrefix(by, "type("):
		return kindOf(key)
	}
	return nodeOther
}

// classOf is the class of a frame as a group names it: its method, file and line are left out.
func classOf(frame string) string {
	frame, _, _ = strings.Cut(frame, "(")
	if i := strings.LastIndexByte(frame, '.'); i > 0 {
		return frame[:i]
	}
	return frame
}

func kindOf(class string) string {
	name := strings.TrimRight(class, "[]")
	switch {
	case class == "" || strings.HasPrefix(class, "("): // (site unknown), (before the recording)
		return nodeUnknown
	case sites.JDK(name) || slices.Contains(primitives, name):
		return nodeJDK
	case sites.Library(name):
		return nodeLibrary
	}
	return nodeApp
}

var primitives = []string{"boolean", "byte", "char", "double", "float", "int", "long", "short"}

// folded joins neighbouring frames that are of the JDK or of frameworks. A joined one has the name of the outermost
// frame, which the application called, and an ellipsis.
func (f *flows) folded() *flows {
	out := *f
	out.names, out.kinds = slices.Clip(f.names), slices.Clip(f.kinds)
	joined := map[int32]int32{}
	fold := func(k int32) bool { return f.kinds[k] == nodeJDK || f.kinds[k] == nodeLibrary }
	for n := range f.list {
		x := f.list[n]
		frames := x.keys[x.from:x.to]
		if !slices.ContainsFunc(frames, fold) {
			continue
		}
		if &out.list[0] == &f.list[0] {
			out.list = slices.Clone(f.list)
		}
		keys := append(make([]int32, 0, len(x.keys)), x.keys[:x.from]...)
		for i := 0; i < len(frames); i++ {
			j := i
			for j < len(frames) && fold(frames[j]) {
				j++
			}
			if j-i < 2 {
				keys = append(keys, frames[i])
				continue
			}
			last := frames[j-1]
			k, ok := joined[last]
			if !ok {
				k = int32(len(out.names))
				joined[last] = k
				out.names, out.kinds = append(out.names, f.names[last]+" …"), append(out.kinds, f.kinds[last])
			}
			keys = append(keys, k)
			if i == 0 { // callers are in the same key as the innermost frame
				x.sure = min(x.sure, x.from)
			}
			i = j - 1
		}
		to := int32(len(keys))
		x.keys, x.to = append(keys, x.keys[x.to:]...), to
		out.list[n] = x
	}
	return &out
}

// joinFlows joins the flows of two states. name, unless nil, replaces the names of frames.
func joinFlows(was, now *flows, name func(string) string) *flows {
	out := &flows{list: make([]stack, 0, len(was.list)+len(now.list))}
	number := map[string]int32{}
	for n, f := range []*flows{was, now} {
		of := make([]int32, len(f.names)) // 1 + number
		frame := make([]bool, len(f.names))
		if name != nil {
			for i := range f.list {
				for _, k := range f.list[i].keys[f.list[i].from:f.list[i].to] {
					frame[k] = true
				}
			}
		}
		for _, x := range f.list {
			keys := make([]int32, len(x.keys))
			for i, k := range x.keys {
				if of[k] == 0 {
					text := f.names[k]
					if frame[k] {
						text = name(text)
					}
					at, ok := number[text]
					if !ok {
						at = int32(len(out.names))
						number[text] = at
						out.names, out.kinds = append(out.names, text), append(out.kinds, f.kinds[k])
					}
					of[k] = at + 1
				}
				keys[i] = of[k] - 1
			}
			x.keys, x.was = keys, n == 0
			out.list = append(out.list, x)
		}
	}
	return out
}
