package place

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/shmring"
)

// Unload has the probe that was loaded into j stop, and removes its ring. It is for a recording that cannot begin: what
// the ring holds is dropped. A probe that has stopped already, or has no ring, is no error. Errors: shmring's, such as
// ErrBusy where another recorder reads the ring, and the context's.
func Unload(ctx context.Context, j jvms.JVM, maxRing uint64) error {
	r, err := shmring.OpenOf(j.PID, shmring.Options{MaxCapacity: maxRing})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := r.Status()
	if err != nil {
		return err
	}
	if s.StartTicks != j.StartTicks {
		return &os.PathError{Op: "unload", Path: r.Path(), Err: fs.ErrNotExist} // the pid is another JVM's by now
	}
	if _, err := r.Acquire(); err != nil {
		return err
	}
	if err := r.Detach(); err != nil {
		return err
	}
	for err = r.Wait(ctx); err == nil; err = r.Wait(ctx) {
		b, err := r.Read(1 << 20)
		if err != nil {
			return err
		}
		if err := r.Commit(b.End); err != nil {
			return err
		}
	}
	if !errors.Is(err, shmring.ErrEnded) && !errors.Is(err, shmring.ErrGone) {
		return err
	}
	return r.Unlink()
}
