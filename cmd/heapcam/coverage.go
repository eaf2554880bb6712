package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

type coverageOptions struct {
	json      bool
	sync      uint64
	calibrate ui.Size
	seeds     int
	top       int
}

func newCoverageCmd() *cobra.Command {
	var o coverageOptions
	c := &cobra.Command{
		Use:   "coverage FILE|DIR|JVM",
		Short: "Show for how much of the heap the allocation site is known",
		Long: `Use it to judge how far you can trust figures by allocation site.

The output begins with a verdict, and with the smallest site that the sampling interval can show. Figures are good from
80 % of the live bytes on, rough from 40 % on. For each collection the verb splits live bytes into six shares:

- exact: the object was sampled.
- proven: one bytecode alone can have made the object (JDK 17 and 25). Its callers are not known.
- inferred: other objects of its class were sampled. Such an object counts with the probability of the likeliest site.
- few: of the rest, what one of two to four bytecodes has made (JDK 17 and 25).
- unknown: nothing tells the site.
- older: the object may be older than the recording. The figure is an upper bound.

First it shows, for each ring file, what is known if reading starts there, as in a pull; with --sync for one sync point.

--calibrate SIZE checks the estimates themselves. It needs a recording with --sampling 0, where every site is known. It
keeps only the samples that the interval SIZE would have taken, estimates the sites, and compares with the truth. ` +
			fileHelp,
		Example: `  heapcam coverage incident.heapcam
  heapcam coverage --calibrate 512KiB interval0.heapcam
  heapcam coverage --sync 1312 --json incident.heapcam | jq '.sync_points[0].alone'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.coverage/1).")
	c.Flags().Uint64Var(&o.sync, "sync", 0, "Start only at the sync point of this collection. "+
		"Default: at each ring file.")
	c.Flags().Var(&o.calibrate, "calibrate", "Check the estimates on a recording with --sampling 0: keep only "+
		"the samples that this interval would have taken.")
	c.Flags().IntVar(&o.top, "top", 20, "Number of collections to print, evenly chosen; 0 = all.")
	c.Flags().IntVar(&o.seeds, "seeds", 100, "Number of times that --calibrate repeats this.")
	return c
}

func (o *coverageOptions) run(c *cobra.Command, path string) error {
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	if o.calibrate > 0 {
		return o.check(c, rec)
	}
	var q *sites.CoverageReport
	source, reader := newCensusSource, censusOf
	err = countFirst(rec, func(r heap.Reader) (enough bool, err error) {
		if _, follows := r.(*heap.Replay); follows {
			source, reader = newSource, replayOf
		}
		q, err = sites.MakeCoverage(r)
		return !heap.Unsure(r), err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.sync != 0 {
		src := source(rec.Files...)
		defer src.Close()
		if err := q.Alone(reader(&fromSync{src: src, gc: o.sync})); err != nil {
			return fmt.Errorf("%s: %w", rec.Path, err)
		}
		if len(q.SyncPoints) == 0 {
			return withCode(exitNotFound, "%s: collection %d has no sync point: `heapcam coverage` without --sync "+
				"marks those that have one", rec.Path, o.sync)
		}
	} else {
		for _, f := range rec.Files {
			src := source(f)
			err := q.Alone(reader(src))
			src.Close()
			if err != nil {
				return fmt.Errorf("%s: %w", rec.Path, err)
			}
		}
	}
	if o.json {
		return ui.JSON(c.OutOrStdout(), q)
	}
	q.WriteText(c.OutOrStdout(), o.top)
	return nil
}

func (o *coverageOptions) check(c *cobra.Command, rec *ringstore.Recording) error {
	r, _, _, err := stateAt(rec, "last", false)
	if err != nil {
		return err
	}
	for _, s := range r.Live.All() {
		if s.Interval != 0 {
			return usage("--calibrate needs a recording at --sampling 0: this one has samples at an interval of "+
				"%s", ui.Bytes(s.Interval))
		}
	}
	k := sites.Calibrate(r, uint64(o.calibrate), min(max(o.seeds, 1), 10000))
	if o.json {
		return ui.JSON(c.OutOrStdout(), k)
	}
	k.WriteText(c.OutOrStdout())
	return nil
}

// fromSync gives a recording as if it began at the sync point of collection gc: definitions before it, and all from
// there on.
type fromSync struct {
	src   heap.BlockSource
	gc    uint64
	begun bool
}

func (s *fromSync) Next() (trace.Block, error) {
	for {
		b, err := s.src.Next()
		if err != nil || s.begun || b.Kind == trace.KindMeta || b.Kind == trace.KindDefs {
			return b, err
		}
		if b.Kind == trace.KindSync {
			if y, err := trace.DecodeSync(b); err == nil && y.GC == s.gc {
				s.begun = true
				return b, nil
			}
		}
		if b.Kind == trace.KindSlice {
			if y, err := trace.DecodeSlice(b); err == nil && y.GC == s.gc && y.First() {
				s.begun = true
				return b, nil
			}
		}
	}
}
