package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"github.com/Microsoft/go-winio"
)

// pipeRights: the system, administrators and who started the agent may do all; nobody else, and nobody from the
// network.
const pipeRights = "D:P(D;;GA;;;NU)(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;OW)"

// listen listens on a named pipe (\\.\pipe\…), the local socket of Windows.
func listen(path string) (net.Listener, error) {
	// the flag for a first instance says so too, but not everywhere
	if c, err := dial(context.Background(), path); err == nil {
		c.Close()
		return nil, fmt.Errorf("another agent listens on %s", path)
	}
	l, err := winio.ListenPipe(path, &winio.PipeConfig{SecurityDescriptor: pipeRights})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("another agent listens on %s: %w", path, err)
	}
	return l, err
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	return winio.DialPipeContext(ctx, path)
}
