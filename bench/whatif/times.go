package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/whatif"
)

// times predicts the points of which there are runs, and prints the lengths of pauses: measured, predicted, and the
// interval.
func (b *bench) times(ps []program) error {
	fmt.Println("| program | young + old, MiB | time in collections, ms: real | predicted | longest pause, ms: " +
		"real | predicted |")
	fmt.Println("|---|---|---|---|---|---|")
	var all timeScore
	for _, p := range ps {
		var mine timeScore
		rep, err := b.predict(p, "--young", list(p.youngs), "--old", list(p.olds))
		if err != nil {
			fmt.Printf("| %s | | | | | %v |\n", p.name, err)
			continue
		}
		for i := range rep.Configurations {
			c := &rep.Configurations[i]
			r, ok := b.done[key(p.name, int(c.Young>>20), int(c.Old>>20))]
			if !ok || r.Minor+r.Full == 0 || r.Exit != 0 || c.TooSmall {
				continue
			}
			mine.total.add(r.GCSeconds, c.GCSeconds)
			longest := "–"
			if r.Longest > 0 { // older results have none
				mine.longest.add(r.Longest, c.Longest)
				longest = fmt.Sprintf("%.0f", 1000*r.Longest)
			}
			fmt.Printf("| %s | %d + %d | %.0f | %s | %s | %s |\n", p.name, r.Young, r.Old, 1000*r.GCSeconds,
				milliseconds(c.GCSeconds), longest, milliseconds(c.Longest))
		}
		for _, row := range rep.Check.Rows {
			if row.What == whatif.RowSeconds || row.What == whatif.RowLongest {
				fmt.Printf("| %s | recorded: %s | %.0f | %s | | |\n", p.name, row.What, 1000*row.Measured,
					milliseconds(row.Predicted))
			}
		}
		fmt.Printf("| **%s** | %s |\n", p.name, mine.String())
		all.total.join(&mine.total)
		all.longest.join(&mine.longest)
	}
	fmt.Printf("| **all** | %s |\n", all.String())
	return nil
}

func milliseconds(s whatif.Span) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", 1000*s.Value, 1000*s.Low, 1000*s.High)
}

// timeScore says how good predictions of the two times are.
type timeScore struct{ total, longest ratios }

// ratios are predicted over real.
type ratios struct {
	of          []float64
	near, in, n int
	area, base  float64
}

func (r *ratios) add(real float64, p whatif.Span) {
	r.n++
	r.of = append(r.of, p.Value/real)
	r.area, r.base = r.area+math.Abs(real-p.Value), r.base+real
	if math.Abs(real-p.Value) <= 0.25*real {
		r.near++
	}
	if real >= p.Low && real <= p.High {
		r.in++
	}
}

func (r *ratios) join(o *ratios) {
	r.of = append(r.of, o.of...)
	r.near, r.in, r.n, r.area, r.base = r.near+o.near, r.in+o.in, r.n+o.n, r.area+o.area, r.base+o.base
}

func (r *ratios) String() string {
	if r.n == 0 {
		return "no runs"
	}
	slices.Sort(r.of)
	return fmt.Sprintf("%d runs: %d within 25 %%, %d in the interval, Inaccuracy %.2f, predicted / real %.2f to %.2f, "+
		"median %.2f", r.n, r.near, r.in, r.area/r.base, r.of[0], r.of[r.n-1], r.of[r.n/2])
}

func (s *timeScore) String() string { return fmt.Sprintf("%v | | %v |", &s.total, &s.longest) }
