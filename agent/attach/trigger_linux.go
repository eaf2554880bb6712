package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// youngTries times youngWait is what a starting JVM gets to install its handlers.
	youngTries = 25
	youngWait  = 20 * time.Millisecond

	// The socket is polled after firstWait, then at growing intervals up to lastWait. At try signalAgain the JVM
	// gets a second signal: the first may have been taken by another use of SIGQUIT.
	firstWait   = 5 * time.Millisecond
	lastWait    = 200 * time.Millisecond
	signalAgain = 12
)

// trigger makes the JVM open its socket.
func trigger(ctx context.Context, t target, tmp int, sock string) error {
	var sys unix.Statfs_t
	if err := unix.Fstatfs(tmp, &sys); err == nil && sys.Flags&unix.ST_RDONLY != 0 {
		return ErrReadOnly // a signal would be of no use, and we would wait for nothing
	}
	if forbids(t.p, "+DisableAttachMechanism") {
		return ErrDisabled // the JVM would print a thread dump on SIGQUIT and nothing else
	}
	t, err := catchesQuit(ctx, t)
	if err != nil {
		return err
	}
	remove, err := putTrigger(t, tmp)
	if err != nil {
		return err
	}
	defer remove()
	wait := firstWait
	for try := 0; ; try++ {
		if try == 0 || try == signalAgain {
			if err := sendQuit(t); err != nil {
				return err
			}
		}
		err := as(t, func() error { return listens(tmp, sock, t) })
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !t.p.Alive() {
			return ErrNoProcess
		}
		select {
		case <-ctx.Done():
			return timeoutErr(ctx, ctx.Err())
		case <-time.After(wait):
		}
		wait = min(wait*3/2, lastWait)
	}
}

// catchesQuit waits until the JVM catches SIGQUIT: one that has just started does not catch anything yet.
func catchesQuit(ctx context.Context, t target) (target, error) {
	for try := 0; !t.quit; try++ {
		if try == youngTries {
			return t, ErrDisabled
		}
		select {
		case <-ctx.Done():
			return t, timeoutErr(ctx, ctx.Err())
		case <-time.After(youngWait):
		}
		now, err := inspect(t.p)
		if err != nil {
			return t, err
		}
		if !t.sameUser(now) {
			return t, ErrNoProcess
		}
		t = now
	}
	return t, nil
}

// sendQuit sends SIGQUIT, after a last look: what does not catch the signal would be killed by it.
func sendQuit(t target) error {
	now, err := inspect(t.p)
	switch {
	case err != nil:
		return err
	case !t.sameUser(now):
		return ErrNoProcess // the process executed another program
	case !now.quit:
		return ErrDisabled
	}
	return procErr(t.p.Signal(unix.SIGQUIT))
}

// putTrigger makes the file by which the JVM knows what SIGQUIT means, and gives what removes it. It is made with the
// rights of the JVM's user: the JVM chooses its working directory, where that user may have no right to write.
func putTrigger(t target, tmp int) (remove func(), err error) {
	name := ".attach_pid" + strconv.Itoa(t.nspid)
	dirs := []int{tmp}
	if cwd, err := t.p.WorkingDir(); err == nil { // the JVM looks there first
		defer unix.Close(cwd)
		dirs = []int{cwd, tmp}
	}
	for _, d := range dirs {
		if err = as(t, func() error { return create(d, name) }); err != nil {
			continue
		}
		dir, err := unix.Dup(d)
		if err != nil {
			return nil, err
		}
		return func() {
			_ = as(t, func() error { return unix.Unlinkat(dir, name, 0) })
			unix.Close(dir)
		}, nil
	}
	return nil, fmt.Errorf("cannot create %s: %w", name, procErr(err))
}

// create makes the trigger file. It must belong to the JVM's effective user or root; one that is left over is taken as
// it is.
func create(dir int, name string) error {
	flags := unix.O_CREAT | unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := unix.Openat(dir, name, flags, 0o660)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
