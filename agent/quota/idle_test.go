package quota

import (
	"testing"
	"time"
)

func TestIdle(t *testing.T) {
	times, ok := cpuTimes{idle: 100, all: 1000, cpus: 4}, true
	i := Idle{read: func() (cpuTimes, bool) { return times, ok }}
	at := time.Unix(1000, 0)
	want := func(what string, most, spare float64) {
		t.Helper()
		if got := i.Spare(at, most); got < spare-1e-9 || got > spare+1e-9 {
			t.Errorf("%s: %v of %v CPUs may be taken, want %v", what, got, most, spare)
		}
	}
	want("before anything is measured", 0.5, 0.5)
	at, times.idle, times.all = at.Add(time.Second), 100, 1400
	want("nothing was idle", 0.5, 0.05)
	times.idle, times.all = 500, 1800
	want("within the same second", 0.5, 0.05)
	at = at.Add(time.Second)
	want("all were idle", 0.5, 0.5)
	want("all were idle", 9, 4)
	at, times.idle, times.all = at.Add(time.Second), 530, 2200
	want("0.3 CPUs were idle", 0.5, 0.3)
	at = at.Add(time.Second)
	want("the clock of the host stood still", 0.5, 0.3)
	at, times = at.Add(time.Second), cpuTimes{1, 1, 4}
	want("sums went back", 0.5, 0.3)
	at, ok = at.Add(time.Second), false
	want("nobody says", 0.5, 0.5)
}
