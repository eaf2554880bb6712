package svc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if os.Getenv("HEAPCAM_TEST_KEPT") == "" {
		os.Exit(m.Run())
	}
	for _, f := range Stored() {
		b, _ := io.ReadAll(f)
		flags, _ := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		fmt.Printf("%s: %s, close on exec %v\n", f.Name(), b, flags&unix.FD_CLOEXEC != 0)
	}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "LISTEN_") {
			fmt.Println(e)
		}
	}
}

// TestKept: a process takes the descriptors that systemd means for it, by their names, and hides them from its
// children.
func TestKept(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var files []*os.File
	for _, s := range []string{"one", "two"} {
		path := filepath.Join(t.TempDir(), s)
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	for pid, want := range map[string]string{
		"$$": "heapcam-1-2-x: one, close on exec true\nstored: two, close on exec true\n",
		"1":  "", "": "", "x": "",
	} {
		for _, f := range files {
			f.Seek(0, io.SeekStart)
		}
		c := exec.Command("/bin/sh", "-c", `LISTEN_PID=`+pid+` exec "$0"`, exe)
		c.Env = append(os.Environ(), "HEAPCAM_TEST_KEPT=1", "LISTEN_FDS="+strconv.Itoa(len(files)),
			"LISTEN_FDNAMES=heapcam-1-2-x:stored", "LISTEN_PIDFDID=7")
		c.ExtraFiles = files
		if out, err := c.Output(); err != nil || string(out) != want {
			t.Errorf("LISTEN_PID=%s: %v %q, want %q", pid, err, out, want)
		}
	}
}

// TestKeep speaks to a socket as systemd would give it.
func TestKeep(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "notify"), fmt.Sprintf("@heapcam-test-%d", os.Getpid())} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		t.Setenv("NOTIFY_SOCKET", path)
		read := func() (string, []int) {
			b, oob := make([]byte, 4096), make([]byte, 4096)
			n, k, _, _, err := l.ReadMsgUnix(b, oob)
			if err != nil {
				t.Fatal(err)
			}
			var fds []int
			msgs, _ := unix.ParseSocketControlMessage(oob[:k])
			for _, m := range msgs {
				got, _ := unix.ParseUnixRights(&m)
				fds = append(fds, got...)
			}
			return string(b[:n]), fds
		}
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, bad := range []string{"", "a:b", "a\nMAINPID=1", "a b\x7f", "ü", strings.Repeat("a", 256)} {
			if Keep(bad, f) == nil || Drop(bad) == nil {
				t.Errorf("systemd got the name %q", bad)
			}
		}
		if err := Keep("heapcam-1-2-x", f); err != nil {
			t.Fatal(err)
		}
		s, fds := read()
		if s != "FDSTORE=1\nFDNAME=heapcam-1-2-x\nFDPOLL=0\n" || len(fds) != 1 {
			t.Fatalf("%q, descriptors %v", s, fds)
		}
		var ours, theirs unix.Stat_t
		unix.Fstat(int(f.Fd()), &ours)
		unix.Fstat(fds[0], &theirs)
		unix.Close(fds[0])
		if ours.Ino != theirs.Ino || ours.Dev != theirs.Dev {
			t.Error("another file was handed over")
		}
		if err := Drop("heapcam-1-2-x"); err != nil {
			t.Fatal(err)
		}
		if s, fds := read(); s != "FDSTOREREMOVE=1\nFDNAME=heapcam-1-2-x\n" || len(fds) != 0 {
			t.Errorf("%q, descriptors %v", s, fds)
		}
		l.Close()
		if err := Keep("heapcam-1-2-x", f); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("nobody listens: %v", err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if Store() || !errors.Is(Drop("x"), ErrUnsupported) {
		t.Error("there is no manager")
	}
}
