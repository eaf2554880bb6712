package collection

import (
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
)

// Gone counts what a recording lacks.
type Gone struct {
	Epochs, Samples uint64 // lost
	States          uint64 // collections after which the heap state is unknown
	Damaged         uint64 // sections
}

// Text says what is missing, in the words of all verbs.
func (g Gone) Text() ui.Flow {
	var parts []string
	for _, x := range []struct {
		before string
		n      uint64
		what   string
	}{{"", g.Epochs, "collection"}, {"", g.Samples, "sample"}, {"the heap state of ", g.States, "collection"},
		{"", g.Damaged, "damaged section"}} {
		if x.n > 0 {
			parts = append(parts, x.before+ui.Plural(x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return "nothing: no collection and no sample was lost"
	}
	return ui.Flow(strings.Join(parts, "; "))
}
