package emergency_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/ringstore/storetest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/syncpoint"
)

// TestRing plays an application, its probe and a recorder on a real store: epochs of all sizes with bursts, times
// without a natural collection, sync points up to 2T that grow and shrink, every d. The limit holds at every step,
// M(1−d) stays where the store says that it does, the oldest file goes only for a new one that came to be, there is
// no second emergency in a phase, and nothing is dropped for ever.
func TestRing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<20).Draw(rt, "M")
		d := rapid.Float64Range(0.02, 0.5).Draw(rt, "d")
		method := rapid.SampledFrom([]string{"walk", "off"}).Draw(rt, "method")
		epochMax := rapid.IntRange(1, int(m)/16).Draw(rt, "epoch")
		syncMax := rapid.IntRange(1, int(2*float64(m)*d)).Draw(rt, "sync") // 2T
		quiet := rapid.IntRange(0, 20).Draw(rt, "share of batches without a collection, in 20")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		fs := storetest.New()
		now := time.Unix(1e9, 0)
		s, _, err := ringstore.Open(ringstore.Config{Dir: "/r", MaxTraceSize: m, Deviation: d, Compression: "none",
			FS: fs, Now: func() time.Time { return now }},
			ringstore.Identity{Session: "00112233445566778899aabbccddeeff"})
		if err != nil {
			rt.Fatal(err)
		}
		p := syncpoint.New()
		limit := m + int64(float64(m)*d)
		broke := ""
		fs.After = func(op string, n int64) {
			if n > limit && broke == "" {
				broke = fmt.Sprintf("%s: %d bytes are occupied, the limit is %d", op, n, limit)
			}
		}
		w := &world{rt: rt, s: s, p: p, r: r, m: m, d: d, syncMax: syncMax,
			buf: make([]byte, max(4*epochMax, syncMax, 99)+1)}
		emergencies, filled := 0, false
		overshoot := int64(0) // of a file beyond T, while no collection came
		ticket := uint64(0)
		last, err := emergency.New(method, func(shmring.Method) (uint64, error) { ticket++; return ticket, nil })
		if err != nil {
			rt.Fatal(err)
		}
		w.rotate(100, false)
		naturals := 0
		for range 300 {
			n := 1 + r.IntN(epochMax)
			if r.IntN(16) == 0 {
				n *= 4
			}
			natural := r.IntN(20) >= quiet
			now = now.Add(300 * time.Millisecond)
			if err := s.Append(w.buf[:n], w.info()); errors.Is(err, ringstore.ErrNoRoom) {
				p.Lost()
				if natural {
					w.dropped++
				}
			} else if err != nil {
				rt.Fatal(err)
			} else {
				w.dropped = 0
			}
			if natural {
				naturals++
				emergencies = 0
				p.Natural()
				last.Natural()
				if w.asked {
					w.answer()
				}
				if p.Blind() && p.Wanted() {
					w.rotate(100, false)
				}
			}
			st := s.Stats()
			if p.Next(syncpoint.Store{Active: st.Active, Rotate: st.Rotate}) {
				w.asked = true
			} else if sent, _ := last.Poll(emergency.View{Due: p.Due(), Room: st.Room, Reserve: p.Reserve(),
				Answered: ticket, Now: time.Unix(int64(w.src), 0)}); sent {
				if emergencies++; emergencies > 1 || method == "off" {
					rt.Fatalf("method %s, %d emergencies without a natural collection", method, emergencies)
				}
				w.answer()
			}
			st = s.Stats()
			if got := fs.Occupied(); broke != "" || st.Bytes > limit || got > st.Bytes {
				rt.Fatalf("%s; %d bytes on disk, the store counts %d, limit %d", broke, got, st.Bytes, limit)
			}
			if uint64(st.Evicted) != w.evicted {
				rt.Fatal("a file was given up, and no new one came to be")
			}
			// An ask takes one natural collection, its answer the next; a sync point that is in place, another
			// round.
			if w.dropped > 3*syncpoint.RetryAfter {
				rt.Fatalf("%d natural collections, and still all is dropped: %+v", w.dropped, st)
			}
			filled = filled || st.Bytes >= m
			overshoot = max(overshoot, st.Active-st.Target)
			if over := int64(5*w.largest+4*epochMax*2+8*4096) + overshoot; filled && st.Guarantee &&
				float64(over) <= d*float64(m) && st.Bytes < m-int64(d*float64(m)) {
				rt.Fatalf("%d bytes are left of %d (d = %v): %+v", st.Bytes, m, d, st)
			}
		}
		if w.listed > naturals/2+emergencies+20 && naturals > 100 &&
			int64(8*syncMax) < m && int64(40*epochMax) < m/16 {
			rt.Fatalf("%d listings in %d collections", w.listed, naturals)
		}
	})
}

// world is an application with its recorder, as far as both concern the ring.
type world struct {
	rt      *rapid.T
	s       *ringstore.Store
	p       *syncpoint.Plan
	r       *rand.Rand
	m       int64
	d       float64
	syncMax int

	buf             []byte
	src, evicted    uint64
	asked           bool
	dropped, listed int
	largest         int
}

func (w *world) info() ringstore.FrameInfo { w.src++; return ringstore.FrameInfo{Source: w.src} }

// rotate begins a file with a head of n bytes, and checks what the store does with it.
func (w *world) rotate(n int, listing bool) {
	before := w.s.Stats()
	i := w.info()
	if listing {
		i.Flags = ringstore.FlagListing
	}
	if err := w.s.Rotate(w.buf[:n], i); err != nil {
		var small *ringstore.TooSmallError
		if errors.As(err, &small) {
			if !listing || small.Needed <= w.m || 8*int64(n) <= w.m-16*4096 {
				w.rt.Fatalf("a listing of %d bytes, M = %d: %v", n, w.m, err)
			}
			if st := w.s.Stats(); !st.TooSmall || st.Needed != small.Needed || st.Cut != before.Cut+1 ||
				st.Evicted != before.Evicted {
				w.rt.Fatalf("not reported: %+v, before %+v", st, before)
			}
			w.p.TooLarge()
			w.rotate(100, false)
			return
		}
		if !errors.Is(err, ringstore.ErrNoRoom) {
			w.rt.Fatal(err)
		}
		if int64(n)+8*4096 < w.m {
			w.rt.Fatalf("a head of %d bytes does not fit into M = %d: %v", n, w.m, err)
		}
		if w.s.Stats().Evicted != before.Evicted {
			w.rt.Fatal("a file was given up for a head that did not fit")
		}
		w.p.Failed()
		return
	}
	w.evicted = uint64(w.s.Stats().Evicted)
	if !listing && w.p.Blind() {
		w.p.Unlisted()
	} else {
		w.p.Began()
	}
	w.dropped = 0
	if st := w.s.Stats(); listing && 4*int64(n) > st.Target {
		w.rt.Fatalf("a listing of %d bytes in files of %d: more than a quarter", n, st.Target)
	} else if st.Deviation < w.d || st.Deviation > 0.5+1e-9 {
		w.rt.Fatalf("effective deviation %v, configured %v", st.Deviation, w.d)
	}
}

// answer sends a sync point, as it was asked for.
func (w *world) answer() {
	w.asked = false
	w.listed++
	n := 1 + w.r.IntN(w.syncMax)
	w.largest = max(w.largest, n)
	if w.p.Rotate() {
		w.rotate(n, true)
		return
	}
	i := w.info()
	i.Flags = ringstore.FlagListing
	switch err := w.s.Append(w.buf[:n], i); {
	case errors.As(err, new(*ringstore.TooSmallError)):
		w.p.TooLarge()
		return
	case err != nil:
		w.p.Refused()
		return
	}
	w.p.Synced()
}
