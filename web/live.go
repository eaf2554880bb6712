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

// event is one line of the stream of events: progress, status or changed.
type event struct {
	name string
	data []byte
}

// hub hands events to the pages that listen. A page that does not keep up misses some.
type hub struct {
	mu    sync.Mutex
	pages map[chan event]bool
	last  map[string]event // newest status and changed, for those who come later
}

// maxPages bounds how many pages listen.
const maxPages = 64

func (h *hub) join() (chan event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.pages) >= maxPages {
		return nil, errors.New("too many pages listen")
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

func (h *hub) leave(c chan event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, c)
}

func (h *hub) tell(name string, v any, keep bool) {
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

// progress gives a function that tells how far something is, at most ten times a second; unit is what is counted, ""
// for bytes.
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
		h.tell("progress", map[string]any{"what": what, "unit": unit, "done": done, "total": total}, false)
	}
}

// follow looks at a recording that grows, once a second.
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
			s.hub.tell("changed", map[string]any{"version": v, "live": !over}, true)
		}
		if s.cfg.Status != nil {
			if st := s.cfg.Status(s.ctx); st != nil {
				s.hub.tell("status", st, true)
			}
		}
		if over {
			s.hub.tell("changed", map[string]any{"version": v, "live": false}, true)
			return
		}
	}
}

// events is the stream of events (server-sent events).
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
	out.Flush()
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
			_, err = fmt.Fprint(w, ": here\n\n")
		}
		if err != nil || out.Flush() != nil {
			return
		}
	}
}

// freeze keeps the present window.
func (s *Server) freeze(r *http.Request) (any, error) {
	if s.cfg.Freeze == nil {
		return nil, badRequest{errors.New("this recording can not be frozen: it is not one of this host's")}
	}
	var q struct{ Reason string }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return nil, badRequest{err}
	}
	if q.Reason = strings.TrimSpace(q.Reason); q.Reason == "" {
		q.Reason = "from the viewer"
	}
	return s.cfg.Freeze(q.Reason)
}

// pull gives the recording as one file.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Pull == nil {
		reply(w, nil, badRequest{errors.New("this recording is a pulled file already")})
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+fileName(s.cfg.Title)+`.heapcam"`)
	if err := s.cfg.Pull(r.Context(), w); err != nil {
		panic(http.ErrAbortHandler) // half a file must not look like a whole one
	}
}

// fileName is a title as the name of a file.
func fileName(title string) string {
	return strings.TrimSuffix(strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`"\/`, c) || c > '~' {
			return '_'
		}
		return c
	}, title), ".heapcam")
}
