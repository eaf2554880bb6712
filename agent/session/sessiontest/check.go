package sessiontest

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// CheckFiles does as CheckAlone; all epochs must be there once.
func CheckFiles(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch) {
	t.Helper()
	seen := CheckAlone(t, files, byGC, true)
	for gc := range byGC {
		if seen[gc] != 1 {
			t.Errorf("gc %d was recorded %d times", gc, seen[gc])
		}
	}
}

// CheckAlone replays each file alone and compares the state after each of its collections with the truth; all: it must
// be known wherever it can be. It says how often each collection was there.
func CheckAlone(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch, all bool) map[uint64]int {
	t.Helper()
	seen := map[uint64]int{}
	states := 0
	for i, f := range files {
		rd := tracetest.NewReader()
		defined := map[uint64]bool{0: true}
		ids := map[uint64]uint64{}
		n := 0
		var at *tracetest.Epoch
		compare := func() {
			if at == nil || rd.LastSync == nil || !rd.Known && (at.Synced || !all) { // its listing begins the next file
				return
			}
			if rd.Known {
				states++
			}
			if why := rd.Compare(at, ids); why != "" {
				t.Fatalf("file %d alone, after gc %d: %s", i, at.Pause.GC, why)
			}
		}
		var prev trace.Kind
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatalf("file %d: %v", i, err)
			}
			if n == 0 && b.Kind != trace.KindMeta {
				t.Errorf("file %d begins with %v", i, b.Kind)
			}
			n++
			switch b.Kind {
			case trace.KindDefs:
				d, _ := trace.DecodeDefs(b)
				for _, fr := range d.Frames {
					if !defined[fr.Parent] {
						t.Errorf("file %d: frame %d before its parent %d", i, fr.ID, fr.Parent)
					}
					defined[fr.ID] = true
				}
			case trace.KindSamples:
				ss, _ := trace.DecodeSamples(b)
				for _, x := range ss {
					if !defined[x.Frame] {
						t.Errorf("file %d: sample %d with undefined frame %d", i, x.ID, x.Frame)
					}
				}
			case trace.KindSync:
				y, _ := trace.DecodeSync(b)
				for _, x := range y.Samples {
					if !defined[x.Frame] {
						t.Errorf("file %d: live sample %d with undefined frame %d", i, x.ID, x.Frame)
					}
				}
			case trace.KindGap:
				compare()
				at = nil
			case trace.KindEpoch:
				compare()
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					t.Fatal(err)
				}
				seen[e.Pause.GC]++
				at = byGC[e.Pause.GC]
				ids = map[uint64]uint64{}
			}
			if err := rd.Apply(b); err != nil {
				t.Fatalf("file %d, %v after %v: %v", i, b.Kind, prev, err)
			}
			prev = b.Kind
		}
		compare()
	}
	if states == 0 {
		t.Error("no state was ever known")
	}
	return seen
}
