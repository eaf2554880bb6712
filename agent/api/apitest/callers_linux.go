package apitest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NeedRoot skips a test that cannot be run as another user than root.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: callers of other users (needs root)")
	}
}

// OnThread runs f on a thread that ends with f. It is not the first thread of the process, which cannot end.
func OnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done := make(chan struct{})
			OnThread(func() { f(); close(done) })
			<-done
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
}

// As calls the API from a thread that is uid with the supplementary groups, and gives status and body.
func As(t *testing.T, sock string, uid int, groups []uint32, method, path, body string) (int, []byte) {
	t.Helper()
	type answer struct {
		fd  int
		err error
	}
	got := make(chan answer)
	OnThread(func() {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		var first unsafe.Pointer
		if len(groups) > 0 {
			first = unsafe.Pointer(&groups[0])
		}
		_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(uid), uintptr(uid), uintptr(uid))
		_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e1 != 0 || e2 != 0 || e3 != 0 {
			err = errors.Join(err, e1, e2, e3)
		}
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: sock})
		}
		got <- answer{fd, err}
	})
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	f := os.NewFile(uintptr(a.fd), "caller")
	defer f.Close()
	fmt.Fprintf(f, "%s %s HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path,
		len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(f), nil)
	if err != nil {
		return 0, nil // turned away
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, b
}
