package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

type pullOptions struct {
	out          string
	last         ui.Span
	since, until ui.Instant
	incident     string
	redact       bool
	exact        bool
	file         string
	socket       string
	remote       remoteOptions
}

func newPullCmd() *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use:   "pull [JVM] -o FILE",
		Short: "Copy the last part of a recording, or an incident, into one file",
		Long: `Use it after an incident, or to read a recording on another machine. It works while the JVM runs and
after it has ended.

The file contains whole ring files: at least what you ask for, as far as the recording still has it. To read it you
need nothing else. It holds types, sizes, addresses and allocation sites, never the value of a field. If there is only
one recording, you need not name a JVM. The verb reports how much more the file contains than you asked for, or how
much is missing.

--exact cuts at collections instead. It leaves out every collection that ended after --until. It begins at the last
sync point before --since, because a recording can only begin at a sync point.

If you may not read the recordings yourself, the verb asks the agent through its socket. Members of the group heapcam
may copy all recordings, other users those of their own JVMs. With --remote it asks the agent of another host.

s3://BUCKET/NAME instead of JVM copies from a bucket, and "-o s3://BUCKET/NAME" to one; "heapcam help incidents" says
how the verb finds the server.

An interrupted copy stays as FILE.part, and the same command continues it. This does not apply to --exact, to
--redact, and to copies from an agent, from a bucket or to one. If the ring needs the space during the copy, the oldest
files are missing from it, and the verb names them.`,
		Example: `  heapcam pull shop --last 15m -o incident.heapcam
  heapcam pull shop --since 14:55 --until 15:05 --exact -o incident.heapcam
  heapcam pull --incident shop-4711 -o - | ssh laptop 'cat > incident.heapcam'
  heapcam pull --remote https://db7:9465 --token-file ~/.heapcam-token -o i.heapcam shop`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("pull takes at most one JVM, but got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	f := c.Flags()
	addOut(c, &o.out)
	f.Var(&o.last, "last", "Copy this much, such as 64MiB or 15m, counted back from the newest data. Default: all.")
	f.Var(&o.since, "since", "Copy from this time on: 15:04, 15:04:05, 2026-11-21 15:04:05 or RFC 3339. Times are "+
		"local; add Z for UTC. Without a date: the last such time before now. Default: the oldest data.")
	f.Var(&o.until, "until", "Copy up to this time. Default: up to the newest data.")
	f.StringVar(&o.incident, "incident", "", "Copy this incident instead (\"heapcam incidents\" lists them).")
	f.BoolVar(&o.exact, "exact", false, "Cut at collections instead of copying whole files. Needs --since, --until or "+
		"--last with a duration.")
	f.BoolVar(&o.redact, "redact", false, "Leave out the names of the host, the threads and the program. "+
		"The files are rewritten.")
	addSocket(c, &o.socket)
	o.remote.add(c)
	f.StringVarP(&o.file, "output", "o", "", "File to write, or s3://BUCKET/NAME; - is stdout. "+
		"A file of that name is replaced. Required.")
	inSection(f, "What to copy", "last", "since", "until", "incident", "exact", "redact")
	exitsWith(c, "3", "No such recording or incident.")
	exitsWith(c, "4", "You may not read the recording, and no agent allows it.")
	exitsWith(c, "10", "The disk of FILE is full.")
	return c
}

func (o *pullOptions) run(ctx context.Context, args []string) (err error) {
	if o.file == "" {
		return usage("pull needs -o FILE (-o - for stdout)")
	}
	if o.file == "-" && ui.IsTerminal(ui.RawStdout()) {
		return usage("pull -o -: stdout is a terminal; redirect it, or give -o FILE")
	}
	if o.last != (ui.Span{}) && (!o.since.IsZero() || !o.until.IsZero()) {
		return usage("pull: --last counts back from the newest data; do not combine it with --since or --until")
	}
	if o.exact && o.last.Duration == 0 && o.since.IsZero() && o.until.IsZero() {
		return usage("pull: --exact needs --since, --until or --last with a duration (like 15m)")
	}
	if !o.since.IsZero() && !o.until.IsZero() && !o.since.Time.Before(o.until.Time) {
		return usage("pull: --since %s is not before --until %s", &o.since, &o.until)
	}
	ctx, stop := interruptible(ctx) // a pipe that nobody reads from would wait for ever
	defer stop()
	if len(args) == 1 && bucket.Is(args[0]) {
		return o.fetch(ctx, args[0])
	}
	if o.remote.address != "" && bucket.Is(o.file) {
		return usage("pull: --remote writes to a file, not to a bucket")
	}
	if o.remote.address != "" {
		cl, err := o.remote.dial()
		if err != nil {
			return err
		}
		return o.stream(ctx, cl, args)
	}
	dir, err := o.source(args)
	if err != nil && o.out == "" && exitCode(err) != exitUsage && !bucket.Is(o.file) {
		// this user may not open the recordings, but the agent may allow a pull
		if cl, derr := dialAgent(o.socket); derr == nil {
			return o.stream(ctx, cl, args)
		}
	}
	if err != nil {
		return err
	}
	opt := ringstore.PullOptions{LastBytes: o.last.Bytes, LastDuration: o.last.Duration, Since: o.since.Time,
		Until: o.until.Time, Redact: o.redact, Exact: o.exact}
	p := ui.NewProgress("pulling")
	opt.Progress = p.At
	m, err := o.write(ctx, dir, opt)
	p.Done()
	if err != nil {
		return err
	}
	var n int64
	for _, f := range m.Files {
		n += f.Bytes
	}
	ui.Fprintf(ui.Stderr, "heapcam: pulled %s of %s: %s, collections %d to %d, in %s (%s/s)\n", ui.Bytes(n),
		filepath.Base(dir), ui.Plural(uint64(len(m.Files)), "file"), m.FirstGC, m.LastGC,
		ui.Duration(p.Spent()), ui.Bytes(int64(float64(n)/max(p.Spent().Seconds(), 1e-3))))
	if who := m.Resource.String(); who != "" {
		ui.Fprintf(ui.Stderr, "heapcam: service %s\n", who)
	}
	o.reportExtent(ui.Stderr, m, n)
	for _, d := range m.Dropped {
		ui.Fprintf(ui.Stderr, "heapcam: %s is missing from the pull: the recorder deleted it meanwhile to stay "+
			"within its size limit\n", d)
	}
	for _, f := range m.Foreign {
		ui.Fprintf(ui.Stderr, "heapcam: %s is of another recording (session %s, not %s) and was left out\n",
			f.Name, f.Session, m.Session)
	}
	for _, d := range m.Damaged {
		ui.Fprintf(ui.Stderr, "heapcam: %s is damaged: `heapcam verify` says where\n", d)
	}
	return nil
}

// write writes a pull to where -o says.
func (o *pullOptions) write(ctx context.Context, dir string, opt ringstore.PullOptions) (m *ringstore.Manifest,
	err error) {
	pull := func(w io.Writer) error {
		buf := bufio.NewWriterSize(w, 1<<20)
		m, err = ringstore.Pull(ctx, dir, buf, opt)
		return cmp.Or(err, buf.Flush())
	}
	if bucket.Is(o.file) {
		err = putPull(ctx, o.file, pull)
		return m, err
	}
	w, end := io.Writer(ui.RawStdout()), func(err error) error { return err }
	if o.file != "-" {
		if w, end, err = o.part(dir, &opt); err != nil {
			return nil, err
		}
	}
	err = end(pull(w))
	return m, err
}

// reportExtent says how much more or less than the user asked for the pull contains.
func (o *pullOptions) reportExtent(w io.Writer, m *ringstore.Manifest, bytes int64) {
	if m == nil || m.ToNS == 0 || o.last == (ui.Span{}) && o.since.IsZero() && o.until.IsZero() {
		return
	}
	if o.exact && !m.Exact {
		ui.Fprintf(w, "heapcam: the agent is too old for --exact and sent whole files\n")
	}
	whole := ui.Text(" (files are copied whole; --exact cuts closer)")
	if m.Exact {
		whole = " (a recording can begin at a sync point only)"
	}
	span := time.Duration(m.ToNS - m.FromNS)
	switch {
	case o.last.Bytes > 0 && bytes >= o.last.Bytes:
		ui.Fprintf(w, "heapcam: the pull is %[2]s larger than --last %[1]s: files are copied whole\n", &o.last,
			ui.Bytes(bytes-o.last.Bytes))
	case o.last.Bytes > 0:
		ui.Fprintf(w, "heapcam: the pull is %[2]s smaller than --last %[1]s: the recording has no more\n", &o.last,
			ui.Bytes(o.last.Bytes-bytes))
	case o.last.Duration > 0 && span >= o.last.Duration:
		ui.Fprintf(w, "heapcam: the pull covers %[2]s, which is %[3]s more than --last %[1]v%[4]s\n", o.last.Duration,
			ui.Duration(span),
			ui.Duration(span-o.last.Duration), whole)
	case o.last.Duration > 0:
		ui.Fprintf(w, "heapcam: the pull covers %[2]s, which is %[3]s less than --last %[1]v: the recording has no "+
			"more\n", o.last.Duration,
			ui.Duration(span), ui.Duration(o.last.Duration-span))
	}
	if m.ZeroUnixNS == 0 {
		return
	}
	at := func(ns uint64) time.Time { return time.Unix(0, m.ZeroUnixNS+int64(ns)) }
	if from := at(m.FromNS); !o.since.IsZero() && from.After(o.since.Time) {
		ui.Fprintf(w, "heapcam: the pull begins at %s, %s after --since: nothing older is recorded\n",
			ui.Time(from), ui.Duration(from.Sub(o.since.Time)))
	} else if !o.since.IsZero() {
		ui.Fprintf(w, "heapcam: the pull begins at %s, %s before --since%s\n", ui.Time(from),
			ui.Duration(o.since.Sub(from)), whole)
	}
	if to := at(m.ToNS); !o.until.IsZero() && to.After(o.until.Time) {
		ui.Fprintf(w, "heapcam: the pull ends at %s, %s after --until%s\n", ui.Time(to),
			ui.Duration(to.Sub(o.until.Time)), whole)
	} else if !o.until.IsZero() {
		ui.Fprintf(w, "heapcam: the pull ends with collection %d at %s, %s before --until: no later one ended "+
			"before --until\n", m.LastGC, ui.Time(to),
			ui.Duration(o.until.Sub(to)))
	}
}

// source gives the folder to pull and, for an incident, what is known of it.
func (o *pullOptions) source(args []string) (dir string, err error) {
	if o.incident != "" {
		if len(args) > 0 {
			return "", usage("pull: --incident names the recording; do not name a JVM too")
		}
		n, i, err := findIncident(o.out, o.incident)
		if err != nil {
			return "", err
		}
		return n.Path(i.ID), nil
	}
	return recordingOf(o.out, args)
}

// recordingOf gives the ring folder below out that args name; without any there must be only one.
func recordingOf(out string, args []string) (string, error) {
	recs, err := recordings(outDirs(out))
	if err != nil {
		return "", err
	}
	return recordingAmong(recs, out, args)
}

// recordingAmong gives the ring folder among recs, which are those below out, that args name.
func recordingAmong(recs []session.Status, out string, args []string) (string, error) {
	switch {
	case len(args) == 1:
		if _, ok := onDisk(args[0]); ok && filepath.Base(args[0]) != args[0] { // the path of a folder
			return args[0], nil
		}
		if len(recs) > 0 {
			s, err := pick(recs, args[0])
			if out != "" && exitCode(err) == exitNotFound {
				err = withCode(exitNotFound, "%q: no such recording in %s: `heapcam status --out %s` lists them",
					args[0], out, ui.ShellWord(out))
			}
			return s.Dir, err
		}
		if _, err := os.Stat(args[0]); err == nil {
			return "", withCode(exitNotFound, "%q is not a ring folder, and there is no recording in %s", args[0],
				strings.Join(outDirs(out), " or "))
		}
		return "", withCode(exitNotFound, "%q: there is no such file, and no recording in %s; `heapcam run` and "+
			"`heapcam record` make one", args[0], strings.Join(outDirs(out), " or "))
	case len(recs) == 1:
		return recs[0].Dir, nil
	case len(recs) == 0:
		return "", withCode(exitNotFound, "there is no recording in %s; `heapcam run` and `heapcam record` make one",
			strings.Join(outDirs(out), " or "))
	}
	listRecordings(recs)
	return "", usage("there are %d recordings: name one of them", len(recs))
}

// part opens FILE.part and keeps what an earlier try has written there. end renames it to FILE, or leaves it for the
// next try.
func (o *pullOptions) part(dir string, opt *ringstore.PullOptions) (w io.Writer, end func(error) error, err error) {
	if s, err := stream(o.file); s != nil || err != nil {
		return s, closing(s), err
	}
	name := o.file + ".part"
	switch {
	case o.exact:
		name = o.file + ".exact.part"
	case o.redact:
		name = o.file + ".redacted.part"
	}
	f, err := openPart(name, os.O_RDWR)
	if err != nil {
		return nil, nil, cannotCreate(o.file, err)
	}
	at := int64(0)
	if !o.redact && !o.exact { // rewritten files cannot be compared with the ring
		part, err := ringstore.ReadPart(f)
		if err != nil {
			f.Close()
			return nil, nil, err
		}
		at = part.Trim(dir, ringstore.OS)
		if opt.Part = part; part.Files() > 0 {
			ui.Fprintf(ui.Stderr, "heapcam: continuing after %s that an earlier try copied (%s)\n", ui.Bytes(at),
				ui.Plural(uint64(part.Files()), "file"))
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
		return fmt.Errorf("%w (run the same command again to continue; %s has the first part)", err, name)
	}, nil
}
