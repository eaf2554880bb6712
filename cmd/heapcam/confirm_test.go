package main

import (
	"errors"
	"testing"
	"time"
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
