package e2e

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// held is what a process holds: resident KiB, descriptors, mappings.
type held struct {
	at             time.Duration
	rss, fds, maps float64
}

func holding(t *testing.T, pid int, begun time.Time) held {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	es, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return held{time.Since(begun), float64(number(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")), float64(len(es)),
		float64(bytes.Count(b, []byte("\n")))}
}

// slope fits a line to what remains behind the first third, by the means of 20 stretches (looks that follow each other
// are not independent), and gives what it rises by an hour with the half width of its 95 % interval.
func slope(hs []held, of func(held) float64) (perHour, plusMinus float64) {
	hs = hs[len(hs)/3:]
	const parts, t975 = 20, 2.101 // Student's t, 18 degrees of freedom
	var x, y [parts]float64
	for i := range parts {
		part := hs[len(hs)*i/parts : len(hs)*(i+1)/parts]
		if len(part) == 0 {
			return math.NaN(), math.NaN()
		}
		for _, h := range part {
			x[i] += h.at.Hours() / float64(len(part))
			y[i] += of(h) / float64(len(part))
		}
	}
	var mx, my, sxx, sxy, rest float64
	for i := range parts {
		mx, my = mx+x[i]/parts, my+y[i]/parts
	}
	for i := range parts {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	b := sxy / sxx
	for i := range parts {
		d := y[i] - my - b*(x[i]-mx)
		rest += d * d
	}
	return b, t975 * math.Sqrt(rest/(parts-2)/sxx)
}

// late is by which share the mean RSS of the last sixth is above that of the sixth before it.
func late(s []held) float64 {
	mean := func(s []held) (sum float64) {
		for _, h := range s {
			sum += h.rss / float64(len(s))
		}
		return sum
	}
	n := len(s) / 6
	return mean(s[len(s)-n:])/mean(s[len(s)-2*n:len(s)-n]) - 1
}

// TestAttachSoak has one agent attach to a JVM and detach from it again and again, while another stays recorded and a
// third never is, all of them with classes that come and go under G1: what the JVMs and the agent hold does not rise.
// For as long as HEAPCAM_ATTACH_FOR says.
func TestAttachSoak(t *testing.T) {
	needReader(t)
	span, err := time.ParseDuration(os.Getenv("HEAPCAM_ATTACH_FOR"))
	if err != nil {
		t.Skip("not run: attaching and detaching for an hour and a half (make soak)")
	}
	d := newDaemon(t, "--max-trace-size", "2MiB", "--max-total-size", "16MiB", "--emergency", "off",
		"--retain-ended", "1m")
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	launch := func(major int) *running {
		p := program{major: major, gc: "G1", heap: "64m", main: "ClassChurn", args: []string{file, "40", "20"},
			timeout: span + 20*time.Minute,
			env:     []string{"MALLOC_ARENA_MAX=1"},
			opts: []string{"-Xms64m", "-XX:+AlwaysPreTouch", "-XX:MaxMetaspaceSize=48m",
				"-XX:ReservedCodeCacheSize=16m",
				"-XX:TieredStopAtLevel=1", "-Xlog:disable", "-Xlog:all=error"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		return r
	}
	names := []string{"attached again and again, 17", "attached again and again, 25", "recorded all the time, 17",
		"never recorded, 17", "never recorded, 25"}
	jvms := []*running{launch(17), launch(25), launch(17), launch(17), launch(25)}
	if errs, code := d.attach(t, jvms[2].pidText()); code != 0 {
		t.Fatalf("attach: %d %s", code, errs)
	}
	series := make([][]held, len(jvms)+1)
	cycles, gaveUp := 0, 0
	for begun := time.Now(); time.Since(begun) < span; cycles++ {
		for i, r := range jvms[:2] {
			if errs, code := d.attach(t, r.pidText()); code != 0 {
				t.Fatalf("attach %d of %s: status %d: %s", cycles, names[i], code, errs)
			}
		}
		time.Sleep(500 * time.Millisecond) // some collections
		for i, r := range jvms[:2] {
			// A JVM that is attached to may still have dead objects of classes that were unloaded before: nobody knows
			// their size.
			if _, errs, code := heapcam(t, "detach", r.pidText(), "--socket", d.sock); code == 3 &&
				strings.Contains(r.stderr.String(), "stopped recording") {
				gaveUp++
			} else if code != 0 {
				t.Fatalf("detach %d of %s: status %d: %s", cycles, names[i], code, errs)
			}
			await(t, "the end of the recording", func() bool {
				return !strings.Contains(ringsMapped(r.pid()), ".ring")
			})
		}
		for i, r := range jvms {
			series[i] = append(series[i], holding(t, r.pid(), begun))
		}
		series[len(jvms)] = append(series[len(jvms)], holding(t, d.cmd.Process.Pid, begun))
		if cycles%200 == 199 {
			var now []float64
			for _, s := range series {
				now = append(now, s[len(s)-1].rss)
			}
			t.Logf("%v: %d cycles: RSS, KiB: %.0f", time.Since(begun).Round(time.Second), cycles+1, now)
		}
	}
	t.Logf("%d recordings gave up", gaveUp)
	if gaveUp > cycles/20 {
		t.Errorf("%d of %d recordings gave up", gaveUp, 2*cycles)
	}
	type line struct{ rss, rssPM, fds, fdsPM, maps, mapsPM float64 }
	lines := make([]line, len(series))
	for i, name := range append(names, "agent") {
		s, l := series[i], &lines[i]
		first, last := s[len(s)/3], s[len(s)-1]
		l.rss, l.rssPM = slope(s, func(h held) float64 { return h.rss })
		l.fds, l.fdsPM = slope(s, func(h held) float64 { return h.fds })
		l.maps, l.mapsPM = slope(s, func(h held) float64 { return h.maps })
		t.Logf("%s: %d cycles in %v: RSS %.0f, then %.0f KiB: %+.0f ± %.0f KiB/h; descriptors %.0f, then %.0f: "+
			"%+.2f ± %.2f/h; mappings %.0f, then %.0f: %+.2f ± %.2f/h; RSS in the last sixth: %+.1f %%", name, cycles,
			span, first.rss, last.rss, l.rss, l.rssPM, first.fds, last.fds, l.fds, l.fdsPM,
			first.maps, last.maps, l.maps, l.mapsPM, 100*late(s))
	}
	for i, like := range map[int]int{0: 3, 1: 4, 2: 3, 5: -1} { // each JVM beside one of its JDK that is never recorded
		l, control := lines[i], line{}
		if like >= 0 {
			control = lines[like]
		}
		if span < 20*time.Minute {
			continue // says nothing
		}
		// 5 MiB for 200 cycles is what is allowed; a tenth of that is a leak all the same.
		if perCycle := (l.rss - l.rssPM - control.rss - control.rssPM) * span.Hours() / float64(
			cycles); i < 2 && perCycle > 2.5 {
			t.Errorf("%s: at least %.1f KiB a cycle more", append(names, "agent")[i], perCycle)
		}
		// What is recorded all the time fills tables that have a bound: it may rise, ever more slowly.
		if more := late(series[i]); i >= 2 && span > time.Hour && more > 0.05 {
			t.Errorf("%s: %.1f %% more memory in the last sixth than in the one before", append(names, "agent")[i],
				100*more)
		}
		if l.fds-l.fdsPM > 1 || l.maps-l.mapsPM > 10+max(control.maps, 0)+control.mapsPM {
			t.Errorf("%s: descriptors or mappings rise", append(names, "agent")[i])
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range jvms {
		r.cmd.Wait()
		if !strings.HasSuffix(strings.TrimSpace(r.stdout.String()), "done") {
			t.Error("a JVM did not come to its end")
		}
	}
	d.stop(t)
}
