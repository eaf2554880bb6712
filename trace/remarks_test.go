package trace_test

import (
	"math"
	"os"
	"reflect"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// remarks is what testdata/remarks.txt and, the storm apart, testdata/oldnotes.txt say.
func remarks() trace.Meta {
	return trace.Meta{
		Notes:    []trace.Note{{Time: 1, Text: "cost: sampling 7 ns"}},
		Sampling: []trace.Sampling{{Time: 60e9, NS: 123456}},
		SitesCut: []trace.SitesCut{{Time: 60e9, Samples: 12, Folded: 3}},
		Unlisted: []trace.Unlisted{{Time: 61e9, GC: 9, Objects: 1000, Bytes: 64000,
			Largest: "largest classes: [B 500 objects 32000 bytes"}},
		Storms:    []trace.Storm{{Time: 62e9, Span: 60e9, Collections: 31, NS: 30_500_000_000}},
		Exhausted: []trace.Exhausted{{Time: 63e9, Failed: 2}},
		Process: []trace.Process{{Time: 64e9, RSS: 300e6, Anon: 280e6, Swap: 1000, Threads: 23, Heap: 128 << 20,
			Metaspace: 40e6, Code: 9e6, Classes: 7000, Limit: 512 << 20, Used: 310e6}},
		Killed: []trace.Killed{{Time: 65e9, Scope: trace.KilledCgroup, Limit: 512 << 20}},
	}
}

func onlyBlock(t *testing.T, file string) trace.Block {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	blocks := parse(t, string(text))
	if len(blocks) != 1 {
		t.Fatalf("%s has %d blocks", file, len(blocks))
	}
	return blocks[0]
}

func decodeMeta(t *testing.T, b trace.Block) trace.Meta {
	t.Helper()
	m, err := trace.DecodeMeta(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRemarks compares the bytes of remarks with the golden text: a note of version 2 is one, whatever it says.
func TestRemarks(t *testing.T) {
	b := onlyBlock(t, "testdata/remarks.txt")
	if got, want := decodeMeta(t, b), remarks(); !reflect.DeepEqual(got, want) {
		t.Errorf("read  %+v\nwrote %+v", got, want)
	}
	if w := trace.EncodeMeta(remarks()); !w.Equal(b) {
		t.Errorf("wrote %x, the text has %x", w.Payload, b.Payload)
	}
}

// TestRemarksBeyondLimits: a block can be read whatever the counters were that an agent copied into it.
func TestRemarksBeyondLimits(t *testing.T) {
	const most = math.MaxUint64
	m := decodeMeta(t, trace.EncodeMeta(trace.Meta{
		Notes:     []trace.Note{{Time: most, Text: "x"}},
		Sampling:  []trace.Sampling{{Time: most, NS: most}},
		SitesCut:  []trace.SitesCut{{Time: most, Samples: most, Folded: most}},
		Unlisted:  []trace.Unlisted{{Time: most, GC: most, Objects: most, Bytes: most}},
		Storms:    []trace.Storm{{Time: most, Span: most, Collections: most, NS: most}},
		Exhausted: []trace.Exhausted{{Time: most, Failed: most}},
		Process:   []trace.Process{{Time: most, RSS: most, Threads: most, Limit: most, Used: most}},
		Killed:    []trace.Killed{{Time: most, Scope: most, Limit: most}},
	}))
	if got, want := m.SitesCut[0], (trace.SitesCut{Time: trace.MaxTime, Samples: trace.MaxCount,
		Folded: trace.MaxCount}); got != want || m.Sampling[0].NS != trace.MaxTime || len(m.Exhausted) != 1 ||
		m.Process[0].RSS != trace.MaxBytes || m.Killed[0].Limit != trace.MaxBytes {
		t.Errorf("read %+v", m)
	}
}

// TestOldNotes: notes of a recording of version 1 are read as the remarks that they were; a probe's are not, nor is
// what does not read as one.
func TestOldNotes(t *testing.T) {
	b := onlyBlock(t, "testdata/oldnotes.txt")
	got, want := decodeMeta(t, b), remarks()
	want.Storms, want.Process, want.Killed = nil, nil, nil
	want.Exhausted[0].Failed = 0
	want.Notes = []trace.Note{{Time: 64e9, Text: "paused: the host's switch is set"},
		{Time: 65e9, Text: "cost: sampling much"}, {Time: 65e9, Text: "cost: sampling 99999999999999999999 ns"},
		{Time: 65e9, Text: "sites: \x1b[2J"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if first, ok := got.First(); first != 60e9 || !ok {
		t.Errorf("the first is at %d, %v", first, ok)
	}
	b.Seq = 1
	if m := decodeMeta(t, b); len(m.Notes) != 8 || m.Sampling != nil || m.SitesCut != nil || m.Unlisted != nil {
		t.Errorf("of a probe: %+v", m)
	}
	texts := decodeMeta(t, b).Notes
	for _, n := range got.Texts() { // each is shown where it was, if in better words
		found := false
		for _, was := range texts {
			found = found || n.Time == was.Time
		}
		if !found {
			t.Errorf("not recorded before: %q", n.Text)
		}
	}
}
