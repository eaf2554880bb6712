package main

import (
	"errors"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
)

// TestConfirmed demands that a verb waits as long as classes are given back, and no longer.
func TestConfirmed(t *testing.T) {
	calls := 0
	if ok, err := confirmed(func() (uint64, bool, error) {
		calls++
		return uint64(3-calls) * 1024, calls < 3, nil
	}); !ok || err != nil || calls != 3 {
		t.Errorf("%v, %v after %d calls", ok, err, calls)
	}
	begun := time.Now()
	if ok, err := confirmed(func() (uint64, bool, error) { return 0, true, nil }); ok || err != nil ||
		time.Since(begun) < detachTime {
		t.Errorf("a JVM that says nothing: %v, %v after %s", ok, err, time.Since(begun))
	}
	broken := errors.New("broken")
	if ok, err := confirmed(func() (uint64, bool, error) { return 0, true, broken }); ok || err != broken {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestPaused: pause waits until the agent shows that the JVM it is about is paused, and not for others.
func TestPaused(t *testing.T) {
	for id, want := range map[string]int{"a": 3, "b": 1, "": 4} {
		calls := 0
		paused(func() (api.StatusReply, error) {
			calls++
			all := []session.Status{{ID: "a", Phase: session.Recording}, {ID: "b", Phase: session.Paused},
				{ID: "c", Phase: session.Recording}}
			if calls >= 3 {
				all[0].Phase = session.Paused
			}
			if calls >= 4 {
				all[2].Phase = session.Paused
			}
			return api.StatusReply{JVMs: all}, nil
		}, id)
		if calls != want {
			t.Errorf("%q: asked %d times, want %d", id, calls, want)
		}
	}
	begun := time.Now()
	paused(func() (api.StatusReply, error) {
		return api.StatusReply{JVMs: []session.Status{{ID: "a", Phase: session.Recording}}}, nil
	}, "a")
	if d := time.Since(begun); d < pausedTime || d > 3*pausedTime {
		t.Errorf("a JVM that does not obey: waited %v", d)
	}
}
