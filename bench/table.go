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

// measures are those of one group at one depth, one value a round.
type measures struct {
	n                                       int
	share, sampling, cpu, rec, wall, aa, gc []float64
	trace, syncBytes                        int64
	objects, syncObjects, lost              uint64
	epochs, over, overSync                  int
	longest                                 uint64
}

// compare takes the rounds that have a run at that depth and both plain runs.
func compare(rounds map[int]map[string]row, depth string) (m measures) {
	for _, c := range rounds {
		d, ok1 := c[depth]
		a, ok2 := c["none"]
		b, pair := c["again"]
		if !ok1 || !ok2 {
			continue
		}
		if !pair {
			b = a
		}
		m.n++
		base := float64(a.Wall+b.Wall) / 2
		baseCPU := float64(a.AppCPU+b.AppCPU) / 2
		m.share = append(m.share, 100*float64(d.Probe)/float64(d.Wall))
		m.sampling = append(m.sampling, 100*float64(d.Sample)/float64(d.Wall))
		m.cpu = append(m.cpu, float64(d.AppCPU+d.RecCPU)/baseCPU)
		m.rec = append(m.rec, 100*float64(d.RecCPU)/baseCPU)
		m.wall = append(m.wall, float64(d.Wall)/base)
		if pair {
			m.aa = append(m.aa, float64(b.Wall)/float64(a.Wall))
		}
		if p := float64(a.PauseNS+b.PauseNS) / 2; p > 0 {
			m.gc = append(m.gc, float64(d.PauseNS)/p)
		}
		m.trace += d.Trace - d.SyncBytes
		m.objects += d.Objects
		m.syncBytes += d.SyncBytes
		m.syncObjects += d.SyncObjects
		m.lost += d.Lost
		m.epochs, m.over, m.overSync = m.epochs+d.Epochs, m.over+d.Over, m.overSync+d.OverSync
		if len(d.Added) > 0 {
			m.longest = max(m.longest, d.Added[0])
		}
	}
	return m
}

func (m measures) line(w io.Writer, g group) {
	fmt.Fprintf(w, "| %s | %s | %s | %d | %.2f | %.2f | %.3f | %.1f | %s | %s | %.2f | %s | %s | %d | "+
		"%d, %d of %d; %.1f |\n",
		g.program, g.vm, g.gc, m.n, median(m.share), median(m.sampling), median(m.cpu), median(m.rec),
		interval(m.wall), interval(m.aa), median(m.gc), ratio(float64(m.trace), float64(m.objects)),
		ratio(float64(m.syncBytes), float64(m.syncObjects)), m.lost,
		m.over, m.overSync, m.epochs, float64(m.longest)/1e6)
}

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
			"bytes/object | lost | pauses over, by listing; longest added, ms |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		var shares, cpus []float64
		for _, g := range keys {
			m := compare(byGroup[g], depth)
			if m.n == 0 {
				continue
			}
			shares, cpus = append(shares, median(m.share)), append(cpus, median(m.cpu))
			m.line(w, g)
		}
		if len(shares) > 0 {
			fmt.Fprintf(w, "\nMean of the probe's share in pauses: %.2f %% (worst %.2f %%). Mean CPU: %.3f.\n",
				mean(shares),
				slices.Max(shares), mean(cpus))
		}
	}
	renderOthers(w, keys, byGroup)
	fmt.Fprintln(w, "\n"+strings.TrimSpace(`
Each figure is a median over rounds of the ratio to the mean of both plain runs of the same round. "Probe" and
"sampling": the probe's own clocks, in pauses (the application stands still) and in sampled allocations (one thread of
it does; the clock runs on when that thread is preempted). "CPU, all": user+system time of JVM and recorder. Bytes per
object are compressed, sync points apart, per object born within the walk's sight (at survivors depth those that
outlived a collection); sync bytes are per object listed. A pause is over if it was lengthened by more than 10 ms and
by more than a fifth of what it took without heapcam; "by listing" counts those for which the listing alone was enough.
The interval is Student's.
Where the second plain run is missing, the ratio is to the first.`))
}

// renderOthers writes what heapcam and other recorders cost in the same rounds.
func renderOthers(w io.Writer, keys []group, byGroup map[group]map[int]map[string]row) {
	for _, other := range []string{"jfr", "async"} {
		cpu, wall := map[string][]float64{}, map[string][]float64{}
		for _, g := range keys {
			rounds := map[int]map[string]row{}
			for n, c := range byGroup[g] {
				if _, ok := c[other]; ok {
					rounds[n] = c
				}
			}
			for _, config := range []string{"survivors", "full", other} {
				if m := compare(rounds, config); m.n > 0 {
					cpu[config] = append(cpu[config], median(m.cpu))
					wall[config] = append(wall[config], median(m.wall))
				}
			}
		}
		if len(cpu[other]) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n### Beside `%s`, the same rounds\n\n| recorder | programs and JVMs | CPU, all, mean | worst "+
			"| wall time, mean | worst |\n|---|---|---|---|---|---|\n", other)
		for _, config := range []string{"survivors", "full", other} {
			fmt.Fprintf(w, "| %s | %d | %.3f | %.3f | %.3f | %.3f |\n", config, len(cpu[config]), mean(cpu[config]),
				slices.Max(cpu[config]), mean(wall[config]), slices.Max(wall[config]))
		}
	}
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
	if len(v) == 0 {
		return "–"
	}
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
