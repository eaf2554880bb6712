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
