package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/ringstore"
)

type pullOptions struct {
	out  string
	last last
	file string
}

func newPullCmd() *cobra.Command {
	var o pullOptions
	c := &cobra.Command{
		Use:   "pull [JVM]",
		Short: "Copy the last part of a recording into one file",
		Long:  "pull copies the newest part of a recording, running or ended, into one self-contained file: whole ring files, at least as much as\n--last asks for. Without JVM there must be only one recording. It holds types, sizes, addresses and sites, never a field's value.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("pull takes one JVM, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	c.Flags().StringVar(&o.out, "out", "", "folder for recordings (default $HEAPCAM_OUT, else ./heapcam-recordings, else /var/lib/heapcam)")
	c.Flags().Var(&o.last, "last", "how much, like 64MiB or 15m (default: all)")
	c.Flags().StringVarP(&o.file, "output", "o", "", "file to write, - for stdout")
	return c
}

func (o *pullOptions) run(args []string) (err error) {
	if o.file == "" {
		return usage("pull needs -o FILE (- for stdout)")
	}
	if o.file == "-" && isTerminal(os.Stdout) {
		return usage("pull -o -: stdout is a terminal")
	}
	recs, err := recordings(outDirs(o.out))
	if err != nil {
		return err
	}
	var dir string
	switch {
	case len(args) == 1:
		if _, ok := onDisk(args[0]); ok && filepath.Base(args[0]) != args[0] { // a folder will do
			dir = args[0]
			break
		}
		s, err := pick(recs, args[0])
		if err != nil {
			return err
		}
		dir = s.Dir
	case len(recs) == 1:
		dir = recs[0].Dir
	case len(recs) == 0:
		return withCode(exitNotFound, "there is no recording in %v", outDirs(o.out))
	default:
		return usage("there are %d recordings: say which (`heapcam status` lists them)", len(recs))
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	w := io.Writer(os.Stdout)
	if o.file != "-" {
		f, err := os.OpenFile(o.file+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer func() {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err == nil {
				err = os.Rename(f.Name(), o.file)
			} else {
				os.Remove(f.Name())
			}
		}()
		w = f
	}
	buf := bufio.NewWriterSize(w, 1<<20)
	p := newProgress("pulling")
	m, err := ringstore.Pull(ctx, dir, buf, ringstore.PullOptions{LastBytes: o.last.bytes, LastDuration: o.last.dur, Progress: p.at})
	p.done()
	if err == nil {
		err = buf.Flush()
	}
	if err != nil {
		return err
	}
	var n int64
	for _, f := range m.Files {
		n += f.Bytes
	}
	fmt.Fprintf(os.Stderr, "heapcam: pulled %s of %s: %s, collections %d to %d\n", humanBytes(n), filepath.Base(dir), plural(uint64(len(m.Files)), "file"), m.FirstGC, m.LastGC)
	return nil
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
	fmt.Fprintf(os.Stderr, "\rheapcam: %s: %d%% of %s ", p.what, 100*done/total, humanBytes(total))
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
