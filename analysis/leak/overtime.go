package leak

import (
	"io"
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
)

// rates gives how fast a structure grew in each sixth of the window, in bytes a second: as its samples show it, and so
// that all parts together are its growth. nil: exact counts show it, and samples do not, or it filled the heap.
func (h *detector) rates(s *structure) []float64 {
	if s.exact || s.fills || s.alone != "" || len(s.keys) == 0 {
		return nil
	}
	c := h.curve(h.Sum(s.keys))
	n, v := len(c.t), c.v
	if n < growthParts {
		return nil
	}
	if len(c.floors) > 0 {
		v = refloor(v, c.floors)
	}
	low, from, to := envelope(v), c.t[0], c.t[n-1]
	before, grown := low[0], low[n-1]-low[0]
	if grown <= 0 || to <= from || s.grown <= 0 {
		return nil
	}
	out := make([]float64, growthParts)
	for i := range out {
		x := interpolate(c.t, low, from+(to-from)*float64(i+1)/growthParts)
		out[i], before = s.grown/grown*(x-before)/((to-from)/growthParts), x
	}
	return out
}

// writeRates prints them.
func (v *Verdict) writeRates(w io.Writer) {
	if len(v.Rates) == 0 {
		return
	}
	var all []string
	for _, x := range v.Rates {
		all = append(all, string(rate(x)))
	}
	ui.Paragraph(w, "    Over time", 16, ui.Flow(strings.Join(all, ", "))+" in six equal parts of the window")
}
