package heap

import (
	"flag"
	"fmt"
	"io"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// rollSeeds is how many random recordings each test makes.
var rollSeeds = flag.Uint64("rolls", 24, "random recordings with listings in slices")

// rolled is what the readers of a recording with listings in slices have seen.
type rolled struct {
	known, partial, healed, alone int
}

// file is where reading can start: a head, and the epochs from the one whose slice is in it.
type rolledFile struct {
	head []trace.Block
	at   int
}

// rollOn makes a recording and opens it at its beginning and at the first slice of each ramp. Each reader is compared
// with the truth after each collection. The error says where one differs.
func rollOn(cfg tracetest.Config, steps int, sum *rolled) error {
	m := tracetest.New(cfg)
	var eps []*tracetest.Epoch
	files := []rolledFile{{}}
	for i := range steps {
		var e *tracetest.Epoch
		if i%17 == 9 {
			e = m.Walk()
		} else {
			e = m.Step(i%12 == 4)
		}
		eps = append(eps, e)
		if e.First {
			files = append(files, rolledFile{m.Head(), i})
		}
	}
	for _, f := range files {
		if err := rollFrom(f, eps, sum); err != nil {
			return fmt.Errorf("from epoch %d: %w", f.at+1, err)
		}
	}
	return nil
}

// rollFrom reads one file to the end of the recording, in both ways.
func rollFrom(f rolledFile, eps []*tracetest.Epoch, sum *rolled) error {
	bs := append([]trace.Block{}, f.head...)
	truth := map[uint64]*tracetest.Epoch{}
	for i, e := range eps[f.at:] {
		b := e.Blocks
		if f.head != nil && i == 0 {
			b = b[len(b)-1:]
		}
		bs = append(bs, b...)
		truth[uint64(f.at+i+1)] = e
	}
	replay, census := NewReplay(&blocks{bs}), NewCensus(&blocks{bs})
	was := true
	for {
		c, err := replay.Next()
		n, err2 := census.Next()
		if err == io.EOF && err2 == io.EOF {
			break
		}
		if err != nil || err2 != nil {
			return fmt.Errorf("%v, %v", err, err2)
		}
		e := truth[c.GC]
		if err := rollAt(replay, census, c, n, e, sum); err != nil {
			return fmt.Errorf("collection %d (ramp from %d): %w; faults %q %q", c.GC, f.at+1, err, replay.Faults,
				census.Faults)
		}
		if n.Known && was && c.EpochsLost > 0 {
			sum.healed++
		}
		was = n.Known
		if f.head != nil && c.Known {
			sum.alone++
		}
	}
	for _, c := range replay.Compared {
		if c.Mismatches() != 0 {
			return fmt.Errorf("slice at %d: %d mismatches, first: %v", c.GC, c.Mismatches(), c.First)
		}
	}
	if len(replay.Faults)+len(census.Faults)+len(replay.Damage) != 0 {
		return fmt.Errorf("faults %q %q damage %v", replay.Faults, census.Faults, replay.Damage)
	}
	if census.Unsure && !uncounted(bs) {
		return fmt.Errorf("the counts contradict each other")
	}
	return nil
}

// uncounted says whether an epoch counts nothing: then nothing was born and nothing has died, or the probe counts
// nothing. A reader that only counts takes it for the latter.
func uncounted(bs []trace.Block) bool {
	for _, b := range bs {
		if e, err := trace.DecodeEpoch(b); err == nil && len(e.Census)+len(e.Uncounted) == 0 &&
			len(e.Allocs)+len(e.Moves)+len(e.Births)+len(e.Freed) > 0 {
			return true
		}
	}
	return false
}

// rollAt compares both readers with the truth after a collection.
func rollAt(replay *Replay, census *Census, c, n *Collection, e *tracetest.Epoch, sum *rolled) error {
	if e == nil || c.GC != n.GC {
		return fmt.Errorf("of collection %d and %d", c.GC, n.GC)
	}
	if e.Synced && (!c.Known || !n.Known) {
		return fmt.Errorf("the last slice has come, and the state is not known: %v %v", c.Known, n.Known)
	}
	if c.Known {
		sum.known++
		if why := same(replay.State, e.State, e.Synced); why != "" {
			return fmt.Errorf("replay: %s", why)
		}
	}
	if c.Partial {
		sum.partial++
		if err := rollPart(replay, e); err != nil {
			return fmt.Errorf("replay, part: %w", err)
		}
	}
	want := map[uint32]Count{}
	for at, o := range e.State {
		if n.Known || n.Partial && !e.Uncounted.Has(at) {
			x := want[o.Type]
			want[o.Type] = Count{Objects: x.Objects + 1, Bytes: x.Bytes + o.Words*8}
		}
	}
	if n.Known || n.Partial {
		for t, got := range census.Totals.PerType() {
			if want[uint32(t)] != got {
				return fmt.Errorf("census (known %v): type %d: %v, truth %v", n.Known, t, got, want[uint32(t)])
			}
			delete(want, uint32(t))
		}
		if len(want) > 0 {
			return fmt.Errorf("census (known %v): nothing of %v", n.Known, want)
		}
	}
	return nil
}

// rollPart compares the part of the state that is known, and its bounds.
func rollPart(r *Replay, e *tracetest.Epoch) error {
	unknown := r.listed.Unknown
	var err error
	n := 0
	r.State.Each(func(o Object) bool {
		t, ok := e.State[o.Addr]
		n++
		switch {
		case !ok:
			err = fmt.Errorf("object at %d is not there", o.Addr)
		case t.Type != o.Type || t.Length != o.Length:
			err = fmt.Errorf("at %d: type %d, truth %d", o.Addr, o.Type, t.Type)
		case unknown.Has(o.Addr):
			err = fmt.Errorf("at %d: known and unknown", o.Addr)
		}
		return err == nil
	})
	hidden, bytes := 0, uint64(0)
	for at, o := range e.State {
		if unknown.Has(at) {
			hidden, bytes = hidden+1, bytes+8*o.Words
		}
	}
	if err == nil && n+hidden != len(e.State) {
		err = fmt.Errorf("%d are known, %d are where nothing is known, truth %d", n, hidden, len(e.State))
	}
	if all, most := r.known(); err == nil && (all || bytes > most) {
		err = fmt.Errorf("%d bytes are not known, at most %d should be", bytes, most)
	}
	return err
}

// rolledConfig is a heap with all that can go wrong, and slices of all sizes.
func rolledConfig(seed, collector uint64) tracetest.Config {
	cfg := tracetest.All(seed, collector, trace.DepthSurvivors+seed%2)
	cfg.Eden = 1024
	cfg.Slice = []uint64{40, 200, 700, 3000, 1 << 20}[seed%5]
	cfg.Drop = []float64{0, 0.1, 0.3}[seed%3]
	if seed%4 == 0 {
		cfg.Full, cfg.EvacFail, cfg.Fault = 0, 0, 0
	}
	return cfg
}

// TestRolling: whoever opens a recording at the first slice of a ramp knows exactly what has been listed or has moved
// since, and after the last slice all of it; who knew all before does so still. Losses, full collections, mixed ones
// and evacuation failures happen meanwhile.
func TestRolling(t *testing.T) {
	for name, col := range collectors {
		t.Run(name, func(t *testing.T) {
			var sum rolled
			for seed := uint64(1); seed <= *rollSeeds; seed++ {
				if err := rollOn(rolledConfig(seed, col), 60, &sum); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if sum.known < 500 || sum.partial < 500 || sum.healed < 10 || sum.alone < 250 {
				t.Errorf("too little was compared: %+v", sum)
			}
		})
	}
}

// TestRollingRules: each rule is needed. A probe that breaks one is found out.
func TestRollingRules(t *testing.T) {
	tiers.Gate(t, "the rules of rolling sync points, by simulation")
	for name, naive := range map[string]tracetest.Naive{"top": tracetest.NaiveTop, "moves": tracetest.NaiveMoves,
		"census": tracetest.NaiveCensus, "carry": tracetest.NaiveCarry, "young": tracetest.NaiveYoung,
		"again": tracetest.NaiveAgain, "incarnation": tracetest.NaiveIncarnation} {
		t.Run(name, func(t *testing.T) {
			found, first := 0, error(nil)
			runs := *rollSeeds
			for seed := uint64(1); seed <= runs && (found == 0 || testing.Verbose()); seed++ {
				cfg := rolledConfig(seed, trace.CollectorSerial+seed%3)
				cfg.Naive = naive
				if err := rollOn(cfg, 60, &rolled{}); err != nil {
					found++
					if first == nil {
						first = fmt.Errorf("seed %d: %w", seed, err)
					}
				}
			}
			if found == 0 {
				t.Fatal("nothing was found")
			}
			t.Logf("found in %d of %d runs, first: %v", found, runs, first)
		})
	}
}

// TestRollingEndsUnnamed: a recording may end with the slice that leaves nothing unlisted, before the one that names
// the live samples. Then all objects are known at its end. Where it goes on, nothing is known sooner than otherwise.
func TestRollingEndsUnnamed(t *testing.T) {
	ends := 0
	for seed := uint64(1); seed <= 8; seed++ {
		cfg := rolledConfig(4*seed, trace.CollectorParallel)
		cfg.Drop, cfg.Slice = 0, 200
		m := tracetest.New(cfg)
		var bs []trace.Block
		for i := range 40 {
			e := m.Step(i%12 == 4)
			bs = append(bs, e.Blocks...)
			last := len(bs) - 1
			if bs[last].Kind != trace.KindSlice {
				continue
			}
			s, err := trace.DecodeSlice(bs[last])
			if err != nil {
				t.Fatal(err)
			}
			if !s.Last() || s.First() {
				continue
			}
			s.Flags &^= trace.SliceLast
			s.Samples, s.SampleTypes = nil, nil
			whole := bs[last]
			bs[last] = trace.EncodeSlice(s)
			bs[last].Version = whole.Version
			r := NewReplay(&blocks{bs})
			var end *Collection
			for c, err := r.Next(); err == nil; c, err = r.Next() {
				end = c
			}
			if end == nil || !end.Known || end.Partial || end.Unlisted != 0 || len(r.Faults) > 0 {
				t.Fatalf("seed %d: the end is %+v, faults %q", seed, end, r.Faults)
			}
			if why := same(r.State, e.State, false); why != "" {
				t.Errorf("seed %d, collection %d: %s", seed, end.GC, why)
			}
			ends++
			break
		}
	}
	if ends < 4 {
		t.Errorf("only %d recordings end so", ends)
	}
}
