package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

type reportOptions struct{ json bool }

func newReportCmd() *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report FILE|DIR|JVM",
		Short: "Show what happened in a recording, on one screen",
		Long: `Read this first. It answers whether the program leaks, what grows, and which line of code allocated it.

The report shows collections and pauses with heapcam's own share, heap usage, the classes and allocation sites that
grew most, leaks, and how far you can trust the figures. It names what to look at first. ` + fileHelp,
		Example: "  heapcam report incident.heapcam\n  heapcam report --json incident.heapcam | jq '.verdicts[0]'",
		Args:    exactly(1, readingArg),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.report/2).")
	return c
}

func (o *reportOptions) run(c *cobra.Command, path string) error {
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	rep, err := reportOf(c.ErrOrStderr(), rec)
	if err != nil {
		return err
	}
	rep.Advice = adviceOn(c.Context(), rec, rep)
	if o.json {
		return ui.JSON(c.OutOrStdout(), rep)
	}
	rep.WriteText(c.OutOrStdout(), path)
	return nil
}

// reportOn reads the recording at path, or finds its report in the index. What takes long is announced on progress.
func reportOn(progress io.Writer, path string) (*analysis.Report, error) {
	rec, err := openReading(path)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	return reportOf(progress, rec)
}

// reportOf is reportOn for a recording that is open.
func reportOf(progress io.Writer, rec *ringstore.Recording) (*analysis.Report, error) {
	rep, err := indexed(ownIndex(), reportResult, rec.Path, func() (rep *analysis.Report, err error) {
		took, leaking := cost.New(), leakOptions(rec, leak.DefaultMinGrowth)
		listed := false
		watch := func(b trace.Block) {
			_ = took.Add(b) // the replay tells what is damaged
			listed = listed || b.Kind == trace.KindRefs
		}
		err = countWatched(rec, watch, func(r heap.Reader) (bool, error) {
			if rep != nil { // all but the verdicts is known
				ui.Fprintf(progress, "heapcam: to confirm a leak, all objects are replayed: this takes longer\n")
				l, err := leak.Find(r, leaking)
				if err == nil {
					rep.Settle(l)
				}
				return true, err
			}
			p := r.Position()
			p.Damage = append(p.Damage, rec.Problems...)
			made, err := analysis.MakeReport(r, leaking)
			if err != nil || heap.Unsure(r) {
				return false, err
			}
			rep = made
			return !rep.Open, nil
		})
		if err == nil {
			took.Close()
			rep.Account(took)
			if listed {
				rep.Garbage = garbage(rec)
				rep.ListedFirst, rep.ListedLast = listedBetween(rec)
			}
		}
		return rep, err
	})
	if err == nil && rep.Ending == analysis.EndingNone { // the index does not know who writes now
		if end := unended(rec); end != "" {
			rep.End = end
		}
		rep.Over, rep.ByRun = over(rec, rep.PID), byRun(rec)
	}
	return rep, err
}

// over says of a recording without an end marker whether its JVM surely runs no more: nobody writes the ring, which is
// of this machine, and there is no such process.
func over(rec *ringstore.Recording, pid uint64) bool {
	if rec.Manifest != nil || unended(rec) != "" || pid == 0 ||
		ringstore.ReadResource(ringstore.OS, rec.Path)[trace.AttrContainer] != "" { // whose pids may be its own
		return false
	}
	_, hidden := os.Stat("/proc/1") // those of other users may be
	_, err := os.Stat(filepath.Join("/proc", strconv.FormatUint(pid, 10)))
	return runtime.GOOS == "linux" && hidden == nil && errors.Is(err, fs.ErrNotExist)
}

// byRun says whether `heapcam run` writes the recording now.
func byRun(rec *ringstore.Recording) bool {
	return strings.HasPrefix(jvms.Recorders().Of(rec.Path), "recorded by `heapcam run`")
}

// unended says why a recording has no end marker, if that is known: it is still being recorded, or it was frozen.
func unended(rec *ringstore.Recording) string {
	const frozen = ", so what came later is not in it"
	if who := jvms.Recorders().Of(rec.Path); who != "" {
		return "none yet: still " + who
	}
	if rec.Manifest != nil {
		if m := rec.Manifest; m.Incident && !m.Ended {
			return "none: it was frozen" + frozen
		}
		return ""
	}
	n := ringstore.Incidents{Dir: filepath.Dir(rec.Path)}
	i, err := n.Find(filepath.Base(rec.Path))
	if err != nil || i.Damaged != "" || i.Ended {
		return ""
	}
	return "none: it was frozen at " + ui.Clock(i.Created) + frozen
}
