package sites

import "testing"

// TestID: lines, the numbers of lambdas and nothing else may change without changing the id.
func TestID(t *testing.T) {
	line := func(n int) *int { return &n }
	site := []StackFrame{{Class: "java.util.HashMap", Method: "newNode", Line: line(1)},
		{Class: "a.B", Method: "lambda$run$3", File: "B.java", Line: line(7)}, {Class: "a.B", Method: "run2"}}
	same := []StackFrame{{Class: "java.util.HashMap", Method: "newNode"},
		{Class: "a.B", Method: "lambda$run$12", File: "B2.java", Line: line(9)}, {Class: "a.B", Method: "run2"}}
	if ID("x", site) != ID("x", same) || len(ID("x", site)) != 16 {
		t.Errorf("%s and %s", ID("x", site), ID("x", same))
	}
	other := append([]StackFrame{}, site...)
	other[2].Method = "run3"
	seen := map[string]bool{ID("x", site): true}
	for i, id := range []string{ID("y", site), ID("x", site[:2]), ID("x", nil), ID("x", other)} {
		if seen[id] {
			t.Errorf("%d has the id of another site", i)
		}
		seen[id] = true
	}
}
