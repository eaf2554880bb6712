package web_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// large writes a recording of so many live objects, collections and sites, as a ring folder. Each collection has 50 births in old space.
func large(t *testing.T, objects, collections, sites int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	types := trace.NewTypeTable(8)
	var defs trace.Defs
	for i := range uint64(300) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/part%d/Class%d", i%17, i)}
		if i%10 == 9 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4, Name: "[" + string("BIJC"[i/10%4])}
		}
		defs.Types = append(defs.Types, ty)
	}
	if err := types.DefineAll(defs.Types); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(5000) {
		defs.Methods = append(defs.Methods, trace.Method{ID: i + 1, Class: fmt.Sprintf("Lcom/shop/part%d/Class%d;", i%17, i%997), Name: fmt.Sprintf("method%d", i), Sig: "()V", File: "Shop.java", Lines: []trace.LineEntry{{BCI: 0, Line: int(i%900) + 1}}})
	}
	for i := range uint64(500) { // callers
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i%5000 + 1})
	}
	for i := range uint64(sites) {
		defs.Frames = append(defs.Frames, trace.Frame{ID: 501 + i, Parent: i%500 + 1, Method: i%5000 + 1})
	}
	defs.Threads = []trace.Thread{{ID: 1, Name: "main"}}
	draw := func() (uint32, uint64, uint64) {
		ty := uint64(1 + rng.IntN(1+rng.IntN(300)))
		n := uint64(0)
		if types.HasLength(ty) {
			n = uint64(rng.IntN(1 + rng.IntN(100)))
		}
		w, _ := types.Words(ty, n)
		return uint32(ty), n, w
	}
	s := &trace.Sync{GC: 1, Reason: trace.SyncFirst}
	list := trace.NewListEncoder(types)
	const base = 1 << 20
	at := uint64(base)
	every := max(objects/(2*sites), 1)
	for i := range objects {
		ty, n, w := draw()
		list.Object(at, ty, n)
		if i%every == 0 && len(s.Samples) < 2*sites {
			k := uint64(len(s.Samples))
			s.Samples = append(s.Samples, trace.LiveSample{ID: k + 1, Addr: at, Frame: 501 + k%uint64(sites), Thread: 1, Birth: 1, Interval: 512 << 10, Size: w * 8})
		}
		at += w
		s.Objects++
		s.Bytes += w * 8
	}
	s.Lists = [][]byte{list.Bytes()}
	head := []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthSurvivors, Interval: 512 << 10,
		MaxHeap: 4 << 30, T0WallMS: 1_790_000_000_000, Session: strings.Repeat("ab", 16), VM: "a VM"}}), trace.EncodeDefs(defs)}
	const limit = 1 << 26
	bytes := s.Bytes
	epoch := func(gc uint64, births []byte, more uint64) trace.Block {
		e := &trace.Epoch{Pause: trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact, Depth: trace.DepthSurvivors, Start: gc * 1e8, Dur: 5e6, Probe: 2e5, PhaseStart: gc*1e8 - 9e7, Cause: "Allocation Failure", Interval: 512 << 10},
			Spaces: []trace.Space{{Kind: trace.SpaceEden, Bottom: 0, Top: 0, End: base / 2, UsedBefore: 4 << 20}, {Kind: trace.SpaceOld, Bottom: base, Top: limit, End: 1 << 29, UsedBefore: bytes, UsedAfter: bytes + more}}}
		if births != nil {
			e.Births = [][]byte{births}
		}
		bytes += more
		return trace.EncodeEpoch(e)
	}
	dir := filepath.Join(t.TempDir(), "large")
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 30}, ringstore.Identity{Session: strings.Repeat("ab", 16), Name: "large"})
	if err != nil {
		t.Fatal(err)
	}
	var payload []byte
	for _, b := range append(head, epoch(1, nil, 0), trace.EncodeSync(s)) {
		payload = trace.AppendBlock(payload, b)
	}
	if err := store.Rotate(payload, ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 1, T0: 1e8, T1: 1e8}); err != nil {
		t.Fatal(err)
	}
	payload = payload[:0]
	for gc := uint64(2); gc <= uint64(collections); gc++ {
		l := trace.NewListEncoder(types)
		more := uint64(0)
		for range 50 {
			ty, n, w := draw()
			l.Object(at, ty, n)
			at += w
			more += w * 8
		}
		payload = trace.AppendBlock(payload, epoch(gc, l.Bytes(), more))
		if gc%100 == 0 || gc == uint64(collections) {
			if err := store.Append(payload, ringstore.FrameInfo{Source: gc, FirstGC: gc - 1, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}); err != nil {
				t.Fatal(err)
			}
			payload = payload[:0]
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestScale measures what the page takes on a large recording: opening it, each interaction from the change of the address to the page that
// shows it, bytes on the wire, and the tab's memory.
func TestScale(t *testing.T) {
	n := 10_000_000
	if !full {
		t.Skip("not run: the viewer on 10 million objects, 2,000 collections and 50,000 sites (HEAPCAM_FULL=1)")
	}
	dir := large(t, n, 2000, 50_000)
	url := view(t, dir)
	begin := time.Now()
	p := open(t, url)
	p.until("document.querySelector('main')")
	shell := time.Since(begin)
	p.until("document.querySelectorAll('#timeline canvas').length >= 4")
	t.Logf("page %v, with its overview %v", shell.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	wire := js[float64](p, "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(e => !e.name.includes('/api/')).reduce((n, e) => n + e.transferSize, 0)")
	answer := js[float64](p, "performance.getEntriesByType('resource').filter(e => e.name.includes('/api/overview')).reduce((n, e) => n + e.transferSize, 0)")
	t.Logf("the page takes %.0f KiB, the overview %.0f KiB", wire/1024, answer/1024)

	interact := func(hash string) time.Duration {
		p.t.Helper()
		ms := js[float64](p, fmt.Sprintf(`new Promise((ok, no) => { const t = performance.now(); location.hash = %q; const end = t + 120000;
			const look = () => document.getElementById('main').dataset.shown === location.hash ? requestAnimationFrame(() => ok(performance.now() - t)) : performance.now() > end ? no('in vain') : setTimeout(look, 4); look(); })`, hash))
		return time.Duration(ms * 1e6)
	}
	first := interact("state?at=2000")
	t.Logf("the first state, replayed up to it: %v", first.Round(time.Millisecond))
	var took []time.Duration
	slow := map[string]time.Duration{}
	for _, h := range []string{"state?at=2000&by=type", "state?at=2000&by=package%2C%20type", "state?at=2000&by=type%2C%20ages", "state?at=2000&by=sizeclass%2C%20type", "state?at=2000&by=type%2C%20site%2C%20ages", "state?at=2000&by=type&filter=size%20%3E%3D%20256",
		"state?at=2000&by=type&q=Class7", "state?at=2000", "state?at=2000&q=method77", "state?at=2000&zoom=%5B%22com.shop.part0.Class0%22%5D", "state?at=2000&open=%5B%22%5B%5C%22com.shop.part0.Class0%5C%22%5D%22%5D",
		"overview?at=2000", "overview?from=100&to=900", "overview?at=1234", "quality?at=2000", "leaks", "state?at=2000&by=type&theme=dark", "overview?theme=dark", "state?at=2000&by=thread%2C%20type", "state?at=2000&by=kind%2C%20length"} {
		d := interact(h)
		took = append(took, d)
		slow[h] = d
	}
	for h, d := range slow {
		if d > 300*time.Millisecond {
			t.Logf("%v for %s", d.Round(time.Millisecond), h)
		}
	}
	slices.Sort(took)
	t.Logf("%d interactions: median %v, 95th percentile %v, longest %v", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)*95/100].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	t.Logf("another collection (replay): %v", interact("state?at=1000&by=type").Round(time.Millisecond))
	t.Logf("a diff (replay): %v, trend: %v", interact("diff?from=100&to=1900&by=type").Round(time.Millisecond), "not measured")
	heap := js[float64](p, "performance.memory ? performance.memory.usedJSHeapSize : 0")
	t.Logf("JavaScript's heap is %.0f MiB", heap/(1<<20))
	if wire > 500<<10 {
		t.Errorf("the page takes %.0f bytes", wire)
	}
	if heap > 300<<20 {
		t.Errorf("the tab's heap is %.0f bytes", heap)
	}
}
