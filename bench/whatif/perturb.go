package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"path/filepath"
	"strconv"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// factors are by what each share is multiplied.
var factors = []float64{0.5, 0.8, 0.9, 1.1, 1.25, 2}

// perturb predicts from two shares alone, which collections of a recording found alive: of eden (marked) and of
// survivors (survived). Then it changes one of them, and prints by how much the predictions differ (ICPE'14, section
// 7): Inaccuracy, against the predictions from the shares as they are.
func (b *bench) perturb(ps []program) error {
	b.mode = string(whatif.ModeProbabilities)
	fmt.Print("| program | share | as recorded |")
	for _, f := range factors {
		fmt.Printf(" times %v: young | full |", f)
	}
	fmt.Print("\n|---|---|---|")
	for range factors {
		fmt.Print("---|---|")
	}
	fmt.Println()
	for _, p := range ps {
		marked, survived, err := b.shares(p)
		if err != nil {
			return err
		}
		base, err := b.at(p, marked, survived)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | marked | %.3g |", p.name, marked)
		for _, f := range factors {
			if err := b.compare(p, base, min(1, f*marked), survived); err != nil {
				return err
			}
		}
		fmt.Printf("\n| %s | survived | %.3g |", p.name, survived)
		for _, f := range factors {
			if err := b.compare(p, base, marked, min(1, f*survived)); err != nil {
				return err
			}
		}
		fmt.Println()
	}
	return nil
}

// at predicts the points of a program from two shares.
func (b *bench) at(p program, marked, survived float64) (*whatif.Report, error) {
	share := func(x float64) string { return strconv.FormatFloat(100*x, 'f', 4, 64) + "%" }
	return b.predict(p, "--young", list(p.youngs), "--old", list(p.olds), "--marked", share(marked), "--survived",
		share(survived))
}

// compare prints the Inaccuracy of the predictions from two shares, against base.
func (b *bench) compare(p program, base *whatif.Report, marked, survived float64) error {
	rep, err := b.at(p, marked, survived)
	if err != nil {
		return err
	}
	var s score
	for i := range base.Configurations {
		was, now := &base.Configurations[i], &rep.Configurations[i]
		if was.TooSmall || now.TooSmall {
			continue
		}
		s.minorArea += math.Abs(now.Minor.Value - was.Minor.Value)
		s.minorBase += was.Minor.Value
		s.fullArea += math.Abs(now.Full.Value - was.Full.Value)
		s.fullBase += was.Full.Value
	}
	fmt.Printf(" %s | %s |", ratio(s.minorArea, s.minorBase), ratio(s.fullArea, s.fullBase))
	return nil
}

// shares gives which shares young collections of the recording found alive, on average: of eden, and of survivors.
func (b *bench) shares(p program) (marked, survived float64, err error) {
	dirs, err := filepath.Glob(filepath.Join(b.dir, p.name, "*"))
	if err != nil || len(dirs) != 1 {
		return 0, 0, fmt.Errorf("%s: %d recordings, want one", filepath.Join(b.dir, p.name), len(dirs))
	}
	rec, err := ringstore.OpenRecording(dirs[0])
	if err != nil {
		return 0, 0, err
	}
	defer rec.Close()
	src := &source{files: rec.Files}
	tape, err := lifetimes.Read(heap.NewReplay(src))
	if err != nil {
		return 0, 0, err
	}
	n := 0.0
	for i := range tape.Epochs {
		if e := &tape.Epochs[i]; e.Kind == trace.PauseYoung && e.Exact && e.At > e.Begin && i > 0 {
			marked += min(1, float64(e.FromEden)/float64(e.At-e.Begin))
			n++
		}
	}
	before, after := 0.0, 0.0
	for age := 1; age < len(tape.Kept); age++ {
		before += float64(tape.Kept[age-1])
		after += float64(tape.Kept[age] + tape.Tenured[age])
	}
	return marked / max(n, 1), min(1, after/max(before, 1)), nil
}

// source gives the blocks of some files, one file after the other.
type source struct {
	files []*ringstore.File
	next  func() (trace.Block, error, bool)
}

func (s *source) Next() (trace.Block, error) {
	for {
		if s.next == nil {
			if len(s.files) == 0 {
				return trace.Block{}, io.EOF
			}
			s.next, _ = iter.Pull2(s.files[0].Blocks())
			s.files = s.files[1:]
		}
		b, err, ok := s.next()
		if ok && !errors.Is(err, io.EOF) {
			return b, err
		}
		s.next = nil
	}
}
