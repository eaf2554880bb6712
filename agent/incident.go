package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/tables"
	"github.com/heapcam/heapcam/agent/upload"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// incidentNoEnd is the reason of an incident whose JVM was killed or crashed.
const incidentNoEnd = jvmEnded + " (killed or crashed)"

// endReason gives the reason of such an incident. cause: why the JVM has most likely ended, "": nothing is known.
func endReason(cause string) string {
	if cause == "" {
		return incidentNoEnd
	}
	return jvmEnded + "; " + cause
}

// jvmEnded begins the reason of an incident that was kept because the JVM ended.
const jvmEnded = "the JVM ended without an end marker"

func (a *Agent) incidents() *ringstore.Incidents {
	return &ringstore.Incidents{Dir: filepath.Join(a.cfg.Out, IncidentsName),
		Max: a.disk.ForIncidents(a.cfg.MaxIncidents), Every: IncidentEvery}
}

// freeze keeps the present window of a session as an incident, without a request. listed is what became of the
// reference listing that was asked for.
func (a *Agent) freeze(s *session.Session, cause ringstore.Cause, reason string, listed ringstore.Listed) {
	if a.cfg.MaxIncidents < 0 {
		return
	}
	a.freezing.Lock() // one counts what the others take
	n := a.incidents()
	n.Listed = &listed
	i, err := n.Freeze(s.Dir(), cause, reason)
	if err == nil && a.frozen != nil {
		a.frozen[i.ID] = true
	}
	a.freezing.Unlock()
	a.disk.Recount()
	log := s.Log()
	switch {
	case errors.Is(err, ringstore.ErrTooOften):
		logs.Write(log, logs.IncidentSkipped, logs.Err.Of(err))
	case err != nil:
		s.Update(func(st *session.Status) { st.IncidentsFailed++ })
		logs.Write(log, logs.IncidentNotFrozen, logs.Err.Of(err))
	default:
		// The log first: who sees the count finds the line.
		logs.Write(log, logs.IncidentFrozen, logs.Incident.Of(i.ID), logs.Cause.Of(i.Reason), logs.Bytes.Of(i.Bytes),
			logs.LeftOut.Of(i.Left), logs.Listed.Of(referencesOf(&i)), logs.Replaces.Of(i.Replaces),
			logs.Remedy.Of(a.pullIncident(&i)))
		s.Update(func(st *session.Status) {
			st.Incident = i.ID
			if len(i.Replaces) == 0 { // else it is counted
				st.Incidents++
			}
		})
		a.verdicts.forget(i.Replaces)
		a.askVerdict(&i)
	}
}

// outFlag is the flag --out that commands on this agent's incidents need, if any. A log may be read in another folder,
// so the path is absolute.
func (a *Agent) outFlag() string {
	if a.cfg.PullOut == "" {
		return ""
	}
	out, err := filepath.Abs(a.cfg.PullOut)
	if err != nil {
		out = a.cfg.PullOut
	}
	return " --out " + string(ui.ShellWord(out))
}

// pullIncident says how to copy an incident, in words that can be copied.
func (a *Agent) pullIncident(i *ringstore.Incident) string {
	return fmt.Sprintf("run `heapcam pull%s --incident %s -o FILE`, then `heapcam report FILE`", a.outFlag(),
		ui.ShellWord(i.ID))
}

// referencesOf says what an incident has of references.
func referencesOf(i *ringstore.Incident) string {
	switch x := i.References; {
	case x == nil:
		return "not asked for"
	case x.Why != "":
		return "none: " + x.Why
	default:
		return fmt.Sprintf("after collection %d, %d objects", x.GC, x.Objects)
	}
}

// incidentsEvery is how often the agent searches for incidents to log that other processes made (`heapcam freeze`).
const incidentsEvery = 2 * time.Second

// watchIncidents logs each incident that appears.
func (a *Agent) watchIncidents(ctx context.Context) {
	for {
		a.logIncidents()
		select {
		case <-ctx.Done():
			return
		case <-time.After(incidentsEvery):
		}
	}
}

func (a *Agent) logIncidents() {
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
			logs.Write(&a.cfg.Log, logs.IncidentFrozen, logs.Recording.Of(i.JVM), logs.Incident.Of(i.ID),
				logs.Cause.Of(i.Reason), logs.Bytes.Of(i.Bytes), logs.LeftOut.Of(i.Left),
				logs.Listed.Of(referencesOf(&i)), logs.Remedy.Of(a.pullIncident(&i)))
			a.askVerdict(&i)
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

// Incidents returns how many incidents there are, whoever made them, and what they occupy, bytes. The figures are some
// seconds old: it does not ask the disk.
func (a *Agent) Incidents() (n int, bytes int64) {
	return int(a.kept.Load()), a.keptSize.Load()
}

// Upload says how far uploads of incidents are; nil: nothing is uploaded.
func (a *Agent) Upload() *upload.Status {
	if a.upload == nil {
		return nil
	}
	st := a.upload.Status()
	return &st
}

// Pushes counts profiles that are pushed; nil: none are.
func (a *Agent) Pushes() *profiles.Status {
	if a.profiles == nil {
		return nil
	}
	if st := a.profiles.Status(); st.To != "" {
		return &st
	}
	return nil
}

// Profiles gives the hub of profiles; nil: none are taken.
func (a *Agent) Profiles() *profiles.Hub { return a.profiles }

// Tables says how far the tables of the bucket are; nil: none are written.
func (a *Agent) Tables() *tables.Status {
	if a.tables == nil {
		return nil
	}
	st := a.tables.Status()
	return &st
}

// tableEvery is the time between two tables of a JVM; 0: none are written.
func (a *Agent) tableEvery() time.Duration {
	if a.tables == nil {
		return 0
	}
	return a.tables.Every()
}

// profileEvery is the time between two profiles of a JVM; 0: none are taken.
func (a *Agent) profileEvery() time.Duration {
	if a.profiles == nil {
		return 0
	}
	return a.profiles.Every()
}

// Freeze keeps the present window of the recording whose ID is id, running or over, as an incident.
func (a *Agent) Freeze(id, reason string) (ringstore.Incident, error) {
	for _, s := range a.Status() {
		if s.ID == id {
			a.freezing.Lock()
			defer a.freezing.Unlock()
			n := a.incidents()
			n.Ended = s.Phase == session.EndedPhase || s.Phase == session.KilledPhase
			i, err := n.Freeze(s.Dir, ringstore.CauseAsked, reason)
			a.disk.Recount()
			return i, err
		}
	}
	return ringstore.Incident{}, api.NotThere(id)
}
