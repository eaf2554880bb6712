package history

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
)

// TestCallersDiffer: two sites whose innermost frames are the same name the first caller that differs.
func TestCallersDiffer(t *testing.T) {
	h := &HeapHistory{Collections: []uint64{1}, Seconds: []float64{0}, Last: 1}
	churn := sites.StackFrame{Class: "a.U", Method: "churn"}
	for _, m := range []string{"one", "two"} {
		h.Sites = append(h.Sites, History{Class: "byte[]", At: []int32{0}, Bytes: []uint64{1},
			Site: []sites.StackFrame{churn, {Class: "a.B", Method: m}}})
	}
	var b strings.Builder
	h.WriteText(&b, 20)
	for _, want := range []string{"at a.U.churn from a.B.one\n", "at a.U.churn from a.B.two\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	if h.WriteText(&b, 1); !strings.Contains(b.String(), "1 more; --top 0 shows all") {
		t.Errorf("%s", &b)
	}
}
