//go:build !windows

package svc

import (
	"context"
	"io"
)

// Run runs f as the service that a control manager started; without one, as here, it only calls f.
func Run(ctx context.Context, f func(ctx context.Context) error) error {
	return f(ctx)
}

// Log gives where a service that a control manager started logs to: fallback, as there is none here. Under systemd
// that is the journal.
func Log(fallback io.Writer) io.Writer { return fallback }
