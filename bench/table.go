package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
)

// group is one program on one JVM, one build.
type group struct{ build, program, gc, vm string }

// render writes one line a group: medians of ratios of runs in the same round, so that a drift of the machine cancels.
func render(w io.Writer, rows []row) {
	byGroup := map[group]map[int]map[string]row{}
	machines := map[string]bool{}
	first, last := "", ""
	for _, r := range rows {
		g := group{r.Build, r.Program, r.GC, fmt.Sprint(r.JDK)}
		if byGroup[g] == nil {
			byGroup[g] = map[int]map[string]row{}
		}
		if byGroup[g][r.Round] == nil {
			byGroup[g][r.Round] = map[string]row{}
		}
		byGroup[g][r.Round][r.Config] = r
		machines[r.Machine] = true
		if first == "" || r.Date < first {
			first = r.Date
		}
		last = max(last, r.Date)
	}
	keys := make([]group, 0, len(byGroup))
	for g := range byGroup {
		keys = append(keys, g)
	}
	sort.Slice(keys, func(i, j int) bool { return fmt.Sprint(keys[i]) < fmt.Sprint(keys[j]) })
	for m := range machines {
		fmt.Fprintf(w, "Machine: %s. ", m)
	}
	fmt.Fprintf(w, "Measured %s to %s.\n", first, last)
	for _, depth := range []string{"survivors", "full"} {
		fmt.Fprintf(w, "\n### Depth `%s`\n\n", depth)
		fmt.Fprintln(w, "| program | JDK | collector | rounds | probe in pauses, % of run time | sampling, % "+
			"| CPU, all | "+
			"of it recorder, % | wall time [95 %] | A/A wall [95 %] | GC time | bytes/object | sync "+
			"bytes/object | lost |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		var shares, cpus []float64
		for _, g := range keys {
			var share, sampling, cpu, rec, wall, aa, gc []float64
			var trace, syncBytes int64
			var objects, syncObjects, lost uint64
			n := 0
			for _, c := range byGroup[g] {
				d, ok1 := c[depth]
				a, ok2 := c["none"]
				b, ok3 := c["again"]
				if !ok1 || !ok2 || !ok3 {
					continue
				}
				n++
				base := float64(a.Wall+b.Wall) / 2
				baseCPU := float64(a.AppCPU+b.AppCPU) / 2
				share = append(share, 100*float64(d.Probe)/float64(d.Wall))
				sampling = append(sampling, 100*float64(d.Sample)/float64(d.Wall))
				cpu = append(cpu, float64(d.AppCPU+d.RecCPU)/baseCPU)
				rec = append(rec, 100*float64(d.RecCPU)/baseCPU)
				wall = append(wall, float64(d.Wall)/base)
				aa = append(aa, float64(b.Wall)/float64(a.Wall))
				if p := float64(a.PauseNS+b.PauseNS) / 2; p > 0 {
					gc = append(gc, float64(d.PauseNS)/p)
				}
				trace += d.Trace - d.SyncBytes
				objects += d.Objects
				syncBytes += d.SyncBytes
				syncObjects += d.SyncObjects
				lost += d.Lost
			}
			if n == 0 {
				continue
			}
			shares, cpus = append(shares, median(share)), append(cpus, median(cpu))
			fmt.Fprintf(w, "| %s | %s | %s | %d | %.2f | %.2f | %.3f | %.1f | %s | %s | %.2f | %s | %s | %d |\n",
				g.program,
				g.vm, g.gc, n, median(share), median(sampling), median(cpu), median(rec),
				interval(wall), interval(aa), median(gc), ratio(float64(trace), float64(objects)),
				ratio(float64(syncBytes), float64(syncObjects)), lost)
		}
		if len(shares) > 0 {
			fmt.Fprintf(w, "\nMean of the probe's share in pauses: %.2f %% (worst %.2f %%). Mean CPU: %.3f.\n",
				mean(shares),
				slices.Max(shares), mean(cpus))
		}
	}
	fmt.Fprintln(w, strings.TrimSpace(`
Each figure is a median over rounds of the ratio to the mean of both plain runs of the same round. "Probe" and
"sampling": the probe's own clocks, in pauses (the application stands still) and in sampled allocations (one thread of
it does; the clock runs on when that thread is preempted). "CPU, all": user+system time of JVM and recorder. Bytes per
object are compressed, sync points apart, per object born within the walk's sight (at survivors depth those that
outlived a collection); sync bytes are per object listed. The interval is Student's.`))
}

func ratio(a, b float64) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", a/b)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

func mean(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s / float64(len(v))
}

// student holds the two-sided 95 % quantiles of Student's t for 1, 2, … degrees of freedom.
var student = []float64{12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13}

// interval is the mean of v with its 95 % confidence interval.
func interval(v []float64) string {
	m := mean(v)
	if len(v) < 2 {
		return fmt.Sprintf("%.3f", m)
	}
	ss := 0.0
	for _, x := range v {
		ss += (x - m) * (x - m)
	}
	t := 1.96
	if len(v)-2 < len(student) {
		t = student[len(v)-2]
	}
	h := t * math.Sqrt(ss/float64(len(v)-1)/float64(len(v)))
	return fmt.Sprintf("%.3f [%.3f, %.3f]", m, m-h, m+h)
}
