// Package web is the viewer: an HTTP server on the loopback interface, with a page that shows a recording.
//
// Terms: a *view* is one part of the page (overview, state, diff, trends, leaks, heap size, coverage,
// glossary). The *version* of a recording changes when it has grown.
//
// Invariants:
//
//  1. The page loads nothing from elsewhere. A content security policy in each response enforces it.
//  2. A request whose path does not begin with the token of this run gets 404. A request whose host name is not one of
//     the loopback interface gets 403: DNS rebinding reads nothing.
//  3. Only a POST with a header that pages of other sites cannot send changes anything.
//  4. Every figure comes unchanged from the functions behind the verbs' --json. Names from a JVM are data in JSON,
//     never markup.
//
// The package opens no files and knows no agent: cmd/heapcam passes both in (Config).
package web

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
)

//go:embed assets
var assets embed.FS

// Input is a recording opened from its start. Problems says which parts could not be opened. Close closes it.
type Input struct {
	Source   heap.BlockSource
	Problems []error
	Close    func()
	// Oldest is the first collection that the recording still has, 0: not known. Nil: it has all.
	Oldest func() uint64
}

// Graphs keeps graphs of the recording from one process to the next. Keep may take long; it does not fail.
type Graphs interface {
	retention.Kept
	Keep(h *retention.Heap)
}

// Config says what is shown. Open is required; the other functions may be nil.
type Config struct {
	Title string // of the recording
	// Open opens the recording from its start. progress gets the bytes that are read and their total.
	Open func(progress func(done, total int64)) (*Input, error)
	// OpenCensus is Open for a counting replay (heap.NewCensus); nil: Open is used.
	OpenCensus func(progress func(done, total int64)) (*Input, error)
	// References opens the recording for its reference listings; zero: Open does.
	References struct {
		Heads, Parts, Defs func(progress func(done, total int64)) (*Input, error)
	}
	// Graphs keeps graphs of reference listings; nil: they are made each time.
	Graphs Graphs
	// OpenPauses opens the recording without what only heap states need (analysis.Outline); nil: nothing is shown until
	// the report is there.
	OpenPauses func() (*Input, error)
	// OpenFrom opens the recording at any point up to collection gc, without the definitions before that point; nil: it
	// can be read only from its start.
	OpenFrom func(gc uint64) (*Input, error)
	// Follow opens a recording that may still grow. At the end of what is recorded its source gives io.EOF, and then
	// what is added later. Nil: heap states of a recording that grows are not kept.
	Follow func(progress func(done, total int64)) (*Input, error)
	// FollowCensus is Follow for a counting replay; nil: the report of a recording that grows reads all of it each
	// time.
	FollowCensus func(progress func(done, total int64)) (*Input, error)
	// Report returns the recording's report: one stored earlier, or that of makeReport.
	Report func(makeReport func() (*analysis.Report, error)) (*analysis.Report, error)
	// Leaks returns what the leak detector gets from the recording, and a function that frees what it needs; nil:
	// nothing.
	Leaks func() (o leak.Options, done func())
	// Library returns the classifiers; nil: only the built-in ones.
	Library func() (*classify.Library, error)
	// Version changes when the recording has grown; over says that it no longer grows. Nil: it does not grow.
	Version func() (version string, over bool)
	// Status returns what `heapcam status --json` prints about the JVM; nil if it is not being recorded.
	Status func(ctx context.Context) any
	// Freeze keeps the current window as an incident.
	Freeze func(reason string) (*ringstore.Incident, error)
	// Pull writes the recording as one file.
	Pull func(ctx context.Context, w io.Writer) error
	// Incidents returns the incidents of this recording.
	Incidents func() []ringstore.Incident
	// Settle has the agent list which objects live, and returns what it did; SettleMost is how long that may stop the
	// JVM. Nil: no agent records the JVM.
	Settle     func(ctx context.Context) (string, error)
	SettleMost time.Duration
	// Home is the relative address of the list of all recordings; "": there is none.
	Home string
	// Before is the recording from before a change, with which this one is compared; nil: there is none.
	Before *Config
	// Idle is called when all requests were answered and no new one arrived for a moment.
	Idle func()
}

// Server serves one recording. Make it with New; Close it.
type Server struct {
	cfg   Config
	token string
	mux   *http.ServeMux
	data  data
	ctx   context.Context // ends with the server
	stop  context.CancelFunc
	watch sync.WaitGroup
	hub   *hub
	idle  idle
	// outlined says that a report has begun, which waited for the outline.
	outlined atomic.Bool
	thrift   atomic.Pointer[func()] // of Ahead
	way      way
	// of the recording that this one is compared with; nil: there is none. It serves no requests.
	before *Server
}

// New makes a server with a random token.
func New(cfg Config) *Server { return newServer(cfg, newToken()) }

func newToken() string {
	b := make([]byte, 18)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// newServer makes a server whose path is token.
func newServer(cfg Config, token string) *Server {
	s := &Server{cfg: cfg, token: token, mux: http.NewServeMux(), hub: &hub{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.data.init(s)
	if cfg.Before != nil {
		s.before = &Server{cfg: *cfg.Before, hub: s.hub, ctx: s.ctx}
		s.before.data.init(s.before)
	}
	s.idle.f = cfg.Idle
	s.routes()
	if cfg.Version != nil {
		s.watch.Go(s.follow)
	}
	return s
}

// Close ends the work for requests, and the watch on the recording.
func (s *Server) Close() {
	s.stop()
	s.watch.Wait()
}

// Path is the path of the page: the token between slashes.
func (s *Server) Path() string { return "/" + s.token + "/" }

// maxBody is the largest body and header of a request, in bytes.
const maxBody = 64 << 10

// Serve serves on l, which should listen on loopback, until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return serve(ctx, l, s, s.ctx, s.stop)
}

// serve serves h on l until ctx or own, which stop ends, is done.
func serve(ctx context.Context, l net.Listener, h http.Handler, own context.Context, stop func()) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxBody,
		BaseContext: func(net.Listener) context.Context { return own }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-own.Done():
		}
		stop()
		srv.Close()
	}()
	err := srv.Serve(l)
	stop()
	<-done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// policy is the content security policy: the page loads only from this server. Data URLs are for images that it
// draws.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP checks host name, token and header, and serves the request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r, ok := guard(w, r, s.Path()); ok {
		s.mux.ServeHTTP(w, r)
	}
}

// guard sets the headers of a response, and checks host name, path and header of the request. It returns the request
// below the path; false: it has answered.
func guard(w http.ResponseWriter, r *http.Request, path string) (*http.Request, bool) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !loopback(r.Host) {
		http.Error(w, "heapcam view answers only at localhost or a loopback address", http.StatusForbidden)
		return nil, false
	}
	rest, ok := strings.CutPrefix(r.URL.Path, path)
	if !ok {
		http.Error(w, "not found: open the whole address, with its token, that heapcam view printed",
			http.StatusNotFound)
		return nil, false
	}
	if r.Method == http.MethodPost && r.Header.Get("X-Heapcam") == "" {
		http.Error(w, "only the page of heapcam view may send this request", http.StatusForbidden)
		return nil, false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	r = r.Clone(r.Context())
	r.URL.Path = "/" + rest
	return r, true
}

// loopback reports whether host, with or without port, is a name or address of the loopback interface.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Server) routes() {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // cannot happen: the folder is embedded
	}
	s.mux.Handle("GET /", zipped(http.FileServerFS(files)))
	api := func(pattern string, f func(r *http.Request) (any, error)) {
		s.mux.Handle(pattern, zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer s.idle.begin()()
			v, err := f(r)
			reply(w, v, err)
		})))
	}
	api("GET /api/overview", s.overview)
	api("GET /api/early", s.early)
	api("GET /api/nearest", s.nearest)
	api("GET /api/group", s.group)
	api("GET /api/flame", s.flame)
	api("GET /api/classifiers", s.classifiers)
	s.mux.Handle("GET /api/export", file(s.export))
	api("GET /api/diff", s.diff)
	api("GET /api/change", s.change)
	api("GET /api/compare", s.compare)
	api("GET /api/cost", s.cost)
	api("GET /api/whatif", s.whatif)
	api("GET /api/trend", s.trend)
	api("GET /api/survival", s.survival)
	s.mux.Handle("GET /api/export-diff", file(s.exportDiff))
	api("GET /api/retained", s.retained)
	api("GET /api/holders", s.holders)
	api("GET /api/misses", s.misses)
	api("POST /api/freeze", s.freeze)
	api("POST /api/settle", s.settle)
	s.mux.HandleFunc("GET /api/pull", s.pull)
	s.mux.HandleFunc("GET /api/events", s.events)
}
