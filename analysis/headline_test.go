package analysis

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/leak"
)

// TestHeadline: the first sentence answers whether the program leaks, what, where, since when and until when.
func TestHeadline(t *testing.T) {
	from := time.Date(2026, 11, 23, 6, 1, 9, 0, time.UTC)
	leaks := func(n int) func(*Report) {
		return func(r *Report) {
			r.Verdicts = make([]leak.Verdict, n)
			r.Verdicts[0] = leak.Verdict{Sentence: "Leak: byte[] from a.B.c(B.java:3) grows."}
		}
	}
	for want, change := range map[string]func(*Report){
		"Leak: byte[] from a.B.c(B.java:3) grows.":                              leaks(1),
		"Leak: byte[] from a.B.c(B.java:3) grows. 2 other verdicts: see below.": leaks(3),
		"No leak found. A leak slower than 3.0 MiB/s may go unnoticed.": func(r *Report) {
			r.smallest = "A leak slower than 3.0 MiB/s may go unnoticed."
		},
		"Cannot tell whether the program leaks: 3 collections in 2 s are too few. Record for longer: at least one " +
			"minute, with at least ten collections.": func(r *Report) {
			r.doubt = "3 collections in 2 s are too few"
		},
		"Cannot tell whether the program leaks: no allocation was sampled, so no allocation site is known. Record " +
			"again, and see `heapcam cost` for what stopped the sampling.": func(
			r *Report) {
			r.Samples = 0
		},
		"Cannot tell whether the program leaks: there is no collection in this recording. Record for longer: at " +
			"least one minute, with at least ten collections.": func(r *Report) {
			r.Collections = nil
		},
	} {
		r := &Report{Collections: []CollectionRow{{GC: 1, Known: true}, {GC: 9, Known: true}}, Samples: 5, From: from,
			To: from.Add(time.Minute), WindowNS: 60e9}
		change(r)
		r.Settle(&leak.Report{Verdicts: r.Verdicts})
		if string(r.FirstLook) != want {
			t.Errorf("%s\nwant %s", r.FirstLook, want)
		}
		var out strings.Builder
		r.WriteText(&out, "my recording.heapcam")
		for _, l := range strings.Split(out.String(), "\n") {
			if len([]rune(l)) > 100 {
				t.Errorf("%d columns: %s", len([]rune(l)), l)
			}
		}
		if !strings.Contains(out.String(), "\nNext:\n  heapcam ") || !strings.Contains(out.String(),
			" 'my recording.heapcam'\n") {
			t.Errorf("no next command in\n%s", &out)
		}
	}
}
