package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Entry is a recording in the list of the first page.
type Entry struct {
	ID      string    `json:"id"`   // names it in addresses: letters and digits
	Name    string    `json:"name"` // of the JVM, or of the file
	Kind    string    `json:"kind"` // JVM, incident or file
	Dir     string    `json:"dir"`
	PID     int       `json:"pid,omitempty"`
	Service string    `json:"service,omitempty"`
	Version string    `json:"service_version,omitempty"`
	User    string    `json:"user,omitempty"`
	Where   string    `json:"where,omitempty"` // unit, container or pod
	State   string    `json:"state"`           // recording, ended …
	Live    bool      `json:"live"`
	VM      string    `json:"vm,omitempty"`
	Since   time.Time `json:"since"`
	GCs     uint64    `json:"collections"`
	Bytes   int64     `json:"bytes"` // on disk
}

// About is what the list shows of a recording that has to be read for it.
type About struct {
	VM        string    `json:"vm"`
	Collector string    `json:"collector"`
	MaxHeap   uint64    `json:"max_heap_bytes"`
	Verdict   *Headline `json:"verdict,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// HomeConfig says what the first page lists.
type HomeConfig struct {
	Where string // the folders that are listed
	// List returns all recordings, and says why there may be others; Open opens one of them. About reads the first
	// blocks of one.
	List  func(ctx context.Context) (all []Entry, problem string, err error)
	Open  func(ctx context.Context, e Entry) (*Config, error)
	About func(e Entry) (About, error)
}

// Home serves the list of all recordings, and each of them below its own path. Make it with NewHome; Close it.
type Home struct {
	cfg   HomeConfig
	token string
	mux   *http.ServeMux
	ctx   context.Context
	stop  context.CancelFunc

	mu       sync.Mutex
	open     []*opening // the most recently used one last
	list     []Entry
	problem  string
	listed   time.Time
	listing  sync.Mutex    // held by the one request that lists
	reading  chan struct{} // one for each verdict that is made
	verdicts cache[*Headline]
}

// opening is a recording that is served.
type opening struct {
	id string
	s  *Server
}

const (
	maxOpen   = 4  // recordings that are served at a time
	maxListed = 50 // rows of a page of the list
	listFor   = 2 * time.Second
)

// NewHome makes the server of a list.
func NewHome(cfg HomeConfig) *Home {
	h := &Home{cfg: cfg, token: newToken(), mux: http.NewServeMux(), reading: make(chan struct{}, 1)}
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.verdicts.ctx, h.verdicts.most = h.ctx, 4096
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // cannot happen: the folder is embedded
	}
	h.mux.Handle("GET /", zipped(http.FileServerFS(files)))
	h.mux.Handle("GET /{$}", zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, files, "home.html")
	})))
	api := func(pattern string, f func(r *http.Request) (any, error)) {
		h.mux.Handle(pattern, zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, err := f(r)
			reply(w, v, err)
		})))
	}
	go func() { _, _, _ = h.entries(h.ctx) }() // while the browser starts; an error is that of the first request
	api("GET /api/recordings", h.recordings)
	api("GET /api/about", h.about)
	api("GET /api/verdict", h.verdict)
	return h
}

// Path is the path of the page.
func (h *Home) Path() string { return "/" + h.token + "/" }

// Close ends all work.
func (h *Home) Close() {
	h.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.open {
		o.s.Close()
	}
	h.open = nil
}

// Serve serves on l, which should listen on loopback, until ctx is done.
func (h *Home) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, h, h.ctx, h.stop)
}

func (h *Home) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inside, ok := guard(w, r, h.Path())
	if !ok {
		return
	}
	id, _, below := strings.Cut(strings.TrimPrefix(inside.URL.Path, "/r/"), "/")
	if !below || !strings.HasPrefix(inside.URL.Path, "/r/") {
		h.mux.ServeHTTP(w, inside)
		return
	}
	s, err := h.server(r.Context(), id)
	if err != nil {
		reply(w, nil, err)
		return
	}
	s.ServeHTTP(w, r)
}

// find returns the entry of an id.
func (h *Home) find(ctx context.Context, id string) (Entry, error) {
	all, _, err := h.entries(ctx)
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return Entry{}, badRequest{errors.New("this recording is not there any more")}
	}
	return all[i], nil
}

// server returns the server of a recording. At most maxOpen are kept; one that no page listens to is closed first.
func (h *Home) server(ctx context.Context, id string) (*Server, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.open, func(o *opening) bool { return o.id == id }); i >= 0 {
		o := h.open[i]
		h.open = append(slices.Delete(h.open, i, i+1), o)
		return o.s, nil
	}
	h.mu.Unlock()
	e, err := h.find(ctx, id)
	var cfg *Config
	if err == nil {
		cfg, err = h.cfg.Open(ctx, e)
	}
	h.mu.Lock()
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(h.open, func(o *opening) bool { return o.id == id }); i >= 0 { // another request opened it
		return h.open[i].s, nil
	}
	if len(h.open) >= maxOpen {
		i := slices.IndexFunc(h.open, func(o *opening) bool { return o.s.hub.listeners() == 0 })
		if i < 0 {
			return nil, badRequest{fmt.Errorf("%d recordings are open in this viewer: close one of their pages",
				maxOpen)}
		}
		go h.open[i].s.Close()
		h.open = slices.Delete(h.open, i, i+1)
	}
	cfg.Home = "../../"
	s := newServer(*cfg, h.token+"/r/"+id)
	h.open = append(h.open, &opening{id, s})
	return s, nil
}

// entries returns the list, which is made anew every listFor.
func (h *Home) entries(ctx context.Context) ([]Entry, string, error) {
	h.listing.Lock()
	defer h.listing.Unlock()
	h.mu.Lock()
	list, problem, at := h.list, h.problem, h.listed
	h.mu.Unlock()
	if !at.IsZero() && time.Since(at) < listFor {
		return list, problem, nil
	}
	list, problem, err := h.cfg.List(ctx)
	if err != nil {
		return nil, "", err
	}
	h.mu.Lock()
	h.list, h.problem, h.listed = list, problem, time.Now()
	h.mu.Unlock()
	return list, problem, nil
}

// listReply is the answer to api/recordings.
type listReply struct {
	Where   string  `json:"where"`
	Problem string  `json:"problem,omitempty"`
	All     int     `json:"all"`
	Live    int     `json:"live"`
	Found   int     `json:"found"` // that match the search
	Skip    int     `json:"skip"`
	Page    int     `json:"page"` // rows of a page
	Rows    []Entry `json:"rows"`
}

// recordings answers with one page of the list.
func (h *Home) recordings(r *http.Request) (any, error) {
	all, problem, err := h.entries(r.Context())
	if err != nil {
		return nil, err
	}
	rep := listReply{Where: h.cfg.Where, Problem: problem, All: len(all), Page: maxListed}
	words := strings.Fields(strings.ToLower(r.FormValue("find")))
	var found []Entry
	for _, e := range all {
		if e.Live {
			rep.Live++
		}
		if e.matches(words) {
			found = append(found, e)
		}
	}
	sortEntries(found, r.FormValue("sort"))
	rep.Found = len(found)
	rep.Skip = min(number(r, "skip"), max(0, len(found)-1)/maxListed*maxListed)
	rep.Rows = append([]Entry{}, found[rep.Skip:min(len(found), rep.Skip+maxListed)]...)
	return rep, nil
}

func (e *Entry) matches(words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join([]string{e.Name, e.Service, e.Version, e.User, e.Where, e.State, e.Kind, e.VM,
		e.Dir, fmt.Sprint(e.PID)}, "\x00"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// sortEntries sorts by a column; by default what is recorded now comes first, then the newest.
func sortEntries(all []Entry, by string) {
	slices.SortStableFunc(all, func(a, b Entry) int {
		switch by {
		case "name":
			return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.ID, b.ID))
		case "service":
			if (a.Service == "") != (b.Service == "") { // those without one come last
				return cmp.Compare(b.Service, a.Service)
			}
			return cmp.Compare(strings.ToLower(a.Service), strings.ToLower(b.Service))
		case "size":
			return cmp.Compare(b.Bytes, a.Bytes)
		case "since":
			return b.Since.Compare(a.Since)
		}
		if a.Live != b.Live {
			if a.Live {
				return -1
			}
			return 1
		}
		return b.Since.Compare(a.Since)
	})
}

// about answers with what the first blocks of a recording say.
func (h *Home) about(r *http.Request) (any, error) {
	e, err := h.find(r.Context(), r.FormValue("id"))
	if err != nil {
		return nil, err
	}
	a, err := h.cfg.About(e)
	if err != nil {
		a.Error = err.Error()
	}
	return a, nil
}

// verdict answers with the first headline of a recording, which is read for it. One is read at a time.
func (h *Home) verdict(r *http.Request) (any, error) {
	e, err := h.find(r.Context(), r.FormValue("id"))
	if err != nil {
		return nil, err
	}
	// a growing recording is not read again for each collection
	key := fmt.Sprint(e.ID, " ", e.Live, " ", e.Bytes>>22)
	return h.verdicts.get(r.Context(), key, func(ctx context.Context) (*Headline, error) {
		select {
		case h.reading <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer func() { <-h.reading }()
		cfg, err := h.cfg.Open(ctx, e)
		if err != nil {
			return nil, err
		}
		cfg.Version, cfg.Status = nil, nil // it is read once, and nothing is followed
		s := newServer(*cfg, "")
		defer s.Close()
		rep, err := s.report(ctx)
		if err != nil {
			return nil, err
		}
		return &headlines(rep)[0], nil
	})
}
