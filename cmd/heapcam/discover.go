package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	attaching "github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/config"
)

// discovery attaches to each JVM that comes, as the rules say, and remembers why others are not recorded.
type discovery struct {
	attach api.Attacher
	log    zerolog.Logger
	decide func(config.JVM) (options, why string, record bool)
	wait   func() (api.Other, bool) // why nothing is attached to for now
	adopt  func(context.Context, jvms.JVM)
	// detached says who had the agent detach from a JVM that still runs; "": nobody. It is left alone until it ends or is attached to by hand.
	detached func(jvms.JVM) string

	mu     sync.Mutex
	ctx    context.Context
	others map[string]api.Other // by id
	failed map[string]uint64    // attempts to attach, by reason
	slots  chan struct{}
}

const (
	attachAtOnce = 4 // JVMs that are attached to at a time: each costs it a stop
	lookAgain    = 100 * time.Millisecond
	lookFor      = 3 * time.Second // a JVM tells its collector some ten milliseconds after its start; one without PerfData never
	attachLimit  = 30 * time.Second
)

func newDiscovery(attach api.Attacher, log zerolog.Logger, decide func(config.JVM) (string, string, bool)) *discovery {
	return &discovery{attach: attach, log: log, decide: decide, others: map[string]api.Other{}, slots: make(chan struct{}, attachAtOnce),
		failed: map[string]uint64{"denied": 0, "refused": 0, "timeout": 0, "other": 0}}
}

// run watches until ctx is done. recorded says whether a JVM's recording goes on.
func (d *discovery) run(ctx context.Context, recorded func(jvms.JVM) bool) error {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	return jvms.Watch(ctx, func(added, gone []jvms.JVM) {
		d.mu.Lock()
		for _, j := range gone {
			delete(d.others, j.ID)
		}
		d.mu.Unlock()
		for _, j := range added {
			wg.Go(func() { d.one(ctx, j, recorded) })
		}
	})
}

// again decides anew on the JVMs that are not recorded.
func (d *discovery) again(recorded func(jvms.JVM) bool) {
	d.mu.Lock()
	ctx, others := d.ctx, d.others
	if ctx == nil { // nothing is discovered
		d.mu.Unlock()
		return
	}
	d.others = map[string]api.Other{}
	d.mu.Unlock()
	for _, o := range others {
		if j, err := jvms.Look(o.PID); err == nil && j.ID == o.ID {
			go d.one(ctx, j, recorded)
		}
	}
}

func (d *discovery) one(ctx context.Context, j jvms.JVM, recorded func(jvms.JVM) bool) {
	v := jvms.Doctor(j)
	// One that loads a probe by its own options has it before it has PerfData or a heap, and a ring only then: two probes are one too many. (What
	// its command line tells of the collector comes too early.)
	unready := func() bool {
		return (!j.PerfData || j.Collector == "" || j.Name == "") && v.Problem != jvms.NoRights || j.Probe && !j.Recorded
	}
	for end := time.Now().Add(lookFor); unready() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookAgain):
		}
		now, err := jvms.Look(j.PID)
		if err != nil || now.ID != j.ID {
			return
		}
		j, v = now, jvms.Doctor(now)
	}
	options, why, record := d.decide(ruleJVM(j))
	switch {
	case !record:
		d.note(j, api.Other{Ignored: true, Why: "ignored", Reason: why})
		return
	case recorded(j):
		return
	case d.detachedBy(j) != "":
		d.note(j, api.Other{Why: "detached", Reason: "detached by " + d.detachedBy(j), Remedy: fmt.Sprintf("`heapcam attach %d` records it again", j.PID)})
		return
	case j.Recorded: // it has a probe by its own options, or by an agent before us
		d.awaitOwn(ctx, j, recorded)
		return
	case !v.Recordable && !(v.Problem == jvms.UntestedMajor && strings.Contains(options, "allow_untested=1")):
		d.note(j, api.Other{Why: string(v.Problem), Reason: v.Reason, Remedy: v.Remedy})
		d.awaitOwn(ctx, j, recorded)
		return
	}
	for noted := ""; ; {
		why, wait := d.wait()
		if !wait {
			break
		}
		if noted != why.Why {
			d.note(j, why)
			noted = why.Why
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookFor / 3):
		}
		if now, err := jvms.Look(j.PID); err != nil || now.ID != j.ID {
			return
		}
		d.mu.Lock()
		if _, wait := d.wait(); !wait {
			delete(d.others, j.ID)
		}
		d.mu.Unlock()
	}
	for try := 0; d.try(ctx, j, options, recorded) && try < len(tryAgain); try++ { // a JVM on a busy host, or a stopped one, may just not have answered
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryAgain[try]):
		}
		now, err := jvms.Look(j.PID)
		if err != nil || now.ID != j.ID {
			return
		}
		if now.Recorded && !recorded(now) { // it has answered meanwhile
			d.adopt(ctx, now)
		}
		if recorded(now) {
			d.mu.Lock()
			delete(d.others, j.ID)
			d.mu.Unlock()
			return
		}
	}
}

// awaitOwn records a JVM once it has a ring by its own doing. A young one may not have come so far; one that was detached from never will.
func (d *discovery) awaitOwn(ctx context.Context, j jvms.JVM, recorded func(jvms.JVM) bool) {
	for range ownLooks {
		now, err := jvms.Look(j.PID)
		if err != nil || now.ID != j.ID {
			return
		}
		if now.Recorded && !recorded(now) {
			d.adopt(ctx, now)
		}
		if recorded(now) {
			d.mu.Lock()
			delete(d.others, j.ID)
			d.mu.Unlock()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookFor):
		}
	}
}

const ownLooks = 5

func (d *discovery) detachedBy(j jvms.JVM) string {
	if d.detached == nil {
		return ""
	}
	return d.detached(j)
}

// tryAgain are the times after which a JVM that did not answer is asked again.
var tryAgain = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// try attaches to j, or notes why it could not; again says that it may be worth while later.
func (d *discovery) try(ctx context.Context, j jvms.JVM, options string, recorded func(jvms.JVM) bool) (again bool) {
	select {
	case <-ctx.Done():
		return false
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	}
	within, stop := context.WithTimeout(ctx, attachLimit)
	defer stop()
	_, err := d.attach(within, api.AttachRequest{JVM: strconv.Itoa(j.PID), Options: options})
	if err == nil {
		d.mu.Lock()
		delete(d.others, j.ID)
		d.mu.Unlock()
		return false
	}
	if ctx.Err() == nil {
		var e *codeError
		if errors.As(err, &e) && e.code == exitUsage && recorded(j) { // it came by itself meanwhile
			return false
		}
		if _, gone := jvms.Look(j.PID); gone != nil {
			return false
		}
		why := attachFailure(err)
		d.mu.Lock()
		d.failed[why]++
		d.mu.Unlock()
		d.note(j, api.Other{Why: "failed", Reason: err.Error(), Remedy: "start it with the option that `heapcam doctor --java-tool-options` prints"})
	}
	return errors.Is(err, attaching.ErrTimeout) || errors.Is(err, agent.ErrNoRing) || errors.Is(err, context.DeadlineExceeded)
}

func (d *discovery) note(j jvms.JVM, o api.Other) {
	o.ID, o.PID, o.UID, o.Name = j.ID, j.PID, j.UID, j.Name
	d.mu.Lock()
	d.others[j.ID] = o
	d.mu.Unlock()
	if o.Ignored {
		d.log.Debug().Int("pid", j.PID).Str("name", j.Name).Msg("ignored: " + o.Reason)
		return
	}
	d.log.Warn().Int("pid", j.PID).Str("name", j.Name).Str("remedy", o.Remedy).Msg("not recorded: " + o.Reason)
}

// attachFailure names why attaching failed, by one word of a closed set: those that failed begins with.
func attachFailure(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, attaching.ErrTimeout):
		return "timeout"
	case exitCode(err) == exitDenied:
		return "denied"
	case exitCode(err) == exitNoRecord:
		return "refused"
	}
	return "other"
}

// failures counts attempts to attach that failed, by reason.
func (d *discovery) failures() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.failed)
}

// list gives the JVMs that are not recorded.
func (d *discovery) list() (out []api.Other) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.others {
		out = append(out, o)
	}
	return out
}

// ruleJVM gives what rules decide on.
func ruleJVM(j jvms.JVM) config.JVM {
	c := config.JVM{User: strconv.Itoa(j.UID), Main: j.Name, Container: j.Apart, Flags: j.Args, Cgroup: jvms.Cgroup(j.PID)}
	if u, err := user.LookupId(c.User); err == nil {
		c.User = u.Username
	}
	for p := c.Cgroup; p != "/" && p != "." && p != ""; p = path.Dir(p) {
		if b := path.Base(p); strings.HasSuffix(b, ".service") || strings.HasSuffix(b, ".scope") {
			c.Unit = b
			break
		}
	}
	return c
}
