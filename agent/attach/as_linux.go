package attach

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// as runs f with the rights of the JVM's user: what the JVM's user cannot reach, we do not reach for it. In a user
// namespace of its own a JVM takes no other peer either, not even root.
func as(t target, f func() error) error {
	if os.Geteuid() != 0 || t.uid == 0 && !t.userns {
		return f()
	}
	return As(t.uid, t.gid, f)
}

// As runs f on a thread of its own that has the effective ids uid and gid, as we count, no supplementary group and no
// effective capability. f must not wait for other goroutines to do its system calls. Errors: f's, or why the ids could
// not be had; then f was not called.
func As(uid, gid int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: a thread whose ids cannot be restored for certain ends with its goroutine. But for the
		// process' first thread, which cannot end and by whose ids others judge the process: it is kept busy.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done <- As(uid, gid, f)
			runtime.UnlockOSThread()
			return
		}
		if err := become(uid, gid); err != nil {
			done <- fmt.Errorf("cannot become uid %d, gid %d: %w", uid, gid, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// become changes the ids of this thread, which must be locked. The raw system calls change this thread alone; package
// syscall's would change all.
func become(uid, gid int) error {
	if uid < 0 || gid < 0 { // -1 would mean: as it is
		return errors.New("no such user")
	}
	const keep = ^uintptr(0)
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, keep, uintptr(gid), keep); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
		return e
	}
	return lessRights(uid, gid)
}

// lessRights says whether this thread has the ids and, unless they are root's, none of root's capabilities: securebits
// could keep them (capabilities(7)).
func lessRights(uid, gid int) error {
	if unix.Geteuid() != uid || unix.Getegid() != gid {
		return errors.New("the kernel set other ids")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	if uid != 0 && caps[0].Effective|caps[1].Effective != 0 {
		return errors.New("securebits keep root's capabilities")
	}
	return nil
}
