package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/ringstore"
)

const (
	// maxPulls bounds the pulls that are served at a time: each holds a file of its ring back.
	maxPulls = 4
	// pullStalls is how long a reader of a pull may read nothing before the connection is closed.
	pullStalls = 30 * time.Second
	pullPiece  = 256 << 10
)

// PullRequest says what is pulled; see ringstore.PullOptions.
type PullRequest struct {
	ID           string // of Status, or of an incident
	Incident     bool
	LastBytes    int64
	LastDuration time.Duration
	Since, Until time.Time
	Redact       bool
	Exact        bool
}

func (q PullRequest) query() url.Values {
	v := url.Values{"id": {q.ID}}
	set := func(k, s string, on bool) {
		if on {
			v.Set(k, s)
		}
	}
	set("incident", "true", q.Incident)
	set("redact", "true", q.Redact)
	set("exact", "true", q.Exact)
	set("last_bytes", strconv.FormatInt(q.LastBytes, 10), q.LastBytes > 0)
	set("last_ns", strconv.FormatInt(int64(q.LastDuration), 10), q.LastDuration > 0)
	set("since", q.Since.Format(time.RFC3339Nano), !q.Since.IsZero())
	set("until", q.Until.Format(time.RFC3339Nano), !q.Until.IsZero())
	return v
}

func parsePull(v url.Values) (q PullRequest, err error) {
	number := func(k string) (n int64) {
		if s := v.Get(k); s != "" && err == nil {
			if n, err = strconv.ParseInt(s, 10, 64); err != nil || n < 0 {
				err = fmt.Errorf("%s=%q is not a count", k, s)
			}
		}
		return n
	}
	instant := func(k string) (t time.Time) {
		if s := v.Get(k); s != "" && err == nil {
			if t, err = time.Parse(time.RFC3339Nano, s); err != nil {
				err = fmt.Errorf("%s=%q is not a time", k, s)
			}
		}
		return t
	}
	q = PullRequest{ID: v.Get("id"), Incident: v.Get("incident") == "true", Redact: v.Get("redact") == "true",
		Exact: v.Get("exact") == "true", LastBytes: number("last_bytes"),
		LastDuration: time.Duration(number("last_ns")), Since: instant("since"), Until: instant("until")}
	if err == nil && (q.ID == "" || q.ID != filepath.Base(q.ID) || strings.HasPrefix(q.ID, ".") ||
		strings.ContainsAny(q.ID, `/\`)) {
		err = fmt.Errorf("%q is no id of a recording", q.ID)
	}
	return q, err
}

// noRecording is the error that a recording does not exist, or not for this caller. It is an os.ErrNotExist.
type noRecording struct{ id string }

func (e noRecording) Error() string {
	return fmt.Sprintf("%q: no such recording: `heapcam status` lists them", e.id)
}
func (noRecording) Unwrap() error { return os.ErrNotExist }

// NotThere is the error that there is no recording id.
func NotThere(id string) error { return noRecording{id} }

// recordingFor gives the folder of a recording or incident that the caller may see. What it may not see does not exist
// for it.
func (s *Server) recordingFor(c Caller, q PullRequest) (string, error) {
	dir := filepath.Join(s.rec.Out(), q.ID)
	if q.Incident {
		dir = filepath.Join(s.rec.Out(), quota.IncidentsName, q.ID)
	}
	none := NotThere(q.ID)
	st, err := os.Lstat(dir)
	if err != nil || !st.IsDir() || !q.Incident && q.ID == quota.IncidentsName {
		return "", none
	}
	if c.Role == Operator {
		return dir, nil
	}
	uid, err := ringstore.OwnerOf(dir)
	if err != nil || !c.Sees(uid) {
		return "", none
	}
	return dir, nil
}

// servePull streams a recording as one container. What fails after its beginning ends the connection: a container has
// its end at its end.
func (s *Server) servePull(w http.ResponseWriter, r *http.Request, c Caller) {
	fail := func(err error) { s.reply(w, nil, err) }
	q, err := parsePull(r.URL.Query())
	var dir string
	if err == nil {
		dir, err = s.recordingFor(c, q)
	}
	if err != nil {
		fail(err)
		return
	}
	select {
	case s.pulls <- struct{}{}:
		defer func() { <-s.pulls }()
	default:
		fail(fmt.Errorf("%d pulls are being served already: try again", maxPulls))
		return
	}
	ctl := http.NewResponseController(w)
	_ = ctl.SetReadDeadline(time.Time{}) // which is for requests: a pull takes as long as it takes
	begun := false
	out := writerFunc(func(p []byte) (int, error) {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-tar")
		}
		// in pieces: the rate is even, and a slow reader is not mistaken for one that has stopped
		for n := 0; ; {
			part := p[n:min(len(p), n+pullPiece)]
			if c.Rate != nil {
				if err := c.Rate.WaitN(r.Context(), len(part)); err != nil {
					return n, err
				}
			}
			_ = ctl.SetWriteDeadline(time.Now().Add(pullStalls))
			m, err := w.Write(part)
			if n += m; err != nil || n == len(p) {
				return n, err
			}
		}
	})
	if c.MaxPull > 0 && (q.LastBytes == 0 || q.LastBytes > c.MaxPull) {
		q.LastBytes = c.MaxPull
	}
	m, err := ringstore.Pull(r.Context(), dir, out, ringstore.PullOptions{LastBytes: q.LastBytes,
		LastDuration: q.LastDuration, Since: q.Since, Until: q.Until, Redact: q.Redact, Exact: q.Exact})
	switch {
	case err != nil && !begun:
		fail(err)
	case err != nil:
		logs.Write(&s.cfg.Log, logs.PullAborted, logs.Err.Of(err), logs.Client.Of(c.Name), logs.Recording.Of(q.ID))
		panic(http.ErrAbortHandler)
	default:
		logs.Write(&s.cfg.Log, logs.Pulled, logs.Audit.Of("pull"), logs.Client.Of(c.Name), logs.Recording.Of(q.ID),
			logs.Files.Of(len(m.Files)))
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Pull has the agent stream a recording to w. It is whole if there is no error.
func (c *Client) Pull(ctx context.Context, q PullRequest, w io.Writer) error {
	limit := cmp.Or(c.silent, pullSilent)
	silent := fmt.Errorf("the agent sent nothing for %s: is the address right, and does the agent answer?", limit)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(silent) })
	defer timer.Stop()
	err := c.pull(ctx, q, w, func(r io.Reader) io.Reader {
		timer.Stop()
		return &watched{r, timer, limit}
	})
	if err != nil && context.Cause(ctx) == silent {
		return silent
	}
	return err
}

func (c *Client) pull(ctx context.Context, q PullRequest, w io.Writer, watch func(io.Reader) io.Reader) error {
	req, err := http.NewRequestWithContext(ctx, "GET", c.base+"/v1/pull?"+q.query().Encode(), nil)
	if err != nil {
		return err
	}
	c.sign(req)
	h := *c.http
	h.Timeout = 0 // it takes as long as it takes
	resp, err := h.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body := watch(resp.Body)
	if resp.StatusCode >= 400 {
		var e ErrorReply
		if err := json.NewDecoder(io.LimitReader(body, maxRequest)).Decode(&e); err != nil {
			return fmt.Errorf("agent: %s", resp.Status)
		}
		return &RemoteError{e.Error, e.Kind}
	}
	check := newWhole()
	_, err = io.Copy(io.MultiWriter(w, check), body)
	if errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
		_ = check.end()
		return fmt.Errorf("the agent cut the pull off (its log says why): %w", err)
	}
	if bad := check.end(); bad != nil && (err == nil || errors.Is(err, bad)) {
		return fmt.Errorf("what the agent sent is not a whole recording: %w", bad)
	}
	return err
}
