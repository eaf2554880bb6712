// Package web is the viewer: a page on loopback that shows a recording, and the requests that the page makes.
//
// Terms: a *view* is one part of the page (overview, state, diff, trends, leaks, coverage); the *version* of a
// recording changes when it has grown.
//
// Invariants:
//
//  1. The page loads nothing from elsewhere. A content security policy in each response enforces it.
//  2. A request whose path does not begin with the token of this run gets 404. A request for another host name than
//     loopback's gets 403, so that DNS rebinding reads nothing.
//  3. Only POST changes anything, and only with a header that pages of other sites cannot send.
//  4. Every figure comes unchanged from the functions behind the verbs' --json. Names from a JVM are data in JSON,
//     never markup.
//
// It opens no files and knows no agent: cmd/heapcam passes both in (Config).
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
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
)

//go:embed assets
var assets embed.FS

// Input is a recording opened from its start. Problems are what could not be opened of it. Close ends it.
type Input struct {
	Source   heap.BlockSource
	Problems []error
	Close    func()
}

// Config says what is shown. Open is needed; the others may be nil.
type Config struct {
	Title string // of the recording
	// Open opens the recording from its start; progress is told how many bytes of how many are read.
	Open func(progress func(done, total int64)) (*Input, error)
	// Skim is Open for who counts (heap.NewCensus); nil: there is nothing quicker than Open.
	Skim func(progress func(done, total int64)) (*Input, error)
	// OpenFrom opens it from any point that is not after collection gc, without what was defined before; nil: it can be
	// read from its start alone.
	OpenFrom func(gc uint64) (*Input, error)
	// Report gives the recording's report, by makeReport or as it was kept from earlier.
	Report func(makeReport func() (*analysis.Report, error)) (*analysis.Report, error)
	// Library knows the classifiers; nil: the built-in ones alone.
	Library func() (*classify.Library, error)
	// Version changes when the recording has grown; over says that it will not any more. Nil: it never does.
	Version func() (version string, over bool)
	// Status is what `heapcam status --json` says of the JVM; nil if it is not being recorded.
	Status func(ctx context.Context) any
	// Freeze keeps the present window and gives the incident.
	Freeze func(reason string) (*ringstore.Incident, error)
	// Pull writes the recording as one container.
	Pull func(ctx context.Context, w io.Writer) error
	// Incidents gives what was frozen of this recording.
	Incidents func() []ringstore.Incident
	// Idle is called when an answer was given and nobody has asked for a moment.
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
	hub   hub
	idle  idle
}

// New makes a server with a token of its own.
func New(cfg Config) *Server {
	b := make([]byte, 18)
	rand.Read(b)
	s := &Server{cfg: cfg, token: base64.RawURLEncoding.EncodeToString(b), mux: http.NewServeMux()}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.data.init(s)
	s.idle.f = cfg.Idle
	s.routes()
	if cfg.Version != nil {
		s.watch.Go(s.follow)
	}
	return s
}

// Close ends what runs for requests, and following.
func (s *Server) Close() {
	s.stop()
	s.watch.Wait()
}

// Path is the path of the page: the token between slashes.
func (s *Server) Path() string { return "/" + s.token + "/" }

// maxBody bounds what a request may send.
const maxBody = 64 << 10

// Serve serves on l, which should listen on loopback, until ctx is done.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxBody,
		BaseContext: func(net.Listener) context.Context { return s.ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		s.stop()
		srv.Close()
	}()
	err := srv.Serve(l)
	s.stop()
	<-done
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// policy holds the page to what comes from here. Data URLs are for the images that it draws.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP checks who asks, and serves.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !loopback(r.Host) {
		http.Error(w, "ask by the name of loopback", http.StatusForbidden)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, s.Path())
	if !ok {
		http.Error(w, "not here: the address with its token stands where heapcam view was started", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get("X-Heapcam") == "" {
		http.Error(w, "only the page may ask for this", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	r = r.Clone(r.Context())
	r.URL.Path = "/" + rest
	s.mux.ServeHTTP(w, r)
}

// loopback says whether host, with or without port, is loopback's.
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
		panic(err) // the folder is embedded above
	}
	s.mux.Handle("GET /", zipped(http.FileServerFS(files)))
	api := func(pattern string, f func(r *http.Request) (any, error)) {
		s.mux.Handle(pattern, zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer s.idle.asked()()
			v, err := f(r)
			reply(w, v, err)
		})))
	}
	api("GET /api/overview", s.overview)
	api("GET /api/group", s.group)
	api("GET /api/classifiers", s.classifiers)
	s.mux.Handle("GET /api/export", file(s.export))
	api("GET /api/diff", s.diff)
	api("GET /api/trend", s.trend)
	api("GET /api/survival", s.survival)
	s.mux.Handle("GET /api/export-diff", file(s.exportDiff))
	api("POST /api/freeze", s.freeze)
	s.mux.HandleFunc("GET /api/pull", s.pull)
	s.mux.HandleFunc("GET /api/events", s.events)
}
