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
// at all processes takes CPU: so it begins a little later, and of all others only the environment is read.
func TakeOverBelow(ctx context.Context, rings string, await func(context.Context, JVM)) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(takeOverAfter):
	}
	ours := func(pid int) bool {
		env, err := ReadProc(pid, "environ")
		return err == nil && bytes.Contains(env, []byte("dir="+rings))
	}
	_ = watch(ctx, ours, func(added, _ []JVM) {
		for _, j := range added {
			go func() {
				within, stop := context.WithTimeout(ctx, TakeOverWithin)
				defer stop()
				await(within, j)
			}()
		}
	})
}
