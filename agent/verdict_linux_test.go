package agent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
)

// judging runs an agent that judges incidents with f.
func judging(t *testing.T, f func(dir string) (session.Verdict, error)) (*Agent, *logBuffer) {
	var log logBuffer
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"), Watch: []string{t.TempDir()}, Log: zerolog.New(&log),
		Judge: func(_ context.Context, dir string) (session.Verdict, error) { return f(dir) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return a, &log
}

// TestVerdicts: the verdict on an incident is logged and kept, with its largest leaks, for a day. A failure is logged.
func TestVerdicts(t *testing.T) {
	a, log := judging(t, func(dir string) (v session.Verdict, err error) {
		if strings.HasSuffix(dir, "bad") {
			return v, errors.New("it takes more than 512 MiB of memory")
		}
		for i := range 7 {
			v.Leaks = append(v.Leaks, session.Leak{Class: fmt.Sprint("C", i), BytesPerSecond: float64(i)})
		}
		v.Headline = "Leak: " + filepath.Base(dir)
		return v, nil
	})
	a.askVerdict(&ringstore.Incident{ID: "bad", Session: "s2"})
	a.askVerdict(&ringstore.Incident{ID: "shop-1", Session: "s1"})
	wait(t, func() bool { return a.verdicts.of("s1") != nil })
	v := a.verdicts.of("s1")
	if v.Incident != "shop-1" || v.Headline != "Leak: shop-1" || len(v.Leaks) != maxLeaks || v.LeftOut != 2 ||
		v.Leaks[0].Class != "C6" {
		t.Errorf("%+v", v)
	}
	if a.verdicts.of("s2") != nil {
		t.Error("a verdict on what cannot be read")
	}
	for _, want := range []string{`"verdict":"Leak: shop-1"`, `"id":"incident-verdict"`, "`heapcam incidents show ",
		`"id":"incident-no-verdict"`, `more than 512 MiB`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in %s", want, log)
		}
	}
	old := *v
	old.Time = time.Now().Add(-verdictFor - time.Second)
	a.verdicts.put("s1", old)
	if a.verdicts.of("s1") != nil {
		t.Error("a verdict of yesterday is shown")
	}
	for i := range 2 * maxVerdicts {
		a.verdicts.put(fmt.Sprint(i), session.Verdict{Time: time.Now().Add(time.Duration(i))})
	}
	if n := len(a.verdicts.by); n != maxVerdicts || a.verdicts.of(fmt.Sprint(2*maxVerdicts-1)) == nil {
		t.Errorf("%d verdicts are kept", n)
	}
}

// TestVerdictsBudget: beyond what verdicts may take of a core incidents wait, and beyond those that may wait they are
// judged by nobody, which is logged.
func TestVerdictsBudget(t *testing.T) {
	var judged atomic.Int64
	a, log := judging(t, func(string) (session.Verdict, error) {
		judged.Add(1)
		return session.Verdict{CPUNS: uint64(2 * verdictBurst)}, nil
	})
	a.askVerdict(&ringstore.Incident{ID: "first"})
	wait(t, func() bool { return judged.Load() == 1 })
	for range maxAsked + 3 {
		a.askVerdict(&ringstore.Incident{ID: "more"})
	}
	if n := strings.Count(log.String(), `"id":"incident-no-verdict"`); n != 3 {
		t.Errorf("%d incidents too many", n)
	}
	time.Sleep(100 * time.Millisecond)
	if judged.Load() != 1 {
		t.Errorf("%d incidents were judged, though the first one took all", judged.Load())
	}
}

// TestRunningVerdicts: a running recording is judged at the interval, as long as it runs, and not before it has a
// window. What leaks is logged once; that nothing leaks does not hide the verdict on an incident.
func TestRunningVerdicts(t *testing.T) {
	a := &Agent{cfg: Config{JudgeEvery: time.Hour}}
	now := time.Now()
	young := session.Status{Session: "young", ID: "y", Phase: session.Recording, Since: now.Add(-time.Minute)}
	old := session.Status{Session: "old", ID: "o", Phase: session.Recording, Since: now.Add(-3 * time.Hour), Dir: "d"}
	older := old
	older.Session, older.ID, older.Since = "older", "p", now.Add(-4*time.Hour)
	hangs := older
	hangs.Session, hangs.StuckNS = "hangs", 1
	over := older
	over.Session, over.Phase = "over", session.Stopped
	a.ended = []session.Status{young, old, older, hangs, over}
	judged := map[string]time.Time{"gone": now}
	var got []string
	for range 4 {
		if x, ok := a.nextRunning(judged, now); ok {
			got = append(got, x.session)
		}
	}
	if fmt.Sprint(got) != "[older old]" || len(judged) != 2 {
		t.Errorf("judged %v, %v", got, judged)
	}
	if x, ok := a.nextRunning(judged, now.Add(time.Hour)); !ok || x.incident != "" || x.session != "young" {
		t.Errorf("an hour later: %+v", x)
	}
	a.cfg.JudgeEvery = 0
	if _, ok := a.nextRunning(judged, now.Add(time.Hour)); ok {
		t.Error("judged without being asked to")
	}

	leaks := true
	b, log := judging(t, func(string) (v session.Verdict, err error) {
		v.Headline = "No leak found."
		if leaks {
			v.Headline, v.Leaks = "Leak: Entry", []session.Leak{{Kind: "leak", SiteID: "a", BytesPerSecond: 1}}
		}
		return v, nil
	})
	run := task{id: "shop-1", session: "s1", at: now}
	b.judgeOne(t.Context(), &run)
	run.last = "leak a"
	b.judgeOne(t.Context(), &run)
	if n := strings.Count(log.String(), `"id":"running-verdict"`); n != 1 || b.verdicts.of("s1").Incident != "" {
		t.Errorf("%d lines: %s", n, log)
	}
	b.judgeOne(t.Context(), &task{id: "shop-1", incident: "i", session: "s1", at: now})
	leaks = false
	b.judgeOne(t.Context(), &run)
	if v := b.verdicts.of("s1"); v.Incident != "i" || len(v.Leaks) != 1 {
		t.Errorf("hidden: %+v", v)
	}
}
