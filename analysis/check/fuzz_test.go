package check

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/compare"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// FuzzDamaged reads recordings of which bytes were changed by every way there is: no panic, and no group that does not
// add up.
func FuzzDamaged(f *testing.F) {
	f.Add(uint8(1), []byte{3, 9, 200, 7, 4, 1})
	f.Add(uint8(3), []byte{})
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 60 { // also without the fuzzer
		hits := make([]byte, 3*(1+rng.IntN(8)))
		for k := range hits {
			hits[k] = byte(rng.Uint32())
		}
		f.Add(uint8(i), hits)
	}
	recordings := [4][]trace.Block{analysistest.Recording(1, 1, 2, 8), analysistest.Recording(2, 2, 3, 8),
		analysistest.Recording(3, 3, 2, 8), analysistest.Recording(4, 3, 3, 8)}
	for i := range recordings {
		recordings[i] = summarized(f, recordings[i])
	}
	lib := classify.NewLibrary()
	f.Fuzz(func(t *testing.T, which uint8, hits []byte) {
		fresh := func() *heap.Replay {
			var bs []trace.Block
			for _, b := range recordings[which%4] {
				b.Payload = bytes.Clone(b.Payload)
				bs = append(bs, b)
			}
			for i := 0; i+2 < len(hits) && i < 60; i += 3 {
				if p := bs[int(hits[i])%len(bs)].Payload; len(p) > 0 {
					p[int(hits[i+1])*len(p)/256] ^= hits[i+2]
				}
			}
			return heap.NewReplay(&analysistest.Source{B: bs})
		}
		again := func() ([]classify.Classifier, []classify.Filter) {
			cs, err := lib.By("space, type, site(2), ages, address(64k)")
			if err != nil {
				t.Fatal(err)
			}
			return cs, nil
		}
		tr, err := analysis.Trend(fresh(), again, 10)
		if err == nil && len(tr.Collections) > 1 {
			cs, _ := lib.By("space, type, site")
			analysis.Diff(fresh(), tr.Collections[0].GC, tr.Collections[len(tr.Collections)-1].GC, cs, nil)
			if p, err := export.NewProfile(fresh(), tr.Collections[0].GC); err == nil {
				p.WritePprof(io.Discard)
				p.WriteCollapsed(io.Discard, "alloc_space")
			}
		}
		if s, err := history.Survival(fresh(), 5); err == nil {
			for _, c := range append(s.Types, s.Sites...) {
				for _, v := range c.Survive {
					if !(v >= 0 && v <= 1) {
						t.Fatalf("%s: %v", c.Class, c.Survive)
					}
				}
			}
		}
		checked := fresh()
		k := Summaries(checked)
		collection.Each(checked, func(c *heap.Collection) bool { k.Collection(c); return true })
		if h, err := history.AtSyncPoints(fresh()); err == nil {
			h.WriteText(io.Discard, 5)
		}
		export.Samples(context.Background(), io.Discard, "csv", fresh())
		export.ClassHistory(context.Background(), io.Discard, "json", fresh())
		r := fresh()
		if _, err := collection.Points(r); err == nil {
			// zeros take as long as they are many
			if h, err := export.NewHprof(r.View(), nil); err == nil && h.Bytes < 1<<26 {
				if err := h.Write(context.Background(), io.Discard); err != nil {
					t.Fatal(err)
				}
			}
		}
		if g, err := compare.GrowthOf(fresh()); err == nil {
			compare.Recordings(g, g)
		}
	})
}
