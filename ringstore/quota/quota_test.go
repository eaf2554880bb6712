package quota

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

const mib = 1 << 20

// TestLimit: whatever was reported before, what a quota allows stays below M(1+d), and at what the ring held while the
// disk is full.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := Bounds{
			Max:       rapid.Int64Range(1<<18, 1<<32).Draw(rt, "M"),
			Deviation: rapid.Float64Range(0.01, 0.5).Draw(rt, "d"),
			KeepFree:  rapid.SampledFrom([]int64{0, mib, 1 << 30}).Draw(rt, "keep free"),
		}
		q, now := New(b), time.Unix(1e9, 0)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(rt, "seconds")) * time.Second)
			total := rapid.Int64Range(0, b.Max).Draw(rt, "total")
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				q.DiskFull(now, total)
				if !q.Capped() || q.Limit() > max(total, q.cap) {
					rt.Fatalf("the disk is full at %d, and the limit is %d", total, q.Limit())
				}
			case 1:
				if q.Due(now) {
					q.Survey(now, total, rapid.Int64Range(-1, 1<<31).Draw(rt, "free"))
				}
			case 2:
				if stored := rapid.Int64Range(1, b.Max).Draw(rt, "head"); q.Listing(stored) == nil {
					q.Head(stored, true)
				}
			case 3:
				q.Frame(rapid.Int64Range(1, b.Max).Draw(rt, "frame"))
			}
			u := Usage{Total: total, Overhead: 6 * vfs.Block, Open: total / 4}
			most := b.Max + int64(float64(b.Max)*b.Deviation)
			if l := q.Limit(); l > most || u.Total+q.Room(u) > l {
				rt.Fatalf("limit %d of %d, room %d beside %d", l, most, q.Room(u), u.Total)
			}
			if q.Target() > q.Max()/2 || q.Deviation() < b.Deviation {
				rt.Fatalf("target %d of %d, deviation %v", q.Target(), q.Max(), q.Deviation())
			}
			if to := q.Ahead(total+1, total, u); to > 0 && (q.Capped() || to-u.Open > q.Room(u)/2) {
				rt.Fatalf("blocks up to %d are taken ahead, and the room is %d", to, q.Room(u))
			}
		}
	})
}

// TestListing: a sync point fits as long as eight segments of it do, and one that is refused says what M would do.
func TestListing(t *testing.T) {
	q := New(Bounds{Max: 8 * mib, Deviation: 0.25})
	if err := q.Listing(mib / 2); err != nil {
		t.Fatal(err)
	}
	q.Head(mib/2, true)
	if got := q.Target(); got != 2*mib {
		t.Errorf("T is %d, want four sync points", got)
	}
	var small *TooSmallError
	if err := q.Listing(2 * mib); !errors.As(err, &small) || !errors.Is(err, ErrNoRoom) ||
		q.TooSmall() != small.Needed {
		t.Fatalf("%v, needed %d", err, q.TooSmall())
	}
	if again := New(Bounds{Max: small.Needed, Deviation: 0.25}); again.Listing(2*mib) != nil {
		t.Errorf("the M of %d that would do does not", small.Needed)
	}
	q.Resize(small.Needed)
	if q.TooSmall() != 0 || q.Bounds().Max != small.Needed {
		t.Error("a new M is taken, and the refusal forgotten")
	}
}

// TestRefused: what did not fit is remembered until a segment has begun, unless it never fits; a head that did not
// begin one is taken back.
func TestRefused(t *testing.T) {
	q := New(Bounds{Max: 8 * mib, Deviation: 0.25})
	u := Usage{Total: 10 * mib, Open: 2 * mib}
	if q.Fits(0, u) != nil || q.Refused() != 0 || q.Outgrown(0, Usage{}) {
		t.Error("nothing needs no room")
	}
	if !errors.Is(q.Fits(9*mib, u), ErrNoRoom) || q.Refused() != 0 {
		t.Error("what never fits is not remembered")
	}
	if !errors.Is(q.Fits(mib, u), ErrNoRoom) || q.Refused() < mib || !q.Outgrown(0, Usage{}) {
		t.Errorf("refused %d", q.Refused())
	}
	q.Began()
	if q.Refused() != 0 {
		t.Error("a segment has begun")
	}
	before := q.reserve()
	q.Head(mib/4, true)()
	if q.reserve() != before || q.LastHead() != 0 || q.Target() != 2*mib {
		t.Error("the head was not taken back")
	}
	q.Head(mib/4, false)
	if r := q.reserve(); r < mib/4+segment.IndexSize(1) {
		t.Errorf("%d are kept for the next head", r)
	}
}

// TestKeepFree: while less than keep_free is free the ring keeps what it has, and grows again ten seconds after.
func TestKeepFree(t *testing.T) {
	q, now := New(Bounds{Max: 8 * mib, Deviation: 0.25, KeepFree: mib}), time.Unix(1e9, 0)
	if !q.Due(now) || q.Due(now.Add(time.Second/2)) || !q.Due(now.Add(2*time.Second)) {
		t.Error("a survey is due once a second")
	}
	q.Survey(now, 4*mib, mib/2)
	if !q.Capped() || q.Limit() != 4*mib {
		t.Errorf("capped %v, limit %d", q.Capped(), q.Limit())
	}
	q.Survey(now, 4*mib, 3*mib)
	if q.Capped() || q.Limit() != 6*mib {
		t.Errorf("capped %v, limit %d: 2 MiB may be taken", q.Capped(), q.Limit())
	}
	q.DiskFull(now, 5*mib)
	q.Survey(now.Add(fullFor/2), 5*mib, 3*mib)
	if !q.Capped() {
		t.Error("the disk said a moment ago that it is full")
	}
	q.Survey(now.Add(2*fullFor), 5*mib, 3*mib)
	if q.Capped() {
		t.Error("there is room again")
	}
}

// TestOthersTakeRoom: a ring that holds less than its cap when the disk is full gives way to others, ten seconds later,
// but not to nothing.
func TestOthersTakeRoom(t *testing.T) {
	q, now := New(Bounds{Max: 8 * mib, Deviation: 0.25}), time.Unix(1e9, 0)
	for _, c := range []struct {
		after       time.Duration
		total, want int64
	}{{0, 5 * mib, 5 * mib}, {time.Second, 3 * mib, 5 * mib}, {fullFor, 3 * mib, 3 * mib},
		{fullFor + 1, 2 * mib, 3 * mib}, {2 * fullFor, 4 * mib, 3 * mib}, {3 * fullFor, capLeast - 1, 3 * mib}} {
		if q.DiskFull(now.Add(c.after), c.total); q.Limit() != c.want {
			t.Errorf("after %v: limit %d, want %d", c.after, q.Limit(), c.want)
		}
	}
}

// TestRoomForExtents demands that a block is left for what the file system notes of a growing file.
func TestRoomForExtents(t *testing.T) {
	q := New(Bounds{Max: 1 << 20, Deviation: 0.25})
	u := Usage{Total: 1 << 20, Open: 1 << 18}
	if got, want := q.Room(u), q.Limit()-u.Total-vfs.Block; got != want {
		t.Errorf("room for %d bytes, want %d", got, want)
	}
}
