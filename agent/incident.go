package agent

import (
	"errors"
	"fmt"
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

// freeze keeps the present window of a session as an incident that nobody asked for.
func (a *Agent) freeze(s *session, reason string) {
	if a.cfg.MaxIncidents < 0 {
		return
	}
	a.freezing.Lock() // one counts what the others take
	i, err := a.incidents().Freeze(s.status.Dir, reason, true)
	a.freezing.Unlock()
	a.total.frozenNow()
	switch {
	case errors.Is(err, ringstore.ErrTooOften):
		s.log.Info().Str("id", msgNotFrozen).Err(err).Msg("not frozen")
	case err != nil:
		s.log.Error().Str("id", msgNotFrozen).Err(err).Msg("the window could not be frozen")
	default:
		s.set(func(st *Status) { st.Incident = i.ID })
		s.log.Warn().Str("id", msgFrozen).Str("incident", i.ID).Str("reason", reason).Int64("bytes", i.Bytes).Strs("left_out", i.Left).Msg("the window was frozen")
	}
}

// Freeze keeps the present window of the recording whose ID is id, running or over, as an incident.
func (a *Agent) Freeze(id, reason string) (ringstore.Incident, error) {
	for _, s := range a.Status() {
		if s.ID == id {
			a.freezing.Lock()
			defer a.freezing.Unlock()
			return a.incidents().Freeze(s.Dir, reason, false)
		}
	}
	return ringstore.Incident{}, fmt.Errorf("recording %q: %w", id, os.ErrNotExist)
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
