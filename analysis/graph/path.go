package graph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// Path leads from a root to an object.
type Path struct {
	Root references.Root // the zero value if From is not a root
	From int             // the object at its start; None: Root
	Hops []Hop
	Left int // references in the middle that were left out, because the path is very long
}

// Hop is a reference of a path, or a run of references that are called alike.
type Hop struct {
	Shape *references.Shape // of the object that has the slot
	Field references.Field
	Times int
	From  int // the first object that has the slot
}

// MaxHops bounds the hops of a path. Of a longer one the middle is left out.
const MaxHops = 64

// Static says whether the hop is a static field.
func (h *Hop) Static() bool {
	return h.Shape.Kind == references.Mirror && h.Shape.Of != "" && h.Field.Class == h.Shape.Of
}

// PathTo gives the best path from a root to object i, or false if there is none: the strongest one, and of those the
// shortest. A path through a running frame is given only where there is no other one.
func (g *Graph) PathTo(i int) (Path, bool) { return g.PathFrom(None, i) }

// PathFrom gives the part of PathTo(i) behind object from, or false if the path does not lead through from.
func (g *Graph) PathFrom(from, i int) (Path, bool) {
	p, _, ok := g.pathFrom(from, i)
	return p, ok
}

// pathFrom is PathFrom with the number of references that it followed.
func (g *Graph) pathFrom(from, i int) (p Path, steps int, ok bool) {
	p.From = from
	if i < 0 || i >= len(g.parent) || g.parent[i] == 0 {
		return p, 0, false
	}
	n := uint32(len(g.parent))
	var back []Hop // from the end of the path
	v := uint32(i)
	for int(v) != from {
		up := g.parent[v]
		if up > n {
			if from != None {
				return p, steps, false
			}
			p.Root = g.roots[up-n-1]
			break
		}
		steps++
		back = g.hop(back, up-1, v)
		v = up - 1
		if len(back) > 2*MaxHops { // keep the end, and what is at the start
			drop := back[MaxHops/2 : len(back)-MaxHops/2]
			for k := range drop {
				p.Left += drop[k].Times
			}
			back = append(back[:MaxHops/2], back[len(back)-MaxHops/2:]...)
		}
	}
	for k := len(back) - 1; k >= 0; k-- {
		p.Hops = append(p.Hops, back[k])
	}
	return p, steps, true
}

// hop appends the reference from object v to w to a path that is written from its end.
func (g *Graph) hop(back []Hop, v, w uint32) []Hop {
	s := &g.L.Shapes[g.L.Code[v]]
	f := s.Slot(g.slotTo(v, w))
	if k := len(back) - 1; k >= 0 && back[k].Shape == s && back[k].Field == f {
		back[k].Times++
		back[k].From = int(v)
		return back
	}
	return append(back, Hop{s, f, 1, int(v)})
}

// slotTo gives the slot of object v that holds w on the best path. All slots behind the fields are alike, so it does
// not search them.
func (g *Graph) slotTo(v, w uint32) int {
	code := g.L.Code[v]
	slots := g.L.Of(int(v))
	fields := min(len(g.L.Shapes[code].Fields), len(slots))
	for k, t := range slots[:fields] {
		if t != w+1 {
			continue
		}
		if !g.isLoose(v) || max(g.level[v], strengthLevel[g.L.Shapes[code].Slot(k).Strength]) == g.level[w] {
			return k
		}
	}
	return fields
}

// Text writes a path for people: the holder first. What leads to a static field is left out, as are packages behind the
// first class.
func (p *Path) Text() ui.Text {
	hops := p.Hops
	var parts []ui.Text
	start := 0
	for k := range hops {
		if hops[k].Field == references.ClassField { // an object holds the class that has the next static field
			break
		}
		if hops[k].Static() {
			start = k
		}
	}
	switch {
	case len(hops) > 0 && hops[start].Static():
		h := &hops[start]
		parts = append(parts, ui.Sprintf("static %s.%s", Name(h.Shape.Of), h.Field.Name))
		hops = hops[start+1:]
	case p.From == None:
		parts = append(parts, RootText(&p.Root))
	}
	for len(hops) > 0 {
		t, n := branch(hops)
		if n == 0 {
			t, n = hops[0].text(), 1
		}
		parts, hops = append(parts, t), hops[n:]
	}
	if p.Left > 0 {
		at := len(parts) / 2
		parts = slices.Insert(parts, at, ui.Sprintf("… %d more references …", p.Left))
	}
	var t ui.Text
	for k := range parts {
		if k > 0 {
			t += " → "
		}
		t += parts[k]
	}
	return t
}

// pattern is Text without what differs from one object to another of the same kind: names of threads, places in frames,
// and the lengths of lists.
func (p *Path) pattern() ui.Text {
	q := *p
	q.Left = 0
	q.Root.Thread, q.Root.Line = "", 0
	q.Hops = slices.Clone(p.Hops)
	for i := range q.Hops {
		q.Hops[i].Times = min(q.Hops[i].Times, 2)
	}
	for i := 0; i < len(q.Hops); i++ {
		if _, n := branch(q.Hops[i:]); n > 0 { // the depth in a tree is like the length of a list
			for k := range n {
				q.Hops[i+k].Times = 2 * int(b2u(k == 0))
			}
			i += n - 1
		}
	}
	if p.Left > 0 { // the list is so long, or so mixed, that only its ends can be compared
		q.Hops = slices.Concat(q.Hops[:4], q.Hops[len(q.Hops)-4:])
	}
	return q.Text()
}

// branch writes the way through a tree as one part, where hops change between fields of one class that all lead to
// objects of that class: which ones differs from one object to another. n is how many hops that are, 0 if it is none.
func branch(hops []Hop) (t ui.Text, n int) {
	var fields []string
	times := 0
	for n+1 < len(hops) && hops[n].Shape == hops[0].Shape && hops[n+1].Shape == hops[0].Shape && !hops[n].Static() &&
		hops[n].Shape.Kind != references.ObjectArray && hops[n].Field.Strength == references.Strong {
		if f := hops[n].Field.Name; !slices.Contains(fields, f) {
			fields = append(fields, f)
		}
		times += hops[n].Times
		n++
	}
	if len(fields) < 2 {
		return "", 0
	}
	slices.Sort(fields)
	return ui.Sprintf("%s.%s ×%d", Simple(hops[0].Shape.Name), strings.Join(fields, "/"), times), n
}

// text writes one hop.
func (h *Hop) text() ui.Text {
	t := ui.Sprintf("%s", cmp.Or(h.Field.Name, "?"))
	switch {
	case h.Static():
		t = ui.Sprintf("static %s.%s", Name(h.Shape.Of), t)
	case h.Shape.Kind != references.ObjectArray:
		t = ui.Sprintf("%s.%s", Simple(h.Shape.Name), t)
	}
	if h.Field.Strength != references.Strong {
		t = ui.Sprintf("%s (%s)", t, h.Field.Strength)
	}
	if h.Times > 1 {
		t = ui.Sprintf("%s ×%d", t, h.Times)
	}
	return t
}

// RootText writes a root for people.
func RootText(r *references.Root) ui.Text {
	t := ui.Sprintf("(%s)", r.Kind)
	switch {
	case r.Thread != "" && r.Kind == references.ThreadRoot:
		t = ui.Sprintf("(thread %q)", ui.Name(r.Thread))
	case guessed(*r):
		return "(a word on a stack, perhaps a reference)"
	case r.Thread != "":
		t = ui.Sprintf("(%s of thread %q)", r.Kind, ui.Name(r.Thread))
	}
	if r.Method != "" {
		t = ui.Sprintf("%s %s.%s", t, Name(r.Class), r.Method)
		if r.Line > 0 {
			t = ui.Sprintf("%s:%d", t, r.Line)
		}
	}
	if r.Field != "" {
		t = ui.Sprintf("%s %s", t, r.Field)
	}
	return t
}

// Name gives a class name as Java writes it.
func Name(class string) string { return trace.PrettyClass(class) }

// Simple gives a class name without its package and without the classes around it.
func Simple(class string) string {
	n := Name(class)
	n = n[strings.LastIndexByte(n, '.')+1:]
	if at := strings.LastIndexByte(n, '$'); at >= 0 && at+1 < len(n) && (n[at+1] < '0' || n[at+1] > '9') {
		n = n[at+1:]
	}
	return n
}

// Ways groups a set of objects by the paths to them from the roots, the commonest first. What no root reaches is not
// in it. Of a large set it looks at objects that are evenly chosen: seen says at how many.
func (g *Graph) Ways(set []Member) (ways []Pattern, seen int) {
	f := &finder{g: g}
	p := part{}
	step := max(1, len(set)/maxWays)
	for i := 0; i < len(set); i += step {
		p.members = append(p.members, set[i])
	}
	return f.patterns(&p, None), len(p.members)
}

// maxWays is about how many objects Ways looks at.
const maxWays = 1 << 14
