package ringstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/storetest"
	"github.com/heapcam/heapcam/syncpoint"
	"github.com/heapcam/heapcam/trace"
)

// rampWorld is a JVM that lists its heap in slices, with its recorder, as far as both concern the ring.
type rampWorld struct {
	rt  *rapid.T
	s   *ringstore.Store
	p   *syncpoint.Plan
	r   *rand.Rand
	buf []byte

	src, now       uint64
	left, words    uint64 // of the ramp: what it still lists, and did at its beginning
	asked, ramping bool
	whole          bool // all of the ramp is in the open file
	slice          int  // bytes
	begun          int  // ramps
	completed      int
	dropped        int
}

func (w *rampWorld) info(flags uint16) segment.FrameInfo {
	w.src++
	return segment.FrameInfo{Source: w.src, Flags: flags | segment.FlagMarked}
}

// append stores what a collection says, or counts it as dropped.
func (w *rampWorld) append(n int, flags uint16) bool {
	had := w.s.Stats().Complete
	err := w.s.Append(w.buf[:n], w.info(flags))
	w.kept(had)
	if err == nil {
		return true
	}
	if !errors.Is(err, ringstore.ErrNoRoom) {
		w.rt.Fatal(err)
	}
	w.dropped++
	w.whole = false
	w.p.Lost()
	return false
}

// kept: the only complete file has stayed.
func (w *rampWorld) kept(had int) {
	if had > 0 && w.s.Stats().Complete == 0 {
		w.rt.Fatal("the only complete file was evicted")
	}
}

// collect is a natural collection: its epoch, and a slice.
func (w *rampWorld) collect(epoch int) {
	w.append(epoch, 0)
	w.p.Natural()
	switch {
	case w.asked:
		w.asked, w.ramping, w.whole = false, true, true
		w.left = w.words
		w.begun++
		w.list(true)
	case w.ramping:
		w.list(false)
	}
}

// list stores a slice.
func (w *rampWorld) list(first bool) {
	y := &trace.Slice{Time: w.now, Ramp: uint64(w.begun), N: 1}
	if first {
		y.Flags, y.Pending = trace.SliceFirst, []trace.Range{{Words: w.words}}
	}
	w.left -= min(w.left, uint64(w.slice))
	y.Left = w.left
	flags := uint16(0)
	if first {
		flags = segment.FlagListing | segment.FlagRamp
	}
	if w.left == 0 {
		y.Flags |= trace.SliceLast
		w.ramping = false
		if w.whole && (first || w.p.Ramping()) {
			flags |= segment.FlagComplete
		}
	}
	if first && w.p.Rotate() {
		had := w.s.Stats().Complete
		err := w.s.Rotate(w.buf[:w.slice+100], w.info(flags))
		w.kept(had)
		if err != nil {
			if !errors.Is(err, ringstore.ErrNoRoom) {
				w.rt.Fatal(err)
			}
			w.p.Failed()
			w.whole = false
			return
		}
		w.p.Began()
	} else if !w.append(w.slice, flags) {
		return
	}
	if flags&segment.FlagComplete != 0 {
		w.completed++
	}
	w.p.Slice(y, w.s.Stats().Active)
}

// TestRampRing plays JVMs whose listings are spread over collections, with epochs of all sizes, on a ring down to one
// that is too small: the limit holds at each step, and once a file is complete there is always one that is. Where the
// ring holds eight times what a listing needs, files become complete and little is dropped.
func TestRampRing(t *testing.T) {
	completed := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<21).Draw(rt, "M")
		d := rapid.Float64Range(0.05, 0.5).Draw(rt, "d")
		epochMax := rapid.IntRange(1, int(m)/32).Draw(rt, "epoch")
		slices := rapid.IntRange(1, 60).Draw(rt, "slices")
		words := rapid.IntRange(slices, int(m)/4).Draw(rt, "listing")
		fs := storetest.New()
		at := time.Unix(1e9, 0)
		s, _, err := ringstore.Open(ringstore.Config{Dir: "/r", MaxTraceSize: m, Deviation: d, Compression: "none",
			FS: fs, Now: func() time.Time { return at }},
			ringstore.Identity{Session: "00112233445566778899aabbccddeeff"})
		if err != nil {
			rt.Fatal(err)
		}
		limit, broke := m+int64(float64(m)*d), ""
		fs.After = func(op string, n int64) {
			if n > limit && broke == "" {
				broke = fmt.Sprintf("%s: %d bytes are occupied, the limit is %d", op, n, limit)
			}
		}
		w := &rampWorld{rt: rt, s: s, p: syncpoint.New(), words: uint64(words), slice: (words + slices - 1) / slices,
			r: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5)), buf: make([]byte, m)}
		if err := s.Rotate(w.buf[:100], w.info(0)); err != nil {
			rt.Fatal(err)
		}
		w.p.Began()
		w.p.Lost() // the first listing
		const steps = 600
		for range steps {
			at = at.Add(time.Second)
			w.now += 1e9
			w.collect(1 + w.r.IntN(epochMax))
			st := s.Stats()
			if w.p.Next(syncpoint.Store{Active: st.Active, Rotate: st.Rotate}) {
				w.asked = true
			}
			if got := fs.Occupied(); broke != "" || got > limit {
				rt.Fatalf("%s; %d bytes on disk, limit %d", broke, got, limit)
			}
		}
		need := int64(words + 2*slices*epochMax + 4*epochMax + 16*4096) // a listing with the epochs between
		if 8*need < m && (w.completed == 0 || w.dropped > steps/10) {
			rt.Fatalf("%d ramps begun, %d complete, %d of %d dropped: %+v", w.begun, w.completed, w.dropped, steps,
				s.Stats())
		}
		completed += w.completed
	})
	if completed < 50 {
		t.Errorf("only %d ramps became complete", completed)
	}
}

// TestPullOfARamp: a pull of the newest part goes back to a complete file where the newest ones are not.
func TestPullOfARamp(t *testing.T) {
	fs, dir := storetest.New(), "/r"
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 20, Deviation: 0.25, Compression: "none",
		FS: fs}, ringstore.Identity{Session: "00112233445566778899aabbccddeeff"})
	if err != nil {
		t.Fatal(err)
	}
	block := trace.AppendBlock(nil, trace.EncodeGap(trace.Gap{Reason: trace.GapStore}))
	at := uint64(0)
	write := func(store func([]byte, segment.FrameInfo) error, flags uint16) {
		at++
		info := segment.FrameInfo{Source: at, T0: at, T1: at, Flags: flags | segment.FlagMarked}
		if err := store(block, info); err != nil {
			t.Fatal(err)
		}
	}
	const first, last = segment.FlagListing | segment.FlagRamp, segment.FlagRamp | segment.FlagComplete
	pulled := func() int {
		var out bytes.Buffer
		m, err := ringstore.Pull(context.Background(), dir, &out, ringstore.PullOptions{LastBytes: 1, FS: fs})
		if err != nil {
			t.Fatal(err)
		}
		return len(m.Files)
	}
	write(s.Rotate, segment.FlagListing)
	write(s.Rotate, first)
	write(s.Append, segment.FlagRamp)
	if n := pulled(); n != 2 {
		t.Errorf("%d files were pulled while the newest is not complete, want both", n)
	}
	write(s.Append, last)
	if n := pulled(); n != 1 {
		t.Errorf("%d files were pulled, want the newest, which is complete", n)
	}
	if st := s.Stats(); st.Complete != 2 {
		t.Errorf("%d files are complete, want 2", st.Complete)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, _, err = ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 20, Deviation: 0.25, Compression: "none",
		FS: fs}, ringstore.Identity{Session: "00112233445566778899aabbccddeeff"})
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Complete != 2 {
		t.Errorf("after a restart %d files are complete, want 2", st.Complete)
	}
}
