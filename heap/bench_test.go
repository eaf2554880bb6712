package heap

import (
	"cmp"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// synthetic is a recording of a heap like that of a service: two hundred types, three objects in ten are arrays, 5
// words on average.
type synthetic struct {
	types *trace.TypeTable
	defs  trace.Defs
	rng   *rand.Rand
	gc    uint64
}

func newSynthetic() *synthetic {
	t := &synthetic{types: trace.NewTypeTable(8), rng: rand.New(rand.NewPCG(7, 7))}
	for i := range uint64(200) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: "x/T"}
		if i%10 >= 7 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4, Name: "[I"}
		}
		t.defs.Types = append(t.defs.Types, ty)
	}
	if err := t.types.DefineAll(t.defs.Types); err != nil {
		panic(err)
	}
	return t
}

func (t *synthetic) head() []trace.Block {
	return []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true,
		JVM: trace.JVM{ABI: 1, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors,
			Session: "0"}}),
		trace.EncodeDefs(t.defs)}
}

// object draws a type, popular ones more often, and a length.
func (t *synthetic) object() (typ uint32, length uint64) {
	typ = uint32(1 + t.rng.IntN(1+t.rng.IntN(200)))
	if t.types.HasLength(uint64(typ)) {
		length = uint64(t.rng.IntN(1 + t.rng.IntN(60)))
	}
	return typ, length
}

// sync lists objs from word base on.
func (t *synthetic) sync(base uint64, objs [][2]uint64) trace.Block {
	s := &trace.Sync{GC: t.gc, Reason: trace.SyncRotation}
	e := trace.NewListEncoder(t.types)
	at := base
	for _, o := range objs {
		e.Object(at, uint32(o[0]), o[1])
		w, _ := t.types.Words(o[0], o[1])
		at += w
		s.Objects++
		s.Bytes += w * 8
	}
	s.Lists = [][]byte{e.Bytes()}
	return trace.EncodeSync(s)
}

func (t *synthetic) epoch(e *trace.Epoch) trace.Block {
	t.gc++
	e.Pause = trace.Pause{GC: t.gc, Kind: trace.PauseYoung, Flags: trace.PauseExact, Depth: trace.DepthSurvivors}
	return trace.EncodeEpoch(e)
}

// peak polls the bytes of live and dead Go objects while f runs, with a collector that leaves little garbage, and gives
// their most.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	read := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	base, most := read(), uint64(0)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			most = max(most, read())
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	f()
	close(stop)
	done.Wait()
	return most - base
}

func drain(b *testing.B, r *Replay) {
	for {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
	}
	if len(r.Faults) > 0 || !r.Known {
		b.Fatalf("known %v, faults %q", r.Known, r.Faults)
	}
}

// BenchmarkSyncPoint replays two sync points of the same heap: the first is adopted, the second compared. Reported:
// bytes of memory per live object once the replay stands, and at its peak. HEAPCAM_FULL=1: ten million objects.
func BenchmarkSyncPoint(b *testing.B) {
	n := 1_000_000
	if os.Getenv("HEAPCAM_FULL") != "" {
		n = 10_000_000
	}
	t := newSynthetic()
	objs := make([][2]uint64, n)
	for i := range objs {
		typ, l := t.object()
		objs[i] = [2]uint64{uint64(typ), l}
	}
	bs := append(t.head(), t.epoch(&trace.Epoch{}), t.sync(1<<20, objs), t.epoch(&trace.Epoch{}), t.sync(1<<20, objs))
	objs = nil
	var stands, most uint64
	b.ResetTimer()
	for range b.N {
		var r *Replay
		most = peak(func() {
			r = NewReplay(&blocks{bs})
			drain(b, r)
		})
		if r.State.Objects() != n || len(r.Compared) != 1 || r.Compared[0].Mismatches() != 0 {
			b.Fatalf("%d objects, compared %+v", r.State.Objects(), r.Compared)
		}
		var with, without runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&with)
		runtime.KeepAlive(r)
		r = nil
		runtime.GC()
		runtime.ReadMemStats(&without)
		stands = with.HeapAlloc - without.HeapAlloc
	}
	b.ReportMetric(float64(stands)/float64(n), "B/object")
	b.ReportMetric(float64(most)/float64(n), "peak-B/object")
	b.ReportMetric(float64(b.N)*float64(2*n)/b.Elapsed().Seconds()/1e6, "Mobjects/s")
}

// BenchmarkSurvivors replays young collections at depth survivors: what lives moves between two survivor spaces through
// four buffers, a tenth dies, as many are born.
func BenchmarkSurvivors(b *testing.B) {
	t := newSynthetic()
	const n, epochs = 100_000, 20
	type obj struct {
		typ          uint32
		length, addr uint64
		words        uint64
	}
	var live []obj
	from, to := uint64(1<<21), uint64(1<<23)
	bs := append(t.head(), t.epoch(&trace.Epoch{}), t.sync(0, [][2]uint64{{1, 0}}))
	work := 0
	for range epochs {
		moves, births := trace.NewWalkEncoder(t.types), trace.NewListEncoder(t.types)
		var next []obj
		lane := [4]uint64{to, to + 1<<19, to + 2<<19, to + 3<<19}
		place := func(o *obj) {
			k := t.rng.IntN(4)
			o.addr = lane[k]
			lane[k] += o.words
		}
		var kept []obj
		for _, o := range live {
			if t.rng.IntN(10) > 0 {
				kept = append(kept, o)
			}
		}
		if len(live) > 0 {
			moves.Begin(from, 1<<21)
		}
		for _, o := range kept {
			at := o.addr
			place(&o)
			moves.SkipTo(at)
			moves.Move(o.typ, o.length, o.addr)
			next = append(next, o)
			work++
		}
		if len(live) > 0 {
			moves.End()
		}
		born := []obj{}
		for len(next)+len(born) < n {
			typ, l := t.object()
			w, _ := t.types.Words(uint64(typ), l)
			o := obj{typ: typ, length: l, words: w}
			place(&o)
			born = append(born, o)
			work++
		}
		slices.SortFunc(born, func(a, b obj) int { return cmp.Compare(a.addr, b.addr) })
		for _, o := range born {
			births.Object(o.addr, o.typ, o.length)
		}
		next = append(next, born...)
		slices.SortFunc(next, func(a, b obj) int { return cmp.Compare(a.addr, b.addr) })
		e := &trace.Epoch{Births: [][]byte{births.Bytes()}}
		if len(live) > 0 {
			e.Moves = [][]byte{moves.Bytes()}
		}
		if moves.Err() != nil || births.Err() != nil {
			b.Fatal(moves.Err(), births.Err())
		}
		bs = append(bs, t.epoch(e))
		live, from, to = next, to, from
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r := NewReplay(&blocks{bs})
		drain(b, r)
		if r.State.Objects() != n+1 {
			b.Fatalf("%d objects", r.State.Objects())
		}
	}
	b.ReportMetric(float64(b.N)*float64(work)/b.Elapsed().Seconds()/1e6, "Mobjects/s")
}

// BenchmarkFullDepth replays young collections at depth full: of what eden held one object in fifty survives, into old
// space.
func BenchmarkFullDepth(b *testing.B) {
	t := newSynthetic()
	const n, epochs = 500_000, 4
	bs := append(t.head(), t.epoch(&trace.Epoch{}), t.sync(0, [][2]uint64{{1, 0}}))
	dest, live := uint64(1<<26), 1
	for range epochs {
		allocs := trace.NewWalkEncoder(t.types)
		allocs.Begin(1<<10, 1<<24)
		for range n {
			typ, l := t.object()
			if t.rng.IntN(50) > 0 {
				allocs.Dead(typ, l)
				continue
			}
			w, _ := t.types.Words(uint64(typ), l)
			allocs.Move(typ, l, dest)
			dest += w
			live++
		}
		allocs.End()
		if allocs.Err() != nil {
			b.Fatal(allocs.Err())
		}
		bs = append(bs, t.epoch(&trace.Epoch{Allocs: [][]byte{allocs.Bytes()}}))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		r := NewReplay(&blocks{bs})
		drain(b, r)
		if r.State.Objects() != live {
			b.Fatalf("%d objects, want %d", r.State.Objects(), live)
		}
	}
	b.ReportMetric(float64(b.N)*n*epochs/b.Elapsed().Seconds()/1e6, "Mobjects/s")
}
