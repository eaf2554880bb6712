package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/trace"
)

// How long a JVM that gives no JVMTI is taken for one that is starting, and how often it is asked.
const (
	jvmStarts  = 5 * time.Second
	startAgain = 100 * time.Millisecond
)

// Refusal says why j cannot be recorded, as far as that is seen from outside; nil: nothing is known against it.
// options are the probe's. Errors: *jvms.RecordError.
func Refusal(j jvms.JVM, options string) error {
	v := jvms.Doctor(j)
	if v.Recordable || v.Problem == jvms.UntestedMajor && strings.Contains(options, "allow_untested=1") {
		return nil
	}
	err := fmt.Errorf("pid %d (%s) cannot be recorded: %s", j.PID, j.Name, v.Reason)
	if v.Remedy != "" {
		err = fmt.Errorf("%w; %s", err, v.Remedy)
	}
	if v.Problem == jvms.NoRights {
		return jvms.Errorf(jvms.Denied, "%w", err)
	}
	return jvms.Errorf(jvms.Unrecordable, "%w", err)
}

// Load loads the probe into j, which Refusal has nothing against. ringDir is the folder for its ring as the JVM sees
// it; the library is put where the JVM can read it. Errors: *jvms.RecordError, package attach's, probe.ErrNone.
func Load(ctx context.Context, j jvms.JVM, ringDir, options string) error {
	b, err := probe.Library()
	if err != nil {
		return err
	}
	var lib string
	if j.UID != os.Getuid() || j.Container {
		lib, err = libraryFor(j, b)
	} else {
		lib, err = installLibrary(b)
	}
	if err != nil {
		return err
	}
	load := func() error {
		return attach.Load(ctx, attach.JVM{PID: j.PID, StartTicks: j.StartTicks}, lib, "dir="+ringDir+","+options)
	}
	err = load()
	var refused *attach.ReturnError
	// A JVM takes commands before it gives JVMTI to those who come by one.
	for end := time.Now().Add(jvmStarts); ctx.Err() == nil && time.Now().Before(end); err = load() {
		if !errors.As(err, &refused) || refused.Code != trace.LoadJVMTI {
			break
		}
		time.Sleep(startAgain)
	}
	return loadError(j, lib, err)
}

// loadError says of a JVM's answer what it means.
func loadError(j jvms.JVM, lib string, err error) error {
	var refused *attach.ReturnError
	var unloaded *attach.LoadError
	cannot := fmt.Sprintf("pid %d (%s) cannot be recorded", j.PID, j.Name)
	switch {
	case errors.As(err, &refused) && refused.Code == trace.LoadJVMTI:
		return jvms.Errorf(jvms.Unrecordable, "%s: the JVM does not offer JVMTI 11, "+
			"or has not started within %v", cannot, jvmStarts)
	case errors.As(err, &refused) && refused.Code == trace.LoadTwice:
		return jvms.Errorf(jvms.Already, "pid %d (%s) is recorded already: `heapcam status` and `heapcam doctor %d` "+
			"say where", j.PID, j.Name, j.PID)
	case errors.As(err, &refused):
		return jvms.Errorf(jvms.Unrecordable,
			"%s: the probe refused it (code %d); see the line \"heapcam:\" on the JVM's stderr", cannot, refused.Code)
	case errors.As(err, &unloaded):
		return jvms.Errorf(jvms.Unrecordable, "%s: the JVM cannot load %s: %s", cannot, lib, unloaded.Text)
	}
	return err
}

// RingDirFor makes the folder in which j's probe makes its ring: below base where the JVM sees that, too. Errors:
// *jvms.RecordError, I/O errors.
func RingDirFor(j jvms.JVM, base string) (RingDir, error) {
	return ringDirIn(j, base, fmt.Sprintf("heapcam-%d", j.UID), true)
}

// OneRingDir makes a folder for the ring of j alone, which the caller removes. name tells it from others. Errors:
// *jvms.RecordError, I/O errors.
func OneRingDir(j jvms.JVM, name string) (RingDir, error) {
	if j.Container {
		return ringDirIn(j, "/dev/shm", fmt.Sprintf("heapcam-record-%d-%s", os.Getpid(), name), false)
	}
	return MakeRingDir("record", j.UID)
}
