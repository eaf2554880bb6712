package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/agent/tables"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
)

const (
	pollFast  = 20 * time.Millisecond
	pollSlow  = 500 * time.Millisecond
	fastPhase = 10 * time.Second
	// notReadyFor is how long a file named like a ring may stay unfinished before the agent logs it.
	notReadyFor = 10 * time.Second
	// maxSessions bounds the JVMs that one agent records at a time, maxSessionsEach those of one user other than root:
	// a user who makes many false rings cannot keep other users' JVMs from being recorded.
	maxSessions     = 256
	maxSessionsEach = 192
)

// Agent records every JVM whose probe makes a ring in a watched folder.
type Agent struct {
	cfg   Config
	store func(ringstore.Config, ringstore.Identity, zerolog.Logger) (session.Store, error) // session.OpenStore

	mu       sync.Mutex
	sessions map[string]*entry // by path of the ring
	claimed  map[string]bool   // ring folders of sessions
	held     map[string]bool   // names of what the service manager keeps of us
	ended    []session.Status  // of sessions that have ended, oldest first, at most maxEnded
	watch    []string
	run      context.Context // of Run, nil before it
	closed   bool

	lastScan       atomic.Int64 // when Run last looked for rings, Unix ns
	freezing       sync.Mutex
	frozen         map[string]bool // incidents that were logged; freezing guards it
	kept, keptSize atomic.Int64    // number of incidents and their bytes, as last seen
	off            atomic.Bool     // the host's switch is set
	running        atomic.Int64    // sessions
	idle           quota.Idle
	disk           *quota.Disk
	rates          *quota.SharedRate // of max_total_write_rate
	limits         atomic.Pointer[session.Limits]
	self           *quota.Process
	spool          *spool.Spool     // nil: none
	upload         *upload.Uploader // nil: none
	profiles       *profiles.Hub    // nil: none
	tables         *tables.Tables   // nil: none
	verdicts       verdicts
	ringLogs       map[string]*zerolog.Logger // by folder

	wg      sync.WaitGroup
	rescan  chan struct{}
	changed chan struct{} // closed and made anew when a session begins or ends
}

const maxEnded = 256

// ringAgain is how long the agent waits before it tries again to store the rest of an ended JVM's ring, which the disk
// refused.
const ringAgain = time.Minute

type entry struct {
	s       *session.Session
	since   time.Time
	bad     error // why it can never be opened; it is not tried again
	last    error // why the last attempt to open it failed; nil: it is open
	warned  bool
	listed  bool       // status shows its session, with the reason
	evicted int        // how often in a row its session was evicted because memory was short
	who     *api.Other // whose JVM it is; nil: not asked yet
	// orphan: the ring is not in a watched folder. Await or package spool searches for it, scan does not
	orphan  bool
	again   time.Time // earliest time of the next attempt to open it
	recheck time.Time // when removeDead checks again whether its JVM lives
	opening time.Time // since when; zero: it is not being opened
	began   time.Time // when s began
	stuck   bool      // the log says that the disk keeps it waiting; belongs to Run
	cancel  context.CancelFunc
}

// New checks cfg and makes an agent; it does nothing before Run.
func New(cfg Config) (*Agent, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	out, err := filepath.Abs(cfg.Out)
	if err != nil {
		return nil, err
	}
	cfg.Out = out
	late := time.AfterFunc(session.StuckAfter, func() {
		logs.Write(&cfg.Log, logs.DiskHangsAtStart, logs.Path.Of(cfg.Out))
	})
	defer late.Stop()
	if err := os.MkdirAll(cfg.Out, 0o700); err != nil {
		return nil, fmt.Errorf("folder for recordings: %w", err)
	}
	if err := writable(cfg.Out); err != nil {
		return nil, fmt.Errorf("folder for recordings: %w", err)
	}
	a := &Agent{
		cfg: cfg, store: session.OpenStore, sessions: map[string]*entry{}, claimed: map[string]bool{},
		ringLogs: map[string]*zerolog.Logger{}, held: map[string]bool{}, watch: slices.Clone(cfg.Watch),
		rescan: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	for _, f := range cfg.Kept {
		a.held[f.Name()] = true
	}
	a.disk = quota.NewDisk(quota.DiskConfig{
		Out: cfg.Out, Max: cfg.MaxTotal, Ring: quota.RingLimit(cfg.MaxTraceSize, cfg.Deviation),
		Retain: cfg.RetainEnded, Log: cfg.Log,
	})
	a.rates = quota.NewSharedRate("max_total_write_rate", cfg.MaxTotalWriteRate)
	a.self = quota.NewProcess(cfg.MaxCPU, cfg.MaxMemory)
	limits := a.cfg.Limits()
	a.limits.Store(&limits)
	if a.cfg.Spool != "" {
		if a.spool, err = spool.New(a.spoolConfig()); err != nil {
			return nil, err
		}
		a.cfg.Spool = filepath.Clean(a.cfg.Spool)
	}
	if a.cfg.Upload != nil {
		to := *a.cfg.Upload
		to.Out, to.Incidents, to.Log = cfg.Out, IncidentsName, cfg.Log
		a.upload = upload.New(to)
	}
	if a.cfg.Tables != nil {
		to := *a.cfg.Tables
		to.Out, to.Log = cfg.Out, cfg.Log
		a.tables = tables.New(to)
	}
	if a.cfg.Profiles != nil {
		to := *a.cfg.Profiles
		to.Out, to.Log = cfg.Out, cfg.Log
		a.profiles = profiles.New(to)
	}
	if err := a.incidents().Clean(); err != nil {
		logs.Write(&cfg.Log, logs.IncidentRemains, logs.Err.Of(err))
	}
	return a, nil
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".heapcam-write-*")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// Out gives the folder that holds the ring folders, as an absolute path.
func (a *Agent) Out() string { return a.cfg.Out }

// Watch adds a folder in which rings may appear.
func (a *Agent) Watch(dir string) {
	a.mu.Lock()
	if !slices.Contains(a.watch, dir) {
		a.watch = append(a.watch, dir)
	}
	a.mu.Unlock()
	a.Rescan()
}

// Rescan makes Run read the watched folders now.
func (a *Agent) Rescan() {
	select {
	case a.rescan <- struct{}{}:
	default:
	}
}

// LastScan returns when Run last looked for rings; zero: not yet. Run does so at least twice a second. A time long ago
// means that Run hangs.
func (a *Agent) LastScan() time.Time {
	if t := a.lastScan.Load(); t != 0 {
		return time.Unix(0, t)
	}
	return time.Time{}
}

// Run watches and records until ctx is done. Then every session stops at its position, so that another agent can
// continue, and its goroutine ends. Run returns nil then.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer a.wait()
	defer cancel()
	a.mu.Lock()
	a.run = ctx
	a.mu.Unlock()
	w, err := fsnotify.NewWatcher()
	if err != nil { // out of inotify instances: polling does
		logs.Write(&a.cfg.Log, logs.NoFileNotification, logs.Err.Of(err))
		w = &fsnotify.Watcher{}
	} else {
		defer w.Close()
	}
	if a.cfg.Switch != "" {
		a.wg.Go(func() { a.heedSwitch(ctx) })
	}
	a.wg.Go(func() { a.self.Watch(ctx, a.evict) })
	a.wg.Go(func() { a.watchIncidents(ctx) })
	if a.upload != nil {
		a.wg.Go(func() { a.upload.Run(ctx) })
	}
	if a.profiles != nil {
		a.wg.Go(func() { a.profiles.Run(ctx) })
	}
	if a.tables != nil {
		a.wg.Go(func() { a.tables.Run(ctx) })
	}
	if a.cfg.Judge != nil {
		a.wg.Go(func() { a.judge(ctx) })
	}
	a.wg.Go(func() { a.takeOverOrphans(ctx) })
	if len(a.cfg.Kept) > 0 {
		a.wg.Go(func() { a.takeOverKept(ctx) })
	}
	if a.spool != nil {
		a.wg.Go(func() { a.spool.Watch(ctx) })
	}
	watched := map[string]bool{}
	start := time.Now()
	for {
		a.lastScan.Store(time.Now().UnixNano())
		a.mu.Lock()
		dirs := slices.Clone(a.watch)
		a.mu.Unlock()
		told := w.Events != nil // of each new ring, by the system
		for _, d := range dirs {
			if told && !watched[d] && w.Add(d) == nil {
				watched[d] = true
			}
			told = told && watched[d]
		}
		again := a.scan(ctx, dirs)
		a.logStuck()
		poll := a.cfg.Poll
		if poll == 0 {
			if poll = pollSlow; again || !told && time.Since(start) < fastPhase {
				poll = pollFast
			}
		}
		if !a.news(ctx, w, poll) {
			return nil
		}
	}
}

// news waits until it is time to look for rings: there is a new file, somebody asked, or poll has passed. What is
// written to a ring is an event too, and no news. Files that somebody makes all the time cause a look each pollFast at
// most. It returns false once ctx is done.
func (a *Agent) news(ctx context.Context, w *fsnotify.Watcher, poll time.Duration) bool {
	begun := time.Now()
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case e := <-w.Events:
			if !e.Has(fsnotify.Create) {
				continue
			}
			if left := pollFast - time.Since(begun); left > 0 {
				timer.Reset(min(left, poll))
				continue
			}
		case <-a.rescan:
		case <-w.Errors:
		case <-timer.C:
		}
		return true
	}
}

// wait waits for the agent's goroutines, except those that wait for a disk that does not answer.
func (a *Agent) wait() {
	done := make(chan struct{})
	go func() { a.wg.Wait(); close(done) }()
	for begun := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(pollSlow):
		}
		// the others have closed their files by then
		if kept := a.countStuck(); kept > 0 && time.Since(begun) > session.StuckAfter {
			logs.Write(&a.cfg.Log, logs.DiskHangsAtEnd, logs.Recordings.Of(kept))
			return
		}
	}
}

// scan opens the new rings in dirs, and says whether one of them is not ready yet.
func (a *Agent) scan(ctx context.Context, dirs []string) (again bool) {
	seen := map[string]bool{}
	for _, d := range dirs {
		paths, err := shmring.Scan(d)
		if err != nil {
			logs.Write(&a.cfg.Log, logs.RingsNotListed, logs.Err.Of(err), logs.Path.Of(d))
			continue
		}
		for _, p := range paths {
			seen[p] = true
			again = a.try(ctx, p) || again
			a.removeDead(p)
			a.lastScan.Store(time.Now().UnixNano())
		}
	}
	a.mu.Lock()
	for p, e := range a.sessions {
		if e.s == nil && !seen[p] && !e.orphan && e.opening.IsZero() {
			delete(a.sessions, p)
		}
	}
	a.mu.Unlock()
	return again
}

func (a *Agent) try(ctx context.Context, path string) (again bool) {
	return a.open(ctx, path, false, func() (*shmring.Ring, error) {
		return shmring.Open(path, a.ringOptions(path))
	})
}

// runSession records until the session ends, and decides what becomes of its ring.
func (a *Agent) runSession(ctx context.Context, path string, s *session.Session) {
	a.running.Add(1)
	defer a.running.Add(-1)
	var freezing sync.WaitGroup
	hooks := session.Hooks{
		CPU: func() float64 {
			return a.idle.Spare(time.Now(), a.cfg.CompressionCPU) / float64(max(a.running.Load(), 1))
		},
		Share: func(used int64) int64 { return a.disk.Share(s.Dir(), used) },
		Freeze: func(cause ringstore.Cause, reason string, listed ringstore.Listed) {
			freezing.Add(1)
			a.wg.Go(func() {
				defer freezing.Done()
				a.freeze(s, cause, reason, listed)
			})
		},
	}
	if a.cfg.MaxIncidents < 0 {
		hooks.Freeze = nil
	}
	if a.profiles != nil {
		hooks.Profile = a.profiles.Take
	}
	if a.tables != nil {
		hooks.Table = a.tables.Take
	}
	err := s.Run(ctx, hooks)
	stopped := err != nil && ctx.Err() != nil
	evicted := errors.Is(err, quota.ErrEvicted) && !stopped
	var full *session.StoreError
	later := evicted || errors.As(err, &full) && !stopped
	st := s.Status()
	if err == nil && st.Phase == session.KilledPhase {
		freezing.Wait() // the end takes the place of what it came of
		a.freeze(s, ringstore.CauseUnended, endReason(s.Cause()), ringstore.Listed{Why: "the JVM had ended"})
	}
	s.Close()
	if !stopped && !later {
		a.dropRing(s.Kept())
	}
	a.leave(s.Dir())
	a.mu.Lock()
	defer a.mu.Unlock()
	if !later {
		a.ended = withEnded(a.ended, s.Status())
	}
	switch e := a.sessions[path]; {
	case err == nil || stopped:
		delete(a.sessions, path)
	case later:
		e.s, e.last, e.again = nil, err, time.Now().Add(ringAgain)
		if evicted {
			e.again = time.Now().Add(evictedFor << min(e.evicted, 6)) // it will need as much memory again
			e.evicted++
		}
	default:
		e.s, e.last, e.bad, e.listed = nil, err, err, true
	}
	a.signal()
}

// withEnded adds st to what has ended. A ring that took over just before its JVM ended has a session of its own, which
// continues the recording of the one before: it stands for both.
func withEnded(all []session.Status, st session.Status) []session.Status {
	all = slices.DeleteFunc(all, func(e session.Status) bool {
		return st.Dir != "" && e.Dir == st.Dir && e.Session == st.Session
	})
	all = append(all, st)
	return slices.Delete(all, 0, max(len(all)-maxEnded, 0))
}

// signal wakes those who wait for a change; a.mu is held.
func (a *Agent) signal() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Status gives the sessions, running ones first, by name.
func (a *Agent) Status() []session.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []session.Status
	for _, e := range a.sessions {
		if e.s != nil {
			out = append(out, e.s.Status())
		}
	}
	slices.SortFunc(out, func(x, y session.Status) int { return strings.Compare(x.ID, y.ID) })
	out = append(out, a.ended...)
	for i := range out {
		out[i].Verdict = a.verdicts.of(out[i].Session)
	}
	return out
}

// Of gives the sessions of the process with that pid (as we count) and start, those that have ended behind the others;
// uid −1: of any user. It is what Status has of them, without copying the rest.
func (a *Agent) Of(pid int, startTicks uint64, uid int) (out []session.Status) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.sessions {
		if e.s == nil {
			continue
		}
		if s := e.s.Status(); s.Of(pid, startTicks, uid) {
			out = append(out, s)
		}
	}
	for i := range a.ended {
		if a.ended[i].Of(pid, startTicks, uid) {
			out = append(out, a.ended[i])
		}
	}
	return out
}
