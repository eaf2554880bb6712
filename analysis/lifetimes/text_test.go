package lifetimes

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/sites"
)

// TestCallersDiffer: two sites whose innermost frames are the same name the first caller that differs.
func TestCallersDiffer(t *testing.T) {
	r := &Report{By: "site"}
	churn := sites.StackFrame{Class: "a.U", Method: "churn"}
	for _, m := range []string{"one", "two"} {
		r.Rows = append(r.Rows, Row{Name: "byte[]", Site: []sites.StackFrame{churn, {Class: "a.B", Method: m}}})
	}
	var b strings.Builder
	r.WriteText(&b)
	for _, want := range []string{"at a.U.churn from a.B.one\n", "at a.U.churn from a.B.two\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}
