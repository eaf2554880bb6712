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
		Short:       "Collect diagnostics for a bug report into one file",
		Annotations: mayLeaveDisk,
		Long: `The file is a tar.gz of texts:

- versions, and a description of the machine
- the status of the agent
- the configuration in force, and the source of each value
- the JVMs of this host, and whether heapcam can record them
- names and sizes of recordings and incidents
- the end of the service's log
- errors.txt, which names what is missing, and why.

It contains no recording, no option or environment of a JVM, and no content of files that the configuration names. Of
a rule's "flag" pattern it contains only the part before "=". It does contain names of programs and users. Read it
before you send it.`,
		Example: "  sudo heapcam support-bundle\n  heapcam support-bundle -o bundle.tar.gz",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	f := c.Flags()
	f.StringVarP(&o.file, "output", "o", "", "File to write; - is stdout. Default heapcam-support-TIME.tar.gz.")
	addOut(c, &o.out)
	f.StringVar(&o.config, "config", "", "Configuration file. Default "+systemConfig+", if it exists.")
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
			return usage("support-bundle -o -: stdout is a terminal; redirect it, or give -o FILE")
		}
	} else {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			return usage("support-bundle -o %s: the file exists, and heapcam does not overwrite it; name another "+
				"file", name)
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
			ui.Fprintf(ui.Stderr, "heapcam: the bundle lacks %s, or a part of it: %v\n", member, err)
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
		if !answered { // the other members may show why a disk or an agent hangs
			err = fmt.Errorf("no answer for %v, and heapcam no longer waits for it", bundleWait)
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
		ui.Fprintf(ui.Stderr, "heapcam: wrote %s; read it before you send it\n", ui.Path(name))
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
	return asJSON(supportConfig{ui.NewEnvelope("config", 1), all, rules})
}

func (o *bundleOptions) doctor(context.Context) ([]byte, error) {
	all, err := jvms.List()
	if err != nil {
		return nil, err
	}
	rows := make([]doctorRow, len(all))
	for i, j := range all {
		rows[i] = doctorRow{JVM: j, Verdict: jvms.Doctor(j)}
	}
	return asJSON(rows)
}

func (o *bundleOptions) recordings(context.Context) ([]byte, error) {
	type row struct { // all that the disk shows without an agent
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
		f, err, answered := within(diskWait, func() (f folder, err error) { // one by one, because one disk may hang
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

// serviceLog gives the end of the service's log, if there is a journal.
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
		return nil, errors.New("the journal has no lines of heapcam.service; if the agent runs in another way, send " +
			"its stderr too")
	}
	return b.Bytes(), err
}

// limited writes up to a limit and drops the rest.
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
