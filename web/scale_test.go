package web_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"
)

// target is the longest time that an interaction should take.
const target = 300 * time.Millisecond

// interact changes the address. It returns the time until the page shows the view, and the processor time that the
// viewer used.
func (p *page) interact(hash string) (elapsed, cpu time.Duration) {
	p.t.Helper()
	before := processorTime(viewer)
	ms := js[float64](p, fmt.Sprintf(`new Promise((ok, no) => {
		const t = performance.now();
		location.hash = %q;
		const end = t + 1800000;
		const poll = () => document.getElementById('main').dataset.shown === location.hash
			? requestAnimationFrame(() => ok(performance.now() - t))
			: performance.now() > end ? no('timeout') : setTimeout(poll, 4);
		poll();
	})`, hash))
	return time.Duration(ms * 1e6), processorTime(viewer) - before
}

// processorTime is the processor time that a process has used.
func processorTime(pid int) time.Duration {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// status is a value of /proc/PID/status, in KiB.
func status(pid int, name string) (n int) {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(l, name+":"); ok {
			fmt.Sscan(v, &n)
		}
	}
	return n
}

// browserTime is the processor time that the browser's processes have used.
func browserTime() (sum time.Duration) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), "--user-data-dir="+scratch) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			sum += processorTime(pid)
		}
	}
	return sum
}

// tabMemory is the largest proportional set size of the browser's renderers, in KiB.
func tabMemory() (most int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range all {
		b, _ := os.ReadFile(f)
		if !strings.Contains(string(b), "--type=renderer") || !strings.Contains(string(b), scratch) {
			continue
		}
		b, _ = os.ReadFile(filepath.Join(filepath.Dir(f), "smaps_rollup"))
		for l := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(l, "Pss:"); ok {
				n := 0
				fmt.Sscan(v, &n)
				most = max(most, n)
			}
		}
	}
	return most
}

// interaction is a step of a reader; hash is the address that it opens.
type interaction struct{ kind, hash string }

// interactions open every view.
func interactions() []interaction {
	e := url.QueryEscape
	open1, zoom := e(`["[\"com.shop.part0.Class0\"]"]`), e(`["com.shop.part0.Class0"]`)
	script := []interaction{
		{"group", "state?at=2000&by=type"}, {"group", "state?at=2000&by=" + e("package, type")},
		{"group", "state?at=2000&by=" + e("type, ages")}, {"group", "state?at=2000&by=" + e("sizeclass, type")},
		{"group", "state?at=2000&by=" + e("type, site, ages")}, {"group", "state?at=2000&by=" + e("thread, type")},
		{"group", "state?at=2000&by=" + e("kind, length")}, {"group", "state?at=2000&by=" + e("spacetype, type")},
		{"group", "state?at=2000&by=site"},
		{"filter", "state?at=2000&by=type&filter=" + e("size >= 256")},
		{"filter", "state?at=2000&by=type&filter=" + e("age >= 8")},
		{"filter", "state?at=2000&filter=" + e(`type startsWith "com.shop.part1"`)},
		{"search", "state?at=2000&q=method77"}, {"search", "state?at=2000&by=type&q=Class7"},
		{"search", "state?at=2000&q=Class12"},
		{"zoom", "state?at=2000"}, {"zoom", "state?at=2000&zoom=" + zoom},
		{"zoom", "state?at=2000&open=" + open1}, {"zoom", "state?at=2000&open=" + open1 + "&theme=dark"},
	}
	for i, gc := range []int{1999, 1998, 1990, 1500, 1000, 500, 3, 1001, 1777, 250} {
		script = append(script,
			interaction{"another collection, type", fmt.Sprintf("state?at=%d&by=type", gc)})
		if i%2 == 0 {
			script = append(script,
				interaction{"another collection, type and site", fmt.Sprintf("state?at=%d", gc)})
		}
	}
	for _, d := range []string{"from=1&to=2000", "from=100&to=1900", "from=1990&to=2000", "from=1000&to=1001"} {
		script = append(script, interaction{"diff", "diff?by=type&" + d})
	}
	script = append(script, []interaction{
		{"diff", "diff?from=100&to=1900&by=" + e("package, type")},
		{"diff by site", "diff?from=1990&to=2000&by=" + e("type, site(1)")},
		{"overview", "overview?at=2000"}, {"overview", "overview?from=100&to=900"}, {"overview", "overview?at=1234"},
		{"overview", "overview?theme=dark"}, {"overview", "overview?tz=utc"}, {"overview", "overview?at=7"},
		{"coverage", "coverage?at=2000"}, {"coverage", "coverage?at=1000"}, {"leaks", "leaks"},
		{"trends", "trends"}, {"trends", "trends?row=" + e(`["int[]"]`)},
		{"trends by site", "trends?by=" + e("site(1)")},
	}...)
	return script
}

// TestFigures measures the viewer on 10 million live objects, 2,000 collections, 50,000 sites and a recording of 1 GiB:
// opening it without and with its index, a script of interactions with every view, bytes on the wire, and the tab's
// memory. Times depend on the machine; the processor time of the viewer is logged with them. Only the page's size and
// the tab's memory, which do not depend on the machine, can fail the test.
func TestFigures(t *testing.T) {
	if !full {
		t.Skip("not run: the viewer on 10 million objects, 2,000 collections and 50,000 sites (HEAPCAM_FULL=1)")
	}
	dir := filepath.Join(t.TempDir(), "large")
	recordingOf{objects: 10_000_000, survivors: 230_000, collections: 2000, listings: 4, sites: 50_000}.make(t, dir)
	t.Logf("the recording is %d MiB", recordedBytes(ended(t, dir))>>20)
	var p *page
	opened := func(t *testing.T, index string) {
		at := view(t, dir)
		p = open(t, at)
		p.do(cdp.Navigate("about:blank"))
		begin := time.Now()
		p.do(cdp.Navigate(at))
		for js[bool](p, "document.querySelectorAll('#timeline canvas').length < 3") {
			time.Sleep(5 * time.Millisecond)
			if time.Since(begin) > 10*time.Minute {
				t.Fatal("no overview")
			}
		}
		t.Logf("%s index: overview after %v (processor %v), first paint after %.0f ms", index,
			time.Since(begin).Round(time.Millisecond), processorTime(viewer),
			js[float64](p, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"))
	}
	t.Run("without index", func(t *testing.T) { opened(t, "without") })
	opened(t, "with")
	wire := js[float64](p,
		`performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))
			.filter(e => !e.name.includes('/api/')).reduce((n, e) => n + e.transferSize, 0)`)
	answer := js[float64](p,
		`performance.getEntriesByType('resource')
			.filter(e => e.name.includes('/api/overview')).reduce((n, e) => n + e.transferSize, 0)`)
	t.Logf("the page takes %.0f KiB, the overview's answer %.0f KiB", wire/1024, answer/1024)

	first, cpu := p.interact("state?at=2000")
	t.Logf("the first state, asked for at once: %v (processor %v), while all states are read; "+
		"the viewer then takes %d MiB, at most %d MiB",
		first.Round(time.Millisecond), cpu, status(viewer, "VmRSS")>>10, status(viewer, "VmHWM")>>10)

	elapsed := map[string][]time.Duration{}
	var kinds []string
	var all, work []time.Duration
	for _, x := range interactions() {
		time.Sleep(500 * time.Millisecond) // the time that a reader needs
		d, c := p.interact(x.hash)
		if elapsed[x.kind] == nil {
			kinds = append(kinds, x.kind)
		}
		elapsed[x.kind] = append(elapsed[x.kind], d)
		all, work = append(all, d), append(work, c)
		if d > target {
			hash, _ := url.QueryUnescape(x.hash)
			t.Logf("over %v: %v (processor %v) for %s", target, d.Round(time.Millisecond), c, hash)
		}
	}
	logTimes := func(what string, d []time.Duration) {
		slices.Sort(d)
		t.Logf("%-34s %3d times: median %6v, 95th percentile %6v, longest %6v", what, len(d),
			d[len(d)/2].Round(time.Millisecond), d[min(len(d)*95/100, len(d)-1)].Round(time.Millisecond),
			d[len(d)-1].Round(time.Millisecond))
	}
	for _, k := range kinds {
		logTimes(k, elapsed[k])
	}
	logTimes("all", all)
	logTimes("all, processor time of the viewer", work)
	load, _ := os.ReadFile("/proc/loadavg")
	heap := js[float64](p, "performance.memory ? performance.memory.usedJSHeapSize : 0")
	tab := tabMemory()
	t.Logf("the tab takes %d MiB (proportional set size of its process), of which JavaScript's heap is %.0f MiB; "+
		"the viewer %d MiB, at most %d MiB; load of the machine %s",
		tab>>10, heap/(1<<20), status(viewer, "VmRSS")>>10, status(viewer, "VmHWM")>>10, load)
	if wire > 500<<10 {
		t.Errorf("the page takes %.0f bytes", wire)
	}
	if tab > 300<<10 {
		t.Errorf("the tab takes %d KiB", tab)
	}
}
