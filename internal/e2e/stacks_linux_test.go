package e2e

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestStacks fills the table of frames: sites are cut to the callers that are known, which is reported once, until the
// least used ones have made room for a new one that is used much; nothing else suffers. A recursion has the innermost
// frames of its site, as many as were asked for.
func TestStacks(t *testing.T) {
	tiers.Gate(t, "stacks against the JVM")
	t.Parallel()
	n := "10"
	if full {
		n = "17" // 131,072 stacks
	} else {
		t.Log("not run: 131,072 distinct stacks (HEAPCAM_FULL=1)")
	}
	for frames, want := range map[string]bool{"frames=400": true, "stack=200": false} {
		p := program{major: 17, gc: "Serial", main: "Stacks", args: []string{n}, probe: frames, limit: "64MiB",
			flags: []string{"--sampling", "0", "--sampling-max-overhead", "0%", "--max-sync-pause", "0"}}
		r := p.start(t)
		r.finish(t)
		if logged := strings.Count(r.stderr.String(), "site table full"); (logged == 1) != want &&
			!(full && logged == 1) {
			t.Errorf("%s: logged %d times", frames, logged)
		}
		dir := r.recorded(t).dir
		verify(t, dir, 1)
		if out, _, _ := heapcam(t, "report", dir); strings.Contains(out, "site table was full") != want && !full {
			t.Errorf("%s: the report tells of the full table: %v", frames, !want)
		}
		if full {
			continue // a document of 100,000 sites of 20 frames says no more
		}
		var h struct {
			Sites []struct {
				Class   string  `json:"class"`
				Child   string  `json:"child"`
				Site    []frame `json:"site"`
				Samples uint64  `json:"samples"`
			} `json:"sites"`
		}
		heapcamJSON(t, &h, "histogram", "--sites", dir)
		longs, none, late, deepest := uint64(0), uint64(0), uint64(0), 0
		for _, s := range h.Sites {
			if s.Class == "long[]" && s.Child == "" {
				if longs += s.Samples; len(s.Site) == 0 {
					none += s.Samples
				}
			}
			if s.Class == "char[]" && len(s.Site) > 0 && s.Site[0].Method == "late" {
				late += s.Samples
			}
			if s.Class == "short[]" {
				deepest = max(deepest, len(s.Site))
			}
		}
		if longs < 1000 || none > 100 {
			t.Errorf("%s: %d samples of the stacks, %d without any frame", frames, longs, none)
		}
		if late < 100 {
			t.Errorf("%s: %d of 2500 samples of the late site have it", frames, late)
		}
		if frames == "stack=200" && deepest != 200 {
			t.Errorf("the recursion has %d frames, want 200", deepest)
		}
	}
}
