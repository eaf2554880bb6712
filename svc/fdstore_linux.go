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

// sendWithin is how long a caller waits at most for a manager that does not read.
const sendWithin = 5 * time.Second

// Stored gives the descriptors that systemd passed to this process. An earlier agent stored them (Keep). Their names
// are their FDNAME. They belong to the caller, and children do not inherit them. Call it once, before anything else
// starts.
func Stored() []*os.File {
	defer func() { _ = os.Unsetenv("LISTEN_PIDFDID") }()
	return activation.Files(true)
}

// Store says whether a manager runs that may store descriptors. Its setting FileDescriptorStoreMax= decides whether it
// does.
func Store() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Keep gives the manager a copy of f to store under a name when this process ends. The copy is of the open file
// description, with its locks.
func Keep(name string, f *os.File) error {
	// Without FDPOLL=0 systemd would poll the descriptor and drop it when it is hung up. A ring cannot be polled.
	return send(name, "FDSTORE=1\nFDNAME="+name+"\nFDPOLL=0\n", unix.UnixRights(int(f.Fd())))
}

// Drop makes the manager close the descriptors that it stores under that name.
func Drop(name string) error { return send(name, "FDSTOREREMOVE=1\nFDNAME="+name+"\n", nil) }

func send(name, state string, rights []byte) error {
	if !legalName(name) {
		return fmt.Errorf("systemd does not accept %.300q as the name of a descriptor", name)
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

// sendTo replaces package net, which sends no descriptors on a connected datagram socket.
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

// legalName says what fdname_is_valid of systemd accepts. Another name could add lines to a message.
func legalName(s string) bool {
	bad := func(c rune) bool { return c < ' ' || c >= 127 || c == ':' }
	return s != "" && len(s) <= 255 && strings.IndexFunc(s, bad) < 0
}
