package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	attaching "github.com/heapcam/heapcam/agent/attach"
)

// TestAttachFailure: each failure to attach counts under a reason that failed begins with, so that the metric's series are there from the start.
func TestAttachFailure(t *testing.T) {
	d := newDiscovery(nil, newLog(nil, 0), nil)
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("attach: %w", attaching.ErrTimeout), "timeout"},
		{context.DeadlineExceeded, "timeout"},
		{attaching.ErrPermission, "denied"},
		{attaching.ErrDisabled, "refused"},
		{withCode(exitNoRecord, "no"), "refused"},
		{errors.New("a disk"), "other"},
	} {
		got := attachFailure(c.err)
		if _, known := d.failures()[got]; got != c.want || !known {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}
