package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// event is a server-sent event: progress, status or changed.
type event struct {
	name string
	data []byte
}

// hub sends events to the pages that listen. A page that is too slow misses some.
type hub struct {
	mu    sync.Mutex
	pages map[chan event]bool
	last  map[string]event // newest status and changed, for pages that join later
}

// maxPages is how many pages may listen at a time.
const maxPages = 64

func (h *hub) join() (chan event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil, errors.New("too many pages of this viewer are open: close one")
	}
	if h.pages == nil {
		h.pages = map[chan event]bool{}
	}
	c := make(chan event, 16)
	h.pages[c] = true
	for _, e := range h.last {
		c <- e
	}
	return c, nil
}

// listeners is how many pages listen.
func (h *hub) listeners() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pages)
}

func (h *hub) leave(c chan event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, c)
}

// send sends an event to all pages. With keep, pages that join later get it too.
func (h *hub) send(name string, v any, keep bool) {
	b, err := json.Marshal(v)
	if err != nil {
		return
	}
	e := event{name, b}
	h.mu.Lock()
	defer h.mu.Unlock()
	if keep {
		if h.last == nil {
			h.last = map[string]event{}
		}
		h.last[name] = e
	}
	for c := range h.pages {
		select {
		case c <- e:
		default:
		}
	}
}

// progress returns a function that reports the progress of some work to the pages, at most ten times a second. unit is
// what is counted, "" for bytes.
func (h *hub) progress(what, unit string) func(done, total int64) {
	var mu sync.Mutex
	var last time.Time
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if done < total && time.Since(last) < 100*time.Millisecond {
			return
		}
		last = time.Now()
		h.send("progress", map[string]any{"what": what, "unit": unit, "done": done, "total": total}, false)
	}
}

// follow polls the version and status of a growing recording once a second.
func (s *Server) follow() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	version, _ := s.version()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		v, over := s.version()
		if v != version {
			version = v
			s.hub.send("changed", map[string]any{"version": v, "live": !over}, true)
		}
		if s.cfg.Status != nil {
			if st := s.cfg.Status(s.ctx); st != nil {
				s.hub.send("status", st, true)
			}
		}
		if over {
			s.hub.send("changed", map[string]any{"version": v, "live": false}, true)
			return
		}
	}
}

// events answers with the stream of events.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	c, err := s.hub.join()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.hub.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 2000\n\n")
	_ = out.Flush()
	beat := time.NewTicker(15 * time.Second)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case e := <-c:
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e.name, e.data)
		case <-beat.C:
			_, err = fmt.Fprint(w, ": keep-alive\n\n")
		}
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// freeze keeps the current window as an incident.
func (s *Server) freeze(r *http.Request) (any, error) {
	if s.cfg.Freeze == nil {
		return nil, badRequest{errors.New("cannot save an incident: the recording is not a ring folder of this host")}
	}
	var q struct {
		Reason    string
		Confirmed bool
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, badRequest{err}
	}
	if !q.Confirmed {
		return nil, errUnconfirmed
	}
	if q.Reason = strings.TrimSpace(q.Reason); q.Reason == "" {
		q.Reason = "from the viewer"
	}
	return s.cfg.Freeze(q.Reason)
}

// errUnconfirmed refuses what the reader has not confirmed.
var errUnconfirmed = badRequest{errors.New("not done: the request has no field confirmed")}

// settle has the agent list which objects live, so that verdicts can tell a leak from garbage.
func (s *Server) settle(r *http.Request) (any, error) {
	if s.cfg.Settle == nil {
		return nil, badRequest{errors.New("cannot settle: no agent of this host records this JVM")}
	}
	var q struct{ Confirmed bool }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, badRequest{err}
	}
	if !q.Confirmed {
		return nil, errUnconfirmed
	}
	said, err := s.cfg.Settle(r.Context())
	if err != nil {
		return nil, badRequest{err}
	}
	return struct {
		Text string `json:"text"`
	}{said}, nil
}

// pull answers with the recording as one file.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Pull == nil {
		reply(w, nil, badRequest{errors.New("cannot pull: this recording is already one file")})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(s.cfg.Title)+`.heapcam"`)
	if err := s.cfg.Pull(r.Context(), w); err != nil {
		panic(http.ErrAbortHandler) // the browser must not take a part of the file for all of it
	}
}

// fileName makes a file name of a title.
func fileName(title string) string {
	return strings.TrimSuffix(strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`"\/`, c) || c > '~' {
			return '_'
		}
		return c
	}, title), ".heapcam")
}
