package web_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// recordingOf says how large a recording is made. Old space holds objects from the start; young holds survivors, which
// move with each collection between two spaces: a tenth of them dies, one in a hundred is promoted, as many are born.
// Each listing begins a file.
type recordingOf struct {
	objects, survivors, collections, listings, sites int
}

// where the spaces of the made recordings are, in words.
const (
	largeOld   = 1 << 26
	largeEnd   = 1 << 28
	largeYoung = 1 << 22
	largeHalf  = 1 << 24
	mainThread = 1
)

type largeObject struct {
	typ    uint32
	length uint64
	words  uint64
	addr   uint64
	sample uint64
}

// make writes the recording as a ring folder.
func (l recordingOf) make(t testing.TB, dir string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	types := trace.NewTypeTable(8)
	var defs trace.Defs
	for i := range uint64(300) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/part%d/Class%d", i%17, i)}
		if i%10 == 9 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: "[" + string("BIJC"[i/10%4])}
		}
		defs.Types = append(defs.Types, ty)
	}
	if err := types.DefineAll(defs.Types); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5000) {
		defs.Methods = append(defs.Methods,
			trace.Method{ID: i + 1, Class: fmt.Sprintf("Lcom/shop/part%d/Class%d;", i%17, i%997),
				Name: fmt.Sprintf("method%d", i), Sig: "()V", File: "Shop.java",
				Lines: []trace.LineEntry{{BCI: 0, Line: int(i%900) + 1}}})
	}
	for i := range uint64(500) { // callers
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i%5000 + 1})
	}
	for i := range uint64(l.sites) {
		defs.Frames = append(defs.Frames, trace.Frame{ID: 501 + i, Parent: i%500 + 1, Method: i%5000 + 1})
	}
	defs.Threads = []trace.Thread{{ID: mainThread, Name: "main"}}
	draw := func() (o largeObject) {
		o.typ = uint32(1 + rng.IntN(1+rng.IntN(300)))
		if types.HasLength(uint64(o.typ)) {
			o.length = uint64(rng.IntN(1 + rng.IntN(100)))
		}
		o.words, _ = types.Words(uint64(o.typ), o.length)
		return o
	}
	const interval = 512 << 10
	live := map[uint64]trace.LiveSample{}
	next := uint64(0)
	var old []uint32 // type and length of what stands in old space, side by side
	var oldBytes uint64
	top := uint64(largeOld)
	promote := func(o largeObject) uint64 {
		at := top
		old = append(old, o.typ<<16|uint32(o.length))
		top += o.words
		oldBytes += o.words * 8
		return at
	}
	var young []largeObject
	from, to := uint64(largeYoung), uint64(largeYoung+largeHalf)
	sync := func(gc uint64) trace.Block {
		s := &trace.Sync{GC: gc, Reason: trace.SyncRotation}
		if gc == 1 {
			s.Reason = trace.SyncFirst
		}
		list := trace.NewListEncoder(types)
		for _, o := range young {
			list.Object(o.addr, o.typ, o.length)
			s.Objects++
			s.Bytes += o.words * 8
		}
		at := uint64(largeOld)
		for _, o := range old {
			typ, length := o>>16, uint64(o&0xffff)
			list.Object(at, typ, length)
			w, _ := types.Words(uint64(typ), length)
			at += w
			s.Objects++
			s.Bytes += w * 8
		}
		s.Lists = [][]byte{list.Bytes()}
		for _, x := range live {
			s.Samples = append(s.Samples, x)
		}
		slices.SortFunc(s.Samples, func(a, b trace.LiveSample) int { return cmp.Compare(a.ID, b.ID) })
		return trace.EncodeSync(s)
	}
	epoch := func(gc uint64, e *trace.Epoch, used uint64) trace.Block {
		e.Pause = trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact,
			Depth: trace.DepthSurvivors, Start: gc * 1e8, Dur: 5e6, Probe: 2e5, PhaseStart: gc*1e8 - 9e7,
			Cause: "Allocation Failure", Interval: interval}
		e.Spaces = []trace.Space{{Kind: trace.SpaceEden, Bottom: 0, Top: 0, End: largeYoung, UsedBefore: 30 << 20},
			{Kind: trace.SpaceSurvivor, Bottom: to, Top: to + largeHalf, End: to + largeHalf, UsedBefore: used,
				UsedAfter: used},
			{Kind: trace.SpaceOld, Bottom: largeOld, Top: top, End: largeEnd, UsedBefore: oldBytes,
				UsedAfter: oldBytes}}
		return trace.EncodeEpoch(e)
	}
	head := []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true,
		JVM: trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors,
			Interval: interval,
			MaxHeap:  4 << 30, T0WallMS: 1_790_000_000_000, Session: strings.Repeat("ab", 16),
			VM: "a VM"}}), trace.EncodeDefs(defs)}
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 8 << 30, Compression: ringstore.None},
		ringstore.Identity{Session: strings.Repeat("ab", 16), Name: filepath.Base(dir)})
	if err != nil {
		t.Fatal(err)
	}
	file := func(payload []byte, gc uint64) {
		if err := store.Rotate(payload,
			ringstore.FrameInfo{Source: gc, FirstGC: gc, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}); err != nil {
			t.Fatal(err)
		}
	}
	every := max(l.objects/(2*l.sites), 1)
	for i := range l.objects {
		o := draw()
		if at := promote(o); i%every == 0 {
			next++
			live[next] = trace.LiveSample{ID: next, Addr: at, Frame: 501 + next%uint64(l.sites), Thread: mainThread,
				Birth: 1, Interval: interval, Size: o.words * 8}
		}
	}
	payload := []byte{}
	for _, b := range append(head, epoch(1, &trace.Epoch{}, 0), sync(1)) {
		payload = trace.AppendBlock(payload, b)
	}
	file(payload, 1)
	payload = payload[:0]
	for gc := uint64(2); gc <= uint64(l.collections); gc++ {
		e := &trace.Epoch{}
		moves, births := trace.NewWalkEncoder(types), trace.NewListEncoder(types)
		at := to
		var stay []largeObject
		if len(young) > 0 {
			moves.Begin(from, largeHalf)
		}
		for _, o := range young {
			x := live[o.sample]
			switch n := rng.IntN(100); {
			case n < 10:
				if o.sample != 0 {
					e.SampleDead = append(e.SampleDead, o.sample)
					delete(live, o.sample)
				}
				continue
			case n == 10:
				moves.SkipTo(o.addr)
				dest := promote(o)
				moves.Move(o.typ, o.length, dest)
				x.Addr = dest
			default:
				moves.SkipTo(o.addr)
				moves.Move(o.typ, o.length, at)
				o.addr, x.Addr = at, at
				at += o.words
				stay = append(stay, o)
			}
			if o.sample != 0 {
				live[o.sample] = x
			}
		}
		if len(young) > 0 {
			moves.End()
			e.Moves = [][]byte{moves.Bytes()}
		}
		var samples []trace.Sample
		for len(stay) < l.survivors {
			o := draw()
			o.addr = at
			at += o.words
			births.Object(o.addr, o.typ, o.length)
			if rng.IntN(200) == 0 {
				next++
				o.sample = next
				frame := 501 + next%uint64(l.sites)
				samples = append(samples,
					trace.Sample{ID: next, Time: gc*1e8 - 1e6, Thread: mainThread, Type: uint64(o.typ),
						Size: o.words * 8, Interval: interval, Frame: frame})
				e.Resolved = append(e.Resolved, trace.SampleAddr{ID: next, Addr: o.addr})
				live[next] = trace.LiveSample{ID: next, Addr: o.addr, Frame: frame, Thread: mainThread, Birth: gc,
					Interval: interval, Size: o.words * 8}
			}
			stay = append(stay, o)
		}
		e.Births = [][]byte{births.Bytes()}
		if moves.Err() != nil || births.Err() != nil {
			t.Fatal(moves.Err(), births.Err())
		}
		young = stay
		blocks := []trace.Block{trace.EncodeSamples(samples), epoch(gc, e, (at-to)*8)}
		from, to = to, from
		for _, b := range blocks {
			payload = trace.AppendBlock(payload, b)
		}
		listing := gc%uint64(l.collections/l.listings) == 0
		if listing || gc%20 == 0 || gc == uint64(l.collections) {
			if err := store.Append(payload,
				ringstore.FrameInfo{Source: gc, FirstGC: gc - 1, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}); err != nil {
				t.Fatal(err)
			}
			payload = payload[:0]
		}
		if listing && gc < uint64(l.collections) { // which begins a file
			var head2 []byte
			for _, b := range append(head, sync(gc)) {
				head2 = trace.AppendBlock(head2, b)
			}
			file(head2, gc)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
