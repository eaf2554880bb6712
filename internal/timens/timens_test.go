package timens

import (
	"testing"
	"time"
)

func TestShift(t *testing.T) {
	const text = "monotonic      100000         5\nboottime      -20         500000000\n"
	for clock, want := range map[string]time.Duration{
		Monotonic: 100000*time.Second + 5, Boottime: -20*time.Second + 500*time.Millisecond, "tai": 0,
	} {
		if got := shift(text, clock); got != want {
			t.Errorf("%s: %s, want %s", clock, got, want)
		}
	}
	for _, odd := range []string{"", "monotonic", "monotonic x 0\n", "monotonic 99999999999999 0\n",
		"monotonic 1 -1\n"} {
		if got := shift(odd, Monotonic); got != 0 {
			t.Errorf("%q: %s", odd, got)
		}
	}
}
