package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/analysis/whatif"
)

// table predicts the points of which there are runs, and prints both.
func (b *bench) table(ps []program) error {
	fmt.Println("| program | young + old, MiB | young: real | predicted | full: real | predicted | pauses: real | " +
		"predicted | " +
		"misses |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	var all score
	for _, p := range ps {
		var mine score
		if err := b.program(p, &mine); err != nil {
			fmt.Printf("| %s | | | | | | | | %v |\n", p.name, err)
			continue
		}
		fmt.Printf("| **%s** | %s |\n", p.name, mine.String())
		all.add(&mine)
	}
	fmt.Printf("| **all** | %s |\n", all.String())
	return nil
}

// score counts how good predictions are.
type score struct {
	points, minor, full, inside int
	minorArea, minorBase        float64
	fullArea, fullBase          float64
}

func (s *score) add(o *score) {
	s.points, s.minor, s.full, s.inside = s.points+o.points, s.minor+o.minor, s.full+o.full, s.inside+o.inside
	s.minorArea, s.minorBase = s.minorArea+o.minorArea, s.minorBase+o.minorBase
	s.fullArea, s.fullBase = s.fullArea+o.fullArea, s.fullBase+o.fullBase
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func (s *score) String() string {
	return fmt.Sprintf("%d points | %d within 10 %% | Inaccuracy %s | %d within 25 %% or 1 | Inaccuracy %s | | | %d "+
		"of %d "+
		"in both intervals", s.points, s.minor, ratio(s.minorArea, s.minorBase), s.full, ratio(s.fullArea, s.fullBase),
		s.inside, s.points)
}

// list gives sizes in MiB as a flag of heapcam whatif.
func list(sizes []int) string {
	var out []string
	for _, n := range sizes {
		out = append(out, strconv.Itoa(n)+"MiB")
	}
	return strings.Join(out, ",")
}

// predict asks heapcam whatif about the recording of a program.
func (b *bench) predict(p program, flags ...string) (*whatif.Report, error) {
	args := append([]string{"whatif", "--json", "--survivor-ratio", "6", "--tenuring", "4", "--mode", b.mode}, flags...)
	out, err := exec.Command(b.heapcam, append(args, filepath.Join(b.dir, p.name))...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	rep := &whatif.Report{}
	return rep, json.Unmarshal(out, rep)
}

func (b *bench) program(p program, s *score) error {
	rep, err := b.predict(p, "--young", list(p.youngs), "--old", list(p.olds))
	if err != nil {
		return err
	}
	for i := range rep.Configurations {
		c := &rep.Configurations[i]
		if r, ok := b.done[key(p.name, int(c.Young>>20), int(c.Old>>20))]; ok {
			s.point(&r, c)
		}
	}
	check := ""
	for _, row := range rep.Check.Rows {
		check += fmt.Sprintf("%s %.3g/%.3g; ", row.What, row.Measured, row.Predicted.Value)
	}
	fmt.Printf("| %s | recorded: %d + %d | | | | | | | measured/predicted: %s |\n", p.name, p.young, p.old, check)
	return nil
}

// point prints a row and counts it. A point at which both the run and the prediction ran out of memory is right.
func (s *score) point(r *result, c *whatif.Prediction) {
	s.points++
	var misses []string
	within := func(real int, p whatif.Span, share float64) bool {
		d := math.Abs(float64(real) - p.Value)
		return d <= share*float64(real) || d <= 1
	}
	inside := func(real int, p whatif.Span) bool { return float64(real) >= p.Low && float64(real) <= p.High }
	oom := r.Exit != 0
	good := [2]bool{within(r.Minor, c.Minor, 0.10), within(r.Full, c.Full, 0.25)}
	in := inside(r.Minor, c.Minor) && inside(r.Full, c.Full)
	if oom || c.TooSmall {
		same := oom && (c.TooSmall || c.MayBeSmall) || c.TooSmall && oom
		good, in = [2]bool{same, same}, same
	} else {
		s.minorArea += math.Abs(float64(r.Minor) - c.Minor.Value)
		s.minorBase += float64(r.Minor)
		s.fullArea += math.Abs(float64(r.Full) - c.Full.Value)
		s.fullBase += float64(r.Full)
	}
	for i, name := range []string{"young", "full"} {
		if !good[i] {
			misses = append(misses, name)
		}
	}
	if good[0] {
		s.minor++
	}
	if good[1] {
		s.full++
	}
	if in {
		s.inside++
	} else {
		misses = append(misses, "interval")
	}
	mark := func(b bool, word string) string {
		if b {
			return word
		}
		return ""
	}
	span := func(p whatif.Span) string { return fmt.Sprintf("%.0f (%.0f–%.0f)", p.Value, p.Low, p.High) }
	fmt.Printf("| %s | %d + %d | %d%s | %s%s | %d | %s | %.2f s | %.2f s | %s |\n", r.Program, r.Young, r.Old, r.Minor,
		mark(oom, ", out of memory"), span(c.Minor), mark(c.TooSmall, ", too small"), r.Full, span(c.Full), r.GCSeconds,
		c.GCSeconds.Value, strings.Join(misses, ", "))
}
