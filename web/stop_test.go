package web_test

import (
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

// endless is a recording whose end is never reached.
type endless struct {
	b        trace.Block
	progress func(done, total int64)
	n        int64
}

func (s *endless) Next() (trace.Block, error) {
	time.Sleep(2 * time.Millisecond)
	s.n++
	s.progress(s.n, 1<<40)
	return s.b, nil
}

// TestStop: the Stop button ends a slow diff. The page confirms it and stays usable, and the server stops reading.
func TestStop(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 12 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = append(bs, m.End())
	var opened, closed atomic.Int32
	s := web.New(web.Config{Title: "long", Open: func(progress func(done, total int64)) (*web.Input, error) {
		if opened.Add(1) == 1 { // for the overview
			return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
		}
		return &web.Input{Source: &endless{b: bs[0], progress: progress}, Close: func() { closed.Add(1) }}, nil
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path())
	p.until("document.querySelectorAll('#timeline canvas').length >= 3")
	p.do(cdp.Navigate(h.URL + s.Path() + "#diff?by=spacetype&from=2&to=5"))
	p.until("!document.getElementById('progress').hidden && !document.getElementById('stop').hidden")
	if n := closed.Load(); n != 0 {
		t.Fatalf("%d replays ended before Stop", n)
	}
	p.click("#stop")
	p.see("#notice", "Stopped")
	p.until("document.getElementById('stop').hidden")
	for end := time.Now().Add(patience); closed.Load() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server still reads after Stop")
		}
	}
	p.do(cdp.Navigate(h.URL + s.Path() + "#coverage"))
	p.until("document.getElementById('main').dataset.shown === '#coverage'")
}

// TestEarlyEvent: if the server's first `changed` event arrives before the overview, the page loads the overview once,
// and a view that is opened at once is shown.
func TestEarlyEvent(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 12 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = append(bs, m.End())
	s := web.New(web.Config{
		Title:   "early",
		Version: func() (string, bool) { return "1", true },
		Open: func(func(done, total int64)) (*web.Input, error) {
			return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
		},
		Report: func(makeReport func() (*analysis.Report, error)) (*analysis.Report, error) {
			time.Sleep(1500 * time.Millisecond) // the server polls once a second
			return makeReport()
		},
	})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path())
	p.until("document.querySelectorAll('#timeline canvas').length >= 3")
	p.do(cdp.Navigate(h.URL + s.Path() + "#state?by=type"))
	p.until("document.getElementById('main').dataset.shown === '#state?by=type'")
	time.Sleep(400 * time.Millisecond) // the page would load a second overview after 0.3 s
	if n := js[int](p,
		"performance.getEntriesByType('resource').filter(e => e.name.includes('/api/overview')).length"); n != 1 {
		t.Errorf("the overview was loaded %d times", n)
	}
}
