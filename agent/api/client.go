package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// Client talks to an agent. Its methods are safe for concurrent use. Their errors: *RemoteError, those of net/http.
type Client struct {
	http *http.Client
	base string // of URLs
	sign func(*http.Request)

	silent time.Duration // how long a pull may send nothing; 0: pullSilent
}

// RemoteError is an error that the agent answered with.
type RemoteError struct {
	Text string
	Kind Kind
}

func (e *RemoteError) Error() string { return e.Text }

// Dial makes a client of the agent that listens on the local socket at path. Errors: none listens there.
func Dial(path string) (*Client, error) {
	c, err := dial(context.Background(), path)
	if err != nil {
		return nil, err
	}
	c.Close()
	return &Client{base: "http://agent", sign: func(*http.Request) {},
		http: &http.Client{Timeout: apiTimeout, Transport: &http.Transport{
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

// References asks for a reference listing.
func (c *Client) References(ctx context.Context, q ReferencesRequest) (r session.References, err error) {
	return r, c.call(ctx, "POST", "references", q, &r)
}

// Settle asks for a reference listing that settles verdicts.
func (c *Client) Settle(ctx context.Context, q ReferencesRequest) (r session.References, err error) {
	return r, c.call(ctx, "POST", "settle", q, &r)
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
		return &RemoteError{e.Error, e.Kind}
	}
	return d.Decode(out)
}
