package agent

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
)

// API of the daemon: JSON over HTTP on a Unix socket. An agent of root asks the kernel who calls and decides by role (roles.go): a JVM's own user
// sees, pulls, pauses, resumes and detaches what is its own, and for it nothing else exists; the socket
// of any other user's agent has mode 0600.
//
//	GET  /v1/pull?id=… -> application/x-tar
//	GET  /v1/status            -> StatusReply
//	POST /v1/attach {AttachRequest} -> AttachReply
//	POST /v1/detach, /v1/pause, /v1/resume {DetachRequest} -> DetachReply
//	POST /v1/reload -> {}: the configuration is read again; refused as a whole if a part of it can not take effect
//
// An error is a status of 400 or above and ErrorReply; Code is the exit code that a verb gives for it.

// StatusReply is the answer of GET /v1/status and what `status --json` prints.
type StatusReply struct {
	Schema string       `json:"schema"` // heapcam.status/1
	Agent  bool         `json:"agent"`  // an agent answered
	Out    string       `json:"out"`
	JVMs   []Status     `json:"jvms"`
	Others []Other      `json:"others,omitempty"` // JVMs that were found and are not recorded
	Spool  *SpoolStatus `json:"spool,omitempty"`  // nil: there is no spool folder
	Self   *Self        `json:"self,omitempty"`   // nil: the caller is not told, or the agent is older
}

// Other is a JVM that is not recorded, and why.
type Other struct {
	ID      string `json:"id"` // of package jvms
	PID     int    `json:"pid"`
	UID     int    `json:"uid"`
	Name    string `json:"name"`
	Ignored bool   `json:"ignored,omitempty"` // a rule says so
	Why     string `json:"why"`               // one word of a small set, for programs
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy,omitempty"`
}

// StatusSchema names the shape of StatusReply.
const StatusSchema = "heapcam.status/1"

// AttachRequest asks to load the probe into a running JVM.
type AttachRequest struct {
	JVM     string `json:"jvm"`               // pid, beginning of an id, or name
	Options string `json:"options,omitempty"` // of the probe, without dir=
}

// AttachReply says which JVM was meant; it is being recorded.
type AttachReply struct {
	ID   string `json:"id"` // of Status
	PID  int    `json:"pid"`
	Name string `json:"name"`
	Dir  string `json:"dir"`
}

// DetachRequest names the session that a verb is about.
type DetachRequest struct {
	ID  string `json:"id,omitempty"`  // of Status
	All bool   `json:"all,omitempty"` // all, instead of one
}

// DetachReply says how many sessions were asked.
type DetachReply struct {
	Asked int `json:"asked"`
}

// ErrorReply tells an error.
type ErrorReply struct {
	Error string `json:"error"`
	Code  int    `json:"code"`
}

const (
	maxRequest = 64 << 10
	apiTimeout = 30 * time.Second
)

// Attacher loads the probe into a running JVM and waits until the agent records it.
type Attacher func(ctx context.Context, r AttachRequest) (AttachReply, error)

// Handler serves the API. code maps an error to an exit code; attach may be nil.
//
// who tells who calls; each verb is refused to whom Verbs does not give it, and what changes something stands in the log with its caller.
func (a *Agent) Handler(attach Attacher, code func(error) int, who func(*http.Request) Caller) http.Handler {
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			status := http.StatusUnprocessableEntity
			if errors.Is(err, os.ErrPermission) {
				status = http.StatusForbidden
			}
			w.WriteHeader(status)
			v = ErrorReply{err.Error(), code(err)}
		}
		json.NewEncoder(w).Encode(v)
	}
	handle := func(method, verb string, f func(http.ResponseWriter, *http.Request, Caller)) {
		mux.HandleFunc(method+" /v1/"+verb, func(w http.ResponseWriter, r *http.Request) {
			c := who(r)
			if !c.May(verb) {
				if a.refusals.allow(a.bucket(c), time.Now()) {
					a.cfg.Log.Warn().Str("audit", verb).Str("caller", c.Name).Msg("refused")
				}
				err := fmt.Errorf("%s is not for %s: %w", verb, c.Name, os.ErrPermission)
				if Verbs[verb] == Operator && c.Scope == nil {
					err = fmt.Errorf("%w: root and the members of the group %s may do that", err, Group)
				}
				reply(w, nil, err)
				return
			}
			if method == "POST" {
				if c.Role != Operator && !a.changes.allow(a.bucket(c), time.Now()) { // nor does it fill the log
					reply(w, nil, fmt.Errorf("too many changes by %s: %d at once and one a second are allowed; try again", userName(c.UID), changesAtOnce))
					return
				}
				a.cfg.Log.Info().Str("audit", verb).Str("caller", c.Name).Msg("asked for")
			}
			f(w, r, c)
		})
	}
	handle("GET", "status", func(w http.ResponseWriter, _ *http.Request, c Caller) {
		st := StatusReply{Schema: StatusSchema, Agent: true, Out: a.cfg.Out, JVMs: a.Status()}
		if st.Others = a.Others(); c.Role == Operator {
			self := a.Self()
			st.Self = &self
		}
		if st.Spool = a.Spool(); st.Spool != nil {
			st.Spool.Left = slices.DeleteFunc(st.Spool.Left, func(i SpoolItem) bool { return !c.Sees(i.UID) })
		}
		st.JVMs = slices.DeleteFunc(st.JVMs, func(s Status) bool { return !c.Sees(s.UID) })
		st.Others = slices.DeleteFunc(st.Others, func(o Other) bool { return !c.Sees(o.UID) })
		reply(w, st, nil)
	})
	handle("GET", "pull", func(w http.ResponseWriter, r *http.Request, c Caller) {
		a.servePull(w, r, c, func(err error) { reply(w, nil, err) })
	})
	handle("POST", "attach", func(w http.ResponseWriter, r *http.Request, _ Caller) {
		var req AttachRequest
		if err := decode(r, &req); err != nil || attach == nil {
			reply(w, nil, errors.Join(err, errIf(attach == nil, "this agent does not attach")))
			return
		}
		out, err := attach(r.Context(), req)
		a.Rescan()
		reply(w, out, err)
	})
	handle("POST", "reload", func(w http.ResponseWriter, _ *http.Request, _ Caller) {
		err := errIf(a.cfg.Reload == nil, "this agent has no configuration")
		if err == nil {
			err = a.cfg.Reload()
		}
		reply(w, struct{}{}, err)
	})
	for verb, do := range map[string]func(Caller, string) (int, error){"detach": a.detachBy, "pause": a.pauseBy, "resume": a.resumeBy} {
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
			reply(w, DetachReply{n}, err)
		})
	}
	return mux
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

// Serve serves the API on a local socket at path (a Unix socket; on Windows a named pipe) until ctx is done, and logs that the agent is ready
// once it listens. A socket that nobody listens on is replaced; one that somebody does listen on is an error.
func (a *Agent) Serve(ctx context.Context, path string, attach Attacher, code func(error) int) error {
	l, err := listen(path)
	if err != nil {
		return err
	}
	a.cfg.Log.Info().Str("socket", path).Str("rings", strings.Join(a.cfg.Watch, ",")).Str("out", a.Out()).Msg("agent is ready")
	srv := &http.Server{
		Handler: a.Handler(attach, code, localCaller), ConnContext: keepPeer,
		ReadTimeout: apiTimeout, WriteTimeout: apiTimeout, IdleTimeout: apiTimeout, MaxHeaderBytes: maxRequest,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		srv.Close()
	}()
	err = srv.Serve(&guests{Listener: l, key: localKey, n: map[string]int{}})
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		<-done
		return nil
	}
	return err
}

// Client talks to an agent.
type Client struct {
	http *http.Client
	base string // of URLs
	sign func(*http.Request)
}

// RemoteError is an error that the agent told.
type RemoteError struct {
	Text string
	Code int
}

func (e *RemoteError) Error() string { return e.Text }

// Dial makes a client of the agent that listens on the local socket at path. Errors: none listens there.
func Dial(path string) (*Client, error) {
	c, err := dial(context.Background(), path)
	if err != nil {
		return nil, err
	}
	c.Close()
	return &Client{base: "http://agent", sign: func(*http.Request) {}, http: &http.Client{Timeout: apiTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) },
	}}}, nil
}

// Status asks for the sessions.
func (c *Client) Status(ctx context.Context) (r StatusReply, err error) {
	return r, c.call(ctx, "GET", "status", nil, &r)
}

// Attach asks to record a running JVM.
func (c *Client) Attach(ctx context.Context, q AttachRequest) (r AttachReply, err error) {
	return r, c.call(ctx, "POST", "attach", q, &r)
}

// Detach asks to stop recording.
func (c *Client) Detach(ctx context.Context, q DetachRequest) (r DetachReply, err error) {
	return r, c.call(ctx, "POST", "detach", q, &r)
}

// Pause asks to stop recording until Resume.
func (c *Client) Pause(ctx context.Context, q DetachRequest) (r DetachReply, err error) {
	return r, c.call(ctx, "POST", "pause", q, &r)
}

// Resume asks to let what was paused go on.
func (c *Client) Resume(ctx context.Context, q DetachRequest) (r DetachReply, err error) {
	return r, c.call(ctx, "POST", "resume", q, &r)
}

// Reload asks to read the configuration again.
func (c *Client) Reload(ctx context.Context) error {
	return c.call(ctx, "POST", "reload", nil, &struct{}{})
}

func (c *Client) call(ctx context.Context, method, verb string, in, out any) error {
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(json.NewEncoder(pw).Encode(in)) }()
	defer pr.Close()
	req, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/"+verb, pr)
	if err != nil {
		return err
	}
	c.sign(req)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	const maxReply = 64 << 20
	d := json.NewDecoder(io.LimitReader(resp.Body, maxReply))
	if resp.StatusCode >= 400 {
		var e ErrorReply
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("agent: %s", resp.Status)
		}
		return &RemoteError{e.Error, e.Code}
	}
	return d.Decode(out)
}
