package web

import "testing"

func TestIdle(t *testing.T) {
	called := make(chan bool, 2)
	i := idle{f: func() { called <- true }}
	one, two := i.asked(), i.asked()
	one()
	i.call() // as a timer that could not be stopped any more does
	if len(called) > 0 {
		t.Fatal("called while a request goes on")
	}
	two()
	<-called
	(&idle{}).asked()()
}
