package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/heapcam/heapcam/web"
)

// many makes a folder with n recordings, the names of some look like HTML, and one pulled file.
func many(t *testing.T, n int) string {
	t.Helper()
	dir, one := t.TempDir(), referring(t)
	files, err := filepath.Glob(filepath.Join(one, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("shop%04d-%d-1a2b", i, 1000+i)
		if i == 7 && runtime.GOOS != "windows" { // where no file may have such a name
			name = "<img src=x onerror=alert(1)>-77-1a2b"
		}
		to := filepath.Join(dir, name)
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(to, filepath.Base(f)), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	b, err := os.ReadFile(window)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "window.heapcam"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestHome: a folder of a thousand recordings is listed by pages, can be searched and sorted, each has its JDK and its
// verdict, and opens with the keyboard. A name that looks like HTML stays text.
func TestHome(t *testing.T) {
	url := view(t, "--socket", filepath.Join(t.TempDir(), "none"), many(t, 1000))
	p := open(t, url)
	p.see("#head", "1,001 recordings")
	p.until("document.querySelectorAll('#recordings tbody tr').length === 50")
	p.click("#pages button:nth-child(2)")
	p.see("#pages", "51 to 100 of 1,001")
	p.do(cdp.Focus(cdp.ID("find")), cdp.KeyEvent("window"))
	p.see("#head", "1 matches")
	p.see("#recordings", "window.heapcam")
	p.see("#recordings .tag", "Leak")
	p.see("#recordings", "MiB")
	if w := js[[]string](p, misplaced); len(w) > 0 {
		t.Error(w)
	}
	p.focus("#recordings a")
	p.do(cdp.KeyEvent(kb.Enter))
	p.see("#hero", "Window")
	p.click("#home")
	p.see("#head", "1,001 recordings")

	p.do(cdp.Navigate(url + "#list?find=img"))
	p.see("#recordings", "<img src=x onerror=alert(1)>")
	if js[bool](p, "document.querySelector('main img') !== null") {
		t.Error("the name of a recording became an element")
	}
	p.do(cdp.Navigate(url + "#list?sort=size"))
	p.see("#recordings tbody tr", "window.heapcam")

	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("not run: accessibility of the list (axe-core is not there: cd web && npm ci)")
	}
	for _, th := range []string{"light", "dark"} {
		p.do(cdp.Navigate("about:blank"), cdp.EmulateViewport(390, 900), cdp.Navigate(url+"#list?theme="+th))
		p.until("document.querySelectorAll('#recordings tbody tr').length === 50")
		p.do(cdp.Evaluate[cdp.Void](string(axe)))
		for _, f := range js[[]string](p, `axe.run(`+axeRules+`).then(r => r.violations
			.filter(v => v.impact === 'serious' || v.impact === 'critical')
			.map(v => v.id + ': ' + v.nodes.slice(0, 2).map(n => n.html.slice(0, 160)).join(' | ')))`) {
			t.Errorf("%s: %s", th, f)
		}
		if w := js[[]string](p, misplaced); len(w) > 0 {
			t.Errorf("at 390 pixels, %s: %s", th, w)
		}
	}
}

// TestHomeAccess: the list and what is below it are behind the token, and nothing is changed without a header and a
// confirmation.
func TestHomeAccess(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (its tests build the viewer)")
	}
	url := view(t, "--socket", filepath.Join(t.TempDir(), "none"), many(t, 2))
	root := url[:strings.LastIndex(strings.TrimSuffix(url, "/"), "/")+1]
	var l struct{ Rows []web.Entry }
	r, err := http.Get(url + "api/recordings?find=shop0000")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&l); err != nil || len(l.Rows) != 1 {
		t.Fatal(err, l)
	}
	at := "r/" + l.Rows[0].ID + "/"
	for _, c := range []struct {
		method, url, header, host, body string
		want                            int
	}{
		{"GET", root, "", "", "", 404},
		{"GET", root + "api/recordings", "", "", "", 404},
		{"GET", root + at, "", "", "", 404},
		{"GET", url, "", "", "", 200},
		{"GET", url, "", "evil.example", "", 403},
		{"GET", url + at, "", "", "", 200},
		{"GET", url + at + "api/overview", "", "evil.example", "", 403},
		{"GET", url + "r/0123456789abcdef/", "", "", "", 422},
		{"GET", url + "r/../../etc/", "", "", "", 422},
		{"POST", url + at + "api/freeze", "", "", `{"confirmed":true}`, 403},
		{"POST", url + at + "api/freeze", "1", "", `{}`, 422},
		{"POST", url + at + "api/settle", "1", "", `{"confirmed":true}`, 422},
		{"GET", url + at + "api/freeze", "1", "", "", 404},
	} {
		q, err := http.NewRequest(c.method, c.url, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			q.Header.Set("X-Heapcam", c.header)
		}
		if c.host != "" {
			q.Host = c.host
		}
		resp, err := http.DefaultTransport.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want || c.want == 200 && resp.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s, header %q, host %q: %s, want %d", c.method, c.url, c.header, c.host, resp.Status, c.want)
		}
	}
}
