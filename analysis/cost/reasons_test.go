package cost

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestReasonsHaveWords: each reason of the trace has words of its own, and no word of a name in the code.
func TestReasonsHaveWords(t *testing.T) {
	for _, c := range []struct {
		names *trace.Enum
		words []string
		last  uint64
	}{{trace.SyncReasonNames, syncReasons[:], trace.SyncDepth}, {trace.GapReasonNames, gapReasons[:], trace.GapSamples},
		{trace.EndReasonNames, endReasons[:], trace.EndGaveUp}} {
		if uint64(len(c.words)) != c.last+1 {
			t.Errorf("%d words, want %d", len(c.words), c.last+1)
		}
		for i := uint64(1); i < uint64(len(c.words)); i++ {
			if c.words[i] == "" || in(c.words, i) != c.words[i] {
				t.Errorf("%s has no words", c.names.String(i))
			}
		}
		if in(c.words, 0) != in(c.words, 200) {
			t.Error("a reason without a meaning")
		}
	}
}
