package agent

import (
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// task is a recording that a verdict is due on.
type task struct {
	dir      string
	id       string // of the recording, for the log
	incident string // its ID; "": the recording itself, which goes on
	session  string
	resource trace.Resource
	at       time.Time // end of its window
	last     string    // what led the verdict before, if it was of the recording itself
}

// ofIncident is the task to judge an incident.
func (a *Agent) ofIncident(i *ringstore.Incident) task {
	return task{dir: filepath.Join(a.cfg.Out, IncidentsName, i.ID), id: i.JVM, incident: i.ID, session: i.Session,
		resource: i.Resource, at: i.Created}
}

// nextRunning gives the running recording whose verdict is due for the longest time. A recording is younger than the
// interval at first: it has no window yet. judged says when each was judged; those that have ended are taken out.
func (a *Agent) nextRunning(judged map[string]time.Time, now time.Time) (t task, ok bool) {
	if a.cfg.JudgeEvery <= 0 {
		return t, false
	}
	running := map[string]bool{}
	var longest time.Duration
	for _, s := range a.Status() {
		if s.Phase != session.Recording || s.StuckNS > 0 {
			continue
		}
		running[s.Session] = true
		since := judged[s.Session]
		if since.IsZero() {
			since = s.Since
		}
		if waits := now.Sub(since) - a.cfg.JudgeEvery; waits >= longest {
			longest, ok = waits, true
			t = task{dir: s.Dir, id: s.ID, session: s.Session, resource: s.Resource, at: now}
			if s.Verdict != nil && s.Verdict.Incident == "" {
				t.last = leads(s.Verdict)
			}
		}
	}
	for x := range judged {
		if !running[x] {
			delete(judged, x)
		}
	}
	if ok {
		judged[t.session] = now
	}
	return t, ok
}

// leads says what the largest leak is, without its figures.
func leads(v *session.Verdict) string {
	if len(v.Leaks) == 0 {
		return ""
	}
	return v.Leaks[0].Kind + " " + v.Leaks[0].SiteID
}
