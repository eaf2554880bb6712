package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

const (
	syntheticSites       = 1000
	syntheticCollections = 100
	syntheticBirths      = 1000 // of each collection
	syntheticBase        = 1 << 20
)

// synthetic is a heap that only grows: its objects lie side by side from syntheticBase on.
type synthetic struct {
	rng     *rand.Rand
	types   *trace.TypeTable
	objects []struct{ typ, length uint32 }
	words   uint64 // of all objects
	samples []trace.LiveSample
}

// synthesise writes a recording of a heap of n objects like that of a service (two hundred types, three objects in ten
// are arrays, five words on average, ten thousand samples): a listing, a hundred collections that bear a thousand
// objects each, and the listing after them.
func synthesise(dir string, n int) error {
	h := &synthetic{rng: rand.New(rand.NewPCG(7, 7)), types: trace.NewTypeTable(8)}
	defs := h.define()
	if err := h.types.DefineAll(defs.Types); err != nil {
		return err
	}
	for i := range n {
		at := syntheticBase + h.words
		_, _, w := h.draw()
		if i%(n/(10*syntheticSites)+1) == 0 {
			id := uint64(len(h.samples)) + 1
			h.samples = append(h.samples, trace.LiveSample{ID: id, Addr: at, Frame: id%syntheticSites + 1, Thread: 1,
				Birth: 1, Interval: 512 << 10, Size: w * 8})
		}
	}
	session := strings.Repeat("ab", 16)
	meta := trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: 1, Major: 17,
		Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors, Interval: 512 << 10,
		T0WallMS: 1_790_000_000_000, Session: session, VM: "none: synthetic"}})
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 16 << 30, Compression: ringstore.Full},
		ringstore.Identity{Session: session, Name: "synthetic"})
	if err != nil {
		return err
	}
	return errors.Join(h.write(store, meta, trace.EncodeDefs(defs)), store.Close())
}

// define makes types, methods, frames and a thread.
func (h *synthetic) define() (defs trace.Defs) {
	for i := range uint64(200) {
		t := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/Class%d", i)}
		if i%10 >= 7 {
			t = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: fmt.Sprintf("[Lcom/shop/Class%d;", i)}
		}
		defs.Types = append(defs.Types, t)
	}
	for i := range uint64(syntheticSites) {
		defs.Methods = append(defs.Methods, trace.Method{ID: i + 1, Class: "Lcom/shop/Shop;",
			Name: fmt.Sprintf("method%d", i), Sig: "()V", File: "Shop.java"})
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i + 1})
	}
	defs.Threads = []trace.Thread{{ID: 1, Name: "main"}}
	return defs
}

// draw adds an object of a random type.
func (h *synthetic) draw() (typ, length uint32, words uint64) {
	typ = uint32(1 + h.rng.IntN(1+h.rng.IntN(200)))
	if h.types.HasLength(uint64(typ)) {
		length = uint32(h.rng.IntN(1 + h.rng.IntN(60)))
	}
	words, _ = h.types.Words(uint64(typ), uint64(length))
	h.objects = append(h.objects, struct{ typ, length uint32 }{typ, length})
	h.words += words
	return typ, length, words
}

// listing is a sync point that lists the heap.
func (h *synthetic) listing(gc uint64) trace.Block {
	s := &trace.Sync{GC: gc, Reason: trace.SyncRotation, Samples: h.samples, Objects: uint64(len(h.objects)),
		Bytes: h.words * 8}
	l, at := trace.NewListEncoder(h.types), uint64(syntheticBase)
	for _, o := range h.objects {
		l.Object(at, o.typ, uint64(o.length))
		w, _ := h.types.Words(uint64(o.typ), uint64(o.length))
		at += w
	}
	s.Lists = [][]byte{l.Bytes()}
	return trace.EncodeSync(s)
}

// epoch is a collection. All but the first bear objects.
func (h *synthetic) epoch(gc uint64) trace.Block {
	e := &trace.Epoch{Pause: trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact,
		Depth: trace.DepthSurvivors, Start: gc * 1e8, Dur: 5e6, Cause: "Allocation Failure", Interval: 512 << 10}}
	if gc > 1 {
		l, born := trace.NewListEncoder(h.types), make([]trace.CensusCell, 201)
		for range syntheticBirths {
			at := syntheticBase + h.words
			typ, length, w := h.draw()
			l.Object(at, typ, uint64(length))
			born[typ].Objects++
			born[typ].Bytes += w * 8
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
	e.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: syntheticBase, Top: syntheticBase + h.words,
		End: trace.MaxAddr - 1, UsedAfter: h.words * 8}}
	return trace.EncodeEpoch(e)
}

// write appends the recording: head and first listing, the collections, the last listing.
func (h *synthetic) write(store *ringstore.Store, meta, defs trace.Block) error {
	frame := func(bs ...trace.Block) (b []byte) {
		for _, x := range bs {
			b = trace.AppendBlock(b, x)
		}
		return b
	}
	info := func(from, to uint64) ringstore.FrameInfo {
		return ringstore.FrameInfo{Source: to, FirstGC: from, LastGC: to, T0: from * 1e8, T1: to * 1e8}
	}
	const last = syntheticCollections
	if err := store.Rotate(frame(meta, defs, h.epoch(1), h.listing(1)), info(1, 1)); err != nil {
		return err
	}
	var b []byte
	for gc := uint64(2); gc < last; gc++ {
		b = append(b, frame(h.epoch(gc))...)
	}
	if err := store.Append(b, info(2, last-1)); err != nil {
		return err
	}
	return store.Append(frame(h.epoch(last), h.listing(last)), info(last, last))
}
