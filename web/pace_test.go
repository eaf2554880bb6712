package web_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis"
)

// steps are what a reader does with a recording whose collections are rows: each view, and what is asked in it most.
func steps(rows []analysis.CollectionRow) []interaction {
	e := url.QueryEscape
	var known []analysis.CollectionRow
	for _, c := range rows {
		if c.Known {
			known = append(known, c)
		}
	}
	at := func(share float64) analysis.CollectionRow { return known[int(share*float64(len(known)-1))] }
	a, b, c := at(0.25), at(0.5), at(0.9)
	win := fmt.Sprintf("win=%d-%d", a.Time.UnixMilli(), c.Time.UnixMilli()+1)
	return []interaction{
		{"overview", fmt.Sprintf("overview?at=%d", b.GC)}, {"overview", "overview?live=site"},
		{"overview", "overview?live=space"}, {"overview", "overview?theme=dark"}, {"overview", "overview?" + win},
		{"leaks", "leaks"}, {"cost", "cost"}, {"cost", "cost?" + win}, {"coverage", "coverage"},
		{"heap", "state"}, {"heap", "state?by=" + e("site, type")}, {"heap", "state?by=" + e("thread, site, type")},
		{"heap", "state?by=" + e("ages, type, site")}, {"heap", "state?order=leaf"}, {"heap", "state?jdk=1"},
		{"heap", "state?by=type&filter=" + e("size >= 256")}, {"heap", "state?q=method7"},
		{"another collection", fmt.Sprintf("state?at=%d", a.GC)},
		{"another collection", fmt.Sprintf("state?at=%d", b.GC)},
		{"another collection", fmt.Sprintf("state?at=%d&by=type", c.GC)},
		{"diff", "diff"}, {"diff", "diff?" + win}, {"diff", fmt.Sprintf("diff?from=%d&to=%d", b.GC, c.GC)},
		{"diff", "diff?unit=objects"}, {"diff", "diff?jdk=1"},
		{"trends", "trends"}, {"trends", "trends?" + win}, {"trends", "trends?by=" + e("site(1)")},
		{"holders", "retained"}, {"glossary", "glossary"},
	}
}

// TestPace measures in the browser how soon the page answers, on a small leak, a GC storm and ten million objects, or
// on the recording HEAPCAM_PACE_OF (make pace). It prints a table: no time fails the test, because times depend on the
// machine.
func TestPace(t *testing.T) {
	if os.Getenv("HEAPCAM_PACE") == "" {
		t.Skip("not run: how soon the page answers (make pace)")
	}
	fmt.Println("| recording | first paint | pauses | overview | again: paint | overview | interactions: median " +
		"| 95 % | longest | processor time of the viewer: median | 95 % | of the browser: median | 95 % " +
		"| tab | viewer | load |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	if path := os.Getenv("HEAPCAM_PACE_OF"); path != "" {
		pace(t, filepath.Base(path), path)
		return
	}
	pace(t, "small leak", window)
	storm, large := filepath.Join(t.TempDir(), "storm"), filepath.Join(t.TempDir(), "large")
	made, err := exec.Command("go", "run", "../bench/storm", storm, "3000", "60", "250000").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, made)
	}
	pace(t, "storm", ended(t, storm))
	ofPace.make(t, large)
	pace(t, "large", ended(t, large))
}

// ended makes the files of a ring folder look as if the JVM had ended an hour ago. The viewer takes a ring that has
// just changed for one that still grows: it reads it anew for each question, and does not index it.
func ended(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	at := time.Now().Add(-time.Hour)
	for _, f := range files {
		err = cmp.Or(err, os.Chtimes(f, at, at))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// recordedBytes is the size of a recording.
func recordedBytes(path string) (sum int64) {
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if st, err := e.Info(); err == nil && !e.IsDir() {
				sum += st.Size()
			}
		}
		return nil
	})
	return sum
}

// paints is the time to the first paint, to the charts of the pauses, and to the overview with its answer.
func paints(t *testing.T, path string) (p *page, paint, early, drawn time.Duration) {
	at := view(t, path)
	p = open(t, "about:blank")
	begin := time.Now()
	p.do(cdp.Navigate(at))
	for js[bool](p, "document.querySelectorAll('#timeline canvas').length < 3") {
		if early == 0 && js[bool](p, "document.querySelectorAll('#early canvas').length >= 3") {
			early = time.Since(begin)
		}
		time.Sleep(5 * time.Millisecond)
		if time.Since(begin) > 10*time.Minute {
			t.Fatal("no overview")
		}
	}
	drawn = time.Since(begin)
	if early == 0 { // the overview came first
		early = drawn
	}
	ms := js[float64](p, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1")
	return p, time.Duration(ms * 1e6), early, drawn
}

func pace(t *testing.T, name, path string) {
	_, paint, early, drawn := paints(t, path)
	p, paint2, _, drawn2 := paints(t, path)
	rep := verb[analysis.Report](t, "report", "--json", path)
	p.interact("state") // waits until all states are read
	time.Sleep(5 * time.Second)
	var all, work, drawing []time.Duration
	for _, x := range steps(rep.Collections) {
		time.Sleep(300 * time.Millisecond) // the time that a reader needs
		before := browserTime()
		d, c := p.interact(x.hash)
		b := browserTime() - before
		all, work, drawing = append(all, d), append(work, c), append(drawing, b)
		if d > target {
			hash, _ := url.QueryUnescape(x.hash)
			t.Logf("over %v: %v (processor: viewer %v, browser %v) for %s", target, d.Round(time.Millisecond), c, b,
				hash)
		}
	}
	slices.Sort(all)
	slices.Sort(work)
	slices.Sort(drawing)
	load, _ := os.ReadFile("/proc/loadavg")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	name = fmt.Sprintf("%s, %d MiB", name, recordedBytes(path)>>20)
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %d MiB | %d MiB | %.4s |\n", name,
		ms(paint), ms(early), ms(drawn), ms(paint2), ms(drawn2), ms(all[len(all)/2]), ms(all[len(all)*95/100]),
		ms(all[len(all)-1]), ms(work[len(work)/2]), ms(work[len(work)*95/100]), ms(drawing[len(drawing)/2]),
		ms(drawing[len(drawing)*95/100]), tabMemory()>>10, status(viewer, "VmHWM")>>10, load)
}
