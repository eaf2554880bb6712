package main

import (
	"bytes"
	"context"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
)

// adoptFor bounds how long the ring of a JVM that started is looked for.
const adoptFor = 5 * time.Second

// adoptBelow has a record those JVMs whose environment names our folder for rings and whose ring is not in it: without room there it is memory that
// has no name.
func adoptBelow(ctx context.Context, a *agent.Agent, rings string) {
	jvms.Watch(ctx, func(added, _ []jvms.JVM) {
		for _, j := range added {
			env, err := jvms.ReadProc(j.PID, "environ")
			if err != nil || !bytes.Contains(env, []byte("dir="+rings)) {
				continue
			}
			go func() {
				within, stop := context.WithTimeout(ctx, adoptFor)
				defer stop()
				a.Await(within, j.PID, j.StartTicks) // what is wrong the agent has logged
			}()
		}
	})
}
