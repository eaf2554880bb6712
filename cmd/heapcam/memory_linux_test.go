package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// largeRecording writes a ring of so many MiB, not compressed: collections in each of which four million objects
// die in eden and a thousand survive into old space, and a listing at the end.
func largeRecording(t *testing.T, dir string, mib int) (collections uint64) {
	const dead, born, words, old = 4 << 20, 1000, 2, 1 << 40
	types := trace.NewTypeTable(8)
	defs := trace.Defs{Types: []trace.Type{{ID: 1, Size: 8 * words, Name: "com/shop/Item"}}}
	if err := types.DefineAll(defs.Types); err != nil {
		t.Fatal(err)
	}
	const session = "abababababababababababababababab"
	store, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 16 << 30,
		Compression: ringstore.None}, ringstore.Identity{Session: session, Name: "large"})
	if err != nil {
		t.Fatal(err)
	}
	frame := func(bs ...trace.Block) (b []byte) {
		for _, x := range bs {
			b = trace.AppendBlock(b, x)
		}
		return b
	}
	info := func(gc uint64) ringstore.FrameInfo {
		return ringstore.FrameInfo{Source: gc, FirstGC: gc, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}
	}
	listing := func(gc uint64) trace.Block {
		n := 1 + (gc-1)*born
		l := trace.NewListEncoder(types)
		for i := range n {
			l.Object(old+i*words, 1, 0)
		}
		return trace.EncodeSync(&trace.Sync{GC: gc, Reason: trace.SyncRotation, Objects: n, Bytes: n * words * 8,
			Lists: [][]byte{l.Bytes()}})
	}
	eden := trace.NewWalkEncoder(types)
	eden.Begin(1<<20, dead*words)
	for range dead {
		eden.Dead(1, 0)
	}
	eden.End()
	top := uint64(old + words)
	epoch := func(gc uint64) trace.Block {
		e := &trace.Epoch{Pause: trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact,
			Depth: trace.DepthFull, Start: gc * 1e8, Dur: 5e6, Cause: "Allocation Failure"}}
		if gc > 1 {
			l := trace.NewListEncoder(types)
			for range born {
				l.Object(top, 1, 0)
				top += words
			}
			row := trace.CensusRow{Type: 1, Bucket: 5}
			row.Cells[trace.CensusBornOld] = trace.CensusCell{Objects: born, Bytes: born * words * 8}
			e.Allocs, e.Births, e.Census = [][]byte{eden.Bytes()}, [][]byte{l.Bytes()}, []trace.CensusRow{row}
		}
		e.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: old, Top: top, End: trace.MaxAddr - 1,
			UsedAfter: (top - old) * 8}}
		return trace.EncodeEpoch(e)
	}
	head := trace.EncodeMeta(trace.Meta{HasJVM: true,
		JVM: trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthFull,
			Flags: trace.JVMAtStart, Interval: 512 << 10, T0WallMS: 1_790_000_000_000, Session: session, VM: "none"}})
	if err := store.Rotate(frame(head, trace.EncodeDefs(defs), epoch(1), listing(1)), info(1)); err != nil {
		t.Fatal(err)
	}
	gc := uint64(1)
	for range mib / (dead >> 20) {
		gc++
		if err := store.Append(frame(epoch(gc)), info(gc)); err != nil {
			t.Fatal(err)
		}
	}
	gc++
	if err := store.Append(frame(epoch(gc), listing(gc)), info(gc)); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return gc
}

// TestLargerThanMemory reads a recording in processes that may have less memory than it is large, in the long round
// an eighth of it.
func TestLargerThanMemory(t *testing.T) {
	const limit = 256 // MiB
	mib, verbs := 320, []string{"report", "histogram --sites"}
	if os.Getenv("HEAPCAM_FULL") != "" {
		mib, verbs = 2048, append(verbs, "group --by type,age", "verify")
	} else {
		t.Log("not run: a recording of 2 GiB, and two more verbs (HEAPCAM_FULL=1)")
	}
	dir := filepath.Join(t.TempDir(), "large-1-1")
	collections := largeRecording(t, dir, mib)
	size := int64(0)
	files, _ := filepath.Glob(filepath.Join(dir, "*.hcr"))
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += st.Size()
	}
	if size < int64(mib)<<20 {
		t.Fatalf("the recording has %d bytes", size)
	}
	objects := 1 + (collections-1)*1000
	wants := map[string]string{"report": fmt.Sprintf("Collections   %d (%d young)", collections, collections),
		"verify": "0 mismatches"}
	for _, verb := range verbs {
		want := wants[verb]
		if want == "" {
			want = fmt.Sprintf("%d objects", objects)
		}
		c := exec.Command("/bin/sh", "-c", fmt.Sprintf("ulimit -d %d && exec heapcam %s %s", limit<<10,
			strings.ReplaceAll(verb, ",", "','"), dir))
		c.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s in %d MiB: %v, no %q in\n%.2000s", verb, limit, err, want, out)
		}
	}
}
