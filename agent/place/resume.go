package place

import (
	"context"

	"github.com/heapcam/heapcam/agent/jvms"
)

// Recorder is who continues recordings.
type Recorder struct {
	Out   string                          // the folder of its recordings
	Watch func(dir string)                // has it look for rings in a folder, too
	Await func(context.Context, jvms.JVM) // waits until it records a JVM, whose ring may have no name
}
