package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestKeepSmall: what a verb sets for its own heap holds behind the first collection too.
func TestKeepSmall(t *testing.T) {
	for _, v := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(v, "")
		os.Unsetenv(v)
	}
	was := debug.SetGCPercent(100)
	defer func() { growth.Store(0); debug.SetGCPercent(was) }()
	collectLate()
	keepSmall(40)
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // the finalizer
	}
	if p := debug.SetGCPercent(was); p != 40 {
		t.Errorf("the heap may grow by %d %%", p)
	}
}
