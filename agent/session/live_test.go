package session

import (
	"testing"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/trace"
)

// TestLiveForgetsTypes: the table of sizes is made anew when most of its types have gone, and not for a few.
func TestLiveForgetsTypes(t *testing.T) {
	l := newLive()
	all := definitions.New()
	for id := uint64(1); id <= 3*keepTypes; id++ {
		ty := trace.Type{ID: id, Size: 16}
		l.defs([]trace.Type{ty})
		if id <= 10 {
			all.Add(trace.Defs{Types: []trace.Type{ty}})
		}
	}
	l.keep(all, 8)
	if n := l.types.Len(); n > 20 {
		t.Errorf("%d types are held of 10", n)
	}
	l.defs([]trace.Type{{ID: 100, Size: 16}})
	before := l.types.Len()
	l.keep(all, 8)
	if l.types.Len() != before {
		t.Error("one type too many makes a new table")
	}
}
