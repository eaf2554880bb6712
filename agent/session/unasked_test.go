package session

import (
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// listed is the block of a probe that answers the request ticket, without an object.
func listed(ticket, seq uint64, refused string) trace.Block {
	b := trace.EncodeRefs(&trace.RefPart{Listing: ticket, N: 1, Flags: trace.RefFirst | trace.RefLast, HasAbout: true,
		About: trace.References{Ticket: ticket, GC: 6, Time: 1e9, Dur: 7e6, Objects: 5, Refused: refused}})
	b.Seq = seq
	return b
}

// TestIncidentListsReferences: a JVM runs out of memory. The session asks for a reference listing and keeps the
// incident when it is answered, or when the JVM has ended; it asks for none where none may be taken. Each incident says
// what became of its listing.
func TestIncidentListsReferences(t *testing.T) {
	for _, c := range []struct {
		name    string
		state   uint32 // of the probe's listings
		pause   time.Duration
		answers bool
		refused string
		want    ringstore.Listed
	}{
		{"listed", 1, time.Second, true, "", ringstore.Listed{GC: 6, Objects: 5}},
		{"refused", 1, time.Second, true, "too large", ringstore.Listed{
			Why: "no reference listing was taken: too large"}},
		{"the JVM ends", 1, time.Second, false, "", ringstore.Listed{Why: "the JVM ended before it was taken"}},
		{"switched off", 1, 0, false, "", ringstore.Listed{Why: "max_reference_pause is 0"}},
		{"old probe", 0, time.Second, false, "", ringstore.Listed{Why: ErrNoReferences.Error()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigLater(t, &sessiontest.MemStore{}, &Limits{SamplingShare: -1, MaxReferencePause: c.pause})
			got := make(chan ringstore.Listed, 9)
			r.hooks.Freeze = func(_ ringstore.Cause, _ string, l ringstore.Listed) { got <- l }
			r.start()
			r.p.Poke32(shmring.OffReferencesState, c.state)
			m := tracetest.New(tracetest.Config{Seed: 4})
			r.play(m, 5)
			r.p.Poke64(shmring.OffExhausted, 1)
			r.play(m, 1)
			asked := func() uint64 { return r.p.Peek64(shmring.OffReferences) }
			if c.answers || c.want.Why == "the JVM ended before it was taken" {
				r.wait(func() bool { return asked() != 0 })
				if ms := asked() >> 32; ms != uint64(c.pause.Milliseconds()) {
					t.Errorf("the JVM may stop for %d ms", ms)
				}
				if len(got) != 0 {
					t.Error("the incident did not wait")
				}
			}
			if c.answers {
				r.commit([]trace.Block{listed(uint64(uint32(asked())), 1<<20, c.refused)})
				r.wait(func() bool { return len(got) > 0 })
			}
			r.commit([]trace.Block{m.End()})
			r.p.State(shmring.StateGoodbye, "")
			r.finish()
			if len(got) != 1 {
				t.Fatalf("%d incidents", len(got))
			}
			if x := <-got; x != c.want {
				t.Errorf("%+v, not %+v", x, c.want)
			}
			if ns := r.s.Status().ReferencesNS; c.answers != (ns == 7e6) {
				t.Errorf("%d ns in stops for listings", ns)
			}
		})
	}
}

// TestReferencesInTime: of a recording whose interval grows by half a listing is asked for after half a minute;
// each hour of others; in no JVM without an interval. A heap that is nearly full has one of its own, once.
func TestReferencesInTime(t *testing.T) {
	began := time.Unix(1e9, 0)
	asked := func(every time.Duration) string {
		s := &Session{in: stream{began: began}}
		var at []string
		for now := began; now.Sub(began) < 150*time.Minute; now = now.Add(30 * time.Second) {
			s.schedule(now, every)
			if u := &s.refs.unasked; !u.next.IsZero() && !now.Before(u.next) {
				at = append(at, now.Sub(began).String())
				u.taken(now, began, every)
			}
		}
		return strings.Join(at, " ")
	}
	if got := asked(-1); got != "30s 1m0s 1m30s 2m0s 3m0s 4m0s 6m0s 9m0s 13m0s 19m30s 29m0s 43m30s "+
		"1h5m0s 1h37m30s 2h26m0s" {
		t.Errorf("half as old again: %s", got)
	}
	if got := strings.Fields(asked(time.Hour)); len(got) != 2 {
		t.Errorf("each hour: %s", got)
	}
	if got := asked(0); got != "" {
		t.Errorf("without an interval: %s", got)
	}
	s := &Session{}
	s.in.jvm.MaxHeap = 1000
	u := &s.refs.unasked
	for _, p := range []struct {
		kind, after uint64
		want        bool
	}{{trace.PauseYoung, 900, false}, {trace.PauseFull, 750, false}, {trace.PauseFull, 760, true}} {
		if s.collected(&trace.Pause{Kind: p.kind}, p.after); u.full != p.want {
			t.Errorf("%+v: %v", p, u.full)
		}
	}
	u.ticket = 1
	u.answer(1, answer{})
	s.collected(&trace.Pause{Kind: trace.PauseFull}, 900)
	if u.full {
		t.Error("a heap that is nearly full is listed again")
	}
}

// TestListingIsCutOff: between two parts of a reference listing the JVM ends, or the agent is replaced. The JVM's
// incident says that there is none; the next agent stores the rest.
func TestListingIsCutOff(t *testing.T) {
	for _, again := range []bool{false, true} {
		mem := &sessiontest.MemStore{}
		r := newRigLater(t, mem, &Limits{SamplingShare: -1, MaxReferencePause: time.Second})
		got := make(chan ringstore.Listed, 9)
		r.hooks.Freeze = func(_ ringstore.Cause, _ string, l ringstore.Listed) { got <- l }
		r.start()
		r.p.Poke32(shmring.OffReferencesState, 1)
		m := tracetest.New(tracetest.Config{Seed: 4})
		r.play(m, 5)
		r.p.Poke64(shmring.OffExhausted, 1)
		r.play(m, 1)
		r.wait(func() bool { return r.p.Peek64(shmring.OffReferences) != 0 })
		first := trace.EncodeRefs(&trace.RefPart{Listing: 1, N: 1, Flags: trace.RefFirst, HasAbout: true,
			About: trace.References{Ticket: 1, GC: 6, Time: 1e9, Objects: 5}})
		first.Seq = 1 << 20
		r.commit([]trace.Block{first})
		r.drained()
		if again {
			r.stop()
			r.start()
			last := trace.EncodeRefs(&trace.RefPart{Listing: 1, N: 2, Flags: trace.RefLast})
			last.Seq = 1<<20 + 1
			r.commit([]trace.Block{last})
			r.drained()
		}
		r.p.State(shmring.StateGoodbye, "")
		r.finish()
		if x := <-got; x.Why != "the JVM ended before it was taken" {
			t.Errorf("%+v", x)
		}
		parts := 0
		for _, f := range mem.Files() {
			for b, err := range trace.Blocks(f) {
				if err != nil {
					t.Fatal(err)
				}
				if b.Kind == trace.KindRefs {
					parts++
				}
			}
		}
		if want := map[bool]int{false: 1, true: 2}[again]; parts != want {
			t.Errorf("again %v: %d parts are stored, %d were sent", again, parts, want)
		}
	}
}

// TestOneIncidentWaits: a JVM that claims one exhaustion after the other does not fill the queue of incidents, and a
// storm and the exhaustion after it are one incident, that of the exhaustion, with the listing the storm asked for.
func TestOneIncidentWaits(t *testing.T) {
	s := &Session{}
	s.hooks.Freeze = func(ringstore.Cause, string, ringstore.Listed) { t.Error("kept before its listing") }
	s.alarms.stale = true
	u := &s.refs.unasked
	u.asked, u.ticket, u.answered, u.newest = time.Now(), 7, true, ringstore.Listed{GC: 6, Objects: 5}
	for i, c := range []ringstore.Cause{ringstore.CauseStorm, ringstore.CauseStorm, ringstore.CauseExhausted,
		ringstore.CauseExhausted, ringstore.CauseStorm} {
		s.alarm(time.Now(), &shmring.Status{}, c, "x", c == ringstore.CauseExhausted)
		want := map[bool]ringstore.Cause{true: ringstore.CauseStorm, false: ringstore.CauseExhausted}[i < 2]
		if n := len(u.waiting); n != 1 || u.waiting[0].cause != want || u.waiting[0].listed != u.newest {
			t.Fatalf("after alarm %d: %+v", i, u.waiting)
		}
	}
}

// TestLackedRoomAgain demands that a listing that was due and lacked memory is asked for again soon, two times in a
// row, and then as one that was refused for another reason: after an eighth of the recording's age.
func TestLackedRoomAgain(t *testing.T) {
	began := time.Unix(1e9, 0)
	s := &Session{in: stream{began: began}}
	u := &s.refs.unasked
	var at []string
	for now := began; now.Sub(began) < 50*time.Second; now = now.Add(time.Second) {
		s.schedule(now, -1)
		if u.next.IsZero() || now.Before(u.next) {
			continue
		}
		at = append(at, now.Sub(began).String())
		u.ticket++
		u.scheduled, u.asked, u.answered = u.ticket, now, false
		u.taken(now, began, -1)
		u.answer(u.ticket, answer{err: &RefusedError{Why: lackedRoom}})
	}
	if got := strings.Join(at, " "); got != "30s 32s 34s 39s 44s 45s" {
		t.Error(got)
	}
	u.answer(u.ticket, answer{})
	if u.lacked != 0 {
		t.Errorf("%d lacked room after one was taken", u.lacked)
	}
}

// TestAbortedAgain: the longer a listing stopped the JVM for nothing, the longer the next one waits.
func TestAbortedAgain(t *testing.T) {
	began := time.Unix(1e9, 0)
	for stop, want := range map[time.Duration]time.Duration{0: 5 * time.Second,
		250 * time.Millisecond: 25 * time.Second} {
		s := &Session{in: stream{began: began}}
		u := &s.refs.unasked
		asked := began.Add(40 * time.Second)
		u.every, u.ticket, u.scheduled, u.asked, u.next = -1, 1, 1, asked, began.Add(time.Hour)
		u.answer(1, answer{got: References{StopNS: uint64(stop)}, err: &RefusedError{Why: "it was aborted"}})
		s.schedule(asked, -1)
		if got := u.next.Sub(asked); got != want {
			t.Errorf("after a stop of %v the next try comes %v later, want %v", stop, got, want)
		}
	}
}
