package graph

import "fmt"

// Text writes who holds a set, a line each.
func (h *Held) Text() []string {
	var out []string
	line := func(share float64, format string, args ...any) {
		out = append(out, fmt.Sprintf("%5.1f %%  ", share*100)+fmt.Sprintf(format, args...))
	}
	for i := range h.Holders {
		line(h.Holders[i].Share, "%s", h.Holders[i].Text())
	}
	if h.Rest >= 0.0005 {
		line(h.Rest, "in other ways, each below %.0f %%", noteworthy*100)
	}
	if h.Weak >= 0.0005 {
		line(h.Weak, "weak or phantom references alone: the next collection can free them")
	}
	if h.Unreached >= 0.0005 {
		if len(h.Missing) == 0 {
			line(h.Unreached, "nothing: garbage that has not been collected yet")
		} else {
			line(h.Unreached, "not reached from the roots that were recorded")
		}
	}
	return out
}

// Text writes a holder as one line: the path to it and the commonest way from it to what it holds.
func (h *Holder) Text() string {
	t := ""
	if h.Object != None {
		if t = h.Path.Text(); len(h.Path.Hops) == 0 {
			t += " " + h.Class
		}
	}
	if len(h.Below) > 0 {
		if way := h.Below[0].Path.Text(); way != "" {
			if t != "" {
				t += ", then "
			}
			t += way
		}
	}
	return t
}
