package graph

import "github.com/heapcam/heapcam/internal/ui"

// Line is a line of Held.Text: a share of the set, and what holds it.
type Line struct {
	Share float64
	Text  ui.Text
}

// Lines writes who holds a set, a line each.
func (h *Held) Lines() (out []Line) {
	for i := range h.Holders {
		out = append(out, Line{h.Holders[i].Share, h.Holders[i].Text()})
	}
	for _, l := range []Line{
		{h.Rest, ui.Sprintf("in other ways, each below %.0f %%", noteworthy*100)},
		{h.Weak, "weak or phantom references alone: the next collection can free them"},
		{h.Unreached, h.unreached()},
	} {
		if l.Share >= 0.0005 {
			out = append(out, l)
		}
	}
	return out
}

// Alike gives the largest group of holders that are reached in the same way, such as the thread locals of several
// threads: how many they are, their share of the set together, and the text of the first, without what differs.
func (h *Held) Alike() (n int, share float64, each ui.Text) {
	type group struct {
		n     int
		share float64
		first *Holder
	}
	groups := map[ui.Text]*group{}
	var most group
	for i := range h.Holders {
		x := &h.Holders[i]
		if x.Object == None || x.Of != "" {
			continue
		}
		t := ui.Sprintf("%s %s", x.Path.pattern(), x.Class)
		if groups[t] == nil {
			groups[t] = &group{first: x}
		}
		g := groups[t]
		if g.n, g.share = g.n+1, g.share+x.Share; g.share > most.share {
			most = *g
		}
	}
	if most.n == 0 {
		return 0, 0, ""
	}
	x := most.first
	if each = x.Path.pattern(); len(x.Path.Hops) == 0 {
		each = ui.Sprintf("%s %s", each, x.Class)
	}
	if len(x.Below) > 0 && x.Below[0].Path.pattern() != "" {
		each += ", then " + x.Below[0].Path.pattern()
	}
	return most.n, most.share, each
}

// unreached says what holds what no root reaches.
func (h *Held) unreached() ui.Text {
	if len(h.Missing) == 0 {
		return "nothing: garbage that has not been collected yet"
	}
	return "not reached from the roots that were recorded"
}

// Text writes a holder as one line: the path to it and the commonest way from it to what it holds.
func (h *Holder) Text() ui.Text {
	var t ui.Text
	switch {
	case h.Object == None:
	case h.Of != "": // fields of many names: the class says more than how it is reached
		return ui.Sprintf("class %s, in other ways, each below %.0f %%", h.Of, noteworthy*100)
	default:
		if t = h.Path.Text(); len(h.Path.Hops) == 0 {
			t = ui.Sprintf("%s → %s", t, h.Class)
		}
	}
	if len(h.Below) > 0 {
		way := h.Below[0].Path.Text()
		if t != "" && way != "" {
			t += ", then "
		}
		t += way
	}
	return t
}
