package e2e

import (
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestProvenIdentity compares what the replay proves of objects through full collections with the probe, which follows
// sampled objects. Every second sample is hidden from the replay. If the replay claims to know the birth of such an
// object, the sample must have the same birth. There is one exception. An object whose allocation caused a collection
// is listed in that pause, but sampled only when its thread continues; on a busy machine that may be some collections
// later. Wrong identities would be too young as often as too old. So none may be too young, and few may be late.
func TestProvenIdentity(t *testing.T) {
	t.Parallel()
	somePair(t, "proven", []int{17, 25}, []string{"Serial", "Parallel"}, func(t *testing.T, major int, gc string) {
		t.Parallel()
		p := program{major: major, gc: gc, heap: "12m", main: "Steady", args: []string{"12000", "20000"},
			limit: "64MiB",
			flags: []string{"--emergency", "off", "--sampling", "4k"}}
		r := p.start(t)
		r.finish(t)
		rec, err := ringstore.OpenRecording(r.recorded(t).dir)
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		src := &halfSource{blockSource: blockSource{files: rec.Files}}
		defer src.close()
		h := heap.NewReplay(src)
		held, right, open, listed, proven := 0, 0, 0, uint64(0), uint64(0)
		late := map[[4]uint64]bool{} // one object is met after many collections
		for {
			c, err := h.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Listed == 0 || c.Kind != trace.PauseFull {
				continue
			}
			listed += c.Listed
			proven += c.Proven
			hidden := src.hidden[c.GC]
			h.State.Each(func(o heap.Object) bool {
				birth, ok := hidden[o.Addr]
				switch {
				case !ok:
				case o.AtLeast:
					if open++; birth > uint64(o.Birth) {
						late[[4]uint64{birth, uint64(o.Birth), uint64(o.Type), o.Length}] = true
					}
				case birth < uint64(o.Birth):
					t.Fatalf("collection %d: the object at word %d is proven to be born before collection %d, its "+
						"sample is of %d",
						c.GC, o.Addr, o.Birth, birth)
				case birth > uint64(o.Birth):
					late[[4]uint64{birth, uint64(o.Birth), uint64(o.Type), o.Length}] = true
				default:
					right++
				}
				return true
			})
			held += len(hidden)
		}
		t.Logf("%d of %d objects proven; of %d whose samples were hidden %d are right (%d late), %d not proven", proven,
			listed, held, right, len(late), open)
		if right < 100 || len(late) > right/100+2 {
			t.Errorf("%d proven objects were checked, %d samples were late", right, len(late))
		}
	})
}

// halfSource hides the samples with odd ids.
type halfSource struct {
	blockSource
	hidden map[uint64]map[uint64]uint64 // births by address, by collection
}

func (s *halfSource) Next() (trace.Block, error) {
	b, err := s.blockSource.Next()
	if err != nil {
		return b, err
	}
	switch b.Kind {
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			return b, err
		}
		var even []trace.SampleAddr
		for _, x := range e.Resolved {
			if x.ID%2 == 0 {
				even = append(even, x)
			}
		}
		e.Resolved = even
		return sealed(trace.EncodeEpoch(e), b), nil
	case trace.KindSync:
		y, err := trace.DecodeSync(b)
		if err != nil {
			return b, err
		}
		var even []trace.LiveSample
		odd := map[uint64]uint64{}
		for _, x := range y.Samples {
			if x.ID%2 == 0 {
				even = append(even, x)
			} else {
				odd[x.Addr] = x.Birth
			}
		}
		if s.hidden == nil {
			s.hidden = map[uint64]map[uint64]uint64{}
		}
		s.hidden[y.GC] = odd
		y.Samples = even
		return sealed(trace.EncodeSync(y), b), nil
	}
	return b, nil
}

// sealed gives b what stands in the header of was.
func sealed(b, was trace.Block) trace.Block {
	b.Version, b.Flags, b.Seq = was.Version, was.Flags, was.Seq
	return b
}
