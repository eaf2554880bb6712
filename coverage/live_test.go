package coverage

import (
	"math/rand/v2"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestScans shows that a sync point which tells nothing new is not scanned, and one after a full collection is.
func TestScans(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 5})
	l := NewLive(m.Types())
	syncs, full := 0, 0
	for i := range 40 {
		var e *tracetest.Epoch
		if i%10 == 9 {
			e = m.FullGC()
		} else {
			e = m.Step(i%2 == 0)
		}
		for _, b := range e.Blocks {
			feed(t, l, b)
		}
		if e.Synced {
			syncs++
			if e.Pause.Kind == trace.PauseFull {
				full++
			}
		}
		var all Count
		for _, o := range e.State {
			all.add(Count{1, o.Words * 8})
		}
		if q, ok := l.Figure(); ok {
			if sum := q.Live(); sum != all {
				t.Fatalf("collection %d: parts add up to %v, alive are %v", e.Pause.GC, sum, all)
			}
		}
	}
	if l.scans != full+1 || syncs < full+10 {
		t.Errorf("%d of %d sync points were scanned, want those of %d full collections and the first", l.scans, syncs,
			full)
	}
}

// TestFillerOfOneSize puts a filler over one dead object between two listings, after a Remark: there are as many
// objects and bytes as before, of other classes.
func TestFillerOfOneSize(t *testing.T) {
	for _, between := range [][]uint64{{trace.PauseRemark, trace.PauseCleanup}, {trace.PauseRemark},
		{trace.PauseYoung}} {
		types := trace.NewTypeTable(8)
		if err := types.DefineAll([]trace.Type{{ID: 1, Size: 24, Name: "x/T"},
			{ID: 2, Size: 24, Name: "x/Filler"}}); err != nil {
			t.Fatal(err)
		}
		l := NewLive(types)
		l.JVM(&trace.JVM{Collector: trace.CollectorG1, Flags: trace.JVMAtStart})
		gc := uint64(0)
		collect := func(kind uint64) {
			gc++
			l.Epoch(&trace.Epoch{Pause: trace.Pause{GC: gc, Kind: kind, Flags: trace.PauseExact}})
		}
		list := func(typ uint32) {
			enc := trace.NewListEncoder(types)
			enc.Object(100, 1, 0)
			enc.Object(103, typ, 0)
			if err := l.Sync(&trace.Sync{GC: gc, Objects: 2, Bytes: 48, Lists: [][]byte{enc.Bytes()}}); err != nil {
				t.Fatal(err)
			}
		}
		collect(trace.PauseYoung)
		list(1)
		for _, kind := range between {
			collect(kind)
		}
		list(2)
		if n := l.total.at(2).Objects; n != 1 && between[0] == trace.PauseRemark {
			t.Errorf("%d fillers after pauses %v, 1 is listed", n, between)
		}
		if between[0] == trace.PauseYoung && l.scans != 1 {
			t.Errorf("%d scans without a marking", l.scans)
		}
	}
}

func feed(t testing.TB, l *Live, b trace.Block) {
	var err error
	switch b.Kind {
	case trace.KindSamples:
		var ss []trace.Sample
		ss, err = trace.DecodeSamples(b)
		l.Samples(ss)
	case trace.KindEpoch:
		var e *trace.Epoch
		if e, err = trace.DecodeEpoch(b); err == nil {
			l.Epoch(e)
		}
	case trace.KindSlice:
		var s *trace.Slice
		if s, err = trace.DecodeSlice(b); err == nil {
			err = l.Slice(s)
		}
	case trace.KindSync:
		var s *trace.Sync
		if s, err = trace.DecodeSync(b); err == nil {
			err = l.Sync(s)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkLive follows a service: 3,000 classes, 300,000 live objects, 5,000 live samples; of each collection 600
// census rows and 100 samples; a sync point every 50 collections. Blocks are decoded beforehand: the recorder has them.
func BenchmarkLive(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	types := trace.NewTypeTable(8)
	for i := range uint64(3000) {
		if err := types.Define(trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: "x/T"}); err != nil {
			b.Fatal(err)
		}
	}
	list := trace.NewListEncoder(types)
	first := &trace.Sync{GC: 1}
	at := uint64(1 << 10)
	for range 300_000 {
		typ := uint32(1 + rng.IntN(1+rng.IntN(3000)))
		w, _ := types.Words(uint64(typ), 0)
		if len(first.Samples) < 5000 && rng.IntN(50) == 0 {
			first.Samples = append(first.Samples,
				trace.LiveSample{ID: uint64(len(first.Samples) + 1), Addr: at, Size: w * 8, Interval: 1 << 16})
		}
		list.Object(at, typ, 0)
		at += w
		first.Objects++
		first.Bytes += w * 8
	}
	first.Lists = [][]byte{list.Bytes()}
	e := &trace.Epoch{Pause: trace.Pause{Flags: trace.PauseExact}}
	for range 600 {
		typ := uint64(1 + rng.IntN(3000))
		w, _ := types.Words(typ, 0)
		n := uint64(1 + rng.IntN(50))
		row := trace.CensusRow{Type: typ}
		row.Cells[trace.CensusBornYoung] = trace.CensusCell{Objects: n, Bytes: n * w * 8}
		row.Cells[trace.CensusDiedYoung] = row.Cells[trace.CensusBornYoung]
		e.Census = append(e.Census, row)
	}
	l := NewLive(types)
	if err := l.Sync(first); err != nil {
		b.Fatal(err)
	}
	id := uint64(10_000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		var ss []trace.Sample
		e.Resolved = e.Resolved[:0]
		for range 100 {
			id++
			ss = append(ss, trace.Sample{ID: id, Type: 7, Size: 24})
			if id%10 == 0 {
				e.Resolved = append(e.Resolved, trace.SampleAddr{ID: id, Addr: id})
			}
		}
		l.Samples(ss)
		l.Epoch(e)
		e.SampleDead = e.SampleDead[:0]
		for _, r := range e.Resolved {
			e.SampleDead = append(e.SampleDead, r.ID)
		}
		if i%50 == 49 {
			s := *first
			for _, r := range e.Resolved {
				s.Samples = append(s.Samples, trace.LiveSample{ID: r.ID, Addr: r.Addr, Size: 24})
			}
			if err := l.Sync(&s); err != nil {
				b.Fatal(err)
			}
		}
	}
}
