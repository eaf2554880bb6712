package web_test

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/web"
)

// TestHolder: the first card names the holder of what leaks, and leads to the path to it. Words that a newcomer may not
// know have their meaning as a tooltip.
func TestHolder(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	bs := blocksIn(t, window)
	const holder = "the static field Window.log, then java.util.ArrayList, in elementData"
	s := web.New(web.Config{Title: "held", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, Leaks: func() (leak.Options, func()) {
		return leak.Options{MinGrowth: leak.DefaultMinGrowth,
			Holder: func([]sites.Key, uint64) ui.Flow { return holder }}, func() {}
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path())
	p.see("#hero", "Held by")
	p.see("#hero a[href*=retained]", holder)
	for _, m := range js[[]string](p, misplaced) {
		t.Error(m)
	}
	p.until(`[...document.querySelectorAll('#hero .term')].some(x =>
		x.innerText === 'live samples' && x.title.includes('live while its object lives'))`)
	p.until(`[...document.querySelectorAll('.strip-row .term')].some(x =>
		x.innerText === 'sync point' && x.title.includes('all live objects'))`)
	p.click("#hero a[href*=retained]")
	p.until("location.hash.includes('site=Window.audit')")
	p.see("main", "heapcam references JVM")
}

// TestUnheld: until the reference listings of a recording have been read the page says what is likely without them.
// Where they show no holder of most of a leak the first card says so, and not that no holder was recorded.
func TestUnheld(t *testing.T) {
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	bs := blocksIn(t, window)
	refs := trace.EncodeRefs(&trace.RefPart{Listing: 1, N: 1, Flags: trace.RefFirst | trace.RefLast, HasAbout: true})
	bs = slices.Insert(bs, len(bs)-1, refs)
	open1 := func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}
	read := make(chan bool)
	s := web.New(web.Config{Title: "listed", Open: open1, OpenCensus: open1,
		OpenPauses: func() (*web.Input, error) { return open1(nil) },
		Leaks: func() (leak.Options, func()) {
			return leak.Options{MinGrowth: leak.DefaultMinGrowth, Unreached: func(uint64) (map[uint64]bool, float64) {
				<-read
				return nil, 0
			}}, func() {}
		}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	p := open(t, h.URL+s.Path())
	p.see("#so-far", "Not confirmed yet Leak: ")
	close(read)
	p.see("#hero a[href*=retained]", "no single object holds most of it")
	p.click("#hero .button")
	p.see("#leaks a[href*=retained]", "no single object holds most of it")
}

// blocksIn gives the blocks of a recording.
func blocksIn(t *testing.T, dir string) (bs []trace.Block) {
	t.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			bs = append(bs, b)
		}
	}
	return bs
}
