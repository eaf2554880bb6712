package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// Message ids of log lines, stable for those who watch for them.
const (
	msgFrozen    = "incident-frozen"
	msgNotFrozen = "incident-not-frozen"
)

func (a *Agent) incidents() *ringstore.Incidents {
	return &ringstore.Incidents{Dir: filepath.Join(a.cfg.Out, IncidentsName), Max: a.total.forIncidents(a.cfg.MaxIncidents), Every: IncidentEvery}
}

// freeze keeps the present window of a session as an incident that nobody asked for; last: there is no other one to come, so that no earlier one
// may keep it from being made.
func (a *Agent) freeze(s *session, reason string, last bool) {
	if a.cfg.MaxIncidents < 0 {
		return
	}
	a.freezing.Lock() // one counts what the others take
	n := a.incidents()
	if last {
		n.Every = 0
	}
	i, err := n.Freeze(s.status.Dir, reason, true)
	if err == nil && a.frozen != nil {
		a.frozen[i.ID] = true
	}
	a.freezing.Unlock()
	a.total.frozenNow()
	switch {
	case errors.Is(err, ringstore.ErrTooOften):
		s.log.Info().Str("id", msgNotFrozen).Err(err).Msg("not frozen")
	case err != nil:
		s.set(func(st *Status) { st.IncidentsFailed++ })
		s.log.Error().Str("id", msgNotFrozen).Err(err).Msg("the window could not be frozen")
	default:
		// The log first: who sees the count finds the line.
		s.log.Warn().Str("id", msgFrozen).Str("incident", i.ID).Str("reason", reason).Int64("bytes", i.Bytes).Strs("left_out", i.Left).Msg("the window was frozen")
		s.set(func(st *Status) { st.Incident = i.ID; st.Incidents++ })
	}
}

// incidentsLook is how often the log takes note of incidents that others made: `heapcam freeze` does it by itself.
const incidentsLook = 2 * time.Second

// watchIncidents tells the log of each incident that appears.
func (a *Agent) watchIncidents(ctx context.Context) {
	for {
		a.lookIncidents()
		select {
		case <-ctx.Done():
			return
		case <-time.After(incidentsLook):
		}
	}
}

func (a *Agent) lookIncidents() {
	a.freezing.Lock()
	defer a.freezing.Unlock()
	in := &ringstore.Incidents{Dir: filepath.Join(a.cfg.Out, IncidentsName)}
	all, err := in.List()
	if err != nil {
		return
	}
	first := a.frozen == nil
	was := a.frozen
	a.frozen = map[string]bool{}
	for _, i := range all {
		a.frozen[i.ID] = true
		if !first && !was[i.ID] {
			a.cfg.Log.Warn().Str("id", msgFrozen).Str("jvm", i.JVM).Str("incident", i.ID).Str("reason", i.Reason).Int64("bytes", i.Bytes).Strs("left_out", i.Left).Msg("the window was frozen")
		}
	}
	if first || !maps.Equal(was, a.frozen) || int64(len(all)) != a.kept.Load() {
		size := int64(0)
		if len(all) > 0 {
			size = in.Size()
		}
		a.kept.Store(int64(len(all)))
		a.keptSize.Store(size)
	}
}

// Incidents says how many frozen windows there are, whoever made them, and what they occupy, bytes: as of some seconds ago, without asking the disk.
func (a *Agent) Incidents() (n int, bytes int64) {
	return int(a.kept.Load()), a.keptSize.Load()
}

// Freeze keeps the present window of the recording whose ID is id, running or over, as an incident.
func (a *Agent) Freeze(id, reason string) (ringstore.Incident, error) {
	for _, s := range a.Status() {
		if s.ID == id {
			a.freezing.Lock()
			defer a.freezing.Unlock()
			i, err := a.incidents().Freeze(s.Dir, reason, false)
			a.total.frozenNow()
			return i, err
		}
	}
	return ringstore.Incident{}, fmt.Errorf("recording %q: %w", id, os.ErrNotExist)
}

// exhaustion looks for the beginning of a burst of allocations that failed: a program that catches its OutOfMemoryErrors repeats them.
type exhaustion struct {
	seen uint64
	at   time.Time // of the newest
}

// exhaustionCalm is how long none may come before the next one is told. The probe does not listen for a minute after each.
const exhaustionCalm = 2 * time.Minute

func (x *exhaustion) look(now time.Time, n uint64) (onset bool) {
	if n <= x.seen {
		return false
	}
	onset = now.Sub(x.at) > exhaustionCalm
	x.seen, x.at = n, now
	return onset
}

// storm looks for the onset of a GC storm: full collections take more than stormShare of stormSpan. It is told once until they have
// fallen below half of that.
type storm struct {
	full []trace.Pause // of the last stormSpan, oldest first
	sum  uint64
	in   bool
}

const (
	stormSpan  = uint64(60 * time.Second)
	stormShare = 0.5
	stormLeast = 3 // full collections
)

func (s *storm) pause(p *trace.Pause) (onset bool) {
	if p.Kind == trace.PauseFull {
		s.full = append(s.full, trace.Pause{Start: p.Start, Dur: p.Dur})
		s.sum += p.Dur
	}
	for len(s.full) > 0 && s.full[0].Start+s.full[0].Dur+stormSpan < p.Start+p.Dur {
		s.sum -= s.full[0].Dur
		s.full = s.full[1:]
	}
	share := float64(s.sum) / float64(stormSpan)
	switch {
	case !s.in && share > stormShare && len(s.full) >= stormLeast:
		s.in = true
		return true
	case s.in && share < stormShare/2:
		s.in = false
	}
	return false
}
