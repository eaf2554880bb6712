package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heapcam/heapcam/internal/ui"
)

// graceTime is how long a verb that reads has after a signal: what goes through a large recording may not look at its
// context in between.
const graceTime = 3 * time.Second

// unfinished is the name of a file that is not complete yet, which an exit removes; "": none.
var unfinished atomic.Value

// interruptible gives a context that ends with the first signal to stop. Another signal ends the process, and so does
// the end of graceTime. stop must be called when the work is done.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	if parent == nil {
		parent = context.Background()
	}
	ctx, restore := signal.NotifyContext(parent, stopSignals()...)
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		restore()
		select {
		case <-done:
		case <-time.After(graceTime):
			if name, _ := unfinished.Load().(string); name != "" {
				os.Remove(name)
			}
			ui.Fprintf(ui.Stderr, "heapcam: interrupted\n")
			ui.Flush()
			os.Exit(exitFailed)
		}
	}()
	return ctx, sync.OnceFunc(func() { close(done); restore() })
}
