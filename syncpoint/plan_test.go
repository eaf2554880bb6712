package syncpoint

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPlan plays a store and a probe that answers late or never, and holds the plan to its invariants.
func TestPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		method := rapid.SampledFrom([]string{"walk", "gc", "off"}).Draw(rt, "method")
		target := rapid.Int64Range(1000, 100_000).Draw(rt, "T")
		room := target + rapid.Int64Range(0, 200_000).Draw(rt, "overshoot")
		answers := rapid.IntRange(0, 8).Draw(rt, "answer after so many collections")
		p := New(method)
		p.Began()
		var active int64
		lost := false
		asked, unanswered, sinceAsk, emergencies, rotations := false, 0, 0, 0, 0
		for range 300 {
			size := rapid.Int64Range(1, 5000).Draw(rt, "epoch")
			if active+size <= room {
				active += size
			} else {
				p.Lost()
				lost = true
			}
			p.Epoch(true)
			emergencies = 0
			unanswered++
			sinceAsk++
			answered := asked && unanswered > answers
			for range 2 { // a look after each batch
				switch p.Next(Store{Active: active, Room: room - active, Rotate: active >= target}) {
				case Sync:
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
				case Emergency:
					emergencies++
					if method == "off" || emergencies > 1 {
						rt.Fatalf("method %s, %d emergencies in one phase", method, emergencies)
					}
					if !asked {
						rt.Fatal("an emergency before a natural collection was given its chance")
					}
					if room-active > 2*room+64<<10 {
						rt.Fatal("an emergency although there is room")
					}
					answered = true
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

func TestOffNeverCallsAnEmergency(t *testing.T) {
	p := New("off")
	for range 10 {
		p.Epoch(true)
		if p.Next(Store{Active: 10, Room: 0, Rotate: true}) == Emergency {
			t.Fatal("emergency although off")
		}
	}
	p = New("walk")
	p.Next(Store{Active: 10, Room: 0, Rotate: true})
	if p.Next(Store{Active: 10, Room: 0, Rotate: true}) != Emergency {
		t.Fatal("no emergency although there is no room")
	}
	if p.Next(Store{Active: 10, Room: 0, Rotate: true}) != Nothing {
		t.Fatal("a second emergency before a natural collection")
	}
}
