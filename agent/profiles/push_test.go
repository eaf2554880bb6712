package profiles

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// server takes pushes as strictly as Pyroscope's service, and counts each profile by its id.
type server struct {
	t      *testing.T
	answer func(w http.ResponseWriter) bool // true: it has answered
	mu     sync.Mutex
	got    map[string]int // by id
	labels map[string]int // label sets
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.answer != nil && s.answer(w) {
		return
	}
	var q pushRequest
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil || r.Method != http.MethodPost || r.URL.Path != pushPath ||
		r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-Scope-OrgID") != "team" {
		s.t.Errorf("%s %s %v: %v", r.Method, r.URL, r.Header, err)
		http.Error(w, "invalid", http.StatusBadRequest)
		return
	}
	if u, p, _ := r.BasicAuth(); u != "heapcam" || p != "s3cr3t" {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range q.Series {
		var names []string
		for i, l := range x.Labels {
			if names = append(names, l.Name+"="+l.Value); i > 0 && x.Labels[i-1].Name >= l.Name || l.Value == "" {
				s.t.Errorf("labels %v", x.Labels)
			}
		}
		s.labels[strings.Join(names, ",")]++
		for _, y := range x.Samples {
			b, err := base64.StdEncoding.DecodeString(y.RawProfile)
			if err == nil {
				_, err = profile.Parse(bytes.NewReader(b))
			}
			if err != nil || !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(y.ID) {
				s.t.Errorf("profile %q: %v", y.ID, err)
			}
			s.got[y.ID]++
		}
	}
	_, _ = io.WriteString(w, "{}")
}

func (s *server) taken() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.got) }

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// pushing runs a hub that pushes to url. It retries without waiting long.
func pushing(t *testing.T, url string, set ...func(*Config)) (*Hub, *logBuffer) {
	var log logBuffer
	cfg := Config{Every: time.Minute, URL: url, Tenant: "team", Host: "h", Log: zerolog.New(&log),
		Credentials: func() (string, error) { return "heapcam:s3cr3t", nil }}
	for _, f := range set {
		f(&cfg)
	}
	h := New(cfg)
	h.push.wait = func(ctx context.Context, d time.Duration) {
		if d < firstRetry || d > 2*lastRetry {
			t.Errorf("it waits for %v", d)
		}
		pause(ctx, 20*time.Millisecond)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); h.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		if strings.Contains(log.String(), "s3cr3t") {
			t.Errorf("the log has the password: %s", &log)
		}
	})
	return h, &log
}

// heap is a profile of the JVM of that number, minute at of it.
func heap(jvm, at int) *session.Profile {
	to := time.Unix(int64(1_700_000_000+60*at), 0)
	var v [session.ProfileValues]coverage.Estimate
	v[session.InUse] = coverage.Estimate{Objects: 3, Bytes: 96}
	v[session.Freed] = coverage.Estimate{Objects: 1, Bytes: 32}
	id := fmt.Sprint("Shop-", jvm)
	return &session.Profile{Of: session.Status{ID: id, Session: id, Name: "Shop", Interval: 512 << 10,
		Resource: trace.Resource{trace.AttrService: "shop", trace.AttrVersion: "1.2"}},
		From: to.Add(-time.Minute), To: to, GC: 7, Known: true, Rows: []session.ProfileRow{{Class: "demo.Entry",
			Stack: []session.ProfileFrame{{Name: "demo.Shop.put", File: "Shop.java", Line: 12}}, Values: v}}}
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestPush: whatever the server does, each profile arrives in the end, once, and a JVM has one series.
func TestPush(t *testing.T) {
	status := func(code int) func(w http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool { http.Error(w, "not now", code); return true }
	}
	for name, bad := range map[string]func(w http.ResponseWriter) bool{
		"none": nil, "500": status(500), "403": status(403), "429": status(429), "404": status(404),
		"412": status(412),
		"redirect": func(w http.ResponseWriter) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		},
		"cut off": func(w http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
		"half-open": func(w http.ResponseWriter) bool { // the connection stays, and nothing comes
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				t.Cleanup(func() { c.Close() })
			}
			return true
		},
		"slow": func(http.ResponseWriter) bool { time.Sleep(300 * time.Millisecond); return false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := &server{t: t, got: map[string]int{}, labels: map[string]int{}}
			s.answer = func(w http.ResponseWriter) bool { return bad != nil && calls.Add(1) < 4 && bad(w) }
			srv := httptest.NewServer(s)
			srv.Config.ErrorLog = nil
			defer srv.Close()
			h, log := pushing(t, srv.URL+"/")
			if name == "slow" || name == "half-open" { // the client gives up first
				h.push.client.Timeout = 100 * time.Millisecond
			}
			for at := range 20 {
				for jvm := range 3 {
					h.Take(heap(jvm, at))
				}
			}
			await(t, "all profiles", func() bool { return h.Status().Pushed == 60 })
			st, taken := h.Status(), s.taken()
			s.mu.Lock() // of what the client gave up some may still come
			defer s.mu.Unlock()
			if taken != 60 || len(s.labels) != 3 || st.Dropped != 0 || st.Pending != 0 ||
				(st.Failed == 0) != (bad == nil) {
				t.Errorf("%d profiles, series %v, %+v; %s", taken, s.labels, st, log)
			}
			for id, n := range s.got {
				if n != 1 && name != "slow" { // what was taken while the client gave up comes again, by the same id
					t.Errorf("profile %s was taken %d times", id, n)
				}
			}
			if bad != nil && (strings.Count(log.String(), "profiles-not-pushed") == 0 ||
				!strings.Contains(log.String(), "profiles-pushed-again")) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// TestPushRefused: what the server refuses for good is dropped, and nothing else.
func TestPushRefused(t *testing.T) {
	s := &server{t: t, got: map[string]int{}, labels: map[string]int{}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bytes.Contains(b, []byte("Shop-1")) {
			http.Error(w, "profile is too large", http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		s.ServeHTTP(w, r)
	}))
	defer srv.Close()
	h, log := pushing(t, srv.URL)
	for jvm := range 3 {
		h.Take(heap(jvm, 0))
	}
	await(t, "two profiles", func() bool { st := h.Status(); return st.Pushed == 2 && st.Dropped == 1 })
	if s.taken() != 2 || !strings.Contains(log.String(), "profile is too large") {
		t.Errorf("%d %s", s.taken(), log)
	}
}

// TestPushOutage: a server that is away, and one that takes connections and never answers, leave a bounded queue, the
// newest profiles in it; what was lost is counted, and the rest arrives when the server is back.
func TestPushOutage(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // half open: nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	h, log := pushing(t, "http://"+l.Addr().String())
	h.push.client.Timeout = 500 * time.Millisecond
	big := func(n int) *encoded {
		body, err := Encode(heap(0, n))
		if err != nil {
			t.Fatal(err)
		}
		pad := make([]byte, 1<<20) // behind the end of a gzip member comes another one
		for i := range pad {
			pad[i] = byte(rand.Uint32())
		}
		return &encoded{id: uuid(heap(0, n)), labels: labels(&heap(0, n).Of, "h"), body: append(body, pad...)}
	}
	for n := range 40 {
		h.push.put(big(n))
	}
	st := h.Status()
	if size := h.push.bytes; size > maxQueue || st.Pending != 15 || st.Dropped != 25 {
		t.Errorf("%d bytes wait, %+v", size, st)
	}
	if n := strings.Count(log.String(), "profiles-dropped"); n != 1 {
		t.Errorf("%d lines about one outage", n)
	}
	await(t, "a failure", func() bool { return h.Status().Failed > 1 })
	l.Close()
	await(t, "refused connections", func() bool { return strings.Contains(log.String(), "refused") })
	var taken atomic.Int64
	back, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		t.Skip("the port is taken:", err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		taken.Add(1)
	})}
	go func() { _ = srv.Serve(back) }()
	defer srv.Close()
	await(t, "the rest", func() bool { st := h.Status(); return st.Pending == 0 && st.Pushed == 15 })
	if taken.Load() < 15 {
		t.Errorf("%d requests", taken.Load())
	}
}

// TestPushCredentials: without credentials nothing is sent, and the reason is logged.
func TestPushCredentials(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request") }))
	defer srv.Close()
	h, log := pushing(t, srv.URL)
	h.push.cfg.Credentials = func() (string, error) { return "", errors.New("the file can be read by others") }
	h.Take(heap(0, 0))
	await(t, "the reason", func() bool { return strings.Contains(log.String(), "can be read by others") })
}

// TestEncode: a profile whose live objects are not known does not say that there are none.
func TestEncode(t *testing.T) {
	p := heap(0, 0)
	p.Known = false
	b, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	x, err := profile.Parse(bytes.NewReader(b))
	if err != nil || len(x.SampleType) != 6 || x.SampleType[0].Type != "alloc_objects" {
		t.Fatalf("%v %v", err, x)
	}
	if s := x.Sample[0]; s.Location[0].Line[0].Function.Name != "demo.Entry" || len(s.Label) != 0 ||
		s.Value[4] != 1 || s.Value[5] != 32 {
		t.Errorf("%+v", s)
	}
}

// TestTakeNeverWaits: a session that has a profile is never kept waiting.
func TestTakeNeverWaits(t *testing.T) {
	h := New(Config{Every: time.Minute})
	for n := range takes + 7 {
		h.Take(heap(0, n))
	}
	if st := h.Status(); st.Dropped != 7 {
		t.Errorf("%+v", st)
	}
}

// large is a profile of 1,000 sites.
func large() *session.Profile {
	p := heap(0, 0)
	row := p.Rows[0]
	p.Rows = nil
	for n := range 1000 {
		r := row
		r.Stack = nil
		for k := range 20 {
			r.Stack = append(r.Stack, session.ProfileFrame{Name: fmt.Sprint("demo.Shop.method", (n*k)%300),
				File: "Shop.java", Line: k * n % 50})
		}
		p.Rows = append(p.Rows, r)
	}
	return p
}

func BenchmarkEncode(b *testing.B) {
	p := large()
	var size int
	for b.Loop() {
		body, err := Encode(p)
		if err != nil {
			b.Fatal(err)
		}
		size = len(body)
	}
	b.ReportMetric(float64(size), "bytes")
}

// TestOTLPAnswer: what a collector rejects is dropped, and a damaged answer is none.
func TestOTLPAnswer(t *testing.T) {
	rejected := []byte("\x0a\x07\x08\x03\x12\x03why")
	if err := otlpRefused(rejected); err == nil || !strings.Contains(err.Error(), "rejected 3 profiles: why") {
		t.Error(err)
	}
	for _, b := range []string{"", "\x0a\x00", "\x0a\x05\x12\x03why", "\x0a", "\xff\xff\xff", "<html>",
		"\x0a\x7f\x08"} {
		if err := otlpRefused([]byte(b)); err != nil {
			t.Errorf("%q: %v", b, err)
		}
	}
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1development/profiles" || r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		if calls.Add(1) == 2 {
			_, _ = w.Write(rejected)
		}
	}))
	defer srv.Close()
	h, log := pushing(t, srv.URL, func(c *Config) { c.OTLP = true })
	for i := range 3 {
		h.Take(heap(i, 0))
	}
	await(t, "all profiles", func() bool { st := h.Status(); return st.Pushed == 2 && st.Dropped == 1 })
	if !strings.Contains(log.String(), "rejected 3 profiles: why") || calls.Load() != 3 {
		t.Errorf("%d requests; %s", calls.Load(), log)
	}
}
