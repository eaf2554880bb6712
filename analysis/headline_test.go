package analysis

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/leak"
)

// TestHeadline: a report begins with the headline of `heapcam leaks`, in lines of 100 columns.
func TestHeadline(t *testing.T) {
	from := time.Date(2026, 11, 23, 6, 1, 9, 0, time.UTC)
	for _, found := range []*leak.Report{
		{Headline: "Leak: byte[] from a.B.c(B.java:3) grows.", Verdicts: make([]leak.Verdict, 1)},
		{Headline: "No leak found in 2 s and 3 collections.", Misses: []leak.Miss{{
			Sentence: "byte[] from a.B.c(B.java:3): +3 MiB. Not reported: the program drops these objects.",
			Next:     "Record for longer: a leak goes on."}}},
	} {
		r := &Report{Collections: []CollectionRow{{GC: 1, Known: true}, {GC: 9, Known: true}}, Samples: 5, From: from,
			To: from.Add(time.Minute), WindowNS: 60e9}
		r.Settle(found)
		if r.FirstLook != found.Headline {
			t.Errorf("%s\nwant %s", r.FirstLook, found.Headline)
		}
		var out strings.Builder
		r.WriteText(&out, "my recording.heapcam")
		for _, l := range strings.Split(out.String(), "\n") {
			if len([]rune(l)) > 100 {
				t.Errorf("%d columns: %s", len([]rune(l)), l)
			}
		}
		if !strings.HasPrefix(out.String(), string(found.Headline)) ||
			strings.Contains(out.String(), "is not reported") != (len(found.Misses) > 0) {
			t.Errorf("%s", &out)
		}
		if !strings.Contains(out.String(), "\nNext:\n  heapcam ") || !strings.Contains(out.String(),
			" 'my recording.heapcam'\n") {
			t.Errorf("no next command in\n%s", &out)
		}
	}
}
