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
// no second emergency in a phase, and nothing goes on being dropped for ever.
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
		var (
			buf                          = make([]byte, max(4*epochMax, syncMax, 99)+1)
			src, evicted                 uint64
			asked                        bool
			emergencies, dropped, listed int
			filled                       bool
			largest                      int
			overshoot                    int64 // of a file beyond T, while no collection came
		)
		ticket := uint64(0)
		last, err := emergency.New(method, func(shmring.Method) (uint64, error) { ticket++; return ticket, nil })
		if err != nil {
			rt.Fatal(err)
		}
		info := func() ringstore.FrameInfo { src++; return ringstore.FrameInfo{Source: src} }
		var rotate func(n int, listing bool)
		rotate = func(n int, listing bool) {
			before := s.Stats()
			i := info()
			if listing {
				i.Flags = ringstore.FlagListing
			}
			if err := s.Rotate(buf[:n], i); err != nil {
				var small *ringstore.TooSmallError
				if errors.As(err, &small) {
					if !listing || small.Needed <= m || 8*int64(n) <= m-16*4096 {
						rt.Fatalf("a listing of %d bytes, M = %d: %v", n, m, err)
					}
					if st := s.Stats(); !st.TooSmall || st.Needed != small.Needed || st.Cut != before.Cut+1 ||
						st.Evicted != before.Evicted {
						rt.Fatalf("not told: %+v, before %+v", st, before)
					}
					p.TooLarge()
					rotate(100, false)
					return
				}
				if !errors.Is(err, ringstore.ErrNoRoom) {
					rt.Fatal(err)
				}
				if int64(n)+8*4096 < m {
					rt.Fatalf("a head of %d bytes does not fit into M = %d: %v", n, m, err)
				}
				if s.Stats().Evicted != before.Evicted {
					rt.Fatal("a file was given up for a head that did not fit")
				}
				p.Failed()
				return
			}
			evicted = uint64(s.Stats().Evicted)
			if !listing && p.Blind() {
				p.Unlisted()
			} else {
				p.Began()
			}
			dropped = 0
			if st := s.Stats(); listing && 4*int64(n) > st.Target {
				rt.Fatalf("a listing of %d bytes in files of %d: more than a quarter", n, st.Target)
			} else if st.Deviation < d || st.Deviation > 0.5+1e-9 {
				rt.Fatalf("effective deviation %v, configured %v", st.Deviation, d)
			}
		}
		answer := func() {
			asked = false
			listed++
			n := 1 + r.IntN(syncMax)
			largest = max(largest, n)
			if p.Rotate() {
				rotate(n, true)
				return
			}
			i := info()
			i.Flags = ringstore.FlagListing
			switch err := s.Append(buf[:n], i); {
			case errors.As(err, new(*ringstore.TooSmallError)):
				p.TooLarge()
				return
			case err != nil:
				p.Refused()
				return
			}
			p.Synced()
		}
		rotate(100, false)
		naturals := 0
		for range 300 {
			n := 1 + r.IntN(epochMax)
			if r.IntN(16) == 0 {
				n *= 4
			}
			natural := r.IntN(20) >= quiet
			now = now.Add(300 * time.Millisecond)
			if err := s.Append(buf[:n], info()); errors.Is(err, ringstore.ErrNoRoom) {
				p.Lost()
				if natural {
					dropped++
				}
			} else if err != nil {
				rt.Fatal(err)
			} else {
				dropped = 0
			}
			if natural {
				naturals++
				emergencies = 0
				p.Natural()
				last.Natural()
				if asked {
					answer()
				}
				if p.Blind() && p.Wanted() {
					rotate(100, false)
				}
			}
			st := s.Stats()
			if p.Next(syncpoint.Store{Active: st.Active, Rotate: st.Rotate}) {
				asked = true
			} else if sent, _ := last.Look(emergency.View{Due: p.Due(), Room: st.Room, Reserve: p.Reserve(),
				Answered: ticket, Now: time.Unix(int64(src), 0)}); sent {
				if emergencies++; emergencies > 1 || method == "off" {
					rt.Fatalf("method %s, %d emergencies without a natural collection", method, emergencies)
				}
				answer()
			}
			st = s.Stats()
			if got := fs.Occupied(); broke != "" || st.Bytes > limit || got > st.Bytes {
				rt.Fatalf("%s; %d bytes on disk, the store counts %d, limit %d", broke, got, st.Bytes, limit)
			}
			if uint64(st.Evicted) != evicted {
				rt.Fatal("a file was given up, and no new one came to be")
			}
			// An ask takes one natural collection, its answer the next; a sync point that stands in place, another
			// round.
			if dropped > 3*syncpoint.RetryAfter {
				rt.Fatalf("%d natural collections, and still all is dropped: %+v", dropped, st)
			}
			filled = filled || st.Bytes >= m
			overshoot = max(overshoot, st.Active-st.Target)
			if over := int64(5*largest+4*epochMax*2+8*4096) + overshoot; filled && st.Guarantee &&
				float64(over) <= d*float64(m) && st.Bytes < m-int64(d*float64(m)) {
				rt.Fatalf("%d bytes are left of %d (d = %v): %+v", st.Bytes, m, d, st)
			}
		}
		if listed > naturals/2+emergencies+20 && naturals > 100 && int64(8*syncMax) < m && int64(40*epochMax) < m/16 {
			rt.Fatalf("%d listings in %d collections", listed, naturals)
		}
	})
}
