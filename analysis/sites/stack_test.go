package sites

import (
	"testing"

	"github.com/heapcam/heapcam/internal/ui"
)

// TestPlaces: a place names the application's own frame, and two that differ in a frame do not read alike.
func TestPlaces(t *testing.T) {
	frame := func(class, method string) StackFrame { return StackFrame{Class: class, Method: method} }
	node, put, val := frame("java.util.HashMap", "newNode"), frame("java.util.HashMap", "put"),
		frame("java.util.HashMap", "putVal")
	tree, add := frame("java.util.HashMap", "putTreeVal"), frame("a.Leak", "add")
	site := func(f ...StackFrame) []StackFrame { return f }
	for _, x := range []struct {
		of    []ui.Flow
		sites [][]StackFrame
		want  []ui.Flow
	}{
		{[]ui.Flow{"x", "y"}, [][]StackFrame{site(add), nil}, []ui.Flow{"at a.Leak.add", "at an unknown site"}},
		{[]ui.Flow{"x", "x"}, [][]StackFrame{site(node, val, put, add), site(node, tree, put, add)}, []ui.Flow{
			"at java.util.HashMap.newNode from java.util.HashMap.putVal … from a.Leak.add",
			"at java.util.HashMap.newNode from java.util.HashMap.putTreeVal … from a.Leak.add"}},
		{[]ui.Flow{"x", "y"}, [][]StackFrame{site(node, val, put, add), site(node, add)}, []ui.Flow{
			"at java.util.HashMap.newNode … from a.Leak.add", "at java.util.HashMap.newNode from a.Leak.add"}},
		{[]ui.Flow{"x", "x"}, [][]StackFrame{site(add, put, node), site(add, put, val)}, []ui.Flow{
			"at a.Leak.add … from java.util.HashMap.newNode", "at a.Leak.add … from java.util.HashMap.putVal"}},
		{[]ui.Flow{"x", "x"}, [][]StackFrame{site(add), site(add, put)},
			[]ui.Flow{"at a.Leak.add", "at a.Leak.add from java.util.HashMap.put"}},
		{[]ui.Flow{"x", "x"}, [][]StackFrame{site(add), site(add)}, []ui.Flow{"at a.Leak.add", "at a.Leak.add"}},
	} {
		for i, got := range Places(x.of, x.sites) {
			if got != x.want[i] {
				t.Errorf("%q, want %q", got, x.want[i])
			}
		}
	}
}
