package heap

import (
	"fmt"
	"io"
	"testing"

	"github.com/heapcam/heapcam/heap/match"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// blocks is a source of blocks from memory.
type blocks struct{ b []trace.Block }

func (s *blocks) Next() (trace.Block, error) {
	if len(s.b) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b, nil
}

// same says how the state differs from the truth, "" if it does not. With identity, samples are compared as well.
func same(st *State, truth map[uint64]tracetest.Object, samples bool) string {
	if st.Objects() != len(truth) {
		return fmt.Sprintf("%d objects, truth %d", st.Objects(), len(truth))
	}
	why, last, n := "", uint64(0), 0
	per := map[uint32]Count{}
	st.Each(func(o Object) bool {
		t, ok := truth[o.Addr]
		switch {
		case !ok:
			why = fmt.Sprintf("object at %d is not there", o.Addr)
		case t.Type != o.Type || t.Length != o.Length || t.Words != o.Words:
			why = fmt.Sprintf("at %d: type %d length %d words %d, truth %d %d %d", o.Addr, o.Type, o.Length, o.Words,
				t.Type, t.Length, t.Words)
		case samples && t.Sample != o.Sample:
			why = fmt.Sprintf("at %d: sample %d, truth %d", o.Addr, o.Sample, t.Sample)
		case n > 0 && o.Addr <= last:
			why = fmt.Sprintf("address %d after %d", o.Addr, last)
		}
		last, n = o.Addr, n+1
		c := per[o.Type]
		per[o.Type] = Count{Objects: c.Objects + 1, Bytes: c.Bytes + o.Words*8}
		return why == ""
	})
	if why == "" {
		for id, c := range st.PerType() {
			if per[uint32(id)] != c {
				return fmt.Sprintf("type %d: column says %v, objects say %v", id, c, per[uint32(id)])
			}
		}
	}
	return why
}

// check replays what a model said and compares each collection with the model's truth. from is where reading starts: 0,
// or a file's head.
func check(t interface{ Fatalf(string, ...any) }, name string, head []trace.Block, eps []*tracetest.Epoch) int {
	var bs []trace.Block
	bs = append(bs, head...)
	truth := map[uint64]*tracetest.Epoch{}
	for i, e := range eps {
		b := e.Blocks
		if head != nil && i == 0 { // a file begins with the SYNC, its epoch is in the file before
			b = b[len(b)-1:]
		} else if !e.Dropped {
			truth[e.Pause.GC] = e
		}
		bs = append(bs, b...)
	}
	r := NewReplay(&blocks{bs})
	known := 0
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e := truth[c.GC]
		if e == nil {
			t.Fatalf("%s: collection %d was never made", name, c.GC)
			return 0
		}
		if c.Known != e.Known && head == nil {
			t.Fatalf("%s: collection %d known %v, truth %v; faults %q", name, c.GC, c.Known, e.Known, r.Faults)
		}
		if !c.Known {
			continue
		}
		known++
		if why := same(r.State, e.State, true); why != "" {
			t.Fatalf("%s: after collection %d (kind %d, flags %d): %s", name, c.GC, e.Pause.Kind, e.Pause.Flags, why)
		}
	}
	for _, c := range r.Compared {
		if c.Mismatches() != 0 {
			t.Fatalf("%s: sync point at %d: %d mismatches, first: %v", name, c.GC, c.Mismatches(), c.First)
		}
	}
	if len(r.Damage)+len(r.Faults) != 0 {
		t.Fatalf("%s: damage %v faults %q", name, r.Damage, r.Faults)
	}
	return known
}

var collectors = map[string]uint64{"serial": trace.CollectorSerial, "parallel": trace.CollectorParallel,
	"g1": trace.CollectorG1}

// TestReplayAgainstTruth replays random legal streams of every collector and both depths, from the beginning and from
// each sync point as a file opened alone, and compares every known collection, object by object, with what the model
// knows.
func TestReplayAgainstTruth(t *testing.T) {
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			t.Run(fmt.Sprintf("%s/%d", name, depth), func(t *testing.T) {
				known, alone := 0, 0
				for seed := uint64(1); seed <= 6; seed++ {
					m := tracetest.New(tracetest.All(seed, col, depth))
					type file struct {
						head []trace.Block
						at   int
					}
					var eps []*tracetest.Epoch
					var files []file
					for i := range 40 {
						var e *tracetest.Epoch
						switch i % 13 {
						case 7:
							e = m.Walk()
						case 11:
							e = m.FullGC()
						default:
							e = m.Step(i%5 == 0)
						}
						eps = append(eps, e)
						if e.Synced {
							files = append(files, file{m.Head(), i})
						}
					}
					known += check(t, fmt.Sprintf("seed %d", seed), nil, eps)
					for _, f := range files {
						alone += check(t, fmt.Sprintf("seed %d from %d", seed, f.at), f.head, eps[f.at:])
					}
				}
				if known < 100 || alone < 100 {
					t.Fatalf("only %d and %d known collections were compared", known, alone)
				}
			})
		}
	}
}

// TestSyncOfALostEpoch takes epochs out of a stream and leaves their sync points: those are adopted and not compared,
// the collection before keeps the state that it had, and what is missing is counted.
func TestSyncOfALostEpoch(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		m := tracetest.New(tracetest.Config{Seed: seed})
		r, lost, state := NewReplay(&blocks{}), uint64(0), map[uint64]*tracetest.Epoch{}
		var bs []trace.Block
		for i := range 20 {
			e := m.Step(i%4 == 0)
			state[e.Pause.GC] = e
			gone := i > 0 && e.Synced && i%4 == 0
			for _, b := range e.Blocks {
				if gone && b.Kind == trace.KindEpoch {
					lost++
					continue
				}
				bs = append(bs, b)
			}
		}
		r.blocks.src = &blocks{bs}
		reported := uint64(0)
		for {
			c, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			reported += c.EpochsLost
			if e := state[c.GC]; c.Known {
				if why := same(r.State, e.State, false); why != "" {
					t.Fatalf("seed %d: after collection %d: %s", seed, c.GC, why)
				}
			}
		}
		if len(r.Compared) != 0 || reported != lost || lost < 3 {
			t.Errorf("seed %d: %d compared, %d epochs reported lost, %d are", seed, len(r.Compared), reported, lost)
		}
	}
}

// remove takes an object out of the state of r.
func remove(t *testing.T, r *Replay, o Object) {
	e := trace.Epoch{Freed: []trace.Range{{Start: o.Addr, Words: o.Words}}}
	if err := r.State.Evacuate(&e, r.Sizes(), &r.evacuation); err != nil {
		t.Fatal(err)
	}
}

// add puts an object into the state of r.
func add(t *testing.T, r *Replay, o Object) {
	l := trace.NewListEncoder(r.Sizes())
	l.Object(o.Addr, o.Type, o.Length)
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	e := trace.Epoch{Births: [][]byte{l.Bytes()}}
	if err := r.State.Evacuate(&e, r.Sizes(), &r.evacuation); err != nil {
		t.Fatal(err)
	}
}

// TestSyncTellsADifference shows that the comparison can fail: an object taken out of the replayed state, one added,
// one of another type.
func TestSyncTellsADifference(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 3})
	bs := append(m.Step(true).Blocks, m.Step(true).Blocks...)
	for kind, spoil := range map[string]func(*Replay, []Object){
		match.Extra:   func(r *Replay, o []Object) { remove(t, r, o[0]) },
		match.Missing: func(r *Replay, o []Object) { x := o[0]; x.Addr = 1 << 30; add(t, r, x) },
		match.Different: func(r *Replay, o []Object) {
			x := o[0]
			remove(t, r, x)
			for _, y := range o {
				if y.Type != x.Type {
					x.Type, x.Length = y.Type, y.Length
					break
				}
			}
			add(t, r, x)
		},
	} {
		r := NewReplay(&blocks{})
		for i, b := range bs {
			if b.Kind == trace.KindSync && i == len(bs)-1 {
				var plain []Object
				r.State.Each(func(o Object) bool {
					if !r.Filler(o.Type) {
						plain = append(plain, o)
					}
					return true
				})
				if !r.Known || len(plain) < 2 {
					t.Fatal("the model has nothing to compare")
				}
				spoil(r, plain)
			}
			if err := r.handle(b); err != nil {
				t.Fatal(err)
			}
		}
		n := len(r.Compared)
		if n == 0 || r.Compared[n-1].Mismatches() != 1 || len(r.Compared[n-1].First) != 1 ||
			r.Compared[n-1].First[0].Kind != kind {
			t.Errorf("%s: reported %+v", kind, r.Compared)
		}
	}
}

// FuzzReplay feeds bytes as a stream: no panic, whatever they say.
func FuzzReplay(f *testing.F) {
	for _, c := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			cfg := tracetest.All(1, c, depth)
			cfg.Eden, cfg.Slice = 512, 60*(depth-trace.DepthSurvivors) // and listings in slices
			m := tracetest.New(cfg)
			var p []byte
			for i := range 8 {
				var e *tracetest.Epoch
				switch i {
				case 4:
					e = m.FullGC()
				case 6:
					e = m.Walk()
				default:
					e = m.Step(i%2 == 0)
				}
				for _, b := range e.Blocks {
					p = trace.AppendBlock(p, b)
				}
			}
			f.Add(p)
		}
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var bs []trace.Block
		for b, err := range trace.Blocks(p) {
			if err != nil {
				break
			}
			bs = append(bs, b)
		}
		r := NewReplay(&blocks{bs})
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			n := 0
			r.State.Each(func(o Object) bool { r.TypeName(o.Type); n++; return true })
			if n != r.State.Objects() {
				t.Fatalf("%d objects, counted %d", n, r.State.Objects())
			}
			r.State.PerType()
		}
	})
}
