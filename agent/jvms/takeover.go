package jvms

import (
	"bytes"
	"context"
	"time"
)

// TakeOverWithin is how long the ring of a JVM that has started is searched.
const TakeOverWithin = 5 * time.Second

// TakeOverBelow calls await with the JVMs whose environment names our folder for rings: the ring of one that found no
// room there is memory without a name, and has to be searched. It returns when ctx is done.
func TakeOverBelow(ctx context.Context, rings string, await func(context.Context, JVM)) {
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
