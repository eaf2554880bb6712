package heap

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestReferenced: a listing counts if its first and its last part are there, and if it was not refused.
func TestReferenced(t *testing.T) {
	part := func(listing, n, flags uint64, refused string) trace.Block {
		return trace.EncodeRefs(&trace.RefPart{Listing: listing, N: n, Flags: flags, HasAbout: n == 1,
			About: trace.References{Refused: refused}})
	}
	left := trace.Block{Kind: trace.KindRefs, Version: trace.RefsFormatVersion} // of a reader that needs no references
	for name, c := range map[string]struct {
		bs   []trace.Block
		want bool
	}{
		"in one part":  {[]trace.Block{part(1, 1, trace.RefFirst|trace.RefLast, "")}, true},
		"in parts":     {[]trace.Block{part(1, 1, trace.RefFirst, ""), left, part(1, 3, trace.RefLast, "")}, true},
		"cut off":      {[]trace.Block{part(1, 1, trace.RefFirst, ""), left}, false},
		"two cut off":  {[]trace.Block{part(1, 1, trace.RefFirst, ""), part(2, 3, trace.RefLast, "")}, false},
		"refused":      {[]trace.Block{part(1, 1, trace.RefFirst|trace.RefLast, "it would take too long")}, false},
		"then another": {[]trace.Block{left, part(2, 1, trace.RefFirst|trace.RefLast, "")}, true},
	} {
		r := NewCensus(&blocks{c.bs})
		if _, err := r.Next(); r.Referenced != c.want {
			t.Errorf("%s: %v (%v)", name, r.Referenced, err)
		}
	}
}
