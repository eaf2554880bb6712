package svc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"golang.org/x/sys/unix"
)

// sendWithin bounds how long a manager that does not read keeps the caller waiting.
const sendWithin = 5 * time.Second

// Kept gives the descriptors that systemd passed to this process: what an agent before had it keep. They are named by
// their FDNAME, belong to the caller, and are closed in children, which get no notice of them either. Call it once,
// before anything else is started.
func Kept() []*os.File {
	defer os.Unsetenv("LISTEN_PIDFDID")
	return activation.Files(true)
}

// Store says whether there is a manager that may keep descriptors. Whether it keeps any (FileDescriptorStoreMax=) it
// does not say.
func Store() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Keep hands the manager a copy of f to keep over the end of this process, by name. It keeps the open file
// description, with its locks.
func Keep(name string, f *os.File) error {
	// Without FDPOLL=0 systemd would drop what it can poll and sees hung up; a ring is neither.
	return send(name, "FDSTORE=1\nFDNAME="+name+"\nFDPOLL=0\n", unix.UnixRights(int(f.Fd())))
}

// Drop has the manager close what it keeps by that name.
func Drop(name string) error { return send(name, "FDSTOREREMOVE=1\nFDNAME="+name+"\n", nil) }

func send(name, state string, rights []byte) error {
	if !legalName(name) {
		return fmt.Errorf("systemd takes no descriptor named %.300q", name)
	}
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return ErrUnsupported
	}
	if err := sendTo(socket, []byte(state), rights); err != nil {
		return fmt.Errorf("NOTIFY_SOCKET=%s: %w", socket, err)
	}
	return nil
}

// sendTo is not package net's, which sends no descriptors on a datagram socket that is connected.
func sendTo(socket string, b, rights []byte) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(int64(sendWithin))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait); err != nil {
		return err
	}
	for {
		if err := unix.Sendmsg(fd, b, rights, &unix.SockaddrUnix{Name: socket}, 0); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// legalName is what fdname_is_valid of systemd wants; anything else could add lines to a message.
func legalName(s string) bool {
	bad := func(c rune) bool { return c < ' ' || c >= 127 || c == ':' }
	return s != "" && len(s) <= 255 && strings.IndexFunc(s, bad) < 0
}
