package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/site"
)

// What judging an incident may take. Beyond it the process is ended, and there is no verdict.
const (
	judgeCPU    = time.Minute
	judgeTime   = 5 * time.Minute
	judgeMemory = 512 << 20
	judgeOutput = 8 << 20
	judgePoll   = 100 * time.Millisecond
)

// judge says what leaks in the recording in a folder. A process of its own reads it: whatever that takes, the memory
// of the agent, and with it recording, is not affected.
func judge(ctx context.Context, dir string) (v session.Verdict, err error) {
	ctx, stop := context.WithTimeout(ctx, judgeTime)
	defer stop()
	exe, err := ownProgram()
	if err != nil {
		return v, err
	}
	c := exec.CommandContext(ctx, exe, "leaks", "--json", "--", dir)
	c.Args[0], c.Dir = os.Args[0], "/"
	c.Env = append(os.Environ(), "GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%d", judgeMemory/4*3), "GOGC=50",
		"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "LISTEN_FDS=")
	out, said := &atMost{most: judgeOutput}, &atMost{most: 4 << 10}
	c.Stdout, c.Stderr = out, said
	childOf(c)
	runtime.LockOSThread() // the system ends the process with the thread that started it
	defer runtime.UnlockOSThread()
	if err := c.Start(); err != nil {
		return v, err
	}
	yield(c.Process.Pid)
	var limit error
	watched := make(chan struct{})
	watch, ended := context.WithCancel(ctx)
	go func() {
		defer close(watched)
		if limit = overLimit(watch, c.Process.Pid); limit != nil {
			_ = c.Process.Kill()
		}
	}()
	err = c.Wait()
	ended()
	<-watched
	v.CPUNS = uint64(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
	if judgedRest(err, out.Len()) {
		err = nil
	}
	if limit != nil || err != nil {
		return v, cmp.Or(limit, ctx.Err(), said.reason(err))
	}
	var l leak.Report
	if err := json.Unmarshal(out.Bytes(), &l); err != nil {
		return v, fmt.Errorf("the output of heapcam leaks: %w", err)
	}
	v.Headline = string(l.Headline)
	if g := l.Garbage; g != nil {
		v.Garbage = &session.Garbage{GC: g.GC, Time: g.Time, Old: g.Old, Dead: g.Unreached + g.Weak}
	}
	for i := range l.Verdicts {
		x := &l.Verdicts[i]
		stack := sites.JoinStack(x.Site)
		v.Leaks = append(v.Leaks, session.Leak{Kind: x.Kind, Class: string(ui.Name(x.Class)), SiteID: x.SiteID,
			BytesPerSecond: x.BytesPerSecond, OnsetFrom: x.OnsetFrom, OnsetTo: x.OnsetTo, Confidence: x.Confidence,
			GrownBytes: x.GrownBytes, StackID: site.StackID(stack), Stack: stack, Sentence: string(x.Sentence)})
	}
	return v, nil
}

// judgedRest says that the process set aside a file of another recording, and judged the rest: it ends with
// exitDamaged, and has written its verdict.
func judgedRest(err error, written int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == exitDamaged && written > 0
}

// overLimit waits until the process takes more than it may, or ctx is done.
func overLimit(ctx context.Context, pid int) error {
	t := time.NewTicker(judgePoll)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		cpu, memory, ok := taken(pid)
		switch {
		case ok && cpu > judgeCPU:
			return fmt.Errorf("it takes more than %s of CPU time", judgeCPU)
		case ok && memory > judgeMemory:
			return fmt.Errorf("it takes more than %s of memory", ui.Bytes(int64(judgeMemory)))
		}
	}
}

// atMost keeps the first bytes that are written to it.
type atMost struct {
	bytes.Buffer
	most int
}

func (a *atMost) Write(b []byte) (int, error) {
	a.Buffer.Write(b[:min(len(b), max(0, a.most-a.Len()))])
	return len(b), nil
}

// reason is why a process failed: its last line, if there is one.
func (a *atMost) reason(err error) error {
	lines := strings.Split(strings.TrimSpace(a.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return errors.New(strings.TrimPrefix(last, "heapcam: "))
	}
	return err
}
