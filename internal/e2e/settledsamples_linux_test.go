package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/leak"
)

// TestSettledAtSamples: at depth samples the addresses of objects are not recorded. Reference listings say where the
// samples are, so two of them settle that a map leaks, and name it.
func TestSettledAtSamples(t *testing.T) {
	t.Parallel()
	for i, gc := range parts(t, "G1", "Serial") {
		t.Run(gc, func(t *testing.T) {
			d := newDaemon(t, "--depth", "samples", "--sampling", "64k")
			d.start(t)
			p := program{major: []int{17, 25}[i], gc: gc, heap: "256m", main: "KeptSessions",
				args: []string{"300", "0"}, opts: []string{d.withProbe(t, "")}}
			r := p.plain(t)
			awaitSession(t, d)
			var got referencesReply
			for range 2 {
				time.Sleep(8 * time.Second)
				heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
			}
			time.Sleep(3 * time.Second)
			_ = r.cmd.Process.Kill()
			d.stop(t)
			var l leak.Report
			heapcamJSON(t, &l, "leaks", got.Dir)
			if len(l.Verdicts) == 0 {
				t.Fatalf("no verdict: %s %+v", l.Headline, l.Misses)
			}
			v := &l.Verdicts[0]
			if v.Kind != leak.KindLeak || !strings.Contains(string(v.Holder), "static KeptSessions.SESSIONS") ||
				!strings.HasPrefix(v.Place.Class, "KeptSessions") || l.Listings != 2 {
				t.Errorf("%d listings, %s", l.Listings, v.Sentence)
			}
			t.Log(l.Headline)
			sound(t, got.Dir)
		})
	}
}
