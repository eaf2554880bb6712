package web_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"
)

var (
	full    = os.Getenv("HEAPCAM_FULL") != ""
	scratch string
	tool    string // the heapcam binary
	browser context.Context
	viewer  int // pid of the newest viewer

	launched bool
)

// axeRules are what accessibility is checked by. axe takes the first link with # for one that skips to the content.
// Here such links lead to views, and the navigation of a narrow page may have scrolled the first one out of sight.
const axeRules = `{ resultTypes: ['violations'], rules: { 'skip-link': { enabled: false } } }`

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "heapcam-web."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if chromium() != "" {
		if tool = os.Getenv("HEAPCAM_BIN"); tool == "" {
			tool = filepath.Join(scratch, "heapcam")
			if out, err := exec.Command("go", "build", "-o", tool, "../cmd/heapcam").CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build of heapcam: %v\n%s", err, out)
				return 1
			}
		}
		alloc, stop := cdp.NewExecAllocator(context.Background(), cdp.ExecPath(chromium()), cdp.Headless, cdp.NoSandbox,
			cdp.DisableGPU, cdp.NoFirstRun, cdp.NoDefaultBrowserCheck,
			cdp.Flag("disable-quic", true), cdp.Flag("disable-background-networking", true),
			cdp.Flag("disable-component-update", true), cdp.Flag("disable-sync", true),
			cdp.Flag("disable-dev-shm-usage", true), cdp.Flag("lang", "en-US"),
			cdp.UserDataDir(filepath.Join(scratch, "profile")), cdp.WindowSize(1280, 800))
		defer stop()
		ctx, end := cdp.NewContext(alloc)
		defer func() {
			if launched { // otherwise there is nothing to cancel
				cdp.Cancel(ctx)
			}
			end()
		}()
		browser = ctx
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(scratch, "cache")) // where heapcam keeps reports
	return m.Run()
}

func chromium() string {
	for _, n := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	return ""
}

// launch starts the browser once.
var launch = sync.OnceValue(func() error {
	launched = true
	return cdp.Do(browser, cdp.Navigate("about:blank"))
})

// view starts the viewer on a recording and returns the page's address. The viewer ends with the test.
func view(t testing.TB, args ...string) string {
	t.Helper()
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	c := exec.Command(tool, append([]string{"view", "--no-open"}, args...)...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	viewer = c.Process.Pid
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("heapcam view ended with %v: %s", err, said.String())
		}
	})
	if err != nil {
		t.Fatalf("heapcam view: %v: %s", err, said.String())
	}
	return strings.TrimSpace(line)
}

// page is a tab.
type page struct {
	t     testing.TB
	ctx   context.Context
	url   string
	mu    sync.Mutex
	noise []string // errors and warnings in the console

	patience time.Duration // the longest time that the page may take on a busy machine
}

// open opens the page of a recording, or a view of it (#…), in a new tab. The test fails if the tab's console has
// errors.
func open(t testing.TB, url string) *page {
	t.Helper()
	if err := launch(); err != nil {
		t.Fatalf("chromium: %v", err)
	}
	ctx, end := cdp.NewContext(browser)
	p := &page{t: t, ctx: ctx, url: url, patience: patience}
	p.do(cdp.EmulateViewport(1280, 800)) // creates the tab
	messages := cdp.Console(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.Type == "error" || m.Type == "exception" || m.Type == "warning" || m.Type == "assert" {
				p.mu.Lock()
				p.noise = append(p.noise, string(m.Type)+": "+m.Text)
				p.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			p.shot(filepath.Join(os.TempDir(), "heapcam-web-"+strings.ReplaceAll(t.Name(), "/", "-")+".png"))
		}
		cdp.Cancel(ctx)
		end()
		<-done
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, n := range p.noise {
			t.Errorf("the console says %s", n)
		}
	})
	p.do(cdp.Navigate(url))
	return p
}

// quiet forgets console errors that contain about: for requests that must fail.
func (p *page) quiet(about string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var kept []string
	for _, n := range p.noise {
		if !strings.Contains(n, about) {
			kept = append(kept, n)
		}
	}
	p.noise = kept
}

// patience is the longest time that the page of a small recording may take on a busy machine.
const patience = 30 * time.Second

func (p *page) do(steps ...cdp.Action[cdp.Void]) {
	p.t.Helper()
	ctx := p.ctx
	if p.url == "" {
		return
	}
	if err := cdp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// js evaluates an expression.
func js[T any](p *page, expr string) T {
	p.t.Helper()
	v, err := cdp.Run(p.ctx, cdp.Evaluate[T](expr, cdp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expr, err)
	}
	return v
}

// until waits for an expression to be true.
func (p *page) until(expr string) {
	p.t.Helper()
	for end := time.Now().Add(p.patience); ; time.Sleep(30 * time.Millisecond) {
		v, err := cdp.Run(p.ctx, cdp.Evaluate[bool]("!!("+expr+")", cdp.EvalAwaitPromise))
		if err == nil && v {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s did not become true (%v); the page shows: %.1500s", expr, err,
				js[string](p, "document.body.innerText"))
		}
	}
}

// see waits for text in what sel selects.
func (p *page) see(sel, text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", sel, text))
}

// click clicks on what sel selects, in the page: between two calls of the browser the page may draw it anew or
// elsewhere. It must be seen where the click would be: nothing may cover it.
func (p *page) click(sel string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(e => {
		if (!e) return false;
		e.scrollIntoView({block: 'nearest', inline: 'nearest'});
		const r = e.getBoundingClientRect();
		const top = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
		if (!top || !(e.contains(top) || top.contains(e))) return false;
		e.focus();
		e.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window, detail: 1,
			clientX: r.left + r.width / 2, clientY: r.top + r.height / 2}));
		return true;
	})(document.querySelector(%q))`, sel))
}

// focus focuses what sel selects, in the page: between two calls of the browser the page may draw it anew.
func (p *page) focus(sel string) {
	p.t.Helper()
	p.until(fmt.Sprintf("(e => e && (e.focus(), document.activeElement === e))(document.querySelector(%q))", sel))
}

func (p *page) text(sel string) string {
	p.t.Helper()
	return js[string](p, fmt.Sprintf("document.querySelector(%q).innerText", sel))
}

func (p *page) shot(file string) {
	if b, err := cdp.Run(p.ctx, cdp.CaptureScreenshot()); err == nil {
		os.WriteFile(file, b, 0o644)
		p.t.Logf("a picture of the page is in %s", file)
	}
}
