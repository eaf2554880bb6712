package web_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/internal/ui"
)

// Where eachRecording finds the recordings that it makes once for all tests.
var (
	stormOnce, largeOnce = sync.Once{}, sync.Once{}
	stormDir, largeDir   string
)

// eachRecording runs a test on a small leak, on the window of a GC storm, and (make test-full) on ten million live
// objects at depth full; or only on the recording HEAPCAM_PACE_OF. wait is how long a page may take until it has read
// the recording.
func eachRecording(t *testing.T, test func(t *testing.T, path string, wait time.Duration)) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	if path := os.Getenv("HEAPCAM_PACE_OF"); path != "" {
		t.Run(filepath.Base(path), func(t *testing.T) { test(t, path, 10*patience) })
		return
	}
	t.Run("small leak", func(t *testing.T) { test(t, window, patience) })
	t.Run("storm", func(t *testing.T) { test(t, stormOf(t), patience) })
	if !full {
		t.Log("not run: ten million objects (HEAPCAM_FULL=1)")
		return
	}
	t.Run("large", func(t *testing.T) {
		largeOnce.Do(func() {
			dir := filepath.Join(scratch, "large")
			ofPace.make(t, dir)
			largeDir = ended(t, dir)
		})
		if largeDir == "" {
			t.Fatal("the recording could not be made")
		}
		test(t, largeDir, 10*patience)
	})
}

// stormOf is the window of a GC storm.
func stormOf(t *testing.T) string {
	t.Helper()
	stormOnce.Do(func() {
		dir := filepath.Join(scratch, "storm")
		c := exec.Command("go", "run", "../bench/storm", dir, "300", "10", "20000")
		c.Env = append(os.Environ(), "XDG_CACHE_HOME=") // testMain sets it; the compiler's cache is elsewhere
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		stormDir = ended(t, dir)
	})
	if stormDir == "" {
		t.Fatal("the recording could not be made")
	}
	return stormDir
}

// ofPace is the large recording of TestPace: more than 300 MiB.
var ofPace = recordingOf{objects: 10_000_000, survivors: 230_000, collections: 800, listings: 2, sites: 50_000,
	full: true}

// patient opens a page that may take as long as wait, and waits for the overview.
func patient(t *testing.T, url string, wait time.Duration) *page {
	p := open(t, url)
	p.patience = wait
	p.until("document.querySelector('#hero .verdict')")
	return p
}

// TestViews: each view of each recording shows the figures of its verb.
func TestViews(t *testing.T) {
	eachRecording(t, func(t *testing.T, path string, wait time.Duration) {
		url := view(t, path)
		p := patient(t, url, wait)
		to := func(hash string) {
			p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("location.hash = %q", hash)))
			p.until(fmt.Sprintf("document.getElementById('main').dataset.shown === %q", "#"+hash))
		}
		rep := verb[analysis.Report](t, "report", "--json", path)
		if len(rep.Verdicts) > 0 {
			p.see("#hero .verdict", string(rep.Verdicts[0].Sentence))
		} else {
			p.see("#hero .verdict", strings.FieldsFunc(string(rep.FirstLook), func(c rune) bool {
				return c == '`' || c >= '0' && c <= '9' // the page adds separators
			})[0])
		}
		p.until("document.querySelectorAll('#timeline canvas').length === 3")

		to("leaks")
		if n := js[int](p, "document.querySelectorAll('#leaks > li').length"); n != len(rep.Verdicts) {
			t.Errorf("the page has %d verdicts, the verb %d", n, len(rep.Verdicts))
		}

		to("state?by=type")
		g := verb[analysis.Grouping](t, "group", "--json", "--by", "type", path)
		p.see("#head", fmt.Sprintf("After collection %s ", ui.Count(g.GC)))
		p.see("#head", ui.Count(g.Objects)+" live object")
		for i, n := range g.Tree.Children[:min(len(g.Tree.Children), 5)] {
			row := fmt.Sprintf("document.querySelectorAll('#tree tbody tr')[%d].cells", i)
			if s := js[string](p, row+"[0].innerText.replace(/^[▶▼]\\s*/, '').trim()"); s != n.Key {
				t.Errorf("row %d is %s, the verb prints %s", i, s, n.Key)
			}
			if s := js[string](p, row+"[2].querySelector('span').title.replace(/\\D/g, '')"); s != fmt.Sprint(n.Bytes) {
				t.Errorf("%s takes %s bytes, the verb prints %d", n.Key, s, n.Bytes)
			}
		}
		if n := js[int](p, "document.querySelectorAll('#flame rect').length"); n < 5 {
			t.Errorf("the flame graph has %d rectangles", n)
		}

		to("diff")
		d := verb[analysis.DiffReport](t, "diff", "--json", "--by", "type", path)
		n, sign := int64(d.Tree.Bytes.After.Value-d.Tree.Bytes.Before.Value), "+"
		if n < 0 {
			n, sign = -n, "−"
		}
		p.see("#head .net", sign+ui.Bytes(n))

		to("trends")
		tr := verb[analysis.TrendReport](t, "trend", "--json", "--by", "type", path)
		for i, r := range tr.Rows[:min(len(tr.Rows), 3)] {
			p.until(fmt.Sprintf("document.querySelectorAll('#trend tbody tr')[%d]?.innerText.startsWith(%q)", i,
				strings.Join(r.Path, " › ")))
		}

		to("cost")
		c := verb[cost.Cost](t, "cost", "--json", path)
		p.see("main", "heapcam stopped the application for "+
			js[string](p, fmt.Sprintf("import('./lib.js').then(l => l.span(%d))", c.Total.Stopped())))

		to("retained")
		p.see("#head", "heapcam references JVM")
		to("coverage")
		p.until("document.querySelectorAll('main canvas').length === 2")
	})
}

// TestKeyboard: the keyboard alone leads from the overview to a verdict, to a state and into its flame graph, to a
// diff, and back.
func TestKeyboard(t *testing.T) {
	eachRecording(t, func(t *testing.T, path string, wait time.Duration) {
		p := patient(t, view(t, path), wait)
		key := func(k string, m ...cdp.KeyOption) { p.do(cdp.KeyEvent(k, m...)) }
		tab := func(sel string) { // as far as sel
			for range 80 {
				if js[bool](p, fmt.Sprintf("document.activeElement.matches(%q)", sel)) {
					return
				}
				key(kb.Tab)
			}
			t.Fatalf("Tab does not lead to %s", sel)
		}
		p.until("document.querySelectorAll('#timeline canvas').length === 3")
		tab("#timeline .plot")
		key(kb.Home) // the last collections of a storm have no heap state
		p.see("#picked", "Selected: collection")
		key(kb.ArrowRight, cdp.KeyModifiers(cdp.Modifier(8)))
		p.until("/from=\\d+&to=\\d+/.test(location.hash)")
		key("2")
		p.until("document.getElementById('main').dataset.shown?.startsWith('#leaks')")
		key("3")
		p.until("document.getElementById('main').dataset.shown?.startsWith('#state')")
		tab("#flame svg, #flame [tabindex]")
		key(kb.ArrowDown)
		key(kb.Enter)
		p.until("location.hash.includes('part=')")
		p.until("[...document.querySelectorAll('#ways button')].some(b => b.innerText === 'Whole heap')")
		key("/")
		p.until("document.activeElement.id === 'q'")
		p.do(cdp.KeyEvent("e")) // the browser types the slash, too: such an event is no key of a hand
		p.until("location.hash.includes('q=')")
		p.do(cdp.Evaluate[cdp.Void]("document.activeElement.blur()"))
		key("5")
		p.until("document.getElementById('main').dataset.shown?.startsWith('#diff')")
		p.see("#head", "collection")
	})
}
