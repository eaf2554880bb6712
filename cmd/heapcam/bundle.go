package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/ringstore"
)

type bundleOptions struct {
	file, out, socket, config string
}

func newBundleCmd() *cobra.Command {
	var o bundleOptions
	c := &cobra.Command{
		Use:         "support-bundle",
		Short:       "What who helps you needs, in one file: status, configuration, log, versions",
		Annotations: mayLeaveDisk,
		Long: `support-bundle writes a tar.gz of texts: versions and machine, the agent's status, the configuration
in force and where each value comes from, the JVMs here and whether they can be recorded, the names
and sizes of recordings and incidents, and the end of the service's log. What can not be had stands
in errors.txt. It holds no recording, no option or environment of a JVM, no content of any file that
the configuration names, and of a rule's "flag" pattern only what stands before "=". Names of
programs and users are in it: look through it before you give it away.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "output", "o", "", "file to write, - for stdout (default heapcam-support-TIME.tar.gz)")
	f.StringVar(&o.out, "out", "", "folder for recordings (default as pull)")
	f.StringVar(&o.config, "config", "", "configuration file (default "+systemConfig+" if it is there)")
	addSocket(c, &o.socket)
	return c
}

const (
	bundleLogLines = "5000"
	bundleLogLimit = 8 << 20
	bundleWait     = 20 * time.Second // for each member
)

func (o *bundleOptions) run(ctx context.Context) (err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	now := time.Now()
	name := o.file
	if name == "" {
		name = "heapcam-support-" + now.Format("20060102-150405") + ".tar.gz"
	}
	w := io.Writer(ui.RawStdout())
	if name == "-" {
		if ui.IsTerminal(ui.RawStdout()) {
			return usage("support-bundle -o -: stdout is a terminal")
		}
	} else {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			return usage("support-bundle -o %s: that is there already and is not overwritten; name another file", name)
		}
		if err != nil {
			return err
		}
		defer func() {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				os.Remove(name)
			}
		}()
		w = f
	}
	zip := gzip.NewWriter(w)
	t := tar.NewWriter(zip)
	var failed bytes.Buffer
	put := func(member string, b []byte, err error) error {
		if err != nil {
			ui.Fprintf(&failed, "%s: %v\n", member, err)
			ui.Fprintf(ui.Stderr, "heapcam: not in it, or not whole: %s: %v\n", member, err)
		}
		if len(b) == 0 {
			return nil
		}
		h := &tar.Header{Name: "heapcam-support/" + member, Mode: 0o600, Size: int64(len(b)),
			ModTime: now.Truncate(time.Second)}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err = t.Write(b)
		return err
	}
	for _, p := range []struct {
		name string
		make func(context.Context) ([]byte, error)
	}{
		{"versions.json", o.versions}, {"status.json", o.status}, {"config.json", o.settings},
		{"doctor.json", o.doctor}, {"recordings.json", o.recordings},
		{"log.txt", serviceLog},
	} {
		b, err, answered := within(bundleWait, func() ([]byte, error) { return p.make(ctx) })
		if !answered { // a disk or an agent that hangs is what the others may tell of
			err = fmt.Errorf("nothing for %v, and not waited for any longer", bundleWait)
		}
		if err := put(p.name, b, err); err != nil {
			return err
		}
	}
	if err := put("errors.txt", failed.Bytes(), nil); err != nil {
		return err
	}
	if err = t.Close(); err == nil {
		err = zip.Close()
	}
	if err == nil && name != "-" {
		ui.Fprintf(ui.Stderr, "heapcam: wrote %s: look through it before you give it away\n", ui.Path(name))
	}
	return err
}

func asJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	err := ui.JSON(&b, v)
	return b.Bytes(), err
}

func (o *bundleOptions) versions(context.Context) ([]byte, error) {
	lib, perr := probe.Library()
	one := func(name string) string {
		b, _ := os.ReadFile(name)
		line, _, _ := strings.Cut(string(b), "\n")
		return line
	}
	m := map[string]any{
		"schema": ui.NewEnvelope("support", 1).Schema, "heapcam": version, "commit": commit, "go": runtime.Version(),
		"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": runtime.NumCPU(),
		"kernel": one("/proc/version"), "memory": one("/proc/meminfo"), "load": one("/proc/loadavg"),
		"distribution": one("/etc/os-release"), "user": os.Getuid(), "probe_bytes": len(lib),
	}
	if perr != nil {
		m["probe_error"] = perr.Error()
	}
	return asJSON(m)
}

func (o *bundleOptions) status(ctx context.Context) ([]byte, error) {
	path, err := clientSocket(o.socket)
	if err != nil {
		return nil, err
	}
	cl, err := api.Dial(path)
	if err != nil {
		return nil, err
	}
	st, err := cl.Status(ctx)
	if err != nil {
		return nil, err
	}
	return asJSON(st)
}

func (o *bundleOptions) settings(context.Context) ([]byte, error) {
	file, all, err := configure((&agentOptions{}).command(), o.config)
	if err != nil {
		return nil, err
	}
	rules := append([]config.Rule{}, file.Rules...)
	for i := range rules {
		if before, _, cut := strings.Cut(rules[i].Flag, "="); cut {
			rules[i].Flag = before + "=…"
		}
	}
	return asJSON(struct {
		ui.Envelope
		Settings []setting     `json:"settings"`
		Rules    []config.Rule `json:"rules"`
	}{ui.NewEnvelope("config", 1), all, rules})
}

func (o *bundleOptions) doctor(context.Context) ([]byte, error) {
	all, err := jvms.List()
	if err != nil {
		return nil, err
	}
	rows := make([]doctorRow, len(all))
	for i, j := range all {
		rows[i] = doctorRow{j, jvms.Doctor(j)}
	}
	return asJSON(rows)
}

func (o *bundleOptions) recordings(context.Context) ([]byte, error) {
	type row struct { // what the disk alone tells
		ID      string    `json:"id"`
		Dir     string    `json:"dir"`
		Bytes   int64     `json:"bytes"`
		Files   int       `json:"files"`
		LastGC  uint64    `json:"last_gc"`
		Changed time.Time `json:"oldest_file_changed"`
	}
	type folder struct {
		rows      []row
		incidents []ringstore.Incident
		free      int64
	}
	rows, incidents, disks := []row{}, []ringstore.Incident{}, map[string]int64{}
	var failed []error
	for _, d := range outDirs(o.out) {
		f, err, answered := within(diskWait, func() (f folder, err error) { // each by itself: one disk may hang
			recs, err := recordings([]string{d})
			for _, s := range recs {
				f.rows = append(f.rows, row{s.ID, s.Dir, s.TraceBytes, s.Files, s.LastGC, s.Since})
			}
			is, ierr := listIncidents(d)
			free, ferr := ringstore.OS.Free(d)
			f.incidents, f.free = is, free
			if ferr != nil {
				f.free = -1
			}
			return f, errors.Join(err, ierr)
		})
		if !answered {
			err = fmt.Errorf("the disk has not answered for %v: %s", diskWait, d)
		}
		failed = append(failed, err)
		if rows, incidents = append(rows, f.rows...), append(incidents, f.incidents...); answered && f.free >= 0 {
			disks[d] = f.free
		}
	}
	b, jerr := asJSON(map[string]any{"recordings": rows, "incidents": incidents, "free_bytes": disks})
	return b, errors.Join(append(failed, jerr)...)
}

// serviceLog gives the end of what the service wrote, where there is a journal.
func serviceLog(ctx context.Context) ([]byte, error) {
	exe, err := exec.LookPath("journalctl")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, bundleWait)
	defer stop()
	c := exec.CommandContext(ctx, exe, "--unit=heapcam", "--no-pager", "--output=short-iso-precise",
		"--lines="+bundleLogLines)
	c.Dir = filepath.Dir(exe)
	var b bytes.Buffer
	c.Stdout = &limited{&b, bundleLogLimit}
	if err = c.Run(); err == nil && bytes.HasPrefix(b.Bytes(), []byte("-- No entries --")) {
		return nil, errors.New("the journal has nothing of heapcam.service: if the agent runs otherwise, add what " +
			"it wrote on stderr")
	}
	return b.Bytes(), err
}

// limited takes what fits and forgets the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}
