//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestConcurrentVerbs: of a recording of ZGC no verb sends its reader to a verb, flag or depth that can show no more.
func TestConcurrentVerbs(t *testing.T) {
	e := trace.Epoch{
		Pause:    trace.Pause{GC: 1, Kind: trace.PauseMajor, Depth: trace.DepthSamples, Start: 1e9, Dur: 1000},
		HasCycle: true, Cycle: trace.Cycle{Begin: 1e9, End: 2e9, Pauses: 3},
		Spaces: []trace.Space{{Kind: trace.SpaceHeap, UsedBefore: 9 << 20, UsedAfter: 4 << 20}}}
	dir := stored(t, []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: trace.ABIVersion,
		Major: 25, Collector: trace.CollectorZGC, Align: 8, Depth: trace.DepthSamples}}),
		trace.EncodeSync(&trace.Sync{GC: 0, Reason: trace.SyncFirst}), trace.EncodeEpoch(&e)}, true)
	for verb, want := range map[string]string{
		"holders": "cannot list references", "lifetimes": "only samples, at any depth", "whatif": "at any depth",
		"verify": "undamaged", "histogram": "see heapcam report", "history": "the only depth with ZGC",
		"leaks":  "Next:",
		"report": "Next:",
	} {
		out, _ := heapcam(verb, dir)
		out = strings.Join(strings.Fields(out), " ")
		if !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", verb, want, out)
		}
		for _, not := range []string{"--depth full", "heapcam history", "heapcam references", "missing"} {
			if strings.Contains(out, not) {
				t.Errorf("%s: %q in\n%s", verb, not, out)
			}
		}
	}
}
