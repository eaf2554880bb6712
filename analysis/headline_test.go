package analysis

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/leak"
)

// TestHeadline: the first sentence answers whether the program leaks, what, where, since when and until when.
func TestHeadline(t *testing.T) {
	in := func(s float64) *float64 { return &s }
	from := time.Date(2026, 11, 23, 6, 1, 9, 0, time.UTC)
	leaks := func(v leak.Verdict) func(*Report) {
		v.What, v.BytesPerSecond = "byte[] allocated at a.B.c(B.java:3)", 2048
		return func(r *Report) { r.Suspects = []leak.Verdict{v} }
	}
	for want, change := range map[string]func(*Report){
		"Leak found: byte[] allocated at a.B.c(B.java:3) grows by 2.0 KiB/s, since 06:01:09 UTC or earlier. At this " +
			"rate the heap is full about 10 min after the end of this recording, at 06:12 UTC.": leaks(
			leak.Verdict{Floors: 2, FullIn: in(588)}),
		"Probable leak: byte[] allocated at a.B.c(B.java:3) grows by 2.0 KiB/s, since 06:01:09 UTC or earlier. It is " +
			"not known when the heap is full.": leaks(leak.Verdict{}),
		"Leak found: byte[] allocated at a.B.c(B.java:3) grows by 2.0 KiB/s, since 06:01:09 UTC or earlier. At this " +
			"rate the heap is not full within a year.": leaks(leak.Verdict{Floors: 1, FullIn: in(1e9)}),
		"Leak found: byte[] allocated at a.B.c(B.java:3) grows by 2.0 KiB/s, since the JVM started (first collection " +
			"at 06:01:09 UTC). The heap is nearly full: pauses took 50.0 % of the recorded time.": func(r *Report) {
			leaks(leak.Verdict{Floors: 9, FullIn: in(3)})(r)
			r.atStart, r.PauseNS = true, r.WindowNS/2
		},
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
		r.Settle(r.Suspects)
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
