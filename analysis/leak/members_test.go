package leak

import (
	"testing"

	"github.com/heapcam/heapcam/internal/ui"
)

// TestLiveSamples: a structure has the live samples of its members, also where the sampling interval changed and
// its growth counts samples of one weight.
func TestLiveSamples(t *testing.T) {
	s := &structure{growth: growth{samples: 110}, members: []*part{{samples: 351}, {samples: 21}}}
	if n := s.liveSamples(); n != 372 {
		t.Errorf("%d", n)
	}
}

// TestHolderOutside: what holds objects of several classes ends before the first of them; that of one class is whole.
func TestHolderOutside(t *testing.T) {
	const path = "static a.Web.CACHE → ConcurrentHashMap.table, then [] → Node.val → Page.body"
	for _, x := range []struct {
		classes []string
		want    ui.Flow
	}{
		{[]string{"byte[]"}, path},
		{[]string{"byte[]", "a.Web$Page"}, "static a.Web.CACHE → ConcurrentHashMap.table, then [] → Node.val"},
		{[]string{"a.Web$Page", "java.util.concurrent.ConcurrentHashMap$Node"},
			"static a.Web.CACHE → ConcurrentHashMap.table"},
		{[]string{"byte[]", "java.lang.String"}, path},
	} {
		v := Verdict{}
		for _, c := range x.classes {
			v.Members = append(v.Members, Member{Class: c})
		}
		if got := v.outside(path); got != x.want {
			t.Errorf("%v: %s, want %s", x.classes, got, x.want)
		}
	}
	v := Verdict{Members: []Member{{Class: "a.Link"}, {Class: "byte[]"}}}
	if got := v.outside("static a.Main.first, then Link.next ×9 → Link.data"); got != "static a.Main.first" {
		t.Errorf("a list: %s", got)
	}
}
