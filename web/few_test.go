package web_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

// fewOf is a viewer of a recording with so many collections, which may be live, in a new tab.
func fewOf(t *testing.T, collections int, live, ended bool) (p *page, url string) {
	t.Helper()
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for range collections {
		bs = append(bs, m.Step(true).Blocks...)
	}
	if ended {
		bs = append(bs, m.End())
	}
	s := web.New(web.Config{Title: "few", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, Version: func() (string, bool) { return "1", !live },
		Incidents: func() []ringstore.Incident {
			return []ringstore.Incident{{ID: "few-1-2-20260101T000000Z", Auto: true, FirstGC: 1, LastGC: 1,
				Reason: "the heap is exhausted: an allocation failed", Created: time.Unix(1.7e9, 0)},
				{ID: "asked", Reason: "from the viewer"}}
		},
		Freeze: func(string) (*ringstore.Incident, error) { return &ringstore.Incident{}, nil }})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	url = h.URL + s.Path()
	return open(t, url), url
}

// TestOneCollection: a recording that has one collection so far has no charts, no trend and no diff, and says so.
func TestOneCollection(t *testing.T) {
	p, url := fewOf(t, 1, true, false)
	for _, width := range []int64{390, 1280} {
		p.do(cdp.EmulateViewport(width, 900))
		for _, v := range []struct{ view, sel, text string }{
			{"overview", "#timeline", "Charts over time need two collections"},
			{"overview", "#picked", "Selected: collection 1"},
			{"trends", "#head", "A trend needs two collections"},
			{"diff", "#head", "This is one collection, so nothing changed"},
			{"cost", "#own", "of the recorded time"},
			{"state", "#head", "After collection 1 "}, {"leaks", "#no-leak", "Cannot tell"}, {"whatif", "#fit", "."},
		} {
			p.do(cdp.Navigate("about:blank"), cdp.Navigate(url+"#"+v.view))
			p.until(fmt.Sprintf("document.querySelector('main').dataset.shown === %q", "#"+v.view))
			p.see(v.sel, v.text)
			p.see("#live", "This page is updated while the recording grows")
			for _, m := range js[[]string](p, misplaced) {
				t.Errorf("%s at %d pixels: %s", v.view, width, m)
			}
		}
	}
}

// TestJustEnded: the ring of a JVM that has ended still counts as live for a while. The page says how it ended.
func TestJustEnded(t *testing.T) {
	p, _ := fewOf(t, 5, true, true)
	p.see("#live", "Ended")
	p.see("#headlines", "the heap is exhausted: an allocation failed. heapcam saved the recording up to then as "+
		"few-1-2-2026")
	if strings.Contains(p.text("#headlines"), "asked") {
		t.Error("an incident that somebody asked for is told")
	}
	p.see("#live", "How it ended: the JVM ended.")
	if s := p.text("#live"); strings.Contains(s, "null") || strings.Contains(s, "Live") {
		t.Error(s)
	}
	p.until("document.querySelectorAll('#timeline canvas').length === 3")
}

// TestUnchanged: the trends leave out groups that did not change, and say how many these are.
func TestUnchanged(t *testing.T) {
	p := open(t, view(t, window)+"#trends")
	p.see("#head", " groups changed over ")
	for _, cell := range js[[]string](p, `[...document.querySelectorAll('#trend tbody td:nth-child(5)')]
		.map(c => c.innerText)`) {
		if strings.Contains(cell, "/s") && !strings.Contains(cell, " to ") {
			t.Errorf("a slope has no interval: %s", cell)
		}
	}
	if n := js[int](p, `[...document.querySelectorAll('#trend tbody tr')]
		.filter(r => r.innerText.includes('no change')).length`); n > 0 {
		t.Errorf("%d groups did not change", n)
	}
}

// TestMissesAtOnce: without a verdict the view of leaks shows what grew, with the reasons, which the report has.
func TestMissesAtOnce(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	bs := blocksIn(t, window)
	s := web.New(web.Config{Title: "misses", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, Report: func(read func() (*analysis.Report, error)) (*analysis.Report, error) {
		r, err := read()
		if err == nil {
			r.Verdicts, r.FirstLook = []leak.Verdict{}, "No leak found."
		}
		return r, err
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path()+"#leaks")
	p.see("#misses", "Not reported: ")
	if js[bool](p, "!!document.getElementById('near')") {
		t.Error("a button asks for what is shown")
	}
}

// TestUnknownCost: where the recording does not say what sampling took, the page says that, and no 0.
func TestUnknownCost(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	p := open(t, view(t, stormOf(t)))
	p.see("#cost", "took at least ")
	p.see("#cost", "What sampling took is not recorded.")
	p.do(cdp.Evaluate[cdp.Void]("location.hash = 'cost'"))
	p.see("#own", "What sampling took is not recorded.")
	if s := p.text("#own"); strings.Contains(s, "sampling took 0") {
		t.Error(s)
	}
}

// TestCallersMarked: the table of groups and the flame graph say which callers were drawn, and with which share.
func TestCallersMarked(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	s, _ := web.DrawnOf(t)
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	p := open(t, h.URL+s.Path()+"#state?by=site,type&order=leaf")
	p.see("#tree", "shop.Cart.add(")
	p.do(cdp.Evaluate[cdp.Void](`[...document.querySelectorAll('#tree tbody tr')]
		.find(r => r.innerText.includes('shop.Cart.add(')).querySelector('button.twist').click()`))
	p.see("#tree", "callers drawn: 8")
	if js[int](p, `[...document.querySelectorAll('svg.flame g[aria-label*="callers drawn for "]')].length`) == 0 {
		t.Error("no box of the flame graph says that callers were drawn")
	}
	p = open(t, h.URL+s.Path()+"#trends?by=site,type")
	p.see("main", "callers drawn: ")
}
