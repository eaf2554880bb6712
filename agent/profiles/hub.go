package profiles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/trace"
)

// Config says how often profiles are taken, and where they go.
type Config struct {
	Every  time.Duration
	Scrape bool   // they are served
	URL    string // of the server that they are pushed to; "": none
	OTLP   bool   // they are pushed as OpenTelemetry's protocol has them; otherwise as Pyroscope has them
	// Tenant is the value of X-Scope-OrgID; "": none is sent.
	Tenant string
	// Credentials gives USER:PASSWORD or a token, whenever profiles are pushed; nil: none are needed.
	Credentials func() (string, error)
	Host        string // of this host
	Out         string // folder for recordings: what waits is kept there while no agent runs; "": it is not kept
	Log         zerolog.Logger
}

// Status counts profiles.
type Status struct {
	Pending int    `json:"pending"` // that the server does not have yet
	Pushed  uint64 `json:"pushed"`  // that it took, from earlier agents too
	Failed  uint64 `json:"failed"`  // requests of this agent that failed
	// Dropped no longer had room, were refused by the server, could not be made, or were lost when an agent was killed;
	// those of earlier agents included.
	Dropped uint64 `json:"dropped"`
	// To is the server's address; "": profiles are scraped only.
	To string `json:"to,omitempty"`
	// Error is why the last request failed; absent: it did not.
	Error string `json:"error,omitempty"`
}

// Hub takes profiles from sessions.
//
// Owner: the agent. Lifetime: from New to the end of Run's context. Concurrency: Take, Status and the handler at any
// time; Run once.
type Hub struct {
	cfg     Config
	in      chan *session.Profile
	dropped atomic.Uint64 // that Take or Encode did
	push    *pusher       // nil: none

	mu     sync.Mutex
	newest map[string]*encoded // by session
}

// encoded is a profile in pprof's format.
type encoded struct {
	id        string // a UUID, the same whenever this profile is sent
	recording string
	labels    map[string]string
	to        time.Time
	body      []byte
}

// takes is how many profiles may wait to be encoded.
const takes = 512

// New makes a hub. It sends nothing.
func New(cfg Config) *Hub {
	h := &Hub{cfg: cfg, in: make(chan *session.Profile, takes), newest: map[string]*encoded{}}
	if cfg.URL != "" {
		h.push = newPusher(cfg)
	}
	return h
}

// Every is the time between two profiles of a JVM.
func (h *Hub) Every() time.Duration { return h.cfg.Every }

// Take takes a profile, or drops it if too many wait. It never waits.
func (h *Hub) Take(p *session.Profile) {
	select {
	case h.in <- p:
	default:
		h.dropped.Add(1)
	}
}

// Status says how far it is.
func (h *Hub) Status() Status {
	st := Status{Dropped: h.dropped.Load()}
	if h.push != nil {
		h.push.count(&st)
	}
	return st
}

// Run encodes and pushes profiles until ctx is done.
func (h *Hub) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	if h.push != nil {
		h.push.recall()
		wg.Go(func() { h.push.run(ctx) })
		defer func() {
			wg.Wait()
			h.push.keep()
			h.push.end()
		}()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-h.in:
			h.take(p)
		}
	}
}

func (h *Hub) take(p *session.Profile) {
	b, err := Encode(p)
	if err != nil {
		h.dropped.Add(1)
		logs.Write(&h.cfg.Log, logs.ProfileNotMade, logs.Recording.Of(p.Of.ID), logs.Err.Of(err))
		return
	}
	e := &encoded{id: uuid(p), recording: p.Of.ID, labels: labels(&p.Of, h.cfg.Host), to: p.To, body: b}
	if h.cfg.Scrape {
		h.mu.Lock()
		h.newest[p.Of.Session] = e
		h.mu.Unlock()
	}
	if h.push != nil {
		h.push.put(e)
	}
}

// served gives the newest profiles, by recording. Those of JVMs that have ended are dropped.
func (h *Hub) served() []*encoded {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.newest, func(_ string, e *encoded) bool { return time.Since(e.to) > 3*h.cfg.Every })
	return slices.SortedFunc(maps.Values(h.newest), func(a, b *encoded) int {
		return cmp.Compare(a.recording, b.recording)
	})
}

// labels are all that a server gets beside the profile: one series a JVM.
func labels(s *session.Status, host string) map[string]string {
	out := map[string]string{}
	put := func(k, v string) {
		if v != "" {
			out[k] = v
		}
	}
	put("service_name", cmp.Or(s.Resource[trace.AttrService], s.Name))
	put("service_version", s.Resource[trace.AttrVersion])
	put("service_namespace", s.Resource.Namespace())
	put("host", cmp.Or(s.Resource[trace.AttrHost], host))
	put("instance", s.ID)
	return out
}

// uuid names a profile: by its session and time.
func uuid(p *session.Profile) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %d", p.Of.Session, p.To.UnixNano()))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // version 8, of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
