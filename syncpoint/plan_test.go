package syncpoint

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPlan plays a store and a probe that answers late or never, and holds the plan to its invariants.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		target := rapid.Int64Range(1000, 100_000).Draw(rt, "T")
		room := target + rapid.Int64Range(0, 200_000).Draw(rt, "overshoot")
		answers := rapid.IntRange(0, 8).Draw(rt, "answer after so many collections")
		p := New()
		p.Began()
		var active int64
		lost, asked := false, false
		unanswered, sinceAsk, rotations := 0, 0, 0
		for range 300 {
			size := rapid.Int64Range(1, 5000).Draw(rt, "epoch")
			if active+size <= room {
				active += size
			} else {
				p.Lost()
				lost = true
			}
			p.Natural()
			unanswered++
			sinceAsk++
			answered := asked && unanswered > answers
			for range 2 { // a look after each batch
				if p.Next(Store{Active: active, Rotate: active >= target}) {
					if asked && sinceAsk < RetryAfter {
						rt.Fatalf("asked again after %d collections", sinceAsk)
					}
					sinceAsk = 0
					if active < target && !lost {
						rt.Fatalf("asked for a sync point at %d of %d", active, target)
					}
					if !asked {
						unanswered = 0
					}
					asked = true
				}
				if p.Due() && (!asked || active < target && !p.Wanted()) {
					rt.Fatal("due before a natural collection was given its chance, or without need")
				}
			}
			if answered {
				if p.Rotate() {
					p.Began()
					active, asked, lost = 100, false, false
					rotations++
				} else {
					p.Synced()
					lost = false
					asked = false
				}
				unanswered = 0
			}
		}
		if rotations == 0 {
			rt.Fatal("never rotated")
		}
	})
}

// TestReserve: the reserve holds the two largest recent epochs, forgets slowly, and does not take a listing for an
// epoch.
func TestReserve(t *testing.T) {
	p := New()
	p.Began()
	p.Next(Store{Active: 1_000_000}) // the head
	if r := p.Reserve(); r != 64<<10 {
		t.Errorf("the head counts as an epoch: %d", r)
	}
	p.Next(Store{Active: 1_300_000})
	if r := p.Reserve(); r < 600_000 {
		t.Errorf("reserve %d, the last epoch took 300000", r)
	}
	for i := range int64(200) {
		p.Next(Store{Active: 1_300_000 + i*100})
	}
	if r := p.Reserve(); r > 100_000 {
		t.Errorf("reserve %d long after the burst", r)
	}
}
