package web

import (
	"sync"
	"time"
)

// idleAfter is the time without a request after which the reader probably looks at the page.
const idleAfter = 200 * time.Millisecond

// idle calls f when there was no request for idleAfter.
type idle struct {
	f     func()
	mu    sync.Mutex
	busy  int // requests in progress
	timer *time.Timer
}

// begin is called when a request begins; the function that it returns, when the request ends.
func (i *idle) begin() func() {
	if i.f == nil {
		return func() {}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.busy++
	if i.timer != nil {
		i.timer.Stop()
	}
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.busy--; i.busy == 0 {
			i.timer = time.AfterFunc(idleAfter, i.call)
		}
	}
}

func (i *idle) call() {
	i.mu.Lock()
	free := i.busy == 0
	i.mu.Unlock()
	if free {
		i.f()
	}
}
