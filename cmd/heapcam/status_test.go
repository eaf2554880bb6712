package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// TestRemarks: status tells what an operator should know of a recording, and nothing of one that is well.
func TestRemarks(t *testing.T) {
	well := session.Status{ID: "Shop-7-x", Phase: session.Recording, Depth: "survivors", DepthAsked: "survivors",
		DepthWhy: "depth survivors: there is room in the budget", GuaranteeMet: true}
	if r := remarks(&well); len(r) != 0 {
		t.Errorf("of one that is well: %q", r)
	}
	for want, change := range map[string]func(*session.Status){
		"depth survivors was requested. In force: depth samples, sampling every 1024 KiB. Reason: the budget of " +
			"2 % is spent": func(s *session.Status) {
			s.Depth, s.DepthWhy = "samples", "depth samples, sampling every 1024 KiB: the budget of 2 % is spent"
		},
		"depth survivors was requested. In force: depth samples, sampling every 32.0 MiB. Reason: the budget of " +
			"1 % is spent": func(s *session.Status) {
			s.Depth, s.DepthWhy, s.Interval = "samples", "depth samples: the budget of 1 % is spent", 32<<20
		},
		"paused: asked for by user shop": func(s *session.Status) {
			s.Phase, s.Reason = session.Paused, "asked for by user shop"
		},
		"restart this JVM to renew it": func(s *session.Status) { s.Renew, s.Probe = true, "0.1" },
		"uses allocation sampling":     func(s *session.Status) { s.NoSites = true },
		"set --max-trace-size 2.0 GiB or more": func(s *session.Status) {
			s.NeededTraceSize, s.GuaranteeMet = 2<<30,
				false
		},
		"the recording is too small":           func(s *session.Status) { s.GuaranteeMet = false },
		"a collection may have to wait":        func(s *session.Status) { s.RingOnDisk = true },
		"writing to the disk failed: no space": func(s *session.Status) { s.StoreError = "no space" },
		"the recording continues within 1.0 MiB": func(s *session.Status) {
			s.DiskFull, s.TraceLimit,
				s.GuaranteeMet = true, 1<<20, false
		},
		"ZGC can not be recorded": func(s *session.Status) {
			s.Phase, s.Reason, s.Renew = session.Refused,
				"ZGC can not be recorded", true
		},
		"`heapcam pull --incident Shop-7-x-1 ": func(s *session.Status) {
			s.Phase, s.Incident = session.KilledPhase, "Shop-7-x-1"
		},
		"the disk has not answered for 7s: nothing is written": func(s *session.Status) {
			s.StoreError, s.StuckNS = "the disk has not answered for 7s", 7e9
		},
		"taken over from the spool folder: its pid is": func(s *session.Status) { s.Spool = true },
	} {
		s := well
		change(&s)
		r := remarks(&s)
		if len(r) != 1 || !strings.HasPrefix(string(r[0]), "Shop-7-x: ") || !strings.Contains(string(r[0]), want) {
			t.Errorf("want one line of %q: %q", want, r)
		}
	}
}

// TestUntilStuck waits for work that makes progress, and abandons work that does not.
func TestUntilStuck(t *testing.T) {
	failed := errors.New("failed")
	err, answered := untilStuck(time.Minute, func(tick func()) error {
		for range 1000 {
			tick()
		}
		return failed
	})
	if !answered || err != failed {
		t.Errorf("%v, %v", err, answered)
	}
	hang := make(chan struct{})
	defer close(hang)
	err, answered = untilStuck(time.Millisecond, func(tick func()) error {
		tick()
		<-hang
		return failed
	})
	if answered || err != nil {
		t.Errorf("%v, %v", err, answered)
	}
}
