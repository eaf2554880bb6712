package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// synthesise writes a recording of a heap of n objects like that of a service (two hundred types, three objects in ten
// are arrays, five words on average, ten thousand samples): a listing, a hundred collections that bear a thousand
// objects each, and the listing after them.
func synthesise(dir string, n int) error {
	const sites, collections, births = 1000, 100, 1000
	rng := rand.New(rand.NewPCG(7, 7))
	types := trace.NewTypeTable(8)
	var defs trace.Defs
	for i := range uint64(200) {
		t := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/Class%d", i)}
		if i%10 >= 7 {
			t = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: fmt.Sprintf("[Lcom/shop/Class%d;", i)}
		}
		defs.Types = append(defs.Types, t)
	}
	for i := range uint64(sites) {
		defs.Methods = append(defs.Methods,
			trace.Method{ID: i + 1, Class: "Lcom/shop/Shop;", Name: fmt.Sprintf("method%d", i), Sig: "()V",
				File: "Shop.java"})
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i + 1})
	}
	defs.Threads = []trace.Thread{{ID: 1, Name: "main"}}
	if err := types.DefineAll(defs.Types); err != nil {
		return err
	}
	type object struct{ typ, length uint32 }
	heap := make([]object, 0, n+collections*births)
	draw := func() (o object, words uint64) {
		o.typ = uint32(1 + rng.IntN(1+rng.IntN(200)))
		if types.HasLength(uint64(o.typ)) {
			o.length = uint32(rng.IntN(1 + rng.IntN(60)))
		}
		words, _ = types.Words(uint64(o.typ), uint64(o.length))
		heap = append(heap, o)
		return o, words
	}
	const base = 1 << 20
	words := uint64(0) // of the heap
	var samples []trace.LiveSample
	for i := range n {
		_, w := draw()
		if i%(n/(10*sites)+1) == 0 {
			id := uint64(len(samples)) + 1
			samples = append(samples,
				trace.LiveSample{ID: id, Addr: base + words, Frame: id%sites + 1, Thread: 1, Birth: 1,
					Interval: 512 << 10, Size: w * 8})
		}
		words += w
	}
	listing := func(gc uint64) trace.Block {
		s := &trace.Sync{GC: gc, Reason: trace.SyncRotation, Samples: samples, Objects: uint64(len(heap)),
			Bytes: words * 8}
		l, at := trace.NewListEncoder(types), uint64(base)
		for _, o := range heap {
			l.Object(at, o.typ, uint64(o.length))
			w, _ := types.Words(uint64(o.typ), uint64(o.length))
			at += w
		}
		s.Lists = [][]byte{l.Bytes()}
		return trace.EncodeSync(s)
	}
	session := strings.Repeat("ab", 16)
	head := []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true,
		JVM: trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors,
			Interval: 512 << 10,
			T0WallMS: 1_790_000_000_000, Session: session, VM: "none: synthetic"}}), trace.EncodeDefs(defs)}
	epoch := func(gc uint64) trace.Block {
		e := &trace.Epoch{Pause: trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact,
			Depth: trace.DepthSurvivors, Start: gc * 1e8, Dur: 5e6, Cause: "Allocation Failure", Interval: 512 << 10}}
		if gc > 1 {
			l, born := trace.NewListEncoder(types), make([]trace.CensusCell, 201)
			for range births {
				o, w := draw()
				l.Object(base+words, o.typ, uint64(o.length))
				words += w
				born[o.typ].Objects++
				born[o.typ].Bytes += w * 8
			}
			e.Births = [][]byte{l.Bytes()}
			for typ, n := range born {
				if n.Objects > 0 {
					row := trace.CensusRow{Type: uint64(typ), Bucket: 5}
					row.Cells[trace.CensusBornOld] = n
					e.Census = append(e.Census, row)
				}
			}
		}
		e.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: base, Top: base + words, End: trace.MaxAddr - 1,
			UsedAfter: words * 8}}
		return trace.EncodeEpoch(e)
	}
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 16 << 30, Compression: ringstore.Full},
		ringstore.Identity{Session: session, Name: "synthetic"})
	if err != nil {
		return err
	}
	frame := func(bs ...trace.Block) (b []byte) {
		for _, x := range bs {
			b = trace.AppendBlock(b, x)
		}
		return b
	}
	info := func(from, to uint64) ringstore.FrameInfo {
		return ringstore.FrameInfo{Source: to, FirstGC: from, LastGC: to, T0: from * 1e8, T1: to * 1e8}
	}
	err = store.Rotate(frame(append(head, epoch(1), listing(1))...), info(1, 1))
	var b []byte
	for gc := uint64(2); gc < collections; gc++ {
		b = append(b, frame(epoch(gc))...)
	}
	if err == nil {
		err = store.Append(b, info(2, collections-1))
	}
	if err == nil {
		err = store.Append(frame(epoch(collections), listing(collections)), info(collections, collections))
	}
	return errors.Join(err, store.Close())
}
