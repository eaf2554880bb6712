package web

import "testing"

// TestIdle: the function is called only when no request is in progress.
func TestIdle(t *testing.T) {
	called := make(chan bool, 2)
	i := idle{f: func() { called <- true }}
	one, two := i.begin(), i.begin()
	one()
	i.call() // like a timer that fired before it was stopped
	if len(called) > 0 {
		t.Fatal("called while a request is in progress")
	}
	two()
	<-called
	(&idle{}).begin()()
}
