package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// target is what /proc says about the JVM.
type target struct {
	pid, nspid int
	uid, gid   int // effective, as our namespace counts
	userns     bool
	quit       bool // SIGQUIT is caught
	start      string
}

// call does one request. The socket's folder is held as a descriptor below /proc/PID/root, so that one path serves all namespaces.
func call(ctx context.Context, pid int, name string, args ...string) ([]byte, error) {
	req, err := request(name, args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	t, err := look(pid)
	if err != nil {
		return nil, err
	}
	tmp, err := unix.Open(fmt.Sprintf("/proc/%d/root/tmp", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, procErr(err)
	}
	defer unix.Close(tmp)
	sock := ".java_pid" + strconv.Itoa(t.nspid)
	if err := checkSocket(tmp, sock, t); errors.Is(err, fs.ErrNotExist) {
		if err := trigger(ctx, t, tmp, sock); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	var answer []byte
	err = as(t, func() error {
		c, err := dial(ctx, tmp, sock)
		if err != nil {
			return err
		}
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if _, err := c.Write(req); err != nil {
			return timeoutErr(ctx, err)
		}
		answer, err = io.ReadAll(io.LimitReader(c, maxAnswer))
		return timeoutErr(ctx, err)
	})
	return answer, err
}

// look reads what must be known before anything is touched.
func look(pid int) (target, error) {
	t := target{pid: pid, nspid: pid, uid: -1}
	if pid <= 0 {
		return t, ErrNoProcess
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return t, procErr(err)
	}
	for line := range strings.Lines(string(b)) {
		key, v, _ := strings.Cut(line, ":")
		f := strings.Fields(v)
		switch {
		case key == "State" && len(f) > 0 && (f[0] == "Z" || f[0] == "X"):
			return t, ErrNoProcess
		case key == "Tgid" && len(f) > 0 && f[0] != strconv.Itoa(pid):
			return t, ErrNoProcess // a thread's id
		case key == "Uid" && len(f) > 1:
			t.uid, _ = strconv.Atoi(f[1])
		case key == "Gid" && len(f) > 1:
			t.gid, _ = strconv.Atoi(f[1])
		case key == "NSpid" && len(f) > 0:
			t.nspid, _ = strconv.Atoi(f[len(f)-1])
		case key == "SigCgt" && len(f) > 0:
			mask, err := strconv.ParseUint(f[0], 16, 64)
			t.quit = err == nil && mask>>(uint(unix.SIGQUIT)-1)&1 == 1
		}
	}
	maps, err := readProc(pid, "maps", maxMaps)
	switch {
	case err != nil:
		return t, procErr(err)
	case !strings.Contains(string(maps), "/libjvm.so"):
		return t, ErrNotJVM
	}
	if euid := os.Geteuid(); euid != 0 && euid != t.uid {
		return t, ErrPermission
	}
	mine, err1 := os.Readlink("/proc/self/ns/user")
	its, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", pid))
	t.userns = err1 == nil && err2 == nil && mine != its
	t.start = startTime(pid)
	return t, nil
}

const (
	// maxProc and maxMaps bound what is read of a process: it can say that gigabytes of its memory are its environment.
	maxProc = 2 << 20
	maxMaps = 16 << 20
)

func readProc(pid int, name string, limit int64) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// startTime gives what tells two processes of one pid apart.
func startTime(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return ""
	}
	return f[19]
}

// checkSocket says whether the JVM listens: fs.ErrNotExist if not yet. A socket of somebody else in a shared /tmp is a trap.
func checkSocket(tmp int, sock string, t target) error {
	var st unix.Stat_t
	if err := unix.Fstatat(tmp, sock, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fmt.Errorf("%s in the JVM's /tmp is not a socket", sock)
	}
	if int(st.Uid) != t.uid && st.Uid != 0 {
		return fmt.Errorf("%s in the JVM's /tmp belongs to uid %d, the JVM to %d", sock, st.Uid, t.uid)
	}
	return nil
}

// trigger makes the JVM open its socket.
func trigger(ctx context.Context, t target, tmp int, sock string) error {
	var sys unix.Statfs_t
	if err := unix.Fstatfs(tmp, &sys); err == nil && sys.Flags&unix.ST_RDONLY != 0 {
		return ErrReadOnly // it would be told in vain, and we would wait in vain
	}
	if forbidden(t.pid) {
		return ErrDisabled // the JVM would print a thread dump on SIGQUIT and nothing else
	}
	// A JVM that has just started does not catch anything yet.
	for try := 0; !t.quit; try++ {
		if try == youngTries {
			return ErrDisabled
		}
		select {
		case <-ctx.Done():
			return timeoutErr(ctx, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
		now, err := look(t.pid)
		if err != nil {
			return err
		}
		if now.start != t.start {
			return ErrNoProcess
		}
		t = now
	}
	name := ".attach_pid" + strconv.Itoa(t.nspid)
	cwd, err := unix.Open(fmt.Sprintf("/proc/%d/cwd", t.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		cwd = -1
	} else {
		defer unix.Close(cwd)
	}
	dir := -1
	for _, d := range []int{cwd, tmp} { // the JVM looks into both, in this order
		if d < 0 {
			continue
		}
		if err = as(t, func() error { return create(d, name) }); err == nil {
			dir = d
			break
		}
	}
	if dir < 0 {
		return fmt.Errorf("creating %s: %w", name, procErr(err))
	}
	defer as(t, func() error { return unix.Unlinkat(dir, name, 0) })

	wait := 5 * time.Millisecond
	for try := 0; ; try++ {
		if try == 0 || try == 12 { // again after a second or so: the first may have been eaten by another use of SIGQUIT
			if startTime(t.pid) != t.start {
				return ErrNoProcess
			}
			if now, err := look(t.pid); err != nil { // as late as can be: signalling the wrong one kills it
				return err
			} else if !now.quit {
				return ErrDisabled
			}
			if err := unix.Kill(t.pid, unix.SIGQUIT); err != nil {
				return procErr(err)
			}
		}
		if err := checkSocket(tmp, sock, t); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if startTime(t.pid) != t.start {
			return ErrNoProcess
		}
		select {
		case <-ctx.Done():
			return timeoutErr(ctx, ctx.Err())
		case <-time.After(wait):
		}
		wait = min(wait*3/2, 200*time.Millisecond)
	}
}

// youngTries times 20 ms is what a starting JVM gets to install its handlers.
const youngTries = 25

// forbidden says whether the options that the process was started with, as far as they can be seen, disable attaching. The last one
// counts, and the command line comes after JAVA_TOOL_OPTIONS and before _JAVA_OPTIONS.
func forbidden(pid int) bool {
	var options []string
	env, _ := readProc(pid, "environ", maxProc)
	cmd, _ := readProc(pid, "cmdline", maxProc)
	for _, name := range []string{"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "", "_JAVA_OPTIONS="} {
		if name == "" {
			options = append(options, strings.Split(string(cmd), "\x00")...)
			continue
		}
		for _, v := range strings.Split(string(env), "\x00") {
			if v, ok := strings.CutPrefix(v, name); ok {
				options = append(options, strings.Fields(v)...)
			}
		}
	}
	disabled := false
	for _, o := range options {
		switch o {
		case "-XX:+DisableAttachMechanism":
			disabled = true
		case "-XX:-DisableAttachMechanism":
			disabled = false
		}
	}
	return disabled
}

// create makes the trigger file. It must belong to the JVM's effective user or root; one that is left over is taken as it is.
func create(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o660)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func dial(ctx context.Context, tmp int, sock string) (net.Conn, error) {
	// Not net.Dial: it may connect on another thread, and as() has changed this one.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), sock)
	defer f.Close()
	// A connect to a full backlog would block: send timeout bounds it.
	tv := unix.NsecToTimeval(int64(remaining(ctx)))
	unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/thread-self/fd/%d/%s", tmp, sock)})
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("%s is stale: nobody listens: %w", sock, ErrNoProcess)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINPROGRESS):
		return nil, ErrTimeout
	case err != nil:
		return nil, procErr(err)
	}
	return net.FileConn(f)
}

func remaining(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return max(time.Until(d), time.Millisecond)
	}
	return Timeout
}

// as runs f with the JVM's user and group when it lives in a user namespace of its own, where the JVM takes no other peer, not even
// root.
func as(t target, f func() error) error {
	if !t.userns || os.Geteuid() != 0 {
		return f()
	}
	return As(t.uid, t.gid, f)
}

// As runs f on a thread of its own that has the effective ids uid and gid, as we count: in a user namespace that is not ours even root makes
// files and is taken as a peer only as its users. f must not wait for other goroutines to do its system calls. Errors: f's, or why the ids
// could not be had.
func As(uid, gid int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		// But for the process' first thread, which can not end and by whose ids others judge the process: it is kept busy meanwhile.
		if unix.Gettid() == unix.Getpid() {
			done <- As(uid, gid, f)
			runtime.UnlockOSThread()
			return
		}
		// The raw system calls change this thread alone; package syscall's would change all.
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, ^uintptr(0), uintptr(gid), ^uintptr(0)); e != 0 {
			done <- e
			return
		}
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			done <- e
			return
		}
		done <- f()
	}()
	return <-done
}

// procErr gives the errors of /proc and kill our names.
func procErr(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ESRCH):
		return ErrNoProcess
	case errors.Is(err, fs.ErrPermission):
		return ErrPermission
	}
	return err
}

// timeoutErr gives an error of the wire the context's cause.
func timeoutErr(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return ErrTimeout
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	}
	return err
}
