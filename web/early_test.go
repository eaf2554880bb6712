package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

// slow is a source that gives nothing until the channel is closed, or the test is over.
type slow struct {
	until chan bool
	over  <-chan struct{}
	blocks
	begun func() // if it is set: called before each block
}

func (s *slow) Next() (trace.Block, error) {
	if s.begun != nil {
		s.begun()
	}
	select {
	case <-s.until:
	case <-s.over:
		return trace.Block{}, io.EOF
	}
	return s.blocks.Next()
}

// readSlowly is a viewer of a recording whose blocks come when the channel is closed; what its collections took is
// there at once.
func readSlowly(t *testing.T, collector uint64) (s *web.Server, url string, read chan bool) {
	m := tracetest.New(tracetest.All(3, collector, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 30 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = append(bs, m.End())
	read = make(chan bool)
	s = web.New(web.Config{Title: "slow", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &slow{read, t.Context().Done(), blocks{slices.Clone(bs)}, nil}, Close: func() {}}, nil
	}, OpenPauses: func() (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	return s, h.URL + s.Path(), read
}

// TestEarly: while the recording is read the overview shows the pauses of all collections. Then the answer takes their
// place, with what was selected.
func TestEarly(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	_, url, read := readSlowly(t, trace.CollectorParallel)
	p := open(t, url)
	p.until("document.querySelectorAll('#early canvas').length === 3")
	p.see("#reading", "still reads the heap states")
	p.see("#so-far", " after the last")
	p.see("#so-far", "heapcam itself made GC pauses longer by ")
	for _, width := range []int64{390, 1280} {
		p.do(cdp.EmulateViewport(width, 900), cdp.Navigate("about:blank"), cdp.Navigate(url))
		p.until("document.querySelectorAll('#early canvas').length === 3")
		for _, m := range js[[]string](p, misplaced) {
			t.Errorf("at %d pixels: %s", width, m)
		}
	}
	if axe, err := os.ReadFile("node_modules/axe-core/axe.min.js"); err == nil {
		p.do(cdp.Evaluate[cdp.Void](string(axe)))
		for _, f := range js[[]string](p, `axe.run(`+axeRules+`).then(r => r.violations
			.filter(v => v.impact === 'serious' || v.impact === 'critical')
			.map(v => v.id + ': ' + v.nodes.slice(0, 2).map(n => n.html.slice(0, 160)).join(' | ')))`) {
			t.Error(f)
		}
	}
	p.do(cdp.Navigate(url + "#overview?at=9"))
	p.see("#early + .panel", "not read yet")
	p.do(cdp.Navigate(url + "#state"))
	p.see("#head", "The first heap state that is read appears here")
	for _, m := range js[[]string](p, misplaced) {
		t.Error(m)
	}
	p.do(cdp.Navigate(url + "#overview?at=9"))
	p.until("document.querySelectorAll('#early canvas').length === 3")
	close(read)
	p.until("document.querySelectorAll('#timeline canvas').length >= 3")
	p.see("#picked", "Selected: collection 9")
	p.until("!document.getElementById('early') && !document.getElementById('reading')")
	p.until("document.querySelectorAll('canvas').length === 3")
}

// TestLikely: while all objects are replayed to confirm a verdict the page says what is likely, and how much of the
// time pauses took. Then the verdict takes their place.
func TestLikely(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	bs := blocksIn(t, stormOf(t))
	quick := func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}
	read := make(chan bool)
	s := web.New(web.Config{Title: "storm", OpenCensus: quick,
		OpenPauses: func() (*web.Input, error) { return quick(nil) },
		Open: func(func(done, total int64)) (*web.Input, error) {
			source := &slow{read, t.Context().Done(), blocks{slices.Clone(bs)}, nil}
			return &web.Input{Source: source, Close: func() {}}, nil
		}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path())
	p.see("#so-far", "GC pauses took ")
	p.see("#so-far", "full collection, ")
	p.see("#so-far", "Not confirmed yet Leak: ")
	close(read)
	p.see("#hero .verdict", "Leak: ")
	p.until("!document.getElementById('so-far')")
}

// counted is a source that counts its reads.
type counted struct {
	blocks
	reads *atomic.Int64
}

func (c *counted) Next() (trace.Block, error) {
	c.reads.Add(1)
	return c.blocks.Next()
}

// TestStateComesFirst: while a page waits for its first heap state, the overview is not read, and as soon as the page
// has the state it is.
func TestStateComesFirst(t *testing.T) {
	bs := blocksIn(t, stormOf(t))
	var reads atomic.Int64
	read, waits := make(chan bool), make(chan bool)
	begun := sync.OnceFunc(func() { close(waits) })
	s := web.New(web.Config{Title: "first",
		OpenCensus: func(func(done, total int64)) (*web.Input, error) {
			return &web.Input{Source: &counted{blocks{slices.Clone(bs)}, &reads}, Close: func() {}}, nil
		},
		Open: func(func(done, total int64)) (*web.Input, error) {
			source := &slow{read, t.Context().Done(), blocks{slices.Clone(bs)}, begun}
			return &web.Input{Source: source, Close: func() {}}, nil
		}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	url := h.URL + s.Path()
	var near struct{ GC uint64 }
	answered := make(chan bool)
	go func() {
		defer close(answered)
		ask(t, url, "nearest?at=last", &near)
	}()
	<-waits
	overview := make(chan bool)
	go func() {
		defer close(overview)
		ask(t, url, "overview?", &web.Overview{})
	}()
	time.Sleep(500 * time.Millisecond)
	if n := reads.Load(); n > 0 {
		t.Errorf("%d blocks of the overview were read before the heap state", n)
	}
	close(read)
	<-answered
	begin := time.Now()
	for _, what := range []string{"group?at=%d", "flame?at=%d"} {
		ask(t, url, fmt.Sprintf(what, near.GC), &struct{}{})
	}
	<-overview
	t.Logf("the overview came %v after the state", time.Since(begin))
}

// TestEarlyRows: what the collections took is as the report has it.
func TestEarlyRows(t *testing.T) {
	_, url, read := readSlowly(t, trace.CollectorG1)
	var early, whole web.Overview
	ask(t, url, "early?", &early)
	close(read)
	ask(t, url, "overview?", &whole)
	if !early.Early || whole.Early || len(early.Report.Collections) != len(whole.Report.Collections) {
		t.Fatalf("early: %v, %v; %d collections of %d", early.Early, whole.Early, len(early.Report.Collections),
			len(whole.Report.Collections))
	}
	for i, c := range whole.Report.Collections {
		got := early.Report.Collections[i]
		if c.PauseNS != got.PauseNS || c.Used != got.Used || !c.Time.Equal(got.Time) || got.Known {
			a, _ := json.Marshal(got)
			b, _ := json.Marshal(c)
			t.Errorf("collection %d: early %s, then %s", c.GC, a, b)
		}
	}
	if a, b := early.Report, whole.Report; !a.From.Equal(b.From) || !a.To.Equal(b.To) || a.End != b.End ||
		time.Duration(a.WindowNS-b.WindowNS).Abs() > time.Microsecond {
		t.Errorf("%v to %v, %d ns, %s; then %v to %v, %d ns, %s", a.From, a.To, a.WindowNS, a.End, b.From, b.To,
			b.WindowNS, b.End)
	}
}

// TestEarlyConcurrent: of a collector whose objects have no address nothing is shown early.
func TestEarlyConcurrent(t *testing.T) {
	_, url, _ := readSlowly(t, trace.CollectorZGC)
	var early *web.Overview
	if ask(t, url, "early?", &early); early != nil {
		t.Fatal(early)
	}
}

// halting is a source that gives the blocks slowly when only some are left, until the channel is closed.
type halting struct {
	until chan bool
	left  int
	blocks
}

func (s *halting) Next() (trace.Block, error) {
	if len(s.b) <= s.left {
		select {
		case <-s.until:
		case <-time.After(200 * time.Millisecond):
		}
	}
	return s.blocks.Next()
}

// TestNearest: while the heap states are read the view of the heap shows the newest one that is read, and says so. Then
// it shows the requested one.
func TestNearest(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 60 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	read := make(chan bool)
	var opened atomic.Int32
	s := web.New(web.Config{Title: "long", Open: func(func(done, total int64)) (*web.Input, error) {
		all := blocks{slices.Clone(bs)}
		if opened.Add(1) == 1 { // for the overview
			return &web.Input{Source: &all, Close: func() {}}, nil
		}
		return &web.Input{Source: &halting{read, len(bs) / 2, all}, Close: func() {}}, nil
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	url := h.URL + s.Path()
	var o web.Overview
	ask(t, url, "overview?", &o)
	last := uint64(0)
	for _, c := range o.Report.Collections {
		if c.Known {
			last = c.GC
		}
	}
	p := open(t, url+"#state")
	p.see("#waits", fmt.Sprintf("Collection %d is still being read", last))
	p.until("document.querySelectorAll('#flame rect').length > 1 && document.querySelector('#tree tbody tr')")
	if js[bool](p, fmt.Sprintf("document.getElementById('head').innerText.includes('After collection %d ')", last)) {
		t.Error("the state of a collection that is not read is shown")
	}
	if js[bool](p, "'shown' in document.getElementById('main').dataset") {
		t.Error("the page says that it shows what the address names")
	}
	for _, m := range js[[]string](p, misplaced) {
		t.Error(m)
	}
	close(read)
	p.see("#head", fmt.Sprintf("After collection %d ", last))
	p.until("!document.getElementById('waits') && document.getElementById('main').dataset.shown === '#state'")
}

// readByHalves is a viewer of a recording of which the first half is there at once, the second when read is called; and
// its last collection. Without the call the second half comes slowly, so that a test which fails ends.
func readByHalves(t *testing.T) (url string, last uint64, read func()) {
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 60 {
		s := m.Step(i%7 == 0)
		if s.Known {
			last = s.Pause.GC
		}
		bs = append(bs, s.Blocks...)
	}
	bs = append(bs, m.End())
	until := make(chan bool)
	read = sync.OnceFunc(func() { close(until) })
	s := web.New(web.Config{Title: "halves", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &halting{until, len(bs) / 2, blocks{slices.Clone(bs)}}, Close: func() {}}, nil
	}, OpenPauses: func() (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { read(); s.Close(); h.Close() })
	return h.URL + s.Path(), last, read
}

// TestStateEarly: a link to the view of the heap shows the nearest heap state that is read, and says so, before the
// overview is there. What the reader types meanwhile stays. Then the requested state takes its place.
func TestStateEarly(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	for _, link := range []struct{ hash, waits, then string }{
		{"#state", "The recording is still being read", "After collection %[1]d "},
		{"#state?at=%[1]d", "Collection %[1]d is still being read", "After collection %[1]d "},
		{"#state?at=first", "", "After collection 1 "},
	} {
		url, last, read := readByHalves(t)
		at := func(s string) string { return strings.ReplaceAll(s, "%[1]d", fmt.Sprint(last)) }
		p := open(t, "about:blank")
		ctx, end := context.WithTimeout(p.ctx, 2*patience)
		defer end()
		p.ctx = ctx
		p.do(cdp.EmulateViewport(390, 900), cdp.Navigate(url+at(link.hash)))
		p.until("document.querySelectorAll('#flame rect').length > 1 && document.querySelector('#tree tbody tr')")
		if link.waits != "" {
			p.see("#waits", at(link.waits))
		} else {
			p.see("#head", at(link.then))
		}
		p.focus("#query")
		p.do(cdp.Evaluate[cdp.Void]("document.getElementById('query').value = 'type where si'"))
		if js[bool](p, "'shown' in document.getElementById('main').dataset") {
			t.Error("the page says that it shows what the address names")
		}
		for _, m := range js[[]string](p, misplaced) {
			t.Error(m)
		}
		read()
		p.until(fmt.Sprintf("document.getElementById('main').dataset.shown === %q", at(link.hash)))
		p.see("#head", at(link.then))
		if js[bool](p, "!!document.getElementById('waits')") || p.value("#query") != "type where si" ||
			js[int](p, "document.querySelectorAll('#flame, #tree, #query').length") != 3 {
			t.Errorf("%s: then the page has %q: %s", link.hash, p.value("#query"), p.text("main"))
		}
	}
}

// value is what a field contains.
func (p *page) value(sel string) string {
	return js[string](p, fmt.Sprintf("document.querySelector(%q).value", sel))
}

// TestEarlyViews: while the recording is read the reader goes from the overview to the heap, to a view that has nothing
// early, and back.
func TestEarlyViews(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	url, _, read := readByHalves(t)
	p := open(t, url)
	ctx, end := context.WithTimeout(p.ctx, 2*patience)
	defer end()
	p.ctx = ctx
	to := func(hash, ready string) {
		p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("location.hash = %q", hash)))
		p.until(ready)
		p.until("document.querySelectorAll('main > *').length === 1")
	}
	to("overview", "document.querySelectorAll('#early canvas').length === 3")
	to("state", "document.querySelector('#waits') && document.querySelectorAll('#flame rect').length > 1")
	to("trends", "document.querySelector('#skeleton')")
	to("state?by=type", "document.querySelector('#waits') && document.querySelectorAll('#flame rect').length > 1")
	to("overview", "document.querySelectorAll('#early canvas').length === 3")
	to("leaks", "document.querySelector('#skeleton')")
	read()
	p.until("document.getElementById('main').dataset.shown === '#leaks'")
}

// TestThrift: the viewer saves memory as soon as it reads heap states, even before the overview is there.
func TestThrift(t *testing.T) {
	s, url, read := readSlowly(t, trace.CollectorParallel)
	saves := make(chan bool, 2)
	s.Ahead(func() { saves <- true })
	select {
	case <-saves:
		t.Fatal("it saves memory although nothing is read")
	case <-time.After(50 * time.Millisecond):
	}
	var done sync.WaitGroup
	done.Go(func() { ask(t, url, "nearest?at=9", nil) })
	select {
	case <-saves:
	case <-time.After(patience):
		t.Error("it does not save memory")
	}
	close(read)
	done.Wait()
	ask(t, url, "overview?", nil)
	if len(saves) > 0 {
		t.Error("it was told twice")
	}
}
