package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// remoteOptions are the flags of verbs that can ask the agent of another host.
type remoteOptions struct{ address, token, ca, cert, key string }

func (o *remoteOptions) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.address, "remote", "", "Ask the agent of another host, https://HOST:PORT.")
	f.StringVar(&o.token, "token-file", "", "File with your token, and nothing else.")
	f.StringVar(&o.ca, "ca", "", "File with the CA of that host, PEM. Default: the CAs of this system.")
	f.StringVar(&o.cert, "cert", "", "File with your client certificate, PEM, instead of a token.")
	f.StringVar(&o.key, "key", "", "File with the private key of --cert, PEM.")
	inSection(f, remoteFlags, "remote", "token-file", "ca", "cert", "key")
}

// maxTokenFile is the largest size of a token file in bytes.
const maxTokenFile = 4096

func (o *remoteOptions) dial() (*api.Client, error) {
	if (o.cert == "") != (o.key == "") {
		return nil, usage("--cert and --key must be given together")
	}
	if o.token == "" && o.cert == "" {
		return nil, usage("--remote needs --token-file, or --cert and --key")
	}
	opt := api.RemoteOptions{CA: o.ca, Cert: o.cert, Key: o.key}
	if o.token != "" {
		var err error
		if opt.Token, err = readToken(o.token); err != nil {
			return nil, err
		}
	}
	cl, err := api.DialRemote(o.address, opt)
	if err != nil {
		return nil, usage("--remote: %v", err)
	}
	return cl, nil
}

// readToken reads the file of --token-file.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var b []byte
		if b, err = io.ReadAll(io.LimitReader(f, maxTokenFile)); err == nil {
			token := strings.TrimSpace(string(b))
			if token == "" || strings.ContainsAny(token, " \t\r\n") {
				return "", usage("--token-file %s: the file must contain one token, and nothing else", path)
			}
			return token, nil
		}
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return "", fmt.Errorf("--token-file %s: %w: name a file that you may read and that contains your token alone", path,
		err)
}

// stream pulls through an agent.
func (o *pullOptions) stream(ctx context.Context, cl *api.Client, args []string) error {
	q := api.PullRequest{ID: o.incident, Incident: o.incident != "", LastBytes: o.last.Bytes,
		LastDuration: o.last.Duration, Since: o.since.Time, Until: o.until.Time, Redact: o.redact, Exact: o.exact}
	switch {
	case o.incident != "" && len(args) > 0:
		return usage("pull: --incident names the recording; do not name a JVM too")
	case o.incident == "":
		st, err := cl.Status(ctx)
		if err == nil && len(args) == 1 {
			var s session.Status
			s, err = pick(st.JVMs, args[0])
			q.ID = s.ID
		} else if err == nil && len(st.JVMs) == 1 {
			q.ID = st.JVMs[0].ID
		} else if err == nil {
			err = usage("the agent shows you %d recordings: name one of them (`heapcam status` lists "+
				"them)", len(st.JVMs))
		}
		// the token may not allow status, or status may not list it: an id is enough
		if err != nil && len(args) == 1 && exitCode(err) != exitUsage {
			q.ID, err = args[0], nil
		}
		if err != nil {
			return err
		}
	}
	w, end, err := output(o.file)
	if err != nil {
		return err
	}
	buf, begun := bufio.NewWriterSize(w, 1<<20), time.Now()
	n := &counting{w: buf}
	err = cl.Pull(ctx, q, n)
	if ferr := buf.Flush(); err == nil {
		err = ferr
	}
	err = end(err) // a pull from an agent cannot be continued
	if err != nil {
		return err
	}
	ui.Fprintf(ui.Stderr, "heapcam: pulled %s of %s from the agent, in %v\n", ui.Bytes(n.n), q.ID,
		ui.Duration(time.Since(begun)))
	if o.file != "-" {
		if rec, err := ringstore.OpenRecording(o.file); err == nil {
			o.reportExtent(ui.Stderr, rec.Manifest, n.n)
			rec.Close()
		}
	}
	return nil
}

// counting counts the bytes that it passes on.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
