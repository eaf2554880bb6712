package leak

import (
	"strings"
	"testing"
)

// TestPrintedTruly: what a verdict does not know is not printed as a figure, and nothing contradicts its sentence.
func TestPrintedTruly(t *testing.T) {
	text := func(v Verdict) string {
		var b strings.Builder
		(&Report{Verdicts: []Verdict{v}}).WriteText(&b, "")
		return strings.Join(strings.Fields(b.String()), " ")
	}
	full := text(Verdict{Kind: KindFills, HeapShare: 0.8, GrownBytes: 1 << 20})
	if strings.Contains(full, "of the heap's growth") || strings.Contains(full, "1 leak") ||
		!strings.Contains(full, "1 structure that filled the heap in") {
		t.Errorf("a heap that was full, and smaller at the end: %s", full)
	}
	if s := text(Verdict{Kind: KindLeak, Share: 0.5}); !strings.Contains(s, "50.0 % of the heap's growth") ||
		!strings.Contains(s, "1 leak in") {
		t.Errorf("a leak: %s", s)
	}
	const unknown = "whether the objects live is not known"
	if s := text(Verdict{Kind: KindSuspect}); !strings.Contains(s, unknown) {
		t.Errorf("a suspect: %s", s)
	}
	if s := text(Verdict{Kind: KindSuspect, seen: "All of it lives."}); strings.Contains(s, unknown) {
		t.Errorf("a suspect of which a collection showed that it lives: %s", s)
	}
}
