package agent

import (
	"context"
	"encoding/json"
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

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
)

const (
	pollFast  = 20 * time.Millisecond
	pollSlow  = 500 * time.Millisecond
	fastPhase = 10 * time.Second
	// notReadyFor is how long a file named like a ring may stay unfinished before the agent says so.
	notReadyFor = 10 * time.Second
	// maxSessions bounds the JVMs that one agent records at a time, maxSessionsEach those of one user other than root: who makes rings that
	// are no JVMs keeps none of the others out.
	maxSessions     = 256
	maxSessionsEach = 192
)

// Agent records every JVM whose probe makes a ring in a watched folder.
type Agent struct {
	cfg   Config
	store func(cfg *Config, dir string, who identity) (store, error) // errOtherSession: not this session's folder

	mu       sync.Mutex
	sessions map[string]*entry // by path of the ring
	claimed  map[string]bool   // ring folders of sessions
	held     map[string]bool   // names of what the service manager keeps of us
	over     []Status          // of sessions that have ended, oldest first, at most maxOver
	watch    []string
	run      context.Context // of Run, nil before it
	closed   bool

	turned         atomic.Int64 // when Run's loop came around last, Unix ns
	freezing       sync.Mutex
	frozen         map[string]bool // incidents that the log has told of; freezing guards it
	kept, keptSize atomic.Int64    // incidents that there are, and their bytes, as last seen
	off            atomic.Bool     // the host's switch is set
	running        atomic.Int64    // sessions
	total          *total
	rates          *rates // of max_total_write_rate
	limits         atomic.Pointer[Limits]
	self           *self
	spool          SpoolStatus                // mu guards it; Dir is told by the configuration
	pulls          chan struct{}              // one for each that is served
	ringLogs       map[string]*zerolog.Logger // by folder
	refusals       changes                    // that stand in the log
	changes        changes                    // of callers that are no operators

	wg      sync.WaitGroup
	rescan  chan struct{}
	changed chan struct{} // closed and made anew when a session begins or ends
}

const maxOver = 1024

// ringAgain is when the ring of a JVM that has gone is tried again whose end the disk refused.
const ringAgain = time.Minute

type entry struct {
	s       *session
	since   time.Time
	bad     error // opened in vain for good; never tried again
	last    error // why it is not open, if it is not
	warned  bool
	listed  bool      // its session stands in status, with the reason
	letGo   int       // how often it was let go of in a row
	who     *Other    // whose it is, once somebody has asked
	stray   bool      // not in a watched folder: Await looks for it, or who looks after the spool folder; scan does not
	again   time.Time // not before
	look    time.Time // when its JVM is looked for again: removeDead
	opening time.Time // since when; zero: it is not being opened
	began   time.Time // when s did
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
	late := time.AfterFunc(stuckAfter, func() {
		cfg.Log.Error().Str("out", cfg.Out).Msg("the disk does not answer: the agent waits for its folder for recordings")
	})
	defer late.Stop()
	if err := os.MkdirAll(cfg.Out, 0o700); err != nil {
		return nil, fmt.Errorf("folder for recordings: %w", err)
	}
	if err := writable(cfg.Out); err != nil {
		return nil, fmt.Errorf("folder for recordings: %w", err)
	}
	a := &Agent{
		cfg: cfg, store: openStoreDefault, sessions: map[string]*entry{}, claimed: map[string]bool{},
		ringLogs: map[string]*zerolog.Logger{}, held: map[string]bool{}, watch: slices.Clone(cfg.Watch),
		pulls: make(chan struct{}, maxPulls), rescan: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	for _, f := range cfg.Kept {
		a.held[f.Name()] = true
	}
	a.total = newTotal(&a.cfg)
	a.rates = newRates("max_total_write_rate", cfg.MaxTotalWriteRate)
	a.self = newSelf(&a.cfg)
	limits := a.cfg.Limits()
	a.limits.Store(&limits)
	if err := checkSpool(&a.cfg); err != nil {
		return nil, err
	}
	if err := a.incidents().Clean(); err != nil {
		cfg.Log.Warn().Err(err).Msg("what is left of an unfinished incident can not be removed")
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

// Rescan makes Run look at the watched folders now.
func (a *Agent) Rescan() {
	select {
	case a.rescan <- struct{}{}:
	default:
	}
}

// Turned gives when Run last came around to look for rings, which it does twice a second at least; zero before. Long ago means: it hangs.
func (a *Agent) Turned() time.Time {
	if t := a.turned.Load(); t != 0 {
		return time.Unix(0, t)
	}
	return time.Time{}
}

// Run watches and records until ctx is done; then sessions stop where they stand, so that another agent may go on, and their goroutines
// end. It returns nil then.
func (a *Agent) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer a.leave()
	defer cancel()
	a.mu.Lock()
	a.run = ctx
	a.mu.Unlock()
	w, err := fsnotify.NewWatcher()
	if err != nil { // out of inotify instances: polling does
		a.cfg.Log.Warn().Err(err).Msg("no file notification: polling")
		w = &fsnotify.Watcher{}
	} else {
		defer w.Close()
	}
	if a.cfg.Switch != "" {
		a.wg.Go(func() { a.heedSwitch(ctx) })
	}
	a.wg.Go(func() { a.watchSelf(ctx) })
	a.wg.Go(func() { a.watchIncidents(ctx) })
	a.wg.Go(func() { a.adoptStrays(ctx) })
	if len(a.cfg.Kept) > 0 {
		a.wg.Go(func() { a.adoptKept(ctx) })
	}
	if a.cfg.Spool != "" {
		a.wg.Go(func() { a.watchSpool(ctx) })
	}
	watched := map[string]bool{}
	start := time.Now()
	for {
		a.turned.Store(time.Now().UnixNano())
		a.mu.Lock()
		dirs := slices.Clone(a.watch)
		a.mu.Unlock()
		for _, d := range dirs {
			if w.Events != nil && !watched[d] && w.Add(d) == nil {
				watched[d] = true
			}
		}
		again := a.scan(ctx, dirs)
		a.lookStuck()
		poll := a.cfg.Poll
		if poll == 0 {
			if poll = pollSlow; again || time.Since(start) < fastPhase {
				poll = pollFast
			}
		}
		timer := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-a.rescan:
		case <-w.Events:
		case <-w.Errors:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// leave waits for the agent's goroutines, but for those that the disk keeps.
func (a *Agent) leave() {
	done := make(chan struct{})
	go func() { a.wg.Wait(); close(done) }()
	for begun := time.Now(); ; {
		select {
		case <-done:
			return
		case <-time.After(pollSlow):
		}
		if kept := a.keptByDisk(); kept > 0 && time.Since(begun) > stuckAfter { // the others have closed their files by then
			a.cfg.Log.Error().Int("recordings", kept).Msg("the disk does not answer: not waited for; what the store has not taken is in the shared rings")
			return
		}
	}
}

// scan opens what is new in dirs and says whether something there is not ready yet.
func (a *Agent) scan(ctx context.Context, dirs []string) (again bool) {
	seen := map[string]bool{}
	for _, d := range dirs {
		paths, err := shmring.Scan(d)
		if err != nil {
			a.cfg.Log.Warn().Err(err).Str("dir", d).Msg("can not look for rings")
			continue
		}
		for _, p := range paths {
			seen[p] = true
			again = a.try(ctx, p) || again
			a.removeDead(p)
			a.turned.Store(time.Now().UnixNano())
		}
	}
	a.mu.Lock()
	for p, e := range a.sessions {
		if e.s == nil && !seen[p] && !e.stray && e.opening.IsZero() {
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

func (a *Agent) runSession(ctx context.Context, path string, s *session) {
	s.log.Info().Str("dir", s.status.Dir).Msg("recording")
	a.running.Add(1)
	defer a.running.Add(-1)
	s.cpu = func() float64 { return a.cfg.CompressionCPU / float64(max(a.running.Load(), 1)) }
	s.share = func(used int64) int64 { return a.total.look(s.status.Dir, used) }
	s.freeze = func(reason string) {
		a.wg.Go(func() { a.freeze(s, reason, false) })
	}
	err := s.guarded(ctx)
	stopped := err != nil && ctx.Err() != nil
	var bad *shmring.ViolationError
	var full *StoreError
	letGo := errors.Is(err, errLetGo) && !stopped
	later := letGo || errors.As(err, &full) && !stopped
	switch {
	case letGo:
		s.log.Error().Err(err).Str("ring", path).Msg("recording stopped: what its ring does not hold is lost until there is room again")
	case later:
		s.log.Warn().Err(err).Str("ring", path).Msg("the JVM has gone, and its ring waits until all of it can be stored")
	case stopped:
		s.set(func(st *Status) { st.Phase = Stopped })
	case errors.As(err, &bad):
		s.set(func(st *Status) { st.Phase, st.Reason = Quarantined, err.Error() })
		s.log.Error().Err(err).Msg("the ring broke the contract and is not read any further")
	case err != nil:
		s.set(func(st *Status) { st.Phase, st.Reason = Stopped, err.Error() })
		s.log.Error().Err(err).Msg("recording stopped")
	}
	closing := s.doing()
	s.keepCounters()
	if cerr := s.st.Close(); cerr != nil {
		s.log.Error().Err(cerr).Msg("closing the recording")
	}
	closing()
	stats := s.st.Stats() // what was taken ahead was given back
	s.set(func(st *Status) { st.TraceBytes, st.Files = stats.Bytes, stats.Files })
	if err == nil { // drained: the file is memory that nobody needs any more
		if uerr := s.ring.Unlink(); uerr != nil {
			s.log.Warn().Err(uerr).Msg("removing the drained ring")
		}
		if s.over != "" {
			s.set(func(st *Status) { st.Phase = s.over })
		}
		st := s.snapshot()
		s.log.Info().Str("phase", string(st.Phase)).Uint64("collections", st.Collections).Msg("recording ended")
	}
	if err == nil && s.over == GonePhase {
		a.freeze(s, "the JVM went without goodbye", true)
	}
	s.ring.Close()
	if !stopped && !later {
		a.dropRing(s.heldAs)
	}
	a.total.leave(s.status.Dir)
	a.release(s.status.Dir)
	a.rates.leave(&s.rate)
	a.self.cpu.leave(&s.cpuRate)
	a.mu.Lock()
	if !later {
		a.over = append(a.over, s.snapshot())
	}
	if len(a.over) > maxOver {
		a.over = slices.Delete(a.over, 0, len(a.over)-maxOver)
	}
	switch e := a.sessions[path]; {
	case err == nil || stopped:
		delete(a.sessions, path)
	case later:
		e.s, e.last, e.again = nil, err, time.Now().Add(ringAgain)
		if letGo {
			e.again = time.Now().Add(letGoFor << min(e.letGo, 6)) // it holds as much again when it is back
			e.letGo++
		}
	default:
		e.s, e.last, e.bad, e.listed = nil, err, err, true
	}
	a.signal()
	a.mu.Unlock()
}

// guarded is the last line of defence for the other JVMs: a mistake of ours that a producer can trigger must not end the agent.
func (s *session) guarded(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error while reading %s: %v", s.ring.Path(), r)
		}
	}()
	return s.record(ctx)
}

// signal wakes those who wait for a change; a.mu is held.
func (a *Agent) signal() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// Status gives the sessions, running ones first, by name.
func (a *Agent) Status() []Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Status
	for _, e := range a.sessions {
		if e.s != nil {
			out = append(out, e.s.snapshot())
		}
	}
	slices.SortFunc(out, func(x, y Status) int { return strings.Compare(x.ID, y.ID) })
	return append(out, a.over...)
}

// detachWithin is how long Detach waits for recordings to end: the probe looks at its ring twenty times a second.
const detachWithin = 3 * time.Second

// Detach asks the probe of the session whose ID is id, or all for "", to stop, and waits a while for the recordings to end. It returns how many were
// asked.
func (a *Agent) Detach(id string) (int, error) { return a.detachBy(operator, id) }

// detachBy is Detach, of those sessions that c may detach from.
func (a *Agent) detachBy(c Caller, id string) (int, error) {
	var asked []*session
	n, err := a.eachOf(c, id, func(s *session) error {
		s.set(func(st *Status) { st.DetachedBy = c.who() })
		asked = append(asked, s)
		return s.ring.Detach()
	})
	a.awaitEnd(asked)
	return n, err
}

// awaitEnd waits a while for recordings to end that were asked to: then their JVMs can be attached to again.
func (a *Agent) awaitEnd(asked []*session) {
	for end := time.Now().Add(detachWithin); time.Now().Before(end); time.Sleep(pollFast) {
		a.mu.Lock()
		left := slices.ContainsFunc(asked, func(s *session) bool {
			for _, e := range a.sessions {
				if e.s == s {
					return true
				}
			}
			return false
		})
		a.mu.Unlock()
		if !left {
			return
		}
	}
}

// DetachedBy says who had an agent detach from the JVM of user uid, "": nobody, or it was attached to again. It is not to be attached to unasked. What a
// recording of another user says of a pid and start is that user's word: it does not count; root's does, since a JVM may have changed its user.
func (a *Agent) DetachedBy(pid int, startTicks uint64, uid int) (who string) {
	folders, _ := os.ReadDir(a.cfg.Out)
	var newest time.Time
	for _, f := range folders {
		if !f.IsDir() || !strings.Contains(f.Name(), "-"+jvms.ID(pid, startTicks)) {
			continue
		}
		name := filepath.Join(a.cfg.Out, f.Name(), ringstore.RecordingName)
		st, err := os.Stat(name)
		if err != nil || st.ModTime().Before(newest) {
			continue
		}
		var r struct {
			whose
			Counters counters `json:"counters"`
		}
		b, err := os.ReadFile(name)
		if err != nil || ringstore.CheckDocument(name, b) != nil || json.Unmarshal(b, &r) != nil || r.PID != pid || r.StartTicks != startTicks {
			continue
		}
		if r.UID > 0 && r.UID != uid {
			continue
		}
		newest, who = st.ModTime(), r.Counters.DetachedBy
	}
	return who
}

// Drain waits until no session runs whose JVM has gone or whose probe has ended, and every ring in the watched folders has been looked
// at: what was committed before the call is in the store then. Sessions of living JVMs are not waited for. Run must be running.
func (a *Agent) Drain(ctx context.Context) error {
	for {
		a.Rescan()
		a.mu.Lock()
		dirs, changed := slices.Clone(a.watch), a.changed
		var rings []*shmring.Ring
		known := map[string]bool{}
		for p, e := range a.sessions {
			known[p] = e.s != nil || e.bad != nil || e.warned
			if e.s != nil {
				rings = append(rings, e.s.ring)
			}
		}
		a.mu.Unlock()
		busy := false
		for _, d := range dirs {
			paths, _ := shmring.Scan(d)
			for _, p := range paths {
				if !known[p] && (a.cfg.Accept == nil || a.cfg.Accept(p)) && !abandoned(p) {
					busy = true
				}
			}
		}
		for _, r := range rings {
			if life, err := r.Alive(); err == nil && (life == shmring.Ended || life == shmring.Gone) {
				busy = true
			}
		}
		if !busy {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-time.After(pollFast):
		}
	}
}

// abandoned says that a ring was never finished and its maker is gone: a JVM killed while it started.
func abandoned(path string) bool {
	r, err := shmring.Open(path, shmring.Options{})
	if err == nil {
		r.Close()
		return false
	}
	if !errors.Is(err, shmring.ErrNotReady) {
		return errors.Is(err, os.ErrNotExist)
	}
	pid, ticks, ok := shmring.ParseName(path)
	if ok {
		_, ok = findProcess(pid, ticks, 0)
	}
	return !ok
}

// Idle waits until no session runs.
func (a *Agent) Idle(ctx context.Context) error {
	for {
		a.mu.Lock()
		n, changed := 0, a.changed
		for _, e := range a.sessions {
			if e.s != nil {
				n++
			}
		}
		a.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Changed gives a channel that is closed when a session begins or ends.
func (a *Agent) Changed() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}
