package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

func pull2(f *ringstore.File) (func() (trace.Block, error, bool), func()) {
	return iter.Pull2(f.Blocks())
}

func newPullCmd() *cobra.Command {
	var out, to string
	var want last
	c := &cobra.Command{
		Use:   "pull [JVM]",
		Short: "Take the newest part of a recording out as one file",
		Long: `Takes the newest part of a recording out as one self-contained file, while recording goes on. JVM is a pid, a name, the start of a
recording's id, or a ring folder; without it there must be only one recording. --last counts back from the recording's last data and takes
whole ring files: at least as much as asked. The file is a tar archive with a manifest.`,
		Example: "  heapcam pull --last 200MiB -o incident.heapcam\n  heapcam pull shop --last 15m -o - | ssh desk 'cat > incident.heapcam'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if to == "" {
				return usage("pull: -o FILE is missing (-o - writes to stdout)")
			}
			ref := ""
			if len(args) > 0 {
				ref = args[0]
			}
			dir, err := findRecording(outDirs(out), ref)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
			defer stop()
			return doPull(ctx, c, dir, to, want)
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder of the recordings")
	c.Flags().StringVarP(&to, "output", "o", "", "file to write, - for stdout")
	c.Flags().Var(&want, "last", "how much, counted back from the newest data")
	return c
}

func doPull(ctx context.Context, c *cobra.Command, dir, to string, want last) error {
	opt := ringstore.PullOptions{LastBytes: want.bytes, LastDuration: want.dur}
	if f, ok := c.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		begin := time.Now()
		opt.Progress = func(done, total int64) {
			if time.Since(begin) > time.Second {
				fmt.Fprintf(f, "\rpulled %s of %s", humanBytes(done), humanBytes(total))
			}
		}
	}
	if to == "-" {
		_, err := ringstore.Pull(ctx, dir, c.OutOrStdout(), opt)
		return err
	}
	// A file appears under its name only when it is whole.
	f, err := os.CreateTemp(filepath.Dir(to), ".heapcam-pull-*")
	if err != nil {
		return fmt.Errorf("pull: cannot write beside %s: %w", to, err)
	}
	defer os.Remove(f.Name())
	m, err := ringstore.Pull(ctx, dir, f, opt)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "heapcam: %s: collections %d to %d of %s, %s\n", to, m.FirstGC, m.LastGC, m.Name, plural(uint64(len(m.Files)), "file"))
	return nil
}

func newReportCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "What happened in this window, on one screen",
		Long: `Says what happened in the window of a recording: collections and pauses with heapcam's own share, live bytes, what grew most and the
sites that grow, how far the figures can be trusted, and what to look at first. FILE is a pulled file, a ring folder or one ring file.`,
		Args: exactly(1, "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			r, rec, err := openReplay(args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			rep, err := analysis.MakeReport(r)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), rep)
			}
			rep.WriteText(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON (heapcam.report/1)")
	return c
}

func newHistogramCmd() *cobra.Command {
	var asJSON bool
	var at string
	var top int
	c := &cobra.Command{
		Use:   "histogram FILE",
		Short: "Objects and bytes by class after a collection",
		Args:  exactly(1, "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			var recs []*ringstore.Recording
			defer func() {
				for _, r := range recs {
					r.Close()
				}
			}()
			h, err := analysis.HistogramAt(func() (*heap.Replayer, error) {
				r, rec, err := openReplay(args[0])
				if err == nil {
					recs = append(recs, rec)
				}
				return r, err
			}, at)
			if errors.Is(err, analysis.ErrNoGC) {
				return withCode(exitNotFound, "%s: %v", args[0], err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), h)
			}
			h.WriteText(c.OutOrStdout(), top)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON (heapcam.histogram/1)")
	c.Flags().StringVar(&at, "at", "last", "collection: a number, first, last, peak, or a time (RFC 3339, or HH:MM:SS UTC)")
	c.Flags().IntVar(&top, "top", 40, "rows to print, 0 for all")
	return c
}

func newVerifyCmd() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify FILE|DIR",
		Short: "Check files, and replayed states against the listings",
		Long: `Reads every frame, rebuilds the state from moves, births and deaths, and compares it with the listing of each sync point: the recording as
a whole, and each file opened alone. Exit 0: sound, or only a torn tail; 6: corrupt; 7: written by a newer heapcam; 8: states differ.`,
		Args: exactly(1, "FILE or DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			rec, err := ringstore.OpenRecording(args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			torn := func(err error) bool { return errors.Is(err, ringstore.ErrTorn) }
			v := analysis.Verification{Schema: "heapcam.verify/1", Files: []analysis.FileVerdict{}}
			worst := ""
			for _, p := range rec.Problems {
				fv := analysis.FileVerdict{File: args[0], Verdict: "corrupt", Damage: []string{p.Error()}, Explained: map[string]uint64{}}
				if storeTooNew(p) {
					fv.Verdict = "too new"
				} else if torn(p) {
					fv.Verdict = "torn"
				}
				v.Files = append(v.Files, fv)
			}
			for _, f := range rec.Files {
				v.Files = append(v.Files, analysis.VerifyOne(f.Name, &blocks{files: []*ringstore.File{f}}, torn))
			}
			v.Whole = analysis.VerifyOne(args[0], &blocks{files: rec.Files}, torn)
			v.SyncPoints, v.Mismatches = v.Whole.SyncPoints, v.Whole.Mismatches
			for _, f := range v.Files {
				v.Mismatches = max(v.Mismatches, f.Mismatches)
				if f.Verdict == "corrupt" || f.Verdict == "too new" && worst == "" {
					worst = f.Verdict
				}
			}
			if asJSON {
				err = printJSON(c.OutOrStdout(), v)
			} else {
				v.WriteText(c.OutOrStdout())
			}
			switch {
			case err != nil:
				return err
			case worst == "corrupt":
				return status(exitDamaged)
			case worst == "too new":
				return status(exitTooNew)
			case v.Mismatches > 0:
				return status(exitMismatch)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON (heapcam.verify/1)")
	return c
}

func newDumpCmd() *cobra.Command {
	var brief bool
	c := &cobra.Command{
		Use:   "dump FILE",
		Short: "Print a recording's blocks and events as text",
		Args:  exactly(1, "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			rec, err := ringstore.OpenRecording(args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			w := bufio.NewWriter(c.OutOrStdout())
			defer w.Flush()
			t := trace.NewTextWriter(w)
			t.Brief = brief
			src := &blocks{files: rec.Files}
			for {
				b, err := src.Next()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					fmt.Fprintf(w, "# %v\n", err)
					continue
				}
				if err := t.Block(b); err != nil {
					return err
				}
			}
		},
	}
	c.Flags().BoolVar(&brief, "brief", false, "leave out the tokens of walks and listings")
	return c
}
