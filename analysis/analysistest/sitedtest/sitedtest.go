// Package sitedtest has recordings with exact sites, for tests of what draws their callers.
package sitedtest

import (
	"io"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// ExactFrame is the innermost frame of all objects of Blocks, without callers. The two stacks behind it, DrawnStack and
// the next but one, have callers.
const ExactFrame, DrawnStack = 1 << 20, 1<<20 + 1

// Blocks gives the blocks of a recording with `--sites exact`: the bytecode has told one innermost frame of all
// objects that were born in a young collection and have no sample. All samples end in this frame. It has two callers,
// and the first has about three of four samples.
func Blocks(t testing.TB, bs []trace.Block) (out []trace.Block) {
	t.Helper()
	born := unsampled(t, bs)
	defined := false
	for _, b := range bs {
		switch b.Kind {
		case trace.KindDefs:
			d, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(d.Methods) < 3 || defined {
				break
			}
			defined = true
			d.Frames = append(d.Frames, trace.Frame{ID: ExactFrame, Method: d.Methods[0].ID, BCI: 3})
			for i := range uint64(2) {
				d.Frames = append(d.Frames, trace.Frame{ID: DrawnStack + 2*i + 1, Method: d.Methods[1+i].ID, BCI: 3},
					trace.Frame{ID: DrawnStack + 2*i, Parent: DrawnStack + 2*i + 1, Method: d.Methods[0].ID, BCI: 3})
			}
			b = encoded(b, trace.EncodeDefs(d))
		case trace.KindSamples:
			samples, err := trace.DecodeSamples(b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range samples {
				if samples[i].Frame = DrawnStack; samples[i].ID%4 == 0 {
					samples[i].Frame = DrawnStack + 2
				}
			}
			b = encoded(b, trace.EncodeSamples(samples))
		case trace.KindEpoch:
			e, err := trace.DecodeEpoch(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range born[e.Pause.GC] {
				e.Sited = append(e.Sited, trace.SitedAddr{Addr: at, Frame: ExactFrame})
			}
			b = encoded(b, trace.EncodeEpoch(e))
		}
		out = append(out, b)
	}
	return out
}

// encoded gives b with another content.
func encoded(b, with trace.Block) trace.Block {
	b.Payload, b.Version = with.Payload, with.Version
	return b
}

// unsampled gives the addresses of the objects without a sample that were born in each young collection.
func unsampled(t testing.TB, bs []trace.Block) map[uint64][]uint64 {
	r := heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)})
	born := map[uint64][]uint64{}
	for {
		c, err := r.Next()
		if err == io.EOF {
			return born
		}
		if err != nil {
			t.Fatal(err)
		}
		if !c.Known || c.Kind != trace.PauseYoung {
			continue
		}
		r.State.Each(func(o heap.Object) bool {
			if o.Sample == 0 && uint64(o.Birth) == c.GC {
				born[c.GC] = append(born[c.GC], o.Addr)
			}
			return true
		})
	}
}
