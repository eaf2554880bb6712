//go:build !windows

package svc

import (
	"context"
	"io"
)

// Run calls f: only Windows has a control manager.
func Run(ctx context.Context, f func(ctx context.Context) error) error {
	return f(ctx)
}

// Log gives fallback: only Windows has an event log. Under systemd stderr is written to the journal.
func Log(fallback io.Writer) io.Writer { return fallback }
