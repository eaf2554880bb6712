package session

import (
	"reflect"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestCountersSurviveRestart: after a restart each kept counter is in the status again, under its own name.
func TestCountersSurviveRestart(t *testing.T) {
	var c counters
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Uint64:
			f.SetUint(uint64(i + 1))
		case reflect.Int64:
			f.SetInt(int64(i + 1))
		default:
			f.SetString("uid 7")
		}
	}
	var st Status
	c.restore(&st)
	if got := countersOf(&st); got != c {
		t.Errorf("%+v, want %+v", got, c)
	}
	if st.Collections != c.Collections || st.Dropped.StoreEpochs != c.StoreEpochs || st.Missed != c.Missed ||
		st.DetachedBy != "uid 7" {
		t.Errorf("%+v", st)
	}
}

// TestTallyDue: counters are kept every ten seconds, not more often.
func TestTallyDue(t *testing.T) {
	var y tally
	now, n := time.Unix(1e9, 0), 0
	for range 1000 {
		if y.due(now) {
			n++
		}
		now = now.Add(100 * time.Millisecond)
	}
	if n != 10 {
		t.Errorf("%d times in 100 seconds", n)
	}
}

// TestTallyOverAgents: the next session of the same recording continues the counters of the one before. It also knows
// who detached.
func TestTallyOverAgents(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 30}
	r := newRig(t, mem)
	m := tracetest.New(tracetest.Config{Seed: 5})
	n := len(r.play(m, 3))
	r.drained()
	if err := r.s.Detach("uid 7"); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if who, err := DetachedBy(mem.Counters()); who != "uid 7" || err != nil {
		t.Errorf("detached by %q, %v", who, err)
	}
	if who, err := DetachedBy(nil); who != "" || err != nil {
		t.Errorf("nothing was kept: detached by %q, %v", who, err)
	}
	if _, err := DetachedBy([]byte("{")); err == nil {
		t.Error("half a document is no error")
	}
	r.start()
	if got := r.s.Status().Collections; got != uint64(n) {
		t.Errorf("the next session begins with %d collections of %d", got, n)
	}
	n += len(r.play(m, 2))
	r.p.End(shmring.StateGoodbye, "")
	r.finish()
	if got := r.s.Status().Collections; got != uint64(n) {
		t.Errorf("%d collections of %d are counted", got, n)
	}
}
