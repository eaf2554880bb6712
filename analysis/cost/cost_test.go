package cost

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/trace"
)

// TestCost adds up what random streams cost in two ways, and that a window in several files, each with
// what all of them repeat, is the same as one in a single file.
func TestCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jvm := trace.JVM{Session: strings.Repeat("a", 32), VM: "vm", Probe: "p", Depth: trace.DepthFull,
			Interval: 1 << 19, Align: 8, Collector: 1, T0WallMS: 1e12}
		head := trace.EncodeMeta(trace.Meta{JVM: jvm, HasJVM: true})
		c := New()
		add := func(b trace.Block) {
			if err := c.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		add(head)
		var probe, sync, walks, sampling, pauses uint64
		first, before, noted := uint64(0), uint64(0), false // the first pause, and the sampling before it
		syncs, gcs, files, stops := 0, 0, 0, 0
		old := rapid.Bool().Draw(t, "version 1")
		now := uint64(1e9)
		for gc := range uint64(rapid.IntRange(1, 60).Draw(t, "collections")) {
			now += uint64(rapid.IntRange(1, 100e9).Draw(t, "phase"))
			kind := uint64(rapid.SampledFrom([]int{trace.PauseYoung, trace.PauseFull, trace.PauseWalk}).Draw(t, "kind"))
			p := trace.Pause{GC: gc + 1, Kind: kind, Depth: trace.DepthFull, Start: now,
				Dur: uint64(rapid.IntRange(1000, 1e9).Draw(t, "dur"))}
			if first == 0 {
				first = now
			}
			p.Probe = uint64(rapid.IntRange(0, int(p.Dur)).Draw(t, "probe"))
			add(trace.EncodeEpoch(&trace.Epoch{Pause: p}))
			now += p.Dur
			if kind == trace.PauseWalk {
				walks += p.Dur
			} else {
				gcs, pauses, probe = gcs+1, pauses+p.Dur, probe+p.Probe
			}
			if rapid.Bool().Draw(t, "sync") {
				y := trace.Sync{GC: gc + 1, Reason: trace.SyncRotation, Time: now,
					Probe: uint64(rapid.IntRange(0, 1e8).Draw(t, "listing"))}
				if kind == trace.PauseWalk {
					y.Reason = trace.SyncWalk
				} else {
					sync += y.Probe
				}
				if rapid.Bool().Draw(t, "listed") { // at depth samples it costs a little, and lists nothing
					y.Objects = 7
					syncs++
				}
				if rapid.Bool().Draw(t, "file") {
					add(head)
					files++
				}
				add(trace.EncodeSync(&y))
			}
			if rapid.Bool().Draw(t, "references") {
				stop := uint64(rapid.IntRange(0, 1e8).Draw(t, "stop"))
				why := rapid.SampledFrom([]string{"", "aborted"}).Draw(t, "refused")
				walks += stop
				if stop > 0 {
					stops++
				}
				add(trace.EncodeRefs(&trace.RefPart{Listing: gc + 1, N: 1, Flags: trace.RefFirst, HasAbout: true,
					About: trace.References{Time: now, Dur: stop, Objects: 3, Refused: why}}))
				now += stop
				add(trace.EncodeRefs(&trace.RefPart{Listing: gc + 1, N: 2, Flags: trace.RefLast}))
			}
			if rapid.Bool().Draw(t, "note") {
				if sampling == 0 && now > 60e9 {
					continue // what came before the window is not known
				}
				ns := uint64(rapid.IntRange(0, 1e9).Draw(t, "sampling"))
				if !noted {
					before = uint64(float64(ns) * float64(first) / float64(now))
				}
				noted = true
				sampling += ns
				said := trace.EncodeMeta(trace.Meta{Sampling: []trace.Sampling{{Time: now, NS: sampling}}})
				if old { // as agents said it before
					said = trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: now,
						Text: fmt.Sprintf("cost: sampling %d ns", sampling)}}})
					said.Version = 1
				}
				add(said)
			}
		}
		c.Close()
		var sum Minute
		last := uint64(0)
		for i, m := range c.Minutes {
			if m.From%minute != 0 || i > 0 && m.From <= last {
				t.Fatalf("minutes out of order: %+v", c.Minutes)
			}
			last = m.From
			sum.Probe += m.Probe
			sum.Sync += m.Sync
			sum.Walks += m.Walks
			sum.Sampling += m.Sampling
			sum.SyncPoints += m.SyncPoints
			sum.Collections += m.Collections
		}
		for what, v := range map[string][3]uint64{
			"probe":       {probe, c.Total.Probe, sum.Probe},
			"sync":        {sync, c.Total.Sync, sum.Sync},
			"walks":       {walks, c.Total.Walks, sum.Walks},
			"collections": {uint64(gcs), uint64(c.Total.Collections), uint64(sum.Collections)},
			"sync points": {uint64(syncs), uint64(c.Total.SyncPoints), uint64(sum.SyncPoints)},
		} {
			if v[0] != v[1] || v[1] != v[2] {
				t.Errorf("%s: %d, reported %d, by minutes %d", what, v[0], v[1], v[2])
			}
		}
		if d := int64(sampling) - int64(before) - int64(c.Total.Sampling); d < -2 || d > 2 ||
			sum.Sampling != c.Total.Sampling {
			t.Errorf("sampling: %d, reported %d, by minutes %d", sampling, c.Total.Sampling, sum.Sampling)
		}
		if n := strings.Count(fmt.Sprint(c.Events), "for a reference listing"); n != stops {
			t.Errorf("%d events of %d stops for reference listings", n, stops)
		}
		if n := strings.Count(fmt.Sprint(c.Events), "the probe (p) was attached"); n != 1 {
			t.Errorf("loading is recorded %d times in %d files", n, files+1)
		}
	})
}

// TestSamplingOfWindow: of a ring that begins late, only the sampling of its own time is counted.
func TestSamplingOfWindow(t *testing.T) {
	pause := func(gc, start uint64) trace.Block {
		return trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: gc, Kind: trace.PauseYoung,
			Depth: trace.DepthFull, Start: start, Dur: 1e6}})
	}
	c := New()
	for _, b := range []trace.Block{
		pause(9, 30e9), pause(10, 32e9),
		trace.EncodeMeta(trace.Meta{Sampling: []trace.Sampling{{Time: 32e9, NS: 32e8}}}),
	} {
		if err := c.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	if m := c.Total; m.From != 30e9 || m.Span != 2e9+1e6 || m.Sampling != 2e8 {
		t.Errorf("from %d, span %d, sampling %d", m.From, m.Span, m.Sampling)
	}
}

// TestLostWithoutGap: collections whose block is damaged show in the numbers of the others alone.
func TestLostWithoutGap(t *testing.T) {
	epoch := func(gc uint64) trace.Block {
		p := trace.Pause{GC: gc, Kind: trace.PauseYoung, Depth: trace.DepthFull, Start: gc * 1e9}
		return trace.EncodeEpoch(&trace.Epoch{Pause: p})
	}
	gap := func(n, at uint64) trace.Block {
		return trace.EncodeGap(trace.Gap{Reason: trace.GapOverflow, Epochs: n, Time: at})
	}
	c := New()
	for _, b := range []trace.Block{epoch(3), gap(2, 5e9), epoch(6), epoch(10), gap(4, 11e9)} { // 7 to 9: damaged
		if err := c.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	if c.Close(); c.Total.Lost != 9 {
		t.Errorf("lost: %d, want 9", c.Total.Lost)
	}
}
