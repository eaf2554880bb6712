package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// call does one request and gives the first limit bytes of the answer. The process and its /tmp are held open from the
// beginning to the end, so that neither another process of the same pid nor another folder takes their places.
func call(ctx context.Context, j JVM, limit int64, name string, args ...string) ([]byte, error) {
	req, err := request(name, args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	p, err := procfs.OpenStarted(j.PID, j.StartTicks)
	if err != nil {
		return nil, procErr(err)
	}
	defer p.Close()
	t, err := inspect(p)
	if err != nil {
		return nil, err
	}
	if name == "load" && forbids(p, "-EnableDynamicAgentLoading") {
		return nil, ErrLoading // it would open its socket, and print nothing but a refusal
	}
	tmp, err := openTmp(p)
	if err != nil {
		return nil, procErr(err)
	}
	defer unix.Close(tmp)
	sock := ".java_pid" + strconv.Itoa(t.nspid)
	if err := as(t, func() error { return listens(tmp, sock, t) }); errors.Is(err, fs.ErrNotExist) {
		if err := trigger(ctx, t, tmp, sock); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	var answer []byte
	err = as(t, func() error {
		c, err := dial(ctx, tmp, sock, t)
		if err != nil {
			return err
		}
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if _, err := c.Write(req); err != nil {
			return timeoutErr(ctx, err)
		}
		answer, err = io.ReadAll(io.LimitReader(c, limit))
		return timeoutErr(ctx, err)
	})
	return answer, err
}

// openTmp opens the folder that the process sees as /tmp. Its user may have made links there: they lead nowhere out of
// the process' own root.
func openTmp(p *procfs.Process) (int, error) {
	root, err := p.Root()
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return procfs.FolderInRoot(root, "tmp")
}

// openSocket opens the JVM's socket without following a link (O_PATH): fs.ErrNotExist if the JVM does not listen yet.
// A socket of somebody else in a shared /tmp is a trap.
func openSocket(tmp int, sock string, t target) (int, error) {
	fd, err := unix.Openat(tmp, sock, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	switch err = unix.Fstat(fd, &st); {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		err = fmt.Errorf("%s in the JVM's /tmp is not a socket", sock)
	case int(st.Uid) != t.uid && st.Uid != 0:
		err = fmt.Errorf("%s in the JVM's /tmp belongs to uid %d, but the JVM to uid %d", sock, st.Uid, t.uid)
	default:
		return fd, nil
	}
	unix.Close(fd)
	return -1, err
}

// listens says whether the JVM has its socket: fs.ErrNotExist if not yet.
func listens(tmp int, sock string, t target) error {
	fd, err := openSocket(tmp, sock, t)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// dial connects to the JVM's socket: to the very file that was checked, and only if it is the JVM that listens there.
func dial(ctx context.Context, tmp int, sock string, t target) (net.Conn, error) {
	at, err := openSocket(tmp, sock, t)
	if err != nil {
		return nil, procErr(err)
	}
	defer unix.Close(at)
	// Not net.Dial: it may connect on another thread, and as() has changed this one.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), sock)
	defer f.Close()
	// A connect to a full backlog would block: send timeout bounds it.
	tv := unix.NsecToTimeval(int64(remaining(ctx)))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: procfs.DescriptorPath(at)})
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, fmt.Errorf("nobody listens on %s any more: %w", sock, ErrNoProcess)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINPROGRESS):
		return nil, ErrTimeout
	case err != nil:
		return nil, procErr(err)
	}
	if err := checkPeer(fd, sock, t); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// checkPeer compares who listens, as the kernel says, with the JVM. A socket can belong to the JVM's user and still be
// another process', which would be given commands that are not for it.
func checkPeer(fd int, sock string, t target) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	if int(peer.Pid) != t.p.PID || int(peer.Uid) != t.uid && peer.Uid != 0 {
		return fmt.Errorf("%s in the JVM's /tmp is a socket of process %d (uid %d), not of the JVM",
			sock, peer.Pid, peer.Uid)
	}
	return nil
}

func remaining(ctx context.Context) time.Duration {
	if d, ok := ctx.Deadline(); ok {
		return max(time.Until(d), time.Millisecond)
	}
	return Timeout
}

// procErr gives the errors of /proc and of signals our names.
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
