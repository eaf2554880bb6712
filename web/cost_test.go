package web_test

import (
	"fmt"
	"testing"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis"
)

// TestCostView: the view says which threads allocate, how long the collections of each cause paused, and what heapcam
// cost. A brushed time bounds the first two.
func TestCostView(t *testing.T) {
	url := view(t, window)
	p := open(t, url+"#cost")
	p.see("#threads", "(unnamed)") // the recording is redacted
	p.see("#threads", "samples")
	p.see("#own", "of the recorded time")
	rep := verb[analysis.Report](t, "report", "--json", window)
	count := map[string]int{}
	for _, c := range rep.Collections {
		count[c.Cause]++
	}
	for cause, n := range count {
		p.until(fmt.Sprintf(`[...document.querySelectorAll('#causes tbody tr')]
			.filter(r => r.cells[0].innerText === %q)
			.reduce((n, r) => n + Number(r.cells[2].innerText), 0) === %d`, cause, n))
	}
	from, to := rep.From.UnixMilli(), rep.From.UnixMilli()+(rep.To.UnixMilli()-rep.From.UnixMilli())/2
	p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("location.hash = 'cost?win=%d-%d'", from, to)))
	p.until(fmt.Sprintf(`[...document.querySelectorAll('#causes tbody tr')]
		.reduce((n, r) => n + Number(r.cells[2].innerText), 0) < %d`, len(rep.Collections)))
	p.click("#threads tbody tr a")
	p.see("#head", "live objects")
}
