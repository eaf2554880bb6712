package api

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// SettleEvery is the least time between two settlings of one JVM: each stops it once.
const SettleEvery = 10 * time.Minute

// settles says when each JVM was settled last.
type settles struct {
	mu sync.Mutex
	at map[string]time.Time
}

// allow counts a settling of the recording id, or says for how long it is not allowed yet.
func (x *settles) allow(id string, now time.Time) (wait time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, t := range x.at { // what does not count any more
		if now.Sub(t) >= SettleEvery {
			delete(x.at, k)
		}
	}
	if t, ok := x.at[id]; ok {
		return SettleEvery - now.Sub(t)
	}
	if x.at == nil {
		x.at = map[string]time.Time{}
	}
	x.at[id] = now
	return 0
}

// forget gives a settling back that did not take place.
func (x *settles) forget(id string) {
	x.mu.Lock()
	delete(x.at, id)
	x.mu.Unlock()
}

// serveSettle takes a reference listing, so that verdicts can say which objects live: at most one of a JVM in
// SettleEvery.
func (s *Server) serveSettle(w http.ResponseWriter, r *http.Request, c Caller) {
	var req ReferencesRequest
	var out session.References
	err := decode(r, &req)
	if err == nil {
		if wait := s.settles.allow(req.ID, time.Now()); wait > 0 {
			err = fmt.Errorf("%s was settled less than %s ago: try again in %s", req.ID,
				ui.Duration(SettleEvery), ui.About(wait))
		} else if out, err = s.rec.ReferencesFor(r.Context(), c, req.ID, time.Duration(req.Most)); err != nil {
			s.settles.forget(req.ID)
		}
	}
	s.reply(w, out, err)
}
