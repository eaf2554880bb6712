//go:build !windows

package api

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"
)

// listen listens on a Unix socket: of mode 0600, but root's asks the kernel who calls. A socket that nobody listens on
// is replaced.
func listen(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("another agent listens on %s: stop it first, or give this one a --socket, --shm-dir "+
			"and --out of its own", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		os.Remove(path)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	mode := os.FileMode(0o600)
	if os.Geteuid() == 0 { // roles decide
		mode = 0o666
	}
	if err := os.Chmod(path, mode); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
}
