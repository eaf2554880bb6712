package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/pprof/profile"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// window is a recording of a real JVM (testdata/Window.java, tools/web-testdata).
const window = "testdata/window.heapcam"

// verb runs a verb and decodes the JSON that it prints.
func verb[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	var out, said bytes.Buffer
	c := exec.Command(tool, args...)
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		t.Fatalf("heapcam %s: %v: %s", strings.Join(args, " "), err, said.String())
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestOverview: the overview names the leak; two clicks lead to its history; mouse and keyboard select collections.
func TestOverview(t *testing.T) {
	p := open(t, view(t, window))
	rep := verb[analysis.Report](t, "report", "--json", window)
	p.see("#hero .verdict", string(rep.Verdicts[0].Sentence))
	for _, s := range []string{"Allocated in", "Window.audit(Window.java:18)", "Held by", "Since", "Until",
		"heapcam itself", "Part of the growth", "All GC pauses of the recording together took"} {
		p.see("#hero", s)
	}
	p.until("document.querySelectorAll('#timeline canvas').length === 3")
	p.see("#timeline", "Heap by class")
	p.see("#timeline", "the rest")
	p.until("document.querySelectorAll('.strip-row').length === 2") // full collections, sync points
	p.until(`Math.abs(document.querySelector('.strip-row svg').clientWidth -
		document.querySelector('#timeline .u-over').clientWidth) < 2`)
	p.click(".switch button:nth-child(2)")
	p.see("#timeline", "Heap by allocation site")
	p.see("main",
		fmt.Sprintf("%d (%d to %d)", len(rep.Collections), rep.Collections[0].GC,
			rep.Collections[len(rep.Collections)-1].GC))

	p.click("#hero .button")
	p.see("#leaks li", string(rep.Verdicts[0].Sentence))
	p.see("#leaks li .stack", "Window.audit(Window.java:18)")
	p.click("#leaks li .history")
	p.see("#curve h3", "byte[] › Window.audit(Window.java:18)")
	p.until("document.querySelectorAll('#curve canvas').length === 2")
	p.do(cdp.NavigateBack())
	p.see("#leaks li", string(rep.Verdicts[0].Sentence))
	p.do(cdp.NavigateBack())

	// the mouse: one collection, then a range
	p.until("document.querySelector('#timeline .u-over')")
	box := js[[]float64](p,
		`(() => {
			const r = document.querySelector('#timeline .u-over').getBoundingClientRect();
			return [r.x, r.y, r.width, r.height];
		})()`)
	x, y := box[0]+box[2]*0.7, box[1]+box[3]/2
	p.do(cdp.MouseClickXY(x, y))
	p.see("#picked", "Selected: collection")
	p.until("/[?&]at=\\d+/.test(location.hash)")
	shift := cdp.ButtonModifiers(cdp.Modifier(8))
	p.do(cdp.MouseEvent("mousePressed", box[0]+box[2]*0.3, y, shift, cdp.ButtonLeft, cdp.ClickCount(1)),
		cdp.MouseEvent("mouseMoved", x, y, shift, cdp.ButtonLeft),
		cdp.MouseEvent("mouseReleased", x, y, shift, cdp.ButtonLeft, cdp.ClickCount(1)))
	p.see("#picked", " to collection ")
	p.until("/from=\\d+&to=\\d+/.test(location.hash)")
	p.do(cdp.DragAndDropXY(box[0]+box[2]*0.3, y, x, y, 5))
	p.until("/win=\\d+-\\d+/.test(location.hash)")
	p.do(cdp.MouseClickXY(x, y, cdp.ClickCount(2)))
	p.until("!location.hash.includes('win=')")

	// the keyboard
	p.do(cdp.Focus(cdp.CSS("#timeline .plot")), cdp.KeyEvent(kb.End))
	last := rep.Collections[len(rep.Collections)-1]
	p.see("#picked", fmt.Sprintf("Selected: collection %d (GC(%d)", last.GC, last.JVMGC))
	p.do(cdp.KeyEvent(kb.ArrowLeft, cdp.KeyModifiers(cdp.Modifier(8))))
	p.until(fmt.Sprintf("location.hash.includes('from=%d&to=%d')", last.GC-1, last.GC))

	p.click("#table summary")
	p.until(fmt.Sprintf("document.querySelectorAll('#table tbody tr').length === %d", len(rep.Collections)))
	p.see("#table", rep.Collections[0].Cause)
}

// TestStormPage: the first card of a GC storm says what leaks, which share of the growth that is, how much of the time
// pauses took, and what heapcam took of it.
func TestStormPage(t *testing.T) {
	p := open(t, view(t, stormOf(t)))
	for _, s := range []string{"Leak: ", "Part of the growth", " verdicts: ", "heapcam itself",
		"All GC pauses of the recording together took"} {
		p.see("#hero", s)
	}
	p.see("#hero .storm", "GC pauses took ")
	p.until("document.querySelector('#headlines li')")
	p.until("[...document.querySelectorAll('#headlines li')].every(x => !/Frequent GC|Leak Leak/.test(x.innerText))")
	p.click("#hero .storm a")
	p.see("#picked", "Selected: collection ")
}

// TestState: the figures are those of `heapcam group`; rows open; the search finds groups; an error points at its place
// in the expression. A class name that looks like HTML stays text.
func TestState(t *testing.T) {
	url := view(t, window)
	p := open(t, url+"#state")
	g := verb[analysis.Grouping](t, "group", "--json", window)
	p.see("#head", fmt.Sprintf("After collection %d ", g.GC))
	p.until("document.querySelectorAll('#flame rect').length > 20")
	rows := js[[][]string](p,
		`[...document.querySelectorAll('#tree tbody tr')].slice(0, 20).map(r => [
			r.cells[0].innerText.replace(/^[▶▼]\s*/, '').trim(),
			r.cells[1].innerText.replace(/\D/g, ''),
			r.cells[2].querySelector('span').title.replace(/\D/g, '')])`)
	for i, r := range rows {
		n := g.Tree.Children[i]
		if r[0] != n.Key || r[1] != fmt.Sprint(n.Objects) || r[2] != fmt.Sprint(n.Bytes) {
			t.Errorf("row %d is %q, the verb prints %s, %d objects, %d bytes", i, r, n.Key, n.Objects, n.Bytes)
		}
	}
	const hostile = "<img src=x onerror=alert(1)>[]"
	p.see("#tree", hostile)
	if js[bool](p, "document.querySelector('main img') !== null") {
		t.Error("a class name became an element")
	}

	// open a row with the keyboard, and a link to what is open shows the same in another tab
	p.do(cdp.Focus(cdp.CSS("#tree tbody tr")), cdp.KeyEvent(kb.ArrowRight))
	p.see("#tree", "Window.audit(Window.java:18)")
	p.until("location.hash.includes('open=')")
	again := open(t, js[string](p, "location.href"))
	again.see("#tree", "Window.audit(Window.java:18)")
	if a, b := p.text("#tree"), again.text("#tree"); a != b {
		t.Errorf("the link shows\n%s\ninstead of\n%s", b, a)
	}

	// other classifiers, in another order
	p.click("#tree tbody tr .twist")
	p.do(cdp.SetValue(cdp.ID("query"), "kind, type"), cdp.Focus(cdp.ID("query")), cdp.KeyEvent(kb.Enter))
	p.see("#tree", "small array")
	p.click(".advanced summary")
	p.click(".chips li:first-child button[aria-label$='level in']")
	p.until("document.querySelector('#query').value === 'type, kind'")
	p.see("#tree", "byte[]")

	// an expression that is wrong, and one that is right
	p.do(cdp.SetValue(cdp.ID("query"), "type, kind where size >= 1024 and nosuch > 1"), cdp.Focus(cdp.ID("query")),
		cdp.KeyEvent(kb.Enter))
	p.see("#query-error", "nosuch")
	p.see("#query-error", strings.Repeat(" ", 17)+"^")
	p.quiet("422")
	p.do(cdp.SetValue(cdp.ID("query"), "type, kind where size >= 1024"), cdp.Focus(cdp.ID("query")),
		cdp.KeyEvent(kb.Enter))
	p.until("document.querySelector('#query-error').innerText === ''")
	big := verb[analysis.Grouping](t, "group", "--json", "--by", "type, kind", "--where", "size >= 1024", window)
	p.see("#head", fmt.Sprintf("%d live objects", big.Objects))

	// search
	p.do(cdp.Navigate(url + "#state?q=onerror"))
	p.see("#head", "1 group matches")
	p.see("#tree tr.hit", hostile)
}

// TestExport: the downloads are those of the verbs.
func TestExport(t *testing.T) {
	url := view(t, window)
	get := func(q string) []byte {
		resp, err := http.Get(url + "api/export?at=63&" + q)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 200 ||
			!strings.Contains(resp.Header.Get("Content-Disposition"), "window-gc63.") {
			t.Fatalf("%s: %v, %s, %v: %.200s", q, err, resp.Status, resp.Header, b)
		}
		return b
	}
	c, err := exec.Command(tool, "group", "--csv", "--at", "63", "--by", "type", window).Output()
	if err != nil {
		t.Fatal(err)
	}
	if b := get("format=csv&by=type"); !bytes.Equal(b, c) {
		t.Errorf("the page's CSV is %.200s, the verb's %.200s", b, c)
	}
	var g analysis.Grouping
	if err := json.Unmarshal(get("format=json&by=type"), &g); err != nil ||
		g.Objects != verb[analysis.Grouping](t, "group", "--json", "--at", "63", "--by", "type", window).Objects {
		t.Errorf("%v: %+v", err, g)
	}
	p, err := profile.ParseData(get("format=pprof"))
	if err != nil || p.CheckValid() != nil || len(p.Sample) == 0 {
		t.Errorf("the profile: %v", err)
	}
}

// TestTrends: the groups are those of `heapcam trend`; the page shows one group's curves, and survival curves.
func TestTrends(t *testing.T) {
	p := open(t, view(t, window)+"#trends")
	tr := verb[analysis.TrendReport](t, "trend", "--json", "--by", "type", window)
	for i, r := range tr.Rows[:10] {
		p.until(fmt.Sprintf("document.querySelectorAll('#trend tbody tr')[%d]?.innerText.startsWith(%q)", i,
			strings.Join(r.Path, " › ")))
	}
	p.click("#trend tbody tr .pick")
	p.until("document.querySelectorAll('#curve canvas').length === 2")
	p.until("location.hash.includes('row=')")
	p.click("#survival summary")
	p.see("#survival", "pretenure")
	p.see("#survival", "Survival by class")
}

// TestLinks: the number keys open the views, times can be shown in UTC, and there is a dark mode.
func TestLinks(t *testing.T) {
	p := open(t, view(t, window)+"#overview?tz=utc&theme=dark")
	p.see("main", "UTC to ")
	if c := js[string](p, "getComputedStyle(document.body).backgroundColor"); c != "rgb(20, 23, 26)" {
		t.Errorf("dark is %s", c)
	}
	names := js[[]string](p, "[...document.querySelectorAll('#nav a')].map(a => a.innerText)")
	for i, n := range names[:min(9, len(names))] {
		p.do(cdp.KeyEvent(fmt.Sprint(i + 1)))
		p.until(fmt.Sprintf("document.querySelector('#nav a[aria-current]').innerText === %q", n))
		p.until("document.querySelector('main h2')")
		p.until("location.hash.includes('theme=dark')")
	}
	p.click("#tools button:nth-child(2)")
	p.until("document.documentElement.dataset.theme === 'light'")
}

// TestGlossaryView: the glossary is one click away, and explains the keys.
func TestGlossaryView(t *testing.T) {
	p := open(t, view(t, window))
	p.click("#nav a:last-child")
	p.see("#terms", "before the recording")
	p.see("#terms code", "heapcam agent")
	p.see("#keys", "Shift")
}

// TestFormats: a figure has one format on the whole page, and a share is 0 % or 100 % only if it is exactly that.
func TestFormats(t *testing.T) {
	p := open(t, view(t, window))
	p.see("#hero", "Window")
	got := js[[]string](p, `import('./lib.js').then(l => [
		...[0, 0.0002, 0.028, 0.9999, 1].map(l.share), ...[0, 42e3, 5.93e6, 5.93e9, 600e9, 18e12].map(l.span),
		...[0, 1023, 1024, 1048575, -1536].map(l.bytes), l.count(1234567), l.plural(1, 'object'),
		l.plural(2000, 'object'), l.change(-3, l.count)])`)
	want := []string{"0 %", "< 0.1 %", "2.8 %", "> 99.9 %", "100 %", "0 ms", "42.0 µs", "5.9 ms", "5.9 s", "10.0 min",
		"5.0 h", "0 B", "1,023 B", "1.0 KiB", "1.0 MiB", "−1.5 KiB", "1,234,567", "1 object", "2,000 objects", "−3"}
	if !slices.Equal(got, want) {
		t.Errorf("figures are written\n%q, want\n%q", got, want)
	}
}

// TestDamaged: all views of a damaged recording and of an empty one are shown.
func TestDamaged(t *testing.T) {
	b, err := os.ReadFile(window)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		b[len(b)/2+i] ^= 0x5a
	}
	file := filepath.Join(t.TempDir(), "damaged.heapcam")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p := open(t, view(t, file)+"#coverage")
	p.see("#damage", "corrupt")
	p.do(cdp.KeyEvent("1"))
	p.see("#headlines", "cannot be read")

	dir := filepath.Join(t.TempDir(), "empty")
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir},
		ringstore.Identity{Session: strings.Repeat("ab", 16), Name: "empty"})
	if err != nil {
		t.Fatal(err)
	}
	meta := tracetest.New(tracetest.All(1, trace.CollectorG1, trace.DepthSurvivors)).Meta()
	if err := s.Rotate(trace.AppendBlock(nil, meta), ringstore.FrameInfo{Source: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p = open(t, view(t, dir))
	p.see("#hero", "no collection")
	for i := 2; i <= js[int](p, "document.querySelectorAll('#nav a').length"); i++ {
		p.click(fmt.Sprintf("#nav a:nth-child(%d)", i))
		p.until("document.querySelector('main h2') && document.querySelector('main').innerText.length > 20")
		if e := js[string](p, "document.querySelector('main .error:not(:empty)')?.innerText ?? ''"); e != "" {
			t.Errorf("view %d of an empty recording: %s", i, e)
		}
	}
}

// TestAccessible: axe-core finds no serious problem in any view of each recording, light or dark.
func TestAccessible(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("not run: accessibility of the viewer (axe-core is not there: cd web && npm ci)")
	}
	eachRecording(t, func(t *testing.T, path string, wait time.Duration) {
		p := patient(t, view(t, path), wait)
		p.do(cdp.Evaluate[cdp.Void](string(axe)))
		views := []string{"overview", "overview?at=10", "state?open=%5B%22%5B%5C%22byte%5B%5D%5C%22%5D%22%5D", "diff",
			"trends?row=%5B%22byte%5B%5D%22%5D", "leaks", "retained", "cost", "whatif", "coverage", "glossary"}
		for _, th := range []string{"light", "dark"} {
			if th == "dark" && !full {
				t.Log("not run: accessibility in the dark but for two views (HEAPCAM_FULL=1)")
				views = views[:2]
			}
			for _, v := range views {
				accessible(p, v, th)
			}
		}
	})
}

// accessible has axe-core look at a view.
func accessible(p *page, view, theme string) {
	p.t.Helper()
	sep := "?"
	if strings.Contains(view, "?") {
		sep = "&"
	}
	hash := "#" + view + sep + "theme=" + theme
	p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("location.hash = %q", hash)))
	p.until(fmt.Sprintf("document.documentElement.dataset.theme === %q && "+
		"document.getElementById('main').dataset.shown === %q", theme, hash))
	for _, f := range js[[]string](p, `axe.run(`+axeRules+`).then(r => r.violations
		.filter(v => v.impact === 'serious' || v.impact === 'critical')
		.map(v => v.id + ': ' + v.help + ': ' + v.nodes.slice(0, 3)
			.map(n => n.html.slice(0, 160) + ' ' + n.any.map(a => a.message).join('; ')).join(' | ')))`) {
		p.t.Errorf("%s, %s: %s", view, theme, f)
	}
}
