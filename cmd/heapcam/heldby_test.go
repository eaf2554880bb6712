package main

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
)

// TestHolderOfMost: a holder of most of what is reached is named, if that is not a small part of all.
func TestHolderOfMost(t *testing.T) {
	for _, c := range []struct {
		share, garbage float64
		named          bool
	}{{0.6, 0, true}, {0.4, 0, false}, {0.44, 0.56, true}, {0.2, 0.56, false}, {0.04, 0.95, false}} {
		held := graph.Held{Weak: c.garbage / 2, Unreached: c.garbage / 2,
			Holders: []graph.Holder{{Share: c.share, Of: "a.B"}}}
		if got, _ := holderOfMost(&held); (got != "") != c.named {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
