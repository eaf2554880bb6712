package web_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/compare"
)

// TestDiff: the figures are those of `heapcam diff`.
func TestDiff(t *testing.T) {
	p := open(t, view(t, window)+"#diff?from=5&to=40&by=type")
	d := verb[analysis.DiffReport](t, "diff", "--json", "--from", "5", "--to", "40", "--by", "type", window)
	p.see("#head", "died")
	p.until("/^[+−][\\d.]+ [KM]iB/.test(document.querySelector('.net').innerText)")
	p.until("document.querySelectorAll('#head .dpb rect').length === 3")
	if whiskers := js[bool](p, "document.querySelector('#head .dpb line') !== null"); whiskers == d.Exact {
		t.Errorf("whiskers are drawn: %v, the figures are exact: %v", whiskers, d.Exact)
	}
	p.click("main .bar button[aria-pressed]")
	p.until("location.hash.includes('unit=objects')")
	for i, c := range d.Tree.Children[:10] {
		p.until(fmt.Sprintf(`document.querySelectorAll('#diff tbody tr')[%d]?.cells[4].innerText
			.replace(/[,~]/g, '').startsWith('%d')`, i, c.Objects.Born.Low))
		p.until(fmt.Sprintf("document.querySelectorAll('#diff tbody tr')[%d].innerText.includes(%q)", i, c.Key))
	}
	// the flame graph says what changed, and zooms in with the keyboard
	p.until("document.querySelectorAll('#changes .flame rect').length > 5")
	p.focus("#changes g[role]")
	p.do(cdp.KeyEvent(kb.ArrowDown))
	p.see("#changes .about", " before, ")
	p.do(cdp.KeyEvent(kb.Enter))
	p.until("location.hash.includes('part=')")
	p.see("#changes .bar", "Whole heap")

	p.do(cdp.SetValue(cdp.ID("query"), "address"), cdp.Focus(cdp.ID("query")), cdp.KeyEvent(kb.Enter))
	p.see("#query-error", "group by address")
	p.quiet("422")
}

// TestCompare: two recordings are compared by slopes, as `heapcam diff` does, and by a flame graph. One of them alone
// is one click away.
func TestCompare(t *testing.T) {
	b, err := os.ReadFile(window)
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(t.TempDir(), "before.heapcam")
	if err := os.WriteFile(before, b, 0o600); err != nil {
		t.Fatal(err)
	}
	url := view(t, before, window)
	p := open(t, url+"#diff")
	p.see(".net", "0 B")
	p.see("main", "Before: before.heapcam. After: window.heapcam.")
	p.until("document.querySelectorAll('#changes .flame rect').length > 5")
	d := verb[compare.Report](t, "diff", "--json", before, window)
	p.see("main .cards", string(d.Verdicts[0].Sentence)[:40])
	p.see("main .cards", "Still there")
	p.click("#changes .flame g[role]:nth-of-type(2)")
	p.until("location.hash.includes('part=')")
	p.click(".switch button:nth-child(2)")
	p.see("#head", "From collection ")
	p.until("document.querySelectorAll('#diff tbody tr').length > 5")
	p.click(".switch button:nth-child(1)")
	p.see("main .cards", "Still there")
	if w := js[[]string](p, misplaced); len(w) > 0 {
		t.Error(w)
	}

	resp, err := http.Get(view(t, window) + "api/compare")
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a viewer of one recording compares: %s", resp.Status)
	}
}

// TestBrush: a part of the time that is chosen in a chart applies to all views, which say so, until it is taken back.
func TestBrush(t *testing.T) {
	url := view(t, window)
	rep := verb[analysis.Report](t, "report", "--json", window)
	n := len(rep.Collections)
	a, b := rep.Collections[n/4], rep.Collections[n/2]
	win := fmt.Sprintf("win=%d-%d", a.Time.UnixMilli(), b.Time.UnixMilli()+1)
	p := open(t, url+"#diff?"+win)
	p.see("#head", fmt.Sprintf("to collection %d ", b.GC))
	p.see("#brush", "Show all")
	p.do(cdp.Navigate(url + "#state?" + win))
	p.see("#head", fmt.Sprintf("After collection %d ", b.GC))
	p.do(cdp.Navigate(url + "#trends?" + win))
	p.see("#head", fmt.Sprintf("over %d collections", b.GC-a.GC+1))
	p.click("#all-time")
	p.see("#head", fmt.Sprintf("over %d collections", n))
	p.until("document.querySelector('#brush').hidden")
}
