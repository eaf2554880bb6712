package compare

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/internal/ui"
)

// TestJudge tells verdicts that a change brought from those that were there, and from those that it removed.
func TestJudge(t *testing.T) {
	verdict := func(ids ...string) leak.Verdict {
		v := leak.Verdict{Kind: leak.KindLeak, SiteID: ids[0], Sentence: ui.Flow("Leak: " + ids[0] + "."),
			What: ui.Flow("objects of " + ids[0])}
		for _, id := range ids {
			v.Members = append(v.Members, leak.Member{SiteID: id})
		}
		return v
	}
	before := &leak.Report{Verdicts: []leak.Verdict{verdict("cart", "entry"), verdict("old")}}
	after := &leak.Report{Verdicts: []leak.Verdict{verdict("entry"), verdict("audit")}}
	d := Recordings(&Growth{}, &Growth{})
	d.Judge(before, after)
	got := ""
	for _, v := range d.Verdicts {
		got += v.State + " " + v.SiteID + ", "
	}
	if want := "new audit, still entry, gone old, "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.HasPrefix(string(d.Sentence), "New after the change: Leak: audit.") {
		t.Error(d.Sentence)
	}
	var b strings.Builder
	d.WriteText(&b)
	if !strings.Contains(b.String(), "objects of audit") || strings.Contains(b.String(), "cannot tell whether") {
		t.Error(b.String())
	}
	d = Recordings(&Growth{}, &Growth{})
	d.Judge(&leak.Report{CannotTell: "no samples"}, after)
	b.Reset()
	d.WriteText(&b)
	if len(d.Verdicts) != 2 || d.Verdicts[0].State != New || !strings.Contains(b.String(), "cannot tell whether") {
		t.Error(b.String())
	}
	d = Recordings(&Growth{}, &Growth{})
	if d.Judge(before, &leak.Report{}); d.Verdicts[0].State != Gone || strings.Contains(string(d.Sentence), "New") {
		t.Errorf("%+v", d)
	}
}
