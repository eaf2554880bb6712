package api

import (
	"testing"
	"time"
)

// TestSettles: a JVM is settled once in ten minutes, beside others; what did not take place does not count.
func TestSettles(t *testing.T) {
	var x settles
	now := time.Now()
	if x.allow("a", now) != 0 || x.allow("b", now) != 0 {
		t.Error("the first one is refused")
	}
	if wait := x.allow("a", now.Add(time.Minute)); wait != SettleEvery-time.Minute {
		t.Errorf("the second one waits for %v", wait)
	}
	if x.allow("a", now.Add(SettleEvery)) != 0 || len(x.at) != 1 {
		t.Errorf("after ten minutes: %v", x.at)
	}
	x.forget("a")
	if x.allow("a", now.Add(SettleEvery)) != 0 {
		t.Error("one that did not take place counts")
	}
}
