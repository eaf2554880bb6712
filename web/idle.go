package web

import (
	"sync"
	"time"
)

// idleAfter is how long nobody asks until it is likely that the reader looks at what came.
const idleAfter = 200 * time.Millisecond

// idle calls f when nobody has asked for a moment.
type idle struct {
	f     func()
	mu    sync.Mutex
	busy  int // requests
	timer *time.Timer
}

// asked is called when a request begins; what it gives when that ends.
func (i *idle) asked() func() {
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
