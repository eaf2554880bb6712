package jvms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/config"
)

// TestAttachFailure: each failure to attach counts under a reason that failed begins with, so that the metric's series
// are there from the start.
func TestAttachFailure(t *testing.T) {
	d := NewDiscovery(DiscoveryConfig{})
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("attach: %w", attach.ErrTimeout), "timeout"},
		{context.DeadlineExceeded, "timeout"},
		{attach.ErrPermission, "denied"},
		{Errorf(Denied, "no"), "denied"},
		{attach.ErrDisabled, "refused"},
		{Errorf(Unrecordable, "no"), "refused"},
		{Errorf(NoRing, "no"), "refused"},
		{errors.New("a disk"), "other"},
	} {
		got := attachFailure(c.err)
		if _, known := d.Failures()[got]; got != c.want || !known {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

// TestManyUnrecorded: a user who starts JVMs that are not recorded, one after the other, does not fill the log, and
// does not keep the JVMs of others out of it.
func TestManyUnrecorded(t *testing.T) {
	var log strings.Builder
	d := NewDiscovery(DiscoveryConfig{Log: zerolog.New(&log)})
	for i := range 10 * linesAMinute {
		d.note(JVM{PID: i, ID: ID(i, 1), UID: 61001}, Unrecorded{Why: "failed", Reason: "no"})
	}
	d.note(JVM{PID: 1, ID: ID(1, 2), UID: 61002, Name: "other"}, Unrecorded{Why: "failed", Reason: "no"})
	if n := strings.Count(log.String(), "\n"); n != linesAMinute+2 || !strings.Contains(log.String(), `"other"`) {
		t.Errorf("%d lines", n)
	}
	if n := len(d.Unrecorded()); n != 10*linesAMinute+1 {
		t.Errorf("%d JVMs are listed", n)
	}
}

// TestAttachToTheOneDecidedOn: what the rules decided on, and no other process that has its pid by then, is attached
// to.
func TestAttachToTheOneDecidedOn(t *testing.T) {
	j := JVM{PID: 4711, StartTicks: 99, ID: ID(4711, 99), Name: "x", PerfData: true, Collector: "G1", Major: 17,
		readable: true, shmFree: -1}
	var attached []JVM
	d := NewDiscovery(DiscoveryConfig{
		Attach:     func(_ context.Context, j JVM, _ string) error { attached = append(attached, j); return nil },
		Decide:     func(config.JVM) (string, string, bool) { return "", "", true },
		Wait:       func() (Unrecorded, bool) { return Unrecorded{}, false },
		Recorded:   func(JVM) bool { return false },
		DetachedBy: func(JVM) string { return "" },
	})
	d.Consider(context.Background(), j)
	if len(attached) != 1 || attached[0].ID != j.ID {
		t.Errorf("attached to %v", attached)
	}
}

// TestRulesChangeWhileWaiting: a JVM that rules exclude while recording is switched off on the host is not recorded
// once it is switched on again.
func TestRulesChangeWhileWaiting(t *testing.T) {
	j := JVM{PID: 4711, StartTicks: 99, ID: ID(4711, 99), Name: "x", PerfData: true, Collector: "G1", Major: 17,
		readable: true, shmFree: -1}
	excluded, off, attached := false, true, 0
	d := NewDiscovery(DiscoveryConfig{
		Attach: func(context.Context, JVM, string) error { attached++; return nil },
		Decide: func(config.JVM) (string, string, bool) { return "", "excluded", !excluded },
		Wait: func() (Unrecorded, bool) {
			was := off
			off, excluded = false, true // the reload comes while this JVM waits
			return Unrecorded{Why: "off", Reason: "switched off"}, was
		},
		Recorded:   func(JVM) bool { return false },
		DetachedBy: func(JVM) string { return "" },
	})
	d.same = func(j JVM) (JVM, bool) { return j, true }
	d.Consider(context.Background(), j)
	if others := d.Unrecorded(); attached != 0 || len(others) != 1 || others[0].Reason != "excluded" {
		t.Errorf("attached %d times; not recorded: %+v", attached, others)
	}
}
