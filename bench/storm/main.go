// Command storm writes the window of a JVM that died of a GC storm: a service that leaks for a minute of young
// collections, and then collects the whole heap again and again, with hardly anything to free. A part of these
// collections has a listing; a summary replaces the others, as the recorder's budget for listings does it. The same
// arguments give the same blocks.
//
//	storm DIR [COLLECTIONS] [LISTINGS] [OBJECTS]
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

const (
	base    = 1 << 20 // words from the heap base to old space
	calm    = 60      // young collections before the storm
	births  = 3000    // objects that enter old space in each of these
	leaked  = 150     // and in each collection of the storm
	dying   = 40      // objects that each collection of the storm frees
	classes = 200
	sites   = 300
)

type object struct{ typ, length, sample uint32 }

type heapOf struct {
	rng     *rand.Rand
	types   *trace.TypeTable
	objects []object
	words   uint64
	samples uint64
	fresh   []trace.Sample // of the phase
	ids     map[uint32]trace.LiveSample
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: storm DIR [COLLECTIONS] [LISTINGS] [OBJECTS]")
		os.Exit(2)
	}
	n := [3]int{1500, 300, 700_000}
	for i := range n {
		if len(os.Args) > 2+i {
			v, err := strconv.Atoi(os.Args[2+i])
			if err != nil || v < 1 {
				fmt.Fprintln(os.Stderr, "storm: not a number:", os.Args[2+i])
				os.Exit(2)
			}
			n[i] = v
		}
	}
	if err := write(os.Args[1], n[0], n[1], n[2]); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

func write(dir string, collections, listings, objects int) error {
	h := &heapOf{rng: rand.New(rand.NewPCG(3, 3)), types: trace.NewTypeTable(8), ids: map[uint32]trace.LiveSample{}}
	defs := define()
	if err := h.types.DefineAll(defs.Types); err != nil {
		return err
	}
	h.bulk(objects)
	session := strings.Repeat("cd", 16)
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 30, Compression: ringstore.Full},
		ringstore.Identity{Session: session, Name: "storm"})
	if err != nil {
		return err
	}
	meta := trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: 1, Major: 17,
		Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors, Interval: 512 << 10,
		T0WallMS: 1_790_000_000_000, Flags: trace.JVMAtStart, Session: session, VM: "none: synthetic"}})
	put := func(gc uint64, flags uint16, bs ...trace.Block) error {
		var b []byte
		for _, x := range bs {
			b = trace.AppendBlock(b, x)
		}
		info := ringstore.FrameInfo{Source: gc, FirstGC: gc, LastGC: gc, T0: at(gc), T1: at(gc),
			Flags: flags | ringstore.FlagMarked | ringstore.FlagApart}
		if gc == 1 {
			return store.Rotate(b, info)
		}
		return store.Append(b, info)
	}
	first := h.epoch(1, trace.PauseYoung, trace.PauseExact, nil)
	err = put(1, ringstore.FlagDefs|ringstore.FlagListing, meta, trace.EncodeDefs(defs), first,
		h.listing(1, trace.SyncFirst))
	for gc := uint64(2); gc <= calm && err == nil; gc++ {
		born := h.bear(gc, births)
		err = put(gc, 0, h.sampled(), h.epoch(gc, trace.PauseYoung, trace.PauseExact, born))
	}
	every := max((collections-calm)/listings, 1)
	for gc := uint64(calm + 1); gc <= uint64(collections) && err == nil; gc++ {
		h.free()
		h.bear(gc, leaked)
		listed := int(gc)%every == 0
		flags := uint64(0)
		if listed {
			flags = trace.PauseSyncFollows
		}
		if err = put(gc, 0, h.sampled(), h.epoch(gc, trace.PauseFull, flags, nil)); err == nil && listed {
			err = put(gc, ringstore.FlagListing, h.listing(gc, trace.SyncFull))
		} else if err == nil {
			err = put(gc, 0, trace.EncodeMeta(trace.Meta{Unlisted: []trace.Unlisted{{Time: at(gc), GC: gc,
				Objects: uint64(len(h.objects)), Bytes: 8 * h.words, Largest: "largest classes:"}}}))
		}
	}
	if err != nil {
		return err
	}
	return store.Close()
}

// at is when a collection begins, ns.
func at(gc uint64) uint64 {
	if gc <= calm {
		return gc * 1e9
	}
	return calm*1e9 + (gc-calm)*25e7
}

func define() (defs trace.Defs) {
	for i := range uint64(classes) {
		t := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/Class%d", i)}
		if i%10 >= 7 {
			t = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: fmt.Sprintf("[Lcom/shop/Class%d;", i)}
			if t.Log2 == 2 {
				t.Flags |= trace.TypeObjArray
			}
		}
		defs.Types = append(defs.Types, t)
	}
	for i := range uint64(sites) {
		defs.Methods = append(defs.Methods, trace.Method{ID: i + 1, Class: "Lcom/shop/Shop;",
			Name: fmt.Sprintf("method%d", i), Sig: "()V", File: "Shop.java"})
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i + 1})
	}
	defs.Threads = []trace.Thread{{ID: 1, Name: "main"}}
	return defs
}

// bulk adds what lives from the beginning on: programs allocate by idioms, of which some are frequent.
func (h *heapOf) bulk(n int) {
	idioms := make([][]uint32, 300)
	for i := range idioms {
		for range 2 + h.rng.IntN(10) {
			idioms[i] = append(idioms[i], uint32(1+h.rng.IntN(1+h.rng.IntN(classes))))
		}
	}
	zipf := rand.NewZipf(h.rng, 1.3, 4, uint64(len(idioms)-1))
	for len(h.objects) < n {
		for _, typ := range idioms[zipf.Uint64()] {
			h.draw(1, typ)
		}
	}
	h.fresh = nil
}

// draw adds an object behind the others.
func (h *heapOf) draw(gc uint64, typ uint32) (o object, words uint64) {
	if o.typ = typ; h.types.HasLength(uint64(o.typ)) {
		if o.length = typ % 30; h.rng.IntN(3) == 0 {
			o.length = uint32(4 * h.rng.IntN(1+h.rng.IntN(12)))
		}
	}
	words, _ = h.types.Words(uint64(o.typ), uint64(o.length))
	if h.rng.IntN(500) == 0 {
		h.samples++
		o.sample = uint32(h.samples)
		frame := uint64(o.typ) + 1
		h.ids[o.sample] = trace.LiveSample{ID: h.samples, Frame: frame, Thread: 1, Birth: gc, Interval: 512 << 10,
			Size: words * 8}
		h.fresh = append(h.fresh, trace.Sample{ID: h.samples, Time: at(gc) - 1e6, Thread: 1, Type: uint64(o.typ),
			Size: words * 8, Interval: 512 << 10, Frame: frame})
	}
	h.objects = append(h.objects, o)
	h.words += words
	return o, words
}

// bear adds n objects and gives them as an epoch's births.
func (h *heapOf) bear(gc uint64, n int) *trace.Epoch {
	e := &trace.Epoch{}
	l, born := trace.NewListEncoder(h.types), make([]trace.CensusCell, classes+1)
	for range n {
		at := base + h.words
		o, w := h.draw(gc, uint32(1+h.rng.IntN(10))) // what leaks is of few types
		l.Object(at, o.typ, uint64(o.length))
		born[o.typ].Objects++
		born[o.typ].Bytes += 8 * w
		if o.sample != 0 {
			e.Resolved = append(e.Resolved, trace.SampleAddr{ID: uint64(o.sample), Addr: at})
		}
	}
	e.Births = [][]byte{l.Bytes()}
	for typ, c := range born {
		if c.Objects > 0 {
			row := trace.CensusRow{Type: uint64(typ), Bucket: trace.BucketOld}
			row.Cells[trace.CensusBornOld] = c
			e.Census = append(e.Census, row)
		}
	}
	return e
}

// free takes out some objects; the others move together.
func (h *heapOf) free() {
	for range dying {
		i := h.rng.IntN(len(h.objects))
		o := h.objects[i]
		w, _ := h.types.Words(uint64(o.typ), uint64(o.length))
		delete(h.ids, o.sample)
		h.words -= w
		h.objects = append(h.objects[:i], h.objects[i+1:]...)
	}
}

// sampled is the samples of the phase.
func (h *heapOf) sampled() trace.Block {
	b := trace.EncodeSamples(h.fresh)
	h.fresh = h.fresh[:0]
	return b
}

func (h *heapOf) epoch(gc, kind, flags uint64, e *trace.Epoch) trace.Block {
	if e == nil {
		e = &trace.Epoch{}
	}
	cause := "Allocation Failure"
	if kind == trace.PauseFull {
		cause = "Ergonomics"
	}
	e.Pause = trace.Pause{GC: gc, JVMGC: gc, Kind: kind, Flags: flags, Depth: trace.DepthSurvivors, Start: at(gc),
		Dur: 2e8, Cause: cause, Interval: 512 << 10, PhaseStart: at(gc - 1)}
	e.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: base, Top: base + h.words, End: base + 1<<25,
		UsedBefore: h.words * 8, UsedAfter: h.words * 8}}
	return trace.EncodeEpoch(e)
}

// listing is a sync point that lists the heap.
func (h *heapOf) listing(gc, reason uint64) trace.Block {
	s := &trace.Sync{GC: gc, Reason: reason, Time: at(gc) + 2e8, Probe: 5e7, Objects: uint64(len(h.objects)),
		Bytes: h.words * 8}
	l, at := trace.NewListEncoder(h.types), uint64(base)
	for _, o := range h.objects {
		l.Object(at, o.typ, uint64(o.length))
		if o.sample != 0 {
			x := h.ids[o.sample]
			x.Addr = at
			s.Samples = append(s.Samples, x)
		}
		w, _ := h.types.Words(uint64(o.typ), uint64(o.length))
		at += w
	}
	s.Lists = [][]byte{l.Bytes()}
	s.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: base, Top: base + h.words, End: base + 1<<25}}
	return trace.EncodeSync(s)
}
