package drag

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

const second = 1_000_000_000

// collected gives a reader that has seen collections each second, with 100 bytes allocated between two.
func collected(kinds ...uint64) *reader {
	b := &reader{out: &Lives{}, live: map[uint64]*life{}}
	for i, k := range kinds {
		e := &trace.Epoch{Pause: trace.Pause{Kind: k, Start: uint64(i+1) * second},
			Spaces: []trace.Space{{Kind: trace.SpaceEden, UsedBefore: 100}}}
		b.clock.epoch(e)
		b.pauses.at = append(b.pauses.at, pause{e.Pause.Start, k})
	}
	return b
}

// TestEnds: the bounds of a death depend on which collections could have found it, those of a last use on whether one
// was seen.
func TestEnds(t *testing.T) {
	young, full := uint64(trace.PauseYoung), uint64(trace.PauseFull)
	for name, c := range map[string]struct {
		kinds                   []uint64
		l                       life
		low, mid, high, midByte float64
	}{
		"found by a young collection": {[]uint64{young, young, young, young},
			life{born: 0, resolved: second, since: second, used: 2 * second}, 1, 1.5, 2, 150},
		"found by a full collection": {[]uint64{young, full, young, young, full},
			life{born: 0, resolved: second, since: second, used: 2 * second}, 0, 1.5, 3, 150},
		"used behind the last full collection": {[]uint64{young, full, young, young, full},
			life{born: 0, resolved: second, since: second, used: 4 * second}, 0, 0.5, 1, 50},
		"no use was seen": {[]uint64{young, young, young, young},
			life{born: second / 2, resolved: second, since: second}, 2, 2.75, 3.5, 275},
		"locked at the end": {[]uint64{young, young, young, young},
			life{born: 0, resolved: second, since: second, used: second, blind: 4 * second}, 0, 0, 3, 0},
	} {
		b := collected(c.kinds...)
		l := c.l
		l.sample = &heap.Sample{Sample: trace.Sample{ID: 1, Size: 10}, Weight: 1}
		b.live[1] = &l
		n := len(c.kinds)
		x := heap.Collection{Pause: trace.Pause{Kind: c.kinds[n-1], Start: uint64(n) * second}}
		b.die([]*heap.Sample{l.sample}, &x)
		if len(b.out.drags) != 1 {
			t.Fatalf("%s: %d drags", name, len(b.out.drags))
		}
		f := b.out.drags[0]
		if got := f.seconds; got != (span{c.low, c.mid, c.high}) || math.Abs(f.bytes.mid-c.midByte) > 51 {
			t.Errorf("%s: %v s, %v bytes", name, got, f.bytes)
		}
	}
}

// TestBefore: which earlier pause an object has lived through that a pause finds dead.
func TestBefore(t *testing.T) {
	const young, mixed, full, remark, cleanup = trace.PauseYoung, trace.PauseMixed, trace.PauseFull, trace.PauseRemark,
		trace.PauseCleanup
	for _, c := range []struct {
		g1          bool
		kinds       []uint64
		low, likely uint64 // seconds; 0: none
	}{
		{false, []uint64{young, full, young, young}, 3, 3},
		{false, []uint64{young, full, young, full}, 2, 2},
		{false, []uint64{young, full}, 0, 0},
		{false, []uint64{young, trace.PauseWalk, young}, 1, 1},
		{true, []uint64{young, remark, cleanup, young}, 1, 1},
		{true, []uint64{remark, young, remark, cleanup, young, remark}, 1, 3},
		{true, []uint64{remark, young, remark, cleanup, mixed}, 1, 3},
		{true, []uint64{full, young, remark, young, full}, 1, 3},
		{true, []uint64{remark, full, young, remark}, 2, 2},
		{true, []uint64{young, remark, young, remark}, 0, 2},
		{true, []uint64{young, remark}, 0, 0},
	} {
		p := collected(c.kinds...).pauses
		p.g1 = c.g1
		low, likely := p.before(c.kinds[len(c.kinds)-1])
		if low != c.low*second || likely != c.likely*second {
			t.Errorf("%v, G1 %t: %d and %d ns", c.kinds, c.g1, low, likely)
		}
	}
}

// TestFigure: the interval holds that of the samples and the bounds of each.
func TestFigure(t *testing.T) {
	var x total
	var exact stats.Total
	for range 100 {
		x.add(span{1, 2, 3}, 10, 5)
		exact.Add(20, 5)
	}
	low, high := exact.Interval()
	if f := x.figure(); f.Value != exact.Sum || f.Low > low/2 || f.High < high {
		t.Errorf("%v; of samples alone %f to %f", f, low, high)
	}
}

// TestNoDeathYet: the drag of what no collection has found dead is not known, and is not shown as zero. What some of
// its objects have is shown.
func TestNoDeathYet(t *testing.T) {
	r := Report{By: "class", All: Row{Name: "all objects", Samples: 1, Bytes: 8, Drag: Figure{3 * mib, mib, 4 * mib}},
		Rows: []Row{{Name: "Held", Alive: 5 * mib, AliveMean: 20}}}
	var b bytes.Buffer
	r.WriteText(&b)
	for _, line := range strings.Split(b.String(), "\n") {
		switch {
		case strings.HasSuffix(line, "Held"):
			if want := "– – – – – – 5.0 MiB 20 s Held"; strings.Join(strings.Fields(line), " ") != want {
				t.Errorf("%q, want %q", line, want)
			}
		case strings.HasSuffix(line, "all objects"):
			if !strings.Contains(line, "3.0") || strings.Contains(line, " –") {
				t.Errorf("%q", line)
			}
		}
	}
	if !strings.Contains(b.String(), "their drag is not known yet") {
		t.Errorf("what – means is not said:\n%s", &b)
	}
	r.Rows[0].Samples = 1
	b.Reset()
	if r.WriteText(&b); strings.Contains(b.String(), "not known yet") {
		t.Errorf("of each row an object has died:\n%s", &b)
	}
}
