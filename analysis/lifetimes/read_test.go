package lifetimes

import (
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestSameState reads random recordings of all collectors and both depths. After each collection whose state is known,
// the reader knows the same objects as the replay does, and in the end no time contradicts another.
func TestSameState(t *testing.T) {
	for collector := uint64(trace.CollectorSerial); collector <= trace.CollectorG1; collector++ {
		for depth := uint64(trace.DepthSurvivors); depth <= trace.DepthFull; depth++ {
			for seed := range uint64(6) {
				r := heap.NewReplay(&analysistest.Source{B: analysistest.Recording(seed, collector, depth, 60)})
				b := newReader(r)
				compared := 0
				for {
					c, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					b.collection(c)
					if !c.Known {
						continue
					}
					compared++
					n := 0
					r.State.Each(func(o heap.Object) bool {
						n++
						i, ok := b.at.find(o.Addr)
						if !ok || b.t.Type[i] != o.Type || uint64(b.t.Words[i]) != o.Words {
							t.Fatalf("collector %d, depth %d, seed %d, collection %d: %+v is not known", collector,
								depth, seed,
								c.GC, o)
						}
						return true
					})
					if uint64(n) != b.live {
						t.Fatalf("collector %d, depth %d, seed %d, collection %d: %d objects, the replay has %d",
							collector,
							depth, seed, c.GC, b.live, n)
					}
				}
				if compared < 20 {
					t.Errorf("collector %d, depth %d, seed %d: %d states were known", collector, depth, seed, compared)
				}
				for i := range b.t.Words {
					if b.t.BornLo[i] > b.t.Born[i] || b.t.Seen[i] > b.t.Dead[i] || b.t.Born[i] > b.t.Dead[i] {
						t.Fatalf("object %d: born %d to %d, seen %d, dead %d", i, b.t.BornLo[i], b.t.Born[i],
							b.t.Seen[i],
							b.t.Dead[i])
					}
				}
			}
		}
	}
}

// TestNothingToRead: recordings without collections, and without objects, are refused.
func TestNothingToRead(t *testing.T) {
	all := analysistest.Recording(1, trace.CollectorParallel, trace.DepthSurvivors, 20)
	if _, err := Read(heap.NewReplay(&analysistest.Source{B: all})); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]trace.Block{nil, all[:2]} {
		if _, err := Read(heap.NewReplay(&analysistest.Source{B: b})); !errors.Is(err, ErrNoCollections) {
			t.Errorf("%d blocks: %v", len(b), err)
		}
	}
}

// TestReadMost: a recording with more objects than may be read is refused before they take more memory.
func TestReadMost(t *testing.T) {
	read := func(most int) (*Tape, error) {
		blocks := analysistest.Recording(1, trace.CollectorParallel, trace.DepthSurvivors, 60)
		return ReadMost(heap.NewReplay(&analysistest.Source{B: blocks}), most)
	}
	tape, err := read(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read(tape.Len() / 2); !errors.Is(err, ErrMany) {
		t.Errorf("half of %d objects: %v", tape.Len(), err)
	}
}
