package heap

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func everything(s *State) (out []Object) {
	s.Each(func(o Object) bool { out = append(out, o); return true })
	return out
}

// seen is a sample that lived after a collection, by its place among those that were kept.
type seen struct {
	at int
	id uint64
}

// TestKeep keeps the state after each collection while a replay continues: what was kept must stay what it was, and the
// replay must give what one gives of which nothing is kept. Both are compared object by object, with births and
// samples.
func TestKeep(t *testing.T) {
	for name, col := range collectors {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			t.Run(fmt.Sprintf("%s/%d", name, depth), func(t *testing.T) {
				m := tracetest.New(tracetest.All(5, col, depth))
				var bs []trace.Block
				for i := range 60 {
					switch i % 13 {
					case 7:
						bs = append(bs, m.Walk().Blocks...)
					case 11:
						bs = append(bs, m.FullGC().Blocks...)
					default:
						bs = append(bs, m.Step(i%5 == 0).Blocks...)
					}
				}
				r, plain := NewReplay(&blocks{slices.Clone(bs)}), NewReplay(&blocks{slices.Clone(bs)})
				var kept []*Snapshot
				var was [][]Object
				var last *Snapshot
				var living []seen
				lives := &Lives{}
				for {
					c, err := r.Next()
					if _, err2 := plain.Next(); err2 != err {
						t.Fatal(err, err2)
					}
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					lives.Follow(r.Samples, c.GC)
					now := everything(plain.State)
					if !slices.Equal(everything(r.State), now) {
						t.Fatalf("collection %d: the replay that is kept of differs", c.GC)
					}
					if c.Known && c.GC%3 > 0 { // states of which none was kept lie between
						kept, was = append(kept, r.Snapshot(c, last)), append(was, now)
						last = kept[len(kept)-1]
						for id := range plain.Live.All() {
							living = append(living, seen{len(kept) - 1, id})
						}
					}
				}
				if len(kept) < 20 {
					t.Fatalf("only %d states were kept", len(kept))
				}
				names := r.Names()
				for _, x := range living {
					if s := kept[x.at].View(names, lives).Sample(x.id); s == nil || s.ID != x.id {
						t.Fatalf("collection %d: sample %d lives and is not reported", kept[x.at].C.GC, x.id)
					}
				}
				for i, k := range kept {
					// continuing from it gives what was there later
					if k.C.Flags&trace.PauseEdenKept == 0 && i+3 < len(kept) {
						on, to := k.Resume(r.Names(), lives, &blocks{slices.Clone(bs)}), kept[i+3]
						c, err := on.Next()
						for ; err == nil && c.GC != to.C.GC; c, err = on.Next() {
						}
						if err != nil {
							t.Fatalf("from %d to %d: %v", k.C.GC, to.C.GC, err)
						}
						if !c.Known || !slices.Equal(everything(on.State), was[i+3]) {
							t.Errorf("going on from collection %d gives another state after %d (known: %v, faults %q)",
								k.C.GC, to.C.GC, c.Known, on.Faults)
						}
						// whatever is done to it
						if err := on.State.Evacuate(&trace.Epoch{Freed: []trace.Range{{Words: 1 << 40}}}, on.Sizes(),
							&on.evacuation); err != nil {
							t.Fatal(err)
						}
					}
					st := k.View(names, lives).State
					if !slices.Equal(everything(st), was[i]) || st.Objects() != len(was[i]) {
						t.Errorf("what was kept of collection %d has changed", k.C.GC)
					}
					var sum Count
					for _, c := range st.PerType() {
						sum.Objects += c.Objects
						sum.Bytes += c.Bytes
					}
					if sum != (Count{Objects: k.C.Objects, Bytes: k.C.Bytes}) {
						t.Errorf("collection %d: the dictionary counts %v, the collection %d, %d", k.C.GC, sum,
							k.C.Objects, k.C.Bytes)
					}
				}
			})
		}
	}
}
