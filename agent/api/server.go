package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/agent/upload"
)

const (
	maxRequest = 64 << 10
	apiTimeout = 30 * time.Second
)

// Recorder is what the API serves: the daemon. All methods are safe for concurrent use.
type Recorder interface {
	// Out returns the folder that holds the ring folders.
	Out() string
	Status() []session.Status
	Others() []Other
	Self() quota.Self
	Spool() *spool.Status     // nil: there is no spool folder
	Upload() *upload.Status   // nil: nothing is uploaded
	Pushes() *profiles.Status // nil: no profiles are pushed
	// Rescan makes the recorder look for rings now.
	Rescan()
	// Records says whether a JVM of the user uid is being recorded.
	Records(uid int) bool
	// DetachFor, PauseFor and ResumeFor do so with the session whose ID is id, or all for "", as far as c controls
	// them. They return how many were asked. Errors: fs.ErrNotExist, also for a session that c does not control.
	DetachFor(c Caller, id string) (int, error)
	PauseFor(c Caller, id string) (int, error)
	ResumeFor(c Caller, id string) (int, error)
	// ReferencesFor takes a reference listing of the session whose ID is id, if c controls it, and returns when it is
	// stored. Errors: those of session.AskReferences, fs.ErrNotExist.
	ReferencesFor(ctx context.Context, c Caller, id string, most time.Duration) (session.References, error)
}

// Attacher loads the probe into a running JVM and waits until the agent records it.
type Attacher func(ctx context.Context, r AttachRequest) (AttachReply, error)

// Config says what a Server does beside what its Recorder does.
type Config struct {
	Attach Attacher         // of local callers; nil: this agent does not attach
	Reload func() error     // reads the configuration again; nil: there is none
	Kind   func(error) Kind // of errors of Attach, Reload and pulls; nil: KindOf
	Rings  []string         // watched folders, for the log
	Log    zerolog.Logger
}

// Server serves the API of one agent, on any number of listeners. All methods are safe for concurrent use.
type Server struct {
	rec      Recorder
	cfg      Config
	pulls    chan struct{} // one for each that is served
	refusals changes       // that stand in the log
	changes  changes       // of callers that are no operators
	settles  settles
}

// New makes a server.
func New(rec Recorder, cfg Config) *Server {
	if cfg.Kind == nil {
		cfg.Kind = KindOf
	}
	return &Server{rec: rec, cfg: cfg, pulls: make(chan struct{}, maxPulls)}
}

// Handler serves the API to callers that who names. Each verb is refused to whom Verbs does not give it, and what
// changes something is logged with its client. attach may be nil.
func (s *Server) Handler(attach Attacher, who func(*http.Request) Caller) http.Handler {
	mux := http.NewServeMux()
	handle := func(method, verb string, f func(http.ResponseWriter, *http.Request, Caller)) {
		mux.HandleFunc(method+" /v1/"+verb, func(w http.ResponseWriter, r *http.Request) {
			c := who(r)
			if err := s.admit(method, verb, c); err != nil {
				s.reply(w, nil, err)
				return
			}
			f(w, r, c)
		})
	}
	handle("GET", "status", func(w http.ResponseWriter, _ *http.Request, c Caller) { s.reply(w, s.status(c), nil) })
	handle("GET", "pull", s.servePull)
	handle("POST", "attach", func(w http.ResponseWriter, r *http.Request, _ Caller) {
		var req AttachRequest
		if err := decode(r, &req); err != nil || attach == nil {
			s.reply(w, nil, errors.Join(err, errIf(attach == nil, "this agent does not attach")))
			return
		}
		out, err := attach(r.Context(), req)
		s.rec.Rescan()
		s.reply(w, out, err)
	})
	handle("POST", "reload", func(w http.ResponseWriter, _ *http.Request, _ Caller) {
		err := errIf(s.cfg.Reload == nil, "this agent has no configuration")
		if err == nil {
			err = s.cfg.Reload()
		}
		s.reply(w, struct{}{}, err)
	})
	for verb, do := range map[string]func(Caller, string) (int, error){
		"detach": s.rec.DetachFor, "pause": s.rec.PauseFor, "resume": s.rec.ResumeFor,
	} {
		handle("POST", verb, func(w http.ResponseWriter, r *http.Request, c Caller) {
			var req DetachRequest
			err := decode(r, &req)
			n := 0
			if err == nil && req.All == (req.ID != "") {
				err = errors.New("neither an id nor all, or both")
			}
			if err == nil {
				n, err = do(c, req.ID)
			}
			s.reply(w, DetachReply{n}, err)
		})
	}
	handle("POST", "references", func(w http.ResponseWriter, r *http.Request, c Caller) {
		var req ReferencesRequest
		var out session.References
		err := decode(r, &req)
		if err == nil {
			out, err = s.rec.ReferencesFor(r.Context(), c, req.ID, time.Duration(req.Most))
		}
		s.reply(w, out, err)
	})
	handle("POST", "settle", s.serveSettle)
	return mux
}

// reply answers with v, or with err unless it is nil.
func (s *Server) reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := http.StatusUnprocessableEntity
		if errors.Is(err, os.ErrPermission) {
			status = http.StatusForbidden
		}
		w.WriteHeader(status)
		v = ErrorReply{err.Error(), s.cfg.Kind(err)}
	}
	_ = json.NewEncoder(w).Encode(v)
}

// admit says why c may not ask for verb now, and logs changes.
func (s *Server) admit(method, verb string, c Caller) error {
	if !c.May(verb) {
		if s.refusals.allow(s.bucket(c), time.Now()) {
			logs.Write(&s.cfg.Log, logs.RequestRefused, logs.Audit.Of(verb), logs.Client.Of(c.Name))
		}
		err := fmt.Errorf("%s is not for %s: %w", verb, c.Name, os.ErrPermission)
		if Verbs[verb] == Operator && c.Scope == nil {
			err = fmt.Errorf("%w: root and the members of the group %s may do that", err, Group)
		}
		return err
	}
	if method == "POST" {
		if c.Role != Operator && !s.changes.allow(s.bucket(c), time.Now()) { // nor does it fill the log
			return fmt.Errorf("too many changes by %s: %d at once and one a second are allowed; try again",
				session.UserName(c.UID), ChangesAtOnce)
		}
		logs.Write(&s.cfg.Log, logs.RequestAccepted, logs.Audit.Of(verb), logs.Client.Of(c.Name))
	}
	return nil
}

// bucket returns as whose a caller's changes and refusals count.
func (s *Server) bucket(c Caller) int {
	if s.rec.Records(c.UID) {
		return c.UID
	}
	return nobodys
}

// status returns what c may see.
func (s *Server) status(c Caller) StatusReply {
	st := StatusReply{Schema: StatusSchema, Agent: true, Out: s.rec.Out(), JVMs: s.rec.Status()}
	if st.Others = s.rec.Others(); c.Role == Operator {
		self := s.rec.Self()
		st.Self, st.Upload, st.Profiles = &self, s.rec.Upload(), s.rec.Pushes()
	}
	if st.Spool = s.rec.Spool(); st.Spool != nil {
		st.Spool.Left = slices.DeleteFunc(st.Spool.Left, func(i spool.Item) bool { return !c.Sees(i.UID) })
	}
	st.JVMs = slices.DeleteFunc(st.JVMs, func(s session.Status) bool { return !c.Sees(s.UID) })
	st.Others = slices.DeleteFunc(st.Others, func(o Other) bool { return !c.Sees(o.UID) })
	return st
}

func errIf(b bool, s string) error {
	if b {
		return errors.New(s)
	}
	return nil
}

func decode(r *http.Request, v any) error {
	return json.NewDecoder(io.LimitReader(r.Body, maxRequest)).Decode(v)
}

// Serve serves the API on a local socket at path (a Unix socket; on Windows a named pipe) until ctx is done, and logs
// that the agent is ready once it listens. A socket that nobody listens on is replaced; one that somebody does listen
// on is an error.
func (s *Server) Serve(ctx context.Context, path string) error {
	l, err := listen(path)
	if err != nil {
		return err
	}
	logs.Write(&s.cfg.Log, logs.AgentReady, logs.Socket.Of(path), logs.Rings.Of(strings.Join(s.cfg.Rings, ",")),
		logs.Out.Of(s.rec.Out()))
	srv := &http.Server{
		Handler: s.Handler(s.cfg.Attach, localCaller), ConnContext: keepPeer,
		ReadTimeout: apiTimeout, WriteTimeout: apiTimeout, IdleTimeout: apiTimeout, MaxHeaderBytes: maxRequest,
	}
	return serve(ctx, srv, &guests{Listener: l, key: localKey, n: map[string]int{}})
}

// serve serves until ctx is done.
func serve(ctx context.Context, srv *http.Server, l net.Listener) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		srv.Close()
	}()
	err := srv.Serve(l)
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		<-done
		return nil
	}
	return err
}
