package e2e

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"testing"
)

// TestWatchedRetention runs a program of which hardly anything lives with generational ZGC, alternately without heapcam
// and recorded, and compares what stays in the old generation and how many major cycles there are. A weak global keeps
// garbage alive there until one or two major cycles later: docs/design/0018-concurrent-collectors.md. Full tests only.
func TestWatchedRetention(t *testing.T) {
	if !full {
		t.Skip("not run: retention by weak globals (HEAPCAM_FULL=1; eight minutes)")
	}
	row := results(t, "zgc-retention.md", "What watching samples retains with ZGC", "Requests of 1,000 linked nodes "+
		"at a steady rate, of which each ends after a few milliseconds, with generational ZGC and\n-Xmx512m. Runs of "+
		"20 s, in turn without heapcam and recorded at its defaults. The old generation is what its memory\npool says "+
		"ten times a second from the sixth second on.", "2 cores, 24 GiB",
		"run | recorded | requests | minor cycles | major cycles | old generation, mean MiB | most MiB")
	const pairs = 10
	var sums [2]retained
	for i := range pairs {
		for recorded, sum := range []*retained{&sums[0], &sums[1]} {
			x := retention(t, recorded == 1)
			sum.add(x)
			row(i+1, []string{"no", "yes"}[recorded], x.requests, x.minors, x.majors, mib(x.old), mib(x.most))
		}
	}
	for recorded, s := range sums {
		majors, majorsError := s.mean(func(x retained1) float64 { return x.majors })
		old, oldError := s.mean(func(x retained1) float64 { return x.old })
		row("mean", []string{"no", "yes"}[recorded], "", "", fmt.Sprintf("%.1f ± %.1f", majors, majorsError),
			fmt.Sprintf("%s ± %s", mib(old), mib(oldError)), "")
	}
	none, _ := sums[0].mean(func(x retained1) float64 { return x.old })
	some, _ := sums[1].mean(func(x retained1) float64 { return x.old })
	if more := some - none; more > 512<<20/20 { // 5 % of the heap
		t.Errorf("the old generation holds %s MiB more while it is recorded", mib(more))
	}
}

// retained1 is one run of Requests.
type retained1 struct{ requests, minors, majors, old, most float64 }

type retained []retained1

func (s *retained) add(x retained1) { *s = append(*s, x) }

// mean gives the mean of a figure and its standard error.
func (s retained) mean(of func(retained1) float64) (mean, deviation float64) {
	for _, x := range s {
		mean += of(x) / float64(len(s))
	}
	for _, x := range s {
		deviation += (of(x) - mean) * (of(x) - mean)
	}
	return mean, math.Sqrt(deviation / float64(len(s)-1) / float64(len(s)))
}

func mib(x float64) string { return fmt.Sprintf("%.1f", x/(1<<20)) }

var requestsLine = regexp.MustCompile(`requests (\d+) minors (\d+) majors (\d+) old (\d+) most (\d+)`)

func retention(t *testing.T, recorded bool) retained1 {
	t.Helper()
	p := program{major: 25, heap: "512m", opts: []string{"-XX:+UseZGC"}, main: "Requests",
		args: []string{"20", "20000"}}
	var r *running
	if recorded {
		r = p.start(t)
	} else {
		r = p.plain(t)
	}
	r.finish(t)
	m := requestsLine.FindStringSubmatch(r.stdout.String())
	if m == nil {
		t.Fatalf("no result:\n%s", r.stdout.String())
	}
	var v [5]float64
	for i := range v {
		n, _ := strconv.Atoi(m[i+1])
		v[i] = float64(n)
	}
	return retained1{v[0], v[1], v[2], v[3], v[4]}
}
