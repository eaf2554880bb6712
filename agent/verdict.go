package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

const (
	// verdictFor is how long a verdict is shown: a leak that was mended must not alarm for ever.
	verdictFor = 24 * time.Hour
	// maxLeaks bounds the leaks of one verdict, maxVerdicts the recordings that have one, maxAsked the incidents that
	// wait for one.
	maxLeaks    = 5
	maxVerdicts = 256
	maxAsked    = 16
	// verdictShare is what verdicts may take of one core on average, verdictBurst what they may take at once: the
	// first verdicts after a quiet time do not wait.
	verdictShare = 0.01
	verdictBurst = time.Minute
)

var errManyIncidents = errors.New("too many incidents wait for a verdict")

// verdicts are the verdicts on incidents and running recordings. The zero value has none.
type verdicts struct {
	mu    sync.Mutex
	by    map[string]session.Verdict // by session
	asked []ringstore.Incident       // that wait, oldest first
	wake  chan struct{}
}

// of gives the verdict on a recording, nil: there is none, or it is too old.
func (v *verdicts) of(session string) *session.Verdict {
	v.mu.Lock()
	defer v.mu.Unlock()
	if x, ok := v.by[session]; ok && time.Since(x.Time) < verdictFor {
		return &x
	}
	return nil
}

// put keeps a verdict; the oldest ones make room. That a running recording has no leak does not hide the verdict on an
// incident, which is shown for its day.
func (v *verdicts) put(of string, x session.Verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = map[string]session.Verdict{}
	}
	if old, ok := v.by[of]; ok && old.Incident != "" && x.Incident == "" && len(x.Leaks) == 0 &&
		x.Time.Sub(old.Time) < verdictFor {
		return
	}
	v.by[of] = x
	for len(v.by) > maxVerdicts {
		oldest := ""
		for s := range v.by {
			if oldest == "" || v.by[s].Time.Before(v.by[oldest].Time) {
				oldest = s
			}
		}
		delete(v.by, oldest)
	}
}

// waker gives the channel that says that something was asked.
func (v *verdicts) waker() chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.wake == nil {
		v.wake = make(chan struct{}, 1)
	}
	return v.wake
}

func (v *verdicts) next() (i ringstore.Incident, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.asked) == 0 {
		return i, false
	}
	i = v.asked[0]
	v.asked = slices.Delete(v.asked, 0, 1)
	return i, true
}

// ask has an incident judged; false: too many wait.
func (v *verdicts) ask(i *ringstore.Incident) bool {
	wake := v.waker()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.asked) >= maxAsked {
		return false
	}
	v.asked = append(v.asked, *i)
	select {
	case wake <- struct{}{}:
	default:
	}
	return true
}

// forget leaves out incidents that wait and that another one replaces.
func (v *verdicts) forget(ids []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = slices.DeleteFunc(v.asked, func(i ringstore.Incident) bool { return slices.Contains(ids, i.ID) })
}

// askVerdict has an incident judged, without waiting for that.
func (a *Agent) askVerdict(i *ringstore.Incident) {
	if a.cfg.Judge != nil && !a.verdicts.ask(i) {
		logs.Write(&a.cfg.Log, logs.IncidentNoVerdict, logs.Recording.Of(i.JVM), logs.Incident.Of(i.ID),
			logs.Err.Of(errManyIncidents))
	}
}

// judge finds verdicts, one at a time, until ctx is done: on incidents, and while none waits, on running recordings. On
// average that takes no more than verdictShare of a core.
func (a *Agent) judge(ctx context.Context) {
	wake := a.verdicts.waker()
	budget, at := verdictBurst, time.Now()
	judged := map[string]time.Time{} // running recordings, by session
	for ctx.Err() == nil {
		now := time.Now()
		budget, at = min(verdictBurst, budget+time.Duration(verdictShare*float64(now.Sub(at)))), now
		if budget <= 0 {
			pause(ctx, time.Duration(float64(-budget)/verdictShare)+time.Second)
			continue
		}
		t, ok := task{}, false
		if i, asked := a.verdicts.next(); asked {
			t, ok = a.ofIncident(&i), true
		} else {
			t, ok = a.nextRunning(judged, now)
		}
		if !ok {
			a.awaitTask(ctx, wake)
			continue
		}
		budget -= a.judgeOne(ctx, &t)
	}
}

// awaitTask waits until a verdict may be due.
func (a *Agent) awaitTask(ctx context.Context, wake <-chan struct{}) {
	var tick <-chan time.Time
	if a.cfg.JudgeEvery > 0 {
		tick = time.After(min(a.cfg.JudgeEvery/4, time.Minute))
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-tick:
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// judgeOne finds the verdict on a recording, and says what that cost.
func (a *Agent) judgeOne(ctx context.Context, t *task) (cpu time.Duration) {
	v, err := a.cfg.Judge(ctx, t.dir)
	cpu = time.Duration(v.CPUNS)
	switch {
	case ctx.Err() != nil:
		return cpu
	case err != nil && t.incident == "":
		logs.Write(&a.cfg.Log, logs.NoVerdict, logs.Recording.Of(t.id), logs.Err.Of(err),
			logs.CPU.Of(cpu.Round(time.Millisecond)))
		return cpu
	case err != nil:
		logs.Write(&a.cfg.Log, logs.IncidentNoVerdict, logs.Recording.Of(t.id), logs.Incident.Of(t.incident),
			logs.Err.Of(err), logs.CPU.Of(cpu.Round(time.Millisecond)))
		return cpu
	}
	v.Incident, v.Time = t.incident, time.Now().UTC().Truncate(time.Millisecond)
	slices.SortStableFunc(v.Leaks, func(x, y session.Leak) int {
		return cmp.Compare(y.BytesPerSecond, x.BytesPerSecond)
	})
	if a.tables != nil {
		a.tables.Verdict(t.resource, t.session, t.at, v.Leaks)
	}
	if n := len(v.Leaks) - maxLeaks; n > 0 {
		v.Leaks, v.LeftOut = v.Leaks[:maxLeaks], v.LeftOut+n
	}
	switch {
	case t.incident != "":
		logs.Write(&a.cfg.Log, logs.IncidentVerdict, logs.Recording.Of(t.id), logs.Incident.Of(t.incident),
			logs.Headline.Of(v.Headline), logs.CPU.Of(cpu.Round(time.Millisecond)),
			logs.Remedy.Of(fmt.Sprintf("run `heapcam leaks` on the incident; `heapcam incidents show%s %s` says where "+
				"it is", a.outFlag(), ui.ShellWord(t.incident))))
	case len(v.Leaks) > 0 && leads(&v) != t.last:
		logs.Write(&a.cfg.Log, logs.RunningVerdict, logs.Recording.Of(t.id), logs.Headline.Of(v.Headline),
			logs.CPU.Of(cpu.Round(time.Millisecond)))
	}
	a.verdicts.put(t.session, v)
	return cpu
}
