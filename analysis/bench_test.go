package analysis

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// benchHeap is a state of n objects: 200 types, three in ten arrays, eight of ten at survivor ages that a listing can
// not tell (one birth), one object in a thousand sampled at one of 500 sites. HEAPCAM_FULL=1: ten million objects, else
// one.
func benchHeap(b *testing.B) (*heap.Replay, *heap.Collection) {
	n := 1_000_000
	if os.Getenv("HEAPCAM_FULL") != "" {
		n = 10_000_000
	}
	rng := rand.New(rand.NewPCG(5, 5))
	types := trace.NewTypeTable(8)
	var d trace.Defs
	for i := range uint64(200) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: "x/T" + string(rune('A'+i%26)) + string(rune('a'+i/26))}
		if i%10 >= 7 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: "[Lx/A" + string(rune('A'+i%26)) + string(rune('a'+i/26)) + ";"}
		}
		d.Types = append(d.Types, ty)
	}
	for i := range uint64(500) {
		d.Methods = append(d.Methods,
			trace.Method{ID: i + 1, Class: "Lx/M;", Name: "m" + string(rune('a'+i%26)) + string(rune('a'+i/26)),
				File: "M.java"})
		d.Frames = append(d.Frames, trace.Frame{ID: i + 1, Method: i + 1})
	}
	if err := types.DefineAll(d.Types); err != nil {
		b.Fatal(err)
	}
	const epochs = 10
	bs := []trace.Block{
		trace.EncodeMeta(
			trace.Meta{
				HasJVM: true,
				JVM: trace.JVM{ABI: 1, Major: 25, Collector: trace.CollectorParallel, Align: 8,
					Flags: trace.JVMAtStart, Depth: trace.DepthSurvivors, Interval: 1 << 16, Session: "0"},
			},
		),
		trace.EncodeDefs(d),
	}
	at, id := uint64(1<<20), uint64(0)
	var samples []trace.Sample
	for gc := uint64(1); gc <= epochs; gc++ {
		e := &trace.Epoch{
			Pause: trace.Pause{GC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact, Depth: trace.DepthSurvivors},
		}
		births := trace.NewListEncoder(types)
		samples = samples[:0]
		if gc > 1 {
			for range n / (epochs - 1) {
				typ, l := uint32(1+rng.IntN(1+rng.IntN(200))), uint64(0)
				if types.HasLength(uint64(typ)) {
					l = uint64(rng.IntN(1 + rng.IntN(60)))
				}
				w, _ := types.Words(uint64(typ), l)
				births.Object(at, typ, l)
				if rng.IntN(1000) == 0 {
					id++
					samples = append(
						samples,
						trace.Sample{ID: id, Thread: 1, Type: uint64(typ), Size: w * 8, Interval: 1 << 16,
							Frame: uint64(1 + rng.IntN(500))},
					)
					e.Resolved = append(e.Resolved, trace.SampleAddr{ID: id, Addr: at})
				}
				at += w
			}
			e.Births = [][]byte{births.Bytes()}
			bs = append(bs, trace.EncodeSamples(samples))
		}
		bs = append(bs, trace.EncodeEpoch(e))
		if gc == 1 {
			l := trace.NewListEncoder(types)
			l.Object(8, 1, 0)
			w, _ := types.Words(1, 0)
			bs = append(bs,
				trace.EncodeSync(&trace.Sync{GC: 1, Reason: trace.SyncFirst, Lists: [][]byte{l.Bytes()}, Objects: 1,
					Bytes: w * 8}))
		}
	}
	r := heap.NewReplay(&analysistest.Source{B: bs})
	var last *heap.Collection
	if err := collection.Each(r, func(c *heap.Collection) bool { last = c; return true }); err != nil || !last.Known ||
		len(r.Faults) > 0 {
		b.Fatal(err, last, r.Faults)
	}
	return r, last
}

// BenchmarkGroup groups one state by several lists; an expression beside the built-in that it equals.
func BenchmarkGroup(b *testing.B) {
	r, c := benchHeap(b)
	for _, by := range []string{"type", "type, site, age", "type, site", "type, age", "type, ages",
		`type, (atleast ? "≥ " : "") + power(age)`, "type, sizeclass", `type, power(size) + " B"`, "kind, length"} {
		b.Run(by, func(b *testing.B) {
			tuples := 0
			for range b.N {
				cs, err := classify.NewLibrary().By(by)
				if err != nil {
					b.Fatal(err)
				}
				w, spaces := World(r.View(), c)
				g, err := Group(r.View(), c, w, spaces, cs, nil)
				if err != nil {
					b.Fatal(err)
				}
				if g.Objects != uint64(r.State.Objects()) {
					b.Fatal(g.Objects)
				}
				tuples = len(g.Tuples)
			}
			b.ReportMetric(float64(tuples), "tuples")
			b.ReportMetric(float64(b.N)*float64(r.State.Objects())/b.Elapsed().Seconds()/1e6, "Mobjects/s")
		})
	}
}

// BenchmarkListMode is ICPE'18's other way, for comparison: classifiers run once for each object, which a list per
// group keeps.
func BenchmarkListMode(b *testing.B) {
	r, c := benchHeap(b)
	for _, by := range []string{"type", "site(1)", "type, site(1)"} {
		b.Run(by, func(b *testing.B) {
			for range b.N {
				cs, err := classify.NewLibrary().By(by)
				if err != nil {
					b.Fatal(err)
				}
				w, _ := World(r.View(), c)
				groups := map[[2]string][]uint64{}
				var buf []string
				r.State.Each(func(o heap.Object) bool {
					t := classify.Tuple{Type: o.Type, Birth: o.Birth, AtLeast: o.AtLeast, Space: -1}
					if s := r.Live.Get(o.Sample); s != nil {
						t.Sampled, t.Frame, t.Thread = true, s.Frame, s.Thread
					}
					var k [2]string
					for i := range cs {
						buf, _ = cs[i].Keys(w, &t, buf[:0])
						k[i] = buf[0]
					}
					groups[k] = append(groups[k], o.Addr)
					return true
				})
				if len(groups) == 0 {
					b.Fatal("none")
				}
			}
			b.ReportMetric(float64(b.N)*float64(r.State.Objects())/b.Elapsed().Seconds()/1e6, "Mobjects/s")
		})
	}
}
