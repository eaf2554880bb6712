package main

import (
	"context"
	"io"
	"iter"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/web"
)

type viewOptions struct {
	noOpen bool
	out    string
	socket string
}

func newViewCmd() *cobra.Command {
	var o viewOptions
	c := &cobra.Command{
		Use:   "view [FILE|DIR|JVM [AFTER]]",
		Short: "Open a recording in the browser",
		Long: `Use it to explore a recording: the timeline, the heap after any collection in groups of your choice,
differences, trends, leaks, and how far you can trust the figures.

FILE is a file that ` + "`heapcam pull`" + ` wrote, DIR a ring folder, JVM the name or pid of a recorded JVM. The
page of a running JVM updates itself, and can freeze and pull. The verb serves the page on the loopback interface
only, at a random port and a secret path. The page loads nothing from elsewhere. From another host, forward the
port, for example with ssh -L. Ctrl-C ends the viewer.

Without an argument, or with a folder of several recordings, the page first lists all recordings: of the agent of this
host, and of the folders that ` + "`heapcam status`" + ` lists.

With two recordings, from before and after a change of the program, the page shows AFTER. Its view Diff compares the
two: a flame graph whose colours show the change, and the slopes of ` + "`heapcam diff`" + `.`,
		Example: "  heapcam view\n  heapcam view incident.heapcam\n  heapcam view --no-open shop\n" +
			"  heapcam view before.heapcam after.heapcam",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage("view takes a FILE, DIR or JVM, or two to compare: before and after")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	f := c.Flags()
	f.BoolVar(&o.noOpen, "no-open", false, "Print the address, but do not start a browser.")
	addOut(c, &o.out)
	addSocket(c, &o.socket)
	return c
}

func (o *viewOptions) run(c *cobra.Command, refs []string) error {
	ctx, stop := interruptible(c.Context())
	defer stop()
	// The cached states change little. This saves a third of the memory and costs a tenth more time to read. The
	// report, for which a reader waits, needs little memory.
	thrift := func() { keepSmall(40) }
	if len(refs) == 0 || len(refs) == 1 && severalBelow(refs[0]) {
		thrift()
		s := web.NewHome(o.home(strings.Join(refs, "")))
		defer s.Close()
		return o.serve(ctx, c, s)
	}
	cfg, err := o.config(ctx, refs[len(refs)-1])
	if err != nil {
		return err
	}
	if len(refs) == 2 {
		if cfg.Before, err = o.config(ctx, refs[0]); err != nil {
			return err
		}
	}
	cfg.Idle = collectGarbage()
	s := web.New(*cfg)
	defer s.Close()
	s.Ahead(thrift)
	return o.serve(ctx, c, s)
}

// serve serves a page on loopback, and opens it in the browser.
func (o *viewOptions) serve(ctx context.Context, c *cobra.Command, s interface {
	Path() string
	Serve(context.Context, net.Listener) error
}) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	url := "http://" + l.Addr().String() + s.Path()
	ui.Fprintf(c.OutOrStdout(), "%s\n", url)
	if !o.noOpen {
		if err := openBrowser(url); err != nil {
			ui.Fprintf(ui.Stderr, "heapcam: cannot start a browser (%v); open the address above\n", err)
		}
	}
	ui.Fprintf(ui.Stderr, "heapcam: Ctrl-C ends the viewer\n")
	return s.Serve(ctx, l)
}

// collectGarbage gives a function that runs Go's collector if there is enough garbage. It is called between requests,
// when nobody waits; during the next request the collection would take as long as the request itself.
func collectGarbage() func() {
	const worth = 32 << 20
	var last atomic.Uint64
	return func() {
		m := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(m)
		if n := m[0].Value.Uint64(); n-last.Load() > worth {
			last.Store(n)
			runtime.GC()
		}
	}
}

// config finds what ref means.
func (o *viewOptions) config(ctx context.Context, ref string) (*web.Config, error) {
	path, st := ref, o.recorded(ctx, ref)
	if st != nil {
		path = st.Dir
	} else if _, err := os.Stat(ref); err != nil && !bucket.Is(ref) {
		if path, err = recordingOf(o.out, []string{ref}); err != nil {
			return nil, orDenied(err, o.out, ref)
		}
	}
	rec, err := openRecording(path) // report on stderr, not on a page, what cannot be opened
	if err != nil {
		if st == nil || st.Phase.Over() {
			return nil, err
		}
	} else {
		path = rec.Path
		rec.Close()
	}
	cfg := &web.Config{Title: filepath.Base(path), Library: func() (*classify.Library, error) { return library("") },
		Open: inputsOf(path, newSource), OpenCensus: inputsOf(path, newCensusSource),
		OpenFrom: func(gc uint64) (*web.Input, error) {
			return openInput(path, gc, newSource, func(done, total int64) {})
		},
		Leaks: func() (leak.Options, func()) {
			rec, err := openStored(path)
			if err != nil {
				return leak.Options{MinGrowth: leak.DefaultMinGrowth}, func() {}
			}
			return leakOptions(rec, leak.DefaultMinGrowth), func() { rec.Close() }
		},
		Report: func(makeReport func() (*analysis.Report, error)) (*analysis.Report, error) {
			return indexed(ownIndex(), reportResult, path, makeReport)
		}}
	cfg.References.Heads, cfg.References.Parts = inputsOf(path, newReferenceHeads), inputsOf(path, newReferenceSource)
	cfg.References.Defs = inputsOf(path, newDefinitionSource)
	cfg.Graphs = newGraphCache(path)
	if !bucket.Is(path) { // to read it once more takes long there
		cfg.OpenPauses = func() (*web.Input, error) {
			return openInput(path, 0, newPauseSource, func(done, total int64) {})
		}
	}
	dir := path
	if st == nil { // a recording of the agent may have no data yet
		ring, ok := onDisk(path)
		if !ok {
			return cfg, nil
		}
		dir = ring.Dir
	}
	out := filepath.Dir(dir)
	if filepath.Base(out) == agent.IncidentsName { // an incident does not change, and needs no incident of its own
		return cfg, nil
	}
	cfg.Version = func() (string, bool) { return folderVersion(dir) }
	cfg.Follow = func(progress func(done, total int64)) (*web.Input, error) { return follow(dir, progress) }
	cfg.FollowCensus = func(progress func(done, total int64)) (*web.Input, error) {
		return followCensus(dir, progress)
	}
	cfg.Status = func(ctx context.Context) any {
		if st := o.recorded(ctx, dir); st != nil {
			return st
		}
		return nil
	}
	if st != nil && !st.Phase.Over() {
		cfg.Settle, cfg.SettleMost = o.settler(st.ID), defaultReferencePause
	}
	cfg.Freeze = func(reason string) (*ringstore.Incident, error) {
		i, err := incidentsIn(out, agent.DefaultIncidents).Freeze(dir, ringstore.CauseAsked, reason)
		return &i, err
	}
	cfg.Pull = func(ctx context.Context, w io.Writer) error {
		_, err := ringstore.Pull(ctx, dir, w, ringstore.PullOptions{})
		return err
	}
	cfg.Incidents = func() []ringstore.Incident { return incidentsOf(out, filepath.Base(dir)) }
	return cfg, nil
}

// incidentsOf lists the incidents of one JVM.
func incidentsOf(out, jvm string) (mine []ringstore.Incident) {
	all, err := incidentsIn(out, 0).List()
	if err != nil {
		return nil
	}
	for _, i := range all {
		if i.JVM == jvm {
			mine = append(mine, i)
		}
	}
	return mine
}

// recorded gives what the agent, if one runs, says of a JVM that ref names: a folder, pid or name.
func (o *viewOptions) recorded(ctx context.Context, ref string) *session.Status {
	path, err := socketPath(o.socket)
	if err != nil {
		return nil
	}
	cl, err := api.Dial(path)
	if err != nil {
		return nil
	}
	r, err := cl.Status(ctx)
	if err != nil {
		return nil
	}
	abs, _ := filepath.Abs(ref)
	for _, s := range r.JVMs {
		if s.Dir == abs {
			return &s
		}
	}
	if _, err := os.Stat(ref); err == nil {
		return nil
	}
	if s, err := pick(r.JVMs, ref); err == nil {
		return &s
	}
	return nil
}

// quiet is how long a ring may be unchanged until it counts as ended.
const quiet = 30 * time.Second

// folderVersion gives a text that changes when a ring folder changes, and whether the folder has been quiet. A folder
// without files has just begun.
func folderVersion(dir string) (string, bool) {
	files := ringFiles(dir)
	sum, newest := int64(0), time.Time{}
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			sum += st.Size()
			if st.ModTime().After(newest) {
				newest = st.ModTime()
			}
		}
	}
	if len(files) == 0 {
		return "", false
	}
	return strconv.Itoa(len(files)) + "-" + strconv.FormatInt(sum, 10) + "-" +
		strconv.FormatInt(newest.UnixNano(), 36), time.Since(newest) > quiet
}

// inputsOf gives a function that opens a recording for what reader reads of it.
func inputsOf(path string, reader func(...*ringstore.File) *source) func(func(done, total int64)) (*web.Input, error) {
	return func(progress func(done, total int64)) (*web.Input, error) {
		return openInput(path, 0, reader, progress)
	}
}

// openInput opens a recording for the viewer, from the frame of collection gc on, or all that reader reads if gc is 0.
func openInput(
	path string,
	gc uint64,
	reader func(...*ringstore.File) *source,
	progress func(done, total int64),
) (*web.Input, error) {
	rec, err := openStored(path)
	if err != nil {
		return nil, err
	}
	if len(rec.Files) == 0 {
		rec.Close()
		return nil, withCode(exitDamaged, "%s: heapcam cannot read any of its files; `heapcam verify` says what "+
			"is wrong", path)
	}
	watchBytes(rec, progress)
	files := rec.Files
	for len(files) > 1 && gc > 0 && files[0].Window().LastGC < gc {
		files = files[1:]
	}
	src := reader(files...)
	if gc > 0 {
		src.of = func(f *ringstore.File) iter.Seq2[trace.Block, error] { return f.From(gc) }
	}
	return &web.Input{Source: src, Problems: rec.Problems, Close: func() {
		src.Close()
		rec.Close()
	}}, nil
}

// watchBytes has progress called with the bytes of rec that are read, and their total.
func watchBytes(rec *ringstore.Recording, progress func(done, total int64)) {
	total := int64(0)
	for _, f := range rec.Files {
		total += f.Size
	}
	var done atomic.Int64
	rec.Watch(func(n int) { progress(min(done.Add(int64(n)), total), total) })
}
