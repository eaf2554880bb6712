package jvms

import (
	"bytes"
	"context"
	"time"
)

// TakeOverWithin is how long the ring of a JVM that has started is searched.
const TakeOverWithin = 5 * time.Second

// takeOverAfter is when the first one is looked for.
const takeOverAfter = 300 * time.Millisecond

// TakeOverBelow calls await with the JVMs whose environment names our folder for rings: the ring of one that found no
// room there is memory without a name, and has to be searched. It returns when ctx is done. That is rare, and to look
// at all processes takes as much CPU as a short JVM: so it begins a little later.
func TakeOverBelow(ctx context.Context, rings string, await func(context.Context, JVM)) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(takeOverAfter):
	}
	_ = Watch(ctx, func(added, _ []JVM) {
		for _, j := range added {
			env, err := ReadProc(j.PID, "environ")
			if err != nil || !bytes.Contains(env, []byte("dir="+rings)) {
				continue
			}
			go func() {
				within, stop := context.WithTimeout(ctx, TakeOverWithin)
				defer stop()
				await(within, j)
			}()
		}
	})
}
