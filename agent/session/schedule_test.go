package session

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

func testSchedule(t *testing.T) (c schedule, emergencies *int) {
	t.Helper()
	emergencies = new(int)
	e, err := emergency.New("walk", func(shmring.Method) (uint64, error) {
		*emergencies++
		return uint64(*emergencies), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return newSchedule(1<<20, e), emergencies
}

// TestScheduleAsks: a sync point is requested when the store wants a new file, once; and where no collection comes
// while the room runs out, an emergency is sent, once.
func TestScheduleAsks(t *testing.T) {
	c, emergencies := testSchedule(t)
	c.began(true)
	requests := 0
	request := func() (uint64, error) { requests++; return 1, nil }
	now := time.Unix(1e9, 0)
	ask := func(st ringstore.Stats) {
		t.Helper()
		if err := c.ask(now, shmring.Status{}, st, request); err != nil {
			t.Fatal(err)
		}
	}
	ask(ringstore.Stats{Room: 1 << 30})
	if requests != 0 || c.wantsFile() {
		t.Error("a sync point is requested though nothing needs one")
	}
	for range 3 {
		ask(ringstore.Stats{Rotate: true, Active: 1 << 20, Room: 1 << 30})
	}
	if requests != 1 || !c.wantsFile() || *emergencies != 0 {
		t.Errorf("%d requests, %d emergencies", requests, *emergencies)
	}
	for range 3 {
		ask(ringstore.Stats{Rotate: true, Active: 1 << 20, Room: 1})
	}
	if *emergencies != 1 || !c.urgent() {
		t.Errorf("%d emergencies without room", *emergencies)
	}
	c.began(true)
	if c.wantsFile() {
		t.Error("a new file is wanted behind a new file")
	}
	c.plan.Lost()
	broken := errors.New("broken")
	err := c.ask(now, shmring.Status{}, ringstore.Stats{Room: 1 << 30}, func() (uint64, error) { return 0, broken })
	if !errors.Is(err, broken) {
		t.Errorf("an error of the ring: %v", err)
	}
}

// TestScheduleNatural: the stop that an emergency makes, by a walk or by a collection, allows no other one; a
// collection that the application caused does.
func TestScheduleNatural(t *testing.T) {
	c, emergencies := testSchedule(t)
	c.began(true)
	for _, x := range []struct {
		pause trace.Pause
		want  int
	}{
		{trace.Pause{Kind: trace.PauseWalk, Cause: "No GC"}, 1},
		{trace.Pause{Kind: trace.PauseFull, Cause: "JvmtiEnv ForceGarbageCollection"}, 1},
		{trace.Pause{Kind: trace.PauseFull, Cause: "System.gc()"}, 2},
		{trace.Pause{Kind: trace.PauseYoung, Cause: "Allocation Failure"}, 3},
	} {
		for range 2 { // the first asks the probe, the second finds no room
			if err := c.ask(time.Unix(1e9, 0), shmring.Status{}, ringstore.Stats{Rotate: true, Room: 1},
				func() (uint64, error) { return 1, nil }); err != nil {
				t.Fatal(err)
			}
		}
		c.collection(&x.pause)
		if err := c.ask(time.Unix(1e9, 0), shmring.Status{}, ringstore.Stats{Rotate: true, Room: 1},
			func() (uint64, error) { return 1, nil }); err != nil {
			t.Fatal(err)
		}
		if *emergencies != x.want {
			t.Errorf("%d emergencies after a pause of cause %q, want %d", *emergencies, x.pause.Cause, x.want)
		}
	}
}

// TestScheduleAdmits: listings that full collections force have a budget, by what they take as stored; others have
// none.
func TestScheduleAdmits(t *testing.T) {
	const raw = 64 << 10 // of a budget of a tenth of 1 MiB
	count := func(c *schedule, reason uint64) (n int) {
		for i := range 100 {
			if c.admits(&trace.Sync{Reason: reason, Time: uint64(i)}, raw) {
				n++
			}
		}
		return n
	}
	c, _ := testSchedule(t)
	if n := count(&c, trace.SyncRotation); n != 100 {
		t.Errorf("%d of 100 listings for files are admitted", n)
	}
	unpacked := count(&c, trace.SyncFull)
	if unpacked > 5 {
		t.Errorf("%d listings of %d bytes are admitted", unpacked, raw)
	}
	c, _ = testSchedule(t)
	c.listed(true, raw, raw/16)
	if n := count(&c, trace.SyncFull); n < 4*max(unpacked, 1) {
		t.Errorf("%d listings that compress to a sixteenth are admitted, %d that do not", n, unpacked)
	}
}

// TestSyncPauseChanged: max_sync_pause is reported when it begins to hold and when it no longer does.
func TestSyncPauseChanged(t *testing.T) {
	var c schedule
	var got []bool
	for _, long := range []bool{false, true, true, false, false} {
		got = append(got, c.pauseChanged(shmring.Status{SyncTooLong: long}))
	}
	if !slices.Equal(got, []bool{false, true, false, true, false}) {
		t.Errorf("%v", got)
	}
}

// TestToldAgain: the warning that no sync point fits comes once, and again if much more is needed or time has passed.
func TestToldAgain(t *testing.T) {
	var w told
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		needed int64
		after  time.Duration
		want   bool
	}{{100, 0, true}, {110, time.Second, false}, {160, time.Second, true}, {160, time.Minute, false},
		{90, time.Hour, true}} {
		if now = now.Add(c.after); w.again(c.needed, now) != c.want {
			t.Errorf("%d bytes after %s: not %v", c.needed, c.after, c.want)
		}
	}
}
