package analysis

import (
	"github.com/heapcam/heapcam/analysis/leak"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestSitesCut: a report tells of the full table of frames in the same words, whether the recording has an event, or
// the note that agents wrote before; the newest holds, and a probe's note is none.
func TestSitesCut(t *testing.T) {
	const old = "the table of frames was full: 9 samples so far are told by the callers that were known, " +
		"4 least used frames have made room"
	text := trace.SitesCut{Samples: 9, Folded: 4}.String()
	note := func(version uint8, seq uint64) trace.Block {
		b := trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: 2e9, Text: "sites: " + old}}})
		b.Version, b.Seq = version, seq
		return b
	}
	event := func(n uint64) trace.Block {
		return trace.EncodeMeta(trace.Meta{SitesCut: []trace.SitesCut{{Time: n, Samples: n, Folded: 4}}})
	}
	for name, c := range map[string]struct {
		blocks []trace.Block
		want   string
	}{
		"none": {nil, ""}, "event": {[]trace.Block{event(5), event(9)}, text},
		"note of before": {[]trace.Block{note(1, 0)}, text}, "note": {[]trace.Block{note(2, 0)}, ""},
		"note of a probe": {[]trace.Block{note(1, 3)}, ""},
	} {
		src := append([]trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: 1,
			Collector: trace.CollectorSerial, Align: 8, HeapWords: 1 << 20, Depth: 1}})}, c.blocks...)
		src = append(src, trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 1, Kind: trace.PauseYoung,
			Depth: trace.DepthSamples, Start: 3e9, Dur: 1e6}}))
		rep, err := MakeReport(heap.NewReplay(&analysistest.Source{B: src}), leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		rep.WriteText(&out, "x")
		words := strings.Join(strings.Fields(out.String()), " ")
		if rep.SitesCut != c.want || strings.Contains(words, text) != (c.want != "") {
			t.Errorf("%s: %q\n%s", name, rep.SitesCut, out.String())
		}
	}
}

// TestKilledReport: a report says first that the kernel killed the JVM, and of a recording without an end marker how
// old the figures of its process are. An end marker says otherwise.
func TestKilledReport(t *testing.T) {
	killed := trace.Killed{Time: 20e9, Scope: trace.KilledCgroup, Limit: 256 << 20}
	process := trace.Process{Time: 5e9, RSS: 100 << 20, Limit: 256 << 20, Used: 128 << 20}
	const figures = "15 s before the end the process had 100 MiB resident; its container used 50 % of 256 MiB"
	for name, c := range map[string]struct {
		blocks []trace.Block
		want   string
		killed bool
	}{
		"killed": {[]trace.Block{trace.EncodeMeta(trace.Meta{Killed: []trace.Killed{killed}})}, "no end marker; " +
			killed.String() + "; the heap was not full: the last collection left 25 % of its maximum in use; " +
			figures, true},
		"noted": {[]trace.Block{trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: 20e9, Text: "x"}}})},
			noEnd + ": the JVM was killed, crashed, or is still running, or the file was cut off; if it ended, it " +
				"was not the heap: the last collection left 25 % of its maximum in use, and " + figures, false},
		"ended": {[]trace.Block{trace.EncodeMeta(trace.Meta{Killed: []trace.Killed{killed}}),
			trace.EncodeEnd(trace.End{Time: 20e9, Reason: trace.EndDeath})}, "the JVM ended", true},
	} {
		src := []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: 1,
			Collector: trace.CollectorSerial, Align: 8, HeapWords: 1 << 20, Depth: 1, MaxHeap: 4 << 20}}),
			trace.EncodeMeta(trace.Meta{Process: []trace.Process{process}}),
			trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 1, Kind: trace.PauseYoung,
				Depth: trace.DepthSamples, Start: 3e9, Dur: 1e6},
				Spaces: []trace.Space{{Kind: trace.SpaceOld, End: 1 << 19, UsedAfter: 1 << 20}}})}
		rep, err := MakeReport(heap.NewReplay(&analysistest.Source{B: append(src, c.blocks...)}), leak.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.End != c.want || (rep.Killed != nil) != c.killed {
			t.Errorf("%s: %+v\n%q\nwant\n%q", name, rep.Killed, rep.End, c.want)
		}
		if c.killed && (rep.Killed.Scope != "cgroup" || rep.Killed.Limit != killed.Limit) {
			t.Errorf("%s: %+v", name, rep.Killed)
		}
	}
}
