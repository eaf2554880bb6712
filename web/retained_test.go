package web_test

import (
	"strings"
	"testing"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// referring is a recording with a reference listing: a static map holds 80 orders, 60 of them sampled in Shop.buy. The
// name of a field looks like HTML.
func referring(t *testing.T) string {
	b := referencestest.New()
	const field = "<img/src=x/onerror=alert(1)>"
	b.Class("[Ljava/lang/Object;")
	b.Class("app/AppClassLoader", "parent")
	b.Class("app/Map", field)
	loader, m := b.New("app/AppClassLoader"), b.Mirror("app/Shop", "cache")
	b.Root(loader, references.Root{Kind: references.LoaderRoot})
	b.Add(loader, m)
	cache, table := b.New("app/Map"), b.New("[Ljava/lang/Object;")
	b.Set(m, "cache", cache)
	b.Set(cache, field, table)
	for i := range 80 {
		o := b.New("app/Order")
		b.Add(table, o)
		if i < 60 {
			b.Sample(o, "app/Shop", "buy")
		}
	}
	dir := t.TempDir()
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var frame []byte
	for _, x := range b.Blocks() {
		frame = trace.AppendBlock(frame, x)
	}
	info := ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 1, T0: 1, T1: 2e9, Flags: ringstore.FlagMarked}
	if err := s.Rotate(frame, info); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRetained: the dominator tree opens down to the orders, a class and a site have their holder, and a name that
// looks like HTML stays text. A recording without references says how to record them.
func TestRetained(t *testing.T) {
	url := view(t, referring(t))
	p := open(t, url+"#retained")
	p.see("#head", " objects, ")
	p.see("#head", "No root reaches")
	if s := p.text("#head"); strings.Contains(s, "NaN") {
		t.Error(s)
	}
	p.see("#retained", "app.AppClassLoader @ 0x")
	for _, name := range []string{"class app.Shop", "app.Map", "java.lang.Object[]", "app.Order"} {
		p.click("#retained tbody tr:last-child .twist")
		p.see("#retained", name+" @ 0x")
	}
	p.click("#retained tbody tr:last-child .pick")
	p.see("#held", "Who holds the object at 0x")

	p = open(t, url+"#retained?site=app.Shop.buy")
	p.see("#held", "sampled objects from app.Shop.buy (60 objects)")
	p.see("#held", "100 %")
	p.see("#held", "app.Shop.cache")
	p.click(".switch button:nth-child(2)")
	p.see("#retained", "app.Order")
	p.see("#held", "<img/src=x/onerror=alert(1)>")
	if js[bool](p, "document.querySelector('main img') !== null") {
		t.Error("the name of a field became an element")
	}

	p = open(t, url+"#state")
	p.click(".switch button:nth-child(5)") // by holder
	p.see("#tree", "app.Shop.cache")
	p.see("#flame", "app.Shop.cache")

	p = open(t, view(t, window)+"#retained")
	p.see("#head", "heapcam references JVM")
	p.do(cdp.Navigate(p.url[:strings.IndexByte(p.url, '#')] + "#state"))
	p.click(".switch button:nth-child(5)")
	p.see("#notice", "is not recorded here")
}
