package emergency

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/shmring"
)

var errSend = errors.New("no ring")

// TestControl plays a store, a probe that answers late or never and a ring that fails, and holds the control to its
// invariants.
func TestControl(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		method := rapid.SampledFrom([]string{"walk", "gc", "off"}).Draw(rt, "method")
		var (
			now         = time.Unix(1, 0)
			v           View
			last        uint64 // ticket
			phase       int    // sent since the last natural collection
			sent        uint64
			fails       bool
			outstanding bool
			since       time.Time
		)
		c, err := New(method, func(m shmring.Method) (uint64, error) {
			if m != map[string]shmring.Method{"walk": shmring.MethodWalk, "gc": shmring.MethodGC}[method] {
				rt.Fatalf("method %v was sent for %s", m, method)
			}
			if fails {
				return 0, errSend
			}
			last++
			return last, nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(0, 4).Draw(rt, "seconds")) * time.Second)
			switch rapid.IntRange(0, 3).Draw(rt, "event") {
			case 0:
				c.Natural()
				phase = 0
			case 1:
				v.Answered = last
			}
			fails = rapid.IntRange(0, 3).Draw(rt, "fails") == 0
			v.Now, v.Due = now, rapid.Bool().Draw(rt, "due")
			v.Room, v.Reserve = rapid.Int64Range(0, 10).Draw(rt, "room"), rapid.Int64Range(0, 10).Draw(rt, "reserve")
			if outstanding && (v.Answered >= last || now.Sub(since) >= Timeout) {
				outstanding = false
			}
			ok, err := c.Poll(v)
			want := method != "off" && v.Due && v.Room < v.Reserve && phase == 0
			switch {
			case want && fails:
				if ok || !errors.Is(err, errSend) {
					rt.Fatalf("sending failed, Poll says %v, %v", ok, err)
				}
			case ok != want || err != nil:
				rt.Fatalf("sent: %v (%v), want %v: %+v, %d in this phase", ok, err, want, v, phase)
			case ok:
				phase++
				sent++
				outstanding, since = true, now
			}
			if c.Waiting() != outstanding {
				rt.Fatalf("waiting: %v, want %v", c.Waiting(), outstanding)
			}
			st := c.Stats()
			open := uint64(0)
			if outstanding {
				open = 1
			}
			// One that is sent while the one before is open takes its place.
			if st.Sent != sent || st.Answered+st.TimedOut+open > sent {
				rt.Fatalf("%+v, sent %d, open %d", st, sent, open)
			}
		}
	})
}

func TestMethods(t *testing.T) {
	if _, err := New("minor", nil); err == nil {
		t.Error("an unknown method is taken")
	}
	c, _ := New("off", nil)
	for range 3 {
		c.Poll(View{Due: true, Reserve: 1})
	}
	if c.Stats().Held != 1 {
		t.Errorf("held %d times in one phase", c.Stats().Held)
	}
	c.Natural()
	c.Poll(View{Due: true, Reserve: 1})
	if c.Stats().Held != 2 {
		t.Errorf("held %d, want one a phase", c.Stats().Held)
	}
}

// TestStep: a stop for a slice never collects, whatever the method is, and there is one at a time. With method off
// there is none. It does not use up the emergency of its phase.
func TestStep(t *testing.T) {
	for _, method := range []string{"walk", "gc", "off"} {
		var sent []shmring.Method
		c, err := New(method, func(m shmring.Method) (uint64, error) {
			sent = append(sent, m)
			return uint64(len(sent)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1, 0)
		for range 3 {
			if _, err := c.Step(View{Now: now}); err != nil {
				t.Fatal(err)
			}
		}
		if method == "off" {
			if len(sent) > 0 {
				t.Error("method off: a stop was sent")
			}
			continue
		}
		if len(sent) != 1 || sent[0] != shmring.MethodWalk {
			t.Errorf("method %s: sent %v", method, sent)
		}
		if ok, _ := c.Step(View{Now: now, Answered: 1}); !ok {
			t.Errorf("method %s: none is sent after an answer", method)
		}
		if ok, _ := c.Poll(View{Now: now, Answered: 2, Due: true, Reserve: 1}); !ok {
			t.Errorf("method %s: a stop for a slice counts as the emergency of its phase", method)
		}
	}
}
