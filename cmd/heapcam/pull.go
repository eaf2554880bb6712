package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/ringstore"
)

type pullOptions struct {
	out          string
	last         last
	since, until instant
	incident     string
	redact       bool
	file         string
	socket       string
	remote       remoteOptions
}

func newPullCmd() *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use:   "pull [JVM]",
		Short: "Copy the last part of a recording, or an incident, into one file",
		Long: `pull copies a recording, running or ended, into one self-contained file (a tar): whole ring files, at least what is asked for. Without JVM
there must be only one recording. It holds types, sizes, addresses and sites, never a field's value.
Who may not open the recordings, a member of the group heapcam or the user of the JVM, gets them from the agent through its socket; --remote
asks the agent of another host. What was interrupted stays as FILE.part, unless an agent was asked; the same command again goes on with it. When the ring needs the space meanwhile the pull loses its
oldest files, and says so.`,
		Example: "  heapcam pull --remote https://db7:9465 --token-file ~/.heapcam-token shop --last 15m -o incident.heapcam\n  heapcam pull myservice --last 15m -o incident.heapcam\n  heapcam pull --incident myservice-4711 -o - | ssh laptop 'cat > incident.heapcam'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("pull takes one JVM, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	f := c.Flags()
	f.StringVar(&o.out, "out", "", "folder for recordings (default $HEAPCAM_OUT, else ./heapcam-recordings, else /var/lib/heapcam)")
	f.Var(&o.last, "last", "how much, like 64MiB or 15m, counted back from the recording's last data (default: all)")
	f.Var(&o.since, "since", "from this instant on: RFC 3339, 2026-11-21 15:04:05 or 15:04:05")
	f.Var(&o.until, "until", "up to this instant")
	f.StringVar(&o.incident, "incident", "", "a frozen window instead (see `heapcam incidents`)")
	f.BoolVar(&o.redact, "redact", false, "without host, names of threads and the program's name; the files are written anew")
	addSocket(c, &o.socket)
	o.remote.add(c)
	f.StringVarP(&o.file, "output", "o", "", "file to write, - for stdout")
	return c
}

func (o *pullOptions) run(ctx context.Context, args []string) (err error) {
	if o.file == "" {
		return usage("pull needs -o FILE (- for stdout)")
	}
	if o.file == "-" && isTerminal(os.Stdout) {
		return usage("pull -o -: stdout is a terminal")
	}
	if o.last.set && (o.since.set || o.until.set) {
		return usage("pull: --last counts back from the newest data; it does not go with --since and --until")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, stopSignals()...)
	defer stop()
	if o.remote.address != "" {
		cl, err := o.remote.dial()
		if err != nil {
			return err
		}
		return o.stream(ctx, cl, args)
	}
	dir, reason, err := o.source(args)
	if err != nil && o.out == "" && exitCode(err) != exitUsage {
		if cl, derr := dialAgent(o.socket); derr == nil { // the recordings are not ours to open, but maybe ours to ask for
			return o.stream(ctx, cl, args)
		}
	}
	if err != nil {
		return err
	}
	opt := ringstore.PullOptions{LastBytes: o.last.bytes, LastDuration: o.last.dur, Since: o.since.t, Until: o.until.t, Redact: o.redact, Reason: reason}
	w, end := io.Writer(os.Stdout), func(err error) error { return err }
	if o.file != "-" {
		if w, end, err = o.part(dir, &opt); err != nil {
			return err
		}
	}
	buf := bufio.NewWriterSize(w, 1<<20)
	p := newProgress("pulling")
	opt.Progress = p.at
	m, err := ringstore.Pull(ctx, dir, buf, opt)
	p.done()
	if ferr := buf.Flush(); err == nil {
		err = ferr
	}
	if err = end(err); err != nil {
		return err
	}
	var n int64
	for _, f := range m.Files {
		n += f.Bytes
	}
	fmt.Fprintf(os.Stderr, "heapcam: pulled %s of %s: %s, collections %d to %d, in %v (%s/s)\n", humanBytes(n), filepath.Base(dir), plural(uint64(len(m.Files)), "file"), m.FirstGC, m.LastGC,
		time.Since(p.start).Round(time.Millisecond), humanBytes(int64(float64(n)/max(time.Since(p.start).Seconds(), 1e-3))))
	for _, d := range m.Dropped {
		fmt.Fprintf(os.Stderr, "heapcam: the ring needed the space of %s meanwhile: it is not in the pull\n", d)
	}
	for _, f := range m.Foreign {
		fmt.Fprintf(os.Stderr, "heapcam: %s is of another recording (session %s, not %s): it is not in the pull\n", f.Name, f.Session, m.Session)
	}
	for _, d := range m.Damaged {
		fmt.Fprintf(os.Stderr, "heapcam: %s is damaged: `heapcam verify` says where\n", d)
	}
	return nil
}

// source gives the folder that is meant and, of an incident, its reason.
func (o *pullOptions) source(args []string) (dir, reason string, err error) {
	if o.incident != "" {
		if len(args) > 0 {
			return "", "", usage("pull: an incident is of one JVM: do not name another")
		}
		n, i, err := findIncident(o.out, o.incident)
		if err != nil {
			return "", "", err
		}
		return n.Path(i.ID), i.Reason, nil
	}
	dir, err = recordingOf(o.out, args)
	return dir, "", err
}

// recordingOf gives the ring folder that args name; without any there must be only one.
func recordingOf(out string, args []string) (string, error) {
	recs, err := recordings(outDirs(out))
	if err != nil {
		return "", err
	}
	switch {
	case len(args) == 1:
		if _, ok := onDisk(args[0]); ok && filepath.Base(args[0]) != args[0] { // a folder will do
			return args[0], nil
		}
		if len(recs) > 0 {
			s, err := pick(recs, args[0])
			return s.Dir, err
		}
		return "", withCode(exitNotFound, "%q: there is no such file, and no recording in %s", args[0], strings.Join(outDirs(out), " or "))
	case len(recs) == 1:
		return recs[0].Dir, nil
	case len(recs) == 0:
		return "", withCode(exitNotFound, "there is no recording in %s", strings.Join(outDirs(out), " or "))
	}
	fmt.Fprintln(os.Stderr, "heapcam: recordings:")
	for _, r := range recs {
		fmt.Fprintf(os.Stderr, "  %s  %s, last data after collection %d\n", r.ID, humanBytes(r.TraceBytes), r.LastGC)
	}
	return "", usage("there are %d recordings: say which", len(recs))
}

// part opens FILE.part and takes over what an earlier try has left there. end makes it FILE, or leaves it for the next try.
func (o *pullOptions) part(dir string, opt *ringstore.PullOptions) (w io.Writer, end func(error) error, err error) {
	name := o.file + ".part"
	if o.redact {
		name = o.file + ".redacted.part"
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	at := int64(0)
	if !o.redact { // what was written anew can not be compared with the ring
		part, err := ringstore.ReadPart(f)
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		at = part.Trim(dir, ringstore.OS)
		if opt.Part = part; part.Files() > 0 {
			fmt.Fprintf(os.Stderr, "heapcam: going on behind %s of an earlier try (%s)\n", humanBytes(at), plural(uint64(part.Files()), "file"))
		}
	}
	if err = f.Truncate(at); err == nil {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, func(err error) error {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			return os.Rename(name, o.file)
		}
		if st, serr := os.Stat(name); serr == nil && st.Size() == 0 {
			os.Remove(name)
			return err
		}
		return fmt.Errorf("%w (the same command goes on with %s)", err, name)
	}, nil
}

// progress shows how far something is, on a terminal, if it takes longer than a second.
type progress struct {
	what        string
	start, last time.Time
	shown       bool
}

func newProgress(what string) *progress { return &progress{what: what, start: time.Now()} }

func (p *progress) at(done, total int64) {
	now := time.Now()
	if now.Sub(p.start) < time.Second || now.Sub(p.last) < 200*time.Millisecond || total <= 0 || !isTerminal(os.Stderr) {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprintf(os.Stderr, "\rheapcam: %s: %d%% of %s, %s/s ", p.what, 100*done/total, humanBytes(total), humanBytes(int64(float64(done)/now.Sub(p.start).Seconds())))
}

func (p *progress) done() {
	if p.shown {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
