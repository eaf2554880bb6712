package session

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/trace"
)

// TestExhaustion: a burst of failed allocations is reported once, when it begins.
func TestExhaustion(t *testing.T) {
	var x exhaustion
	now := time.Unix(1e9, 0)
	var b bytes.Buffer
	for i, n := range []uint64{0, 0, 1, 1, 5, 6, 7, 7, 7, 8, 8} { // one look a minute
		if x.observe(now.Add(time.Duration(i)*time.Minute), n) {
			fmt.Fprintf(&b, "%d ", i)
		}
	}
	if b.String() != "2 9 " {
		t.Errorf("onsets at %s", b.String())
	}
}

// TestStorm: a storm is reported when full collections take more than half of a minute, once until they take less than
// a quarter; two long ones are none.
func TestStorm(t *testing.T) {
	var s storm
	at := uint64(0)
	pause := func(kind uint64, dur, gap time.Duration) bool {
		at += uint64(gap)
		p := trace.Pause{Kind: kind, Start: at, Dur: uint64(dur)}
		at += uint64(dur)
		return s.pause(&p)
	}
	onsets := 0
	run := func(n int, dur, gap time.Duration) int {
		onsets = 0
		for range n {
			if pause(trace.PauseFull, dur, gap) {
				onsets++
			}
		}
		return onsets
	}
	if n := run(2, 20*time.Second, time.Second); n != 0 {
		t.Errorf("%d storms of two collections", n)
	}
	if n := run(5, 20*time.Second, time.Second); n != 1 {
		t.Errorf("%d onsets of one storm", n)
	}
	if pause(trace.PauseYoung, 50*time.Second, time.Second) {
		t.Error("a young collection begins a storm")
	}
	if n := run(10, time.Second, 20*time.Second); n != 0 {
		t.Errorf("%d storms of full collections that take a twentieth", n)
	}
	if n := run(5, 20*time.Second, time.Second); n != 1 {
		t.Errorf("%d onsets of a second storm", n)
	}
}

// TestStormIsBounded: a JVM that says of all its full collections that they were at the same time fills no memory.
func TestStormIsBounded(t *testing.T) {
	var s storm
	for range stormMost + 100 {
		s.pause(&trace.Pause{Kind: trace.PauseFull, Start: 1, Dur: 2})
	}
	if len(s.full) != stormMost || s.sum != 2*stormMost {
		t.Errorf("%d are remembered, which took %d ns", len(s.full), s.sum)
	}
}

// TestKilledCause: that the kernel killed the JVM is its cause, however long ago its last collection was. A full heap
// is the cause only shortly after.
func TestKilledCause(t *testing.T) {
	var a alarms
	a.full.Pause(&trace.Pause{Kind: trace.PauseFull, Start: 1e9}, 97, 97)
	late := 1e9 + 2*uint64(causeTime)
	if a.ended(late, 100, nil); a.cause != "" {
		t.Errorf("long after: %q", a.cause)
	}
	k := trace.Killed{Time: late, Scope: trace.KilledMachine}
	if a.ended(late, 100, &k); !strings.HasPrefix(a.cause, k.String()+"; the heap was full as well") {
		t.Errorf("killed: %q", a.cause)
	}
	if a.ended(2e9, 100, nil); !strings.HasPrefix(a.cause, "the last full collection left the heap 97 % full") {
		t.Errorf("at once: %q", a.cause)
	}
}

// TestKillsSince: what was read while the JVM may have been ending is not what the end is compared with.
func TestKillsSince(t *testing.T) {
	var k kills
	t0 := time.Unix(1e9, 0)
	if k.since(t0) != &k.newest {
		t.Error("without a reading")
	}
	k.take(t0, jvms.Kills{})
	if k.since(t0.Add(time.Second)) != &k.newest {
		t.Error("the first reading was not taken, and there is no other")
	}
	k.take(t0.Add(10*time.Second), jvms.Kills{})
	for after, want := range map[time.Duration]*jvms.Kills{time.Second: &k.before, 6 * time.Second: &k.newest} {
		if k.since(t0.Add(10*time.Second+after)) != want {
			t.Errorf("%s after the newest reading: the wrong one", after)
		}
	}
}
