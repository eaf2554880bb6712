package web

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/internal/ui"
)

// TestHeadlines: the first headline says whether the program leaks, what, where and since when.
func TestHeadlines(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 55, 0, 0, time.UTC)
	rep := &analysis.Report{From: at.Add(-time.Minute), LostEpochs: 1, UnknownGCs: 2, Damage: []string{"x"},
		Collections: make([]analysis.CollectionRow, 3),
		Verdicts:    []leak.Verdict{{Kind: leak.KindLeak, Sentence: "Leak: byte[] grows.", OnsetFrom: at}},
		Grown:       []analysis.GrownClass{{Class: "byte[]", Objects: 12345, Bytes: 5 << 20}}}
	for i := range rep.Collections {
		rep.Collections[i].Time, rep.Collections[i].Known = at.Add(time.Duration(i)*3*time.Second), i == 0
	}
	got := headlines(rep)
	want := []string{
		"leak: Leak: byte[] grows.",
		"gap: Lost collections: 1. The recording has no data about them.",
		"gap: The heap state is unknown for 2 of 3 collections, 3.0 s in all. " +
			"What is said of the heap rests on the others.",
		"damage: Damaged sections: 1. Their data cannot be read.",
	}
	var said []string
	for _, h := range got {
		said = append(said, h.Kind+": "+h.Text)
	}
	if a, b := strings.Join(said, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("headlines:\n%s\nwant:\n%s", a, b)
	}
	if got[0].Since == nil || !got[0].Since.Equal(at) {
		t.Errorf("the leak grows since %v, want %v", got[0].Since, at)
	}
	rep.Verdicts[0].Kind = leak.KindSuspect
	if h := headlines(rep)[0]; h.Kind != "suspect" {
		t.Errorf("without a collection of old space: %+v", h)
	}
}

// TestNothingFound: a window without a leak is of another kind than one that is too short to say.
func TestNothingFound(t *testing.T) {
	for text, want := range map[ui.Flow]string{"No leak found above 70 KiB/s.": "quiet",
		"Cannot tell whether the program leaks: 3 collections are too few.": "unknown"} {
		rep := &analysis.Report{Collections: make([]analysis.CollectionRow, 3), FirstLook: text}
		if h := headlines(rep)[0]; h.Kind != want || h.Text != string(text) {
			t.Errorf("%s: %+v", text, h)
		}
		rep.Grown = []analysis.GrownClass{{Class: "byte[]", Objects: 12345, Bytes: 5 << 20}}
		if h := headlines(rep)[1]; h.Kind != "growth" || h.Text != "byte[] grew most from collection 0 to 0: by "+
			"12,345 objects and 5.0 MiB, including garbage that is not collected yet." {
			t.Errorf("%+v", h)
		}
		rep.Misses = []leak.Miss{{Sentence: "byte[]: +5.0 MiB. Not reported: its older objects are dead."}}
		if h := headlines(rep)[1]; h.Kind != "growth" || h.Text != string(rep.Misses[0].Sentence) {
			t.Errorf("growth without its reason: %+v", h)
		}
	}
}

// TestFigureFormats: figures in headlines have the formats of the page.
func TestFigureFormats(t *testing.T) {
	for d, want := range map[time.Duration]string{42 * time.Microsecond: "42.0 µs", 5900 * time.Microsecond: "5.9 ms",
		5900 * time.Millisecond: "5.9 s", 10 * time.Minute: "10.0 min", 5 * time.Hour: "5.0 h",
		96 * time.Hour: "4.0 d"} {
		if got := duration(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 objects", 1: "1 object", 999: "999 objects",
		1234567: "1,234,567 objects"} {
		if got := ui.Plural(n, "object"); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

// TestStorm: a storm is found whole, although one longer break is in it; one pause is no storm.
func TestStorm(t *testing.T) {
	at := time.Date(2026, 11, 21, 14, 55, 0, 0, time.UTC)
	var rows []analysis.CollectionRow
	add := func(n int, every, pause time.Duration) {
		for range n {
			rows = append(rows, analysis.CollectionRow{GC: uint64(len(rows) + 1), Time: at, PauseNS: uint64(pause)})
			at = at.Add(every)
		}
	}
	add(20, time.Second, 5*time.Millisecond)
	add(10, time.Second, 900*time.Millisecond)
	add(1, 3*time.Second, 100*time.Millisecond) // a break
	add(10, time.Second, 900*time.Millisecond)
	add(20, time.Second, 5*time.Millisecond)
	if from, to := storm(rows); from != 20 || to != 40 {
		t.Errorf("the storm is %d to %d, want 20 to 40", from, to)
	}
	rows[5].PauseNS = uint64(4 * time.Second)
	if from, to := storm(rows[:20]); from != to {
		t.Errorf("one long pause is a storm from %d to %d", from, to)
	}
}
