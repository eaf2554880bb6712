package jvms

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/resource"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/trace"
)

const (
	attachAtOnce = 4 // JVMs that are attached to at a time: each costs it a stop
	pollEvery    = 100 * time.Millisecond
	readyWithin  = 3 * time.Second // a JVM names its collector some 10 ms after its start; one without PerfData never
	attachLimit  = 30 * time.Second
	ownPolls     = 5   // how often a JVM with a probe by its own options is looked at, readyWithin apart
	linesAMinute = 100 // of log, for the JVMs of one user: starting JVMs must not fill it
)

// tryAgain are the times after which a JVM that did not answer is asked again.
var tryAgain = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// Unrecorded is a JVM that is not recorded, and why.
type Unrecorded struct {
	ID      string
	PID     int
	UID     int
	Name    string
	Ignored bool   // a rule says so
	Why     string // one word of a small set, for programs
	Reason  string
	Remedy  string
}

// DiscoveryConfig is what a Discovery asks and what it lets do. All functions may be called at once.
type DiscoveryConfig struct {
	Log zerolog.Logger
	// Attach has a JVM recorded, with options of the probe. Errors: *RecordError, package attach's.
	Attach func(ctx context.Context, j JVM, options string) error
	// Decide says by the rules whether and how a JVM is recorded.
	Decide func(config.JVM) (options, why string, record bool)
	// Wait says whether attaching has to wait, and why.
	Wait func() (Unrecorded, bool)
	// TakeOver waits for the ring of a JVM that has a probe by its own options.
	TakeOver func(context.Context, JVM)
	// Recorded says whether a JVM is being recorded.
	Recorded func(JVM) bool
	// DetachedBy says who had the agent detach from a JVM that still runs; "": nobody. It is left alone until it ends
	// or is attached to by hand.
	DetachedBy func(JVM) string
	// Pod gives what the API server of Kubernetes says of a pod; nil: it is not asked.
	Pod func(uid string) map[string]string
}

// Discovery attaches to each JVM that starts, as the rules say, and remembers why others are not recorded.
type Discovery struct {
	DiscoveryConfig
	slots chan struct{}
	same  func(JVM) (JVM, bool) // inspects a JVM again; false: it has ended

	mu     sync.Mutex
	ctx    context.Context       // Run's; nil: nothing is discovered
	others map[string]Unrecorded // by id
	failed map[string]uint64     // attempts to attach, by reason
	minute time.Time             // since when lines counts
	lines  map[int]int           // of log, by user
}

// NewDiscovery gives a Discovery; Run starts it.
func NewDiscovery(c DiscoveryConfig) *Discovery {
	return &Discovery{
		DiscoveryConfig: c, same: same, slots: make(chan struct{}, attachAtOnce), others: map[string]Unrecorded{},
		failed: map[string]uint64{"denied": 0, "refused": 0, "timeout": 0, "other": 0},
	}
}

// Run watches until ctx is done.
func (d *Discovery) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	return Watch(ctx, func(added, ended []JVM) {
		for _, j := range ended {
			d.forget(j)
		}
		for _, j := range added {
			wg.Go(func() { d.Consider(ctx, j) })
		}
	})
}

// Reconsider decides again on the JVMs that are not recorded, after the rules have changed.
func (d *Discovery) Reconsider() {
	d.mu.Lock()
	ctx, others := d.ctx, d.others
	if ctx == nil {
		d.mu.Unlock()
		return
	}
	d.others = map[string]Unrecorded{}
	d.mu.Unlock()
	for _, o := range others {
		if j, err := Inspect(o.PID); err == nil && j.ID == o.ID {
			go d.Consider(ctx, j)
		}
	}
}

// Consider decides on one JVM, and has it recorded or notes why it is not.
func (d *Discovery) Consider(ctx context.Context, j JVM) {
	j, v, ok := ready(ctx, j)
	if !ok {
		return
	}
	options, why, record := d.Decide(ruleJVM(j, d.Pod))
	switch {
	case !record:
		d.note(j, Unrecorded{Ignored: true, Why: "ignored", Reason: why})
		return
	case d.Recorded(j):
		return
	}
	if by := d.DetachedBy(j); by != "" {
		d.note(j, Unrecorded{
			Why: "detached", Reason: "detached by " + by,
			Remedy: fmt.Sprintf("run `heapcam attach %d` to record it again", j.PID),
		})
		return
	}
	untested := v.Problem == UntestedMajor && strings.Contains(options, "allow_untested=1")
	switch {
	case j.Recorded: // it has a probe by its own options, or by an agent before us
		d.awaitOwn(ctx, j)
	case !v.Recordable && !untested:
		d.note(j, Unrecorded{Why: string(v.Problem), Reason: v.Reason, Remedy: v.Remedy})
		d.awaitOwn(ctx, j)
	default:
		switch ok, waited := d.awaitTurn(ctx, j); {
		case ok && waited: // the rules may have changed meanwhile
			d.Consider(ctx, j)
		case ok:
			d.attachAgain(ctx, j, options)
		}
	}
}

// ready waits until a JVM that has just started can be decided on; ok is false where it ended.
func ready(ctx context.Context, j JVM) (now JVM, v Verdict, ok bool) {
	v = Doctor(j)
	// One that loads a probe by its own options has it before it has PerfData or a heap, and a ring only then: two
	// probes are one too many. (Its command line names the collector too early.)
	unready := func() bool {
		unnamed := !j.PerfData || j.Collector == "" || j.Name == ""
		return unnamed && v.Problem != NoRights && v.Problem != NotHotSpot || j.Probe && !j.Recorded
	}
	for end := time.Now().Add(readyWithin); unready() && time.Now().Before(end); {
		if !sleep(ctx, pollEvery) {
			return j, v, false
		}
		now, still := same(j)
		if !still {
			return j, v, false
		}
		j, v = now, Doctor(now)
	}
	return j, v, true
}

// same inspects a JVM again; false: it has ended.
func same(j JVM) (JVM, bool) {
	now, err := Inspect(j.PID)
	return now, err == nil && now.ID == j.ID
}

// sleep says whether ctx was not done meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// awaitTurn waits as long as nothing is attached to. ok is false if the JVM has ended.
func (d *Discovery) awaitTurn(ctx context.Context, j JVM) (ok, waited bool) {
	for noted := ""; ; {
		why, wait := d.Wait()
		if !wait {
			if noted != "" {
				d.forget(j)
			}
			return true, noted != ""
		}
		if noted != why.Why {
			d.note(j, why)
			noted = why.Why
		}
		if !sleep(ctx, readyWithin/3) {
			return false, true
		}
		if _, still := d.same(j); !still {
			return false, true
		}
	}
}

// attachAgain attaches to a JVM, several times if it does not answer: one on a busy host, or a stopped one, may just
// not have answered.
func (d *Discovery) attachAgain(ctx context.Context, j JVM, options string) {
	for try := 0; d.try(ctx, j, options) && try < len(tryAgain); try++ {
		if !sleep(ctx, tryAgain[try]) {
			return
		}
		if ended, recorded := d.own(ctx, j); ended || recorded { // it may have answered meanwhile
			return
		}
	}
}

// awaitOwn records a JVM once it has a ring by its own doing. A young one may not have come so far; one that was
// detached from never will.
func (d *Discovery) awaitOwn(ctx context.Context, j JVM) {
	for n := range ownPolls {
		if ended, recorded := d.own(ctx, j); ended || recorded {
			return
		}
		if now, still := same(j); n == 0 && still && now.ringDeleted {
			d.note(j, Unrecorded{
				Why: "ring deleted", Reason: "its shared ring was deleted, as systemd-logind does when a user logs out",
				Remedy: "restart the JVM; to prevent this, set RemoveIPC=no in /etc/systemd/logind.conf",
			})
		}
		if !sleep(ctx, readyWithin) {
			return
		}
	}
}

// own takes over the ring that a JVM has by now, if any.
func (d *Discovery) own(ctx context.Context, j JVM) (ended, recorded bool) {
	now, still := same(j)
	if !still {
		return true, false
	}
	if now.Recorded && !d.Recorded(now) {
		d.TakeOver(ctx, now)
	}
	if d.Recorded(now) {
		d.forget(j)
		return false, true
	}
	return false, false
}

// try attaches to j, or notes why it could not; again says that it may be worth while later.
func (d *Discovery) try(ctx context.Context, j JVM, options string) (again bool) {
	select {
	case <-ctx.Done():
		return false
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	}
	within, stop := context.WithTimeout(ctx, attachLimit)
	defer stop()
	err := d.Attach(within, j, options)
	if err == nil {
		d.forget(j)
		return false
	}
	if ctx.Err() == nil {
		if ObstacleOf(err) == Already && d.Recorded(j) { // it came by itself meanwhile
			return false
		}
		if _, still := same(j); !still {
			return false
		}
		d.mu.Lock()
		d.failed[attachFailure(err)]++
		d.mu.Unlock()
		d.note(j, Unrecorded{
			Why: "failed", Reason: err.Error(),
			Remedy: "start the JVM with the option that `heapcam doctor --java-tool-options` prints",
		})
	}
	return errors.Is(err, attach.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || ObstacleOf(err) == NoRing
}

func (d *Discovery) forget(j JVM) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.others, j.ID)
}

func (d *Discovery) note(j JVM, o Unrecorded) {
	o.ID, o.PID, o.UID, o.Name = j.ID, j.PID, j.UID, j.Name
	d.mu.Lock()
	d.others[j.ID] = o
	lines := d.line(j.UID, time.Now())
	d.mu.Unlock()
	switch {
	case o.Ignored:
		logs.Write(&d.Log, logs.JVMIgnored, logs.JVM.Of(j.Name), logs.PID.Of(j.PID), logs.Cause.Of(o.Reason))
	case lines < linesAMinute:
		logs.Write(&d.Log, logs.JVMNotRecorded, logs.JVM.Of(j.Name), logs.PID.Of(j.PID), logs.Cause.Of(o.Reason),
			logs.Remedy.Of(o.Remedy))
	case lines == linesAMinute:
		logs.Write(&d.Log, logs.MoreNotRecorded, logs.UID.Of(j.UID))
	}
}

// line counts a line of log for a user and gives how many it had in this minute before. d.mu is held.
func (d *Discovery) line(uid int, now time.Time) int {
	if now.Sub(d.minute) >= time.Minute {
		d.minute, d.lines = now, map[int]int{}
	}
	d.lines[uid]++
	return d.lines[uid] - 1
}

// attachFailure names why attaching failed, by one word of a closed set: those that failed begins with.
func attachFailure(err error) string {
	is := func(all ...error) bool {
		for _, e := range all {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	o := ObstacleOf(err)
	switch {
	case is(context.DeadlineExceeded, attach.ErrTimeout):
		return "timeout"
	case o == Denied || o == 0 && is(attach.ErrPermission, fs.ErrPermission):
		return "denied"
	case o == Unrecordable, o == NoRing,
		is(attach.ErrNotJVM, attach.ErrDisabled, attach.ErrLoading, attach.ErrReadOnly):
		return "refused"
	}
	return "other"
}

// Failures counts attempts to attach that failed, by reason.
func (d *Discovery) Failures() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.failed)
}

// Unrecorded gives the JVMs that are not recorded.
func (d *Discovery) Unrecorded() (out []Unrecorded) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.others {
		out = append(out, o)
	}
	return out
}

// ruleJVM gives what rules decide on.
func ruleJVM(j JVM, pod func(string) map[string]string) config.JVM {
	c := config.JVM{User: userName(j.UID), Main: j.Name, Container: j.Apart, Flags: j.Args, Cgroup: Cgroup(j.PID)}
	for p := c.Cgroup; p != "/" && p != "." && p != ""; p = path.Dir(p) {
		if b := path.Base(p); strings.HasSuffix(b, ".service") || strings.HasSuffix(b, ".scope") {
			c.Unit = b
			break
		}
	}
	c.Service = j.Resource(Sources{Pod: pod})[trace.AttrService]
	return c
}

// Sources are where Resource looks beside the JVM itself.
type Sources struct {
	Rules func(config.JVM) map[string]string // what the rules of heapcam.yaml say of a JVM; nil: nothing
	Pod   func(uid string) map[string]string // what the API server of Kubernetes says of a pod; nil: nothing
}

// Resource says whose j is (package resource).
func (j JVM) Resource(from Sources) trace.Resource {
	p := resource.Process{PID: j.PID, StartTicks: j.StartTicks, UID: j.UID, Owner: userName(j.UID), Program: j.Name,
		Options: j.Args, Runtime: j.Version, Cgroup: Cgroup(j.PID), Pod: from.Pod}
	p.Host, _ = os.Hostname()
	if from.Rules != nil {
		p.Rules = from.Rules(ruleJVM(j, from.Pod))
	}
	return resource.Of(p)
}
