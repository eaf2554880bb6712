package syncpoint

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestRamp: while a listing in slices is under way nothing else is asked for; it gets stops of its own only when it is
// late, and none after a failure.
func TestRamp(t *testing.T) {
	first := func(at uint64) *trace.Slice {
		return &trace.Slice{Time: at, Flags: trace.SliceFirst, Pending: []trace.Range{{Words: 1000}}, Left: 900}
	}
	p := New()
	p.Began()
	const target = 1 << 20
	if !p.Next(Store{Active: target, Rotate: true}) {
		t.Fatal("no sync point is asked for")
	}
	p.Began()
	p.Slice(first(1e9), 1000)
	for range 50 {
		p.Natural()
		if p.Next(Store{Active: 5000}) || p.Due() {
			t.Fatal("another sync point is asked for while one is under way")
		}
	}
	if !p.Ramping() || p.Late(2e9, 5000, target) {
		t.Error("late after a second")
	}
	if !p.Late(2e9, 1000+target/4/9, target) { // a tenth has taken that much
		t.Error("not late, though it will take more than a quarter of a file")
	}
	if !p.Late(302e9, 2000, target) {
		t.Error("not late after five minutes")
	}
	p.Stepped(302e9)
	if p.Late(302e9+stepEvery/2, 2000, target) || !p.Late(302e9+stepEvery, 2000, target) {
		t.Error("two stops at once, or none any more")
	}
	p.Slice(first(400e9), 9000) // a full collection: it begins anew, and is as late as before
	if !p.Late(401e9, 9000, target) {
		t.Error("a ramp that begins anew has a new clock")
	}
	p.Lost()
	if p.Ramping() || !p.Wanted() {
		t.Error("a ramp goes on without what was lost")
	}
	for i := range 2 * RetryAfter {
		if asked := p.Next(Store{Active: 9000}); asked && i < RetryAfter {
			t.Errorf("asked again after %d collections", i)
		}
		p.Natural()
	}
	if !p.Next(Store{Active: 9000}) {
		t.Error("never asked again")
	}
	p.Slice(first(500e9), 9000)
	if p.Late(1000e9, 9000, target) {
		t.Error("a ramp after a failed one gets stops of its own")
	}
	p.Slice(&trace.Slice{Flags: trace.SliceLast}, 9500)
	if p.Ramping() || p.Wanted() {
		t.Error("not complete with the last slice")
	}
	p.Slice(&trace.Slice{Flags: trace.SliceLast}, 9500) // of no ramp that is known
	if p.Ramping() {
		t.Error("the last slice begins a ramp")
	}
}

// TestWholeEndsRamp: a sync point in one piece, stored or not, ends a ramp. Otherwise a JVM would be stopped for slices
// that never come.
func TestWholeEndsRamp(t *testing.T) {
	for what, comes := range map[string]func(*Plan){
		"synced": (*Plan).Synced, "began": (*Plan).Began, "refused": (*Plan).Refused, "skipped": (*Plan).Skipped,
		"unlisted": (*Plan).Unlisted,
	} {
		p := New()
		p.Began()
		p.Slice(&trace.Slice{Time: 1e9, Flags: trace.SliceFirst, Pending: []trace.Range{{Words: 1000}}, Left: 900},
			1000)
		comes(p)
		if p.Ramping() || p.Late(1000e9, 1<<30, 1<<20) {
			t.Errorf("%s: the ramp goes on", what)
		}
		asked := false
		for range 2*RetryAfter + 2 {
			p.Natural()
			asked = asked || p.Next(Store{Active: 2000})
		}
		if wants := what == "refused" || what == "skipped"; asked != wants {
			t.Errorf("%s: asked for another: %v", what, asked)
		}
	}
}
