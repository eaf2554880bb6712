package web_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	cdp "github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/classify/grouping"
)

// flameTree is a node of api/flame.
type flameTree struct {
	Key, Kind string
	Bytes     uint64
	Children  []flameTree
}

// sum adds up the bytes of the outermost nodes for which is holds, and says how deep the tree is.
func (n *flameTree) sum(is func(*flameTree) bool) (bytes uint64, depth int) {
	if is(n) {
		bytes = n.Bytes
	}
	for i := range n.Children {
		b, d := n.Children[i].sum(is)
		if depth = max(depth, d+1); !is(n) {
			bytes += b
		}
	}
	return bytes, depth
}

// TestFlame: a flame graph has the bytes that `heapcam group` prints, root-first and leaf-first; folded, frames of the
// JDK that follow each other are one; the callers of a frame are above it, what it allocates is below it.
func TestFlame(t *testing.T) {
	base := view(t, window)
	type reply struct{ Tree, Callers flameTree }
	get := func(q url.Values) (r reply) {
		resp, err := http.Get(base + "api/flame?" + q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %v, %s", q, err, resp.Status)
		}
		return r
	}
	const audit = "Window.audit(Window.java:18)"
	var want uint64 // of what is allocated in audit or below it
	g := verb[analysis.Grouping](t, "group", "--json", "--by", "type, site(64)", window)
	g.Tree.Walk(func(path []string, n *grouping.Node) bool {
		if n.Key == audit {
			want += n.Bytes
			return false
		}
		return true
	})
	isAudit := func(n *flameTree) bool { return n.Key == audit }
	for _, order := range []string{"root", "leaf"} {
		for _, fold := range []string{"", "1"} {
			r := get(url.Values{"order": {order}, "fold": {fold}})
			if got, _ := r.Tree.sum(isAudit); r.Tree.Bytes != g.Bytes || got > want || 10*got < 9*want {
				t.Errorf("%s, fold %q: %d bytes, %d at %s; group says %d and %d", order, fold, r.Tree.Bytes, got,
					audit, g.Bytes, want)
			}
		}
	}
	joined := func(n *flameTree) bool { return strings.HasSuffix(n.Key, " …") }
	plain, short := get(url.Values{}), get(url.Values{"fold": {"1"}})
	_, all := plain.Tree.sum(joined)
	if _, folded := short.Tree.sum(joined); folded >= all {
		t.Errorf("folded, the graph is %d deep, else %d", folded, all)
	}
	r := get(url.Values{"frame": {audit}})
	if r.Tree.Bytes != want || r.Callers.Bytes != want || len(r.Callers.Children) != 1 ||
		!strings.HasPrefix(r.Callers.Children[0].Key, "Window.main") {
		t.Errorf("callers and callees of %s: %d and %d bytes, want %d; callers %+v", audit, r.Tree.Bytes,
			r.Callers.Bytes, want, r.Callers.Children)
	}
}

// TestFlameView: the graph searches while the reader types, zooms by mouse and keyboard, and shows callers.
func TestFlameView(t *testing.T) {
	p := open(t, view(t, window)+"#state?by=site%2C+type")
	p.until("document.querySelectorAll('#flame g[role=treeitem]').length > 5")
	p.do(cdp.Focus(cdp.ID("q")), cdp.SendKeys(cdp.ID("q"), "audit"))
	p.see("#flame .matched", "% matched")
	p.until("document.querySelector('#flame g.dim') && document.querySelector('#flame g.hit')")
	p.see("#head", "match")
	p.until("document.activeElement.id === 'q' && document.querySelector('#q').value === 'audit'")

	p.focus("#flame g[tabindex='0']")
	p.do(cdp.KeyEvent(kb.ArrowDown))
	p.see("#flame .about", "of its parent")
	p.do(cdp.KeyEvent(kb.Enter))
	p.until("location.hash.includes('part=')")
	p.click("#ways > button:not(.crumb)") // frames of the JDK
	p.until("location.hash.includes('jdk=1')")
	p.until("document.querySelector('#flame g.hit')")
	p.until(`(hit => { // pressed until it is answered: the graph may be drawn anew between focus and key
		if (document.querySelector('#flame h3')?.innerText.includes('Callers of Window.audit')) return true;
		hit?.focus();
		hit?.dispatchEvent(new KeyboardEvent('keydown', {key: 's', bubbles: true, cancelable: true}));
		return false;
	})(document.querySelector('#flame g.hit'))`)
	p.until("document.querySelectorAll('#flame svg').length === 2")
	p.click("#ways button:last-child")
	p.until("!location.hash.includes('frame=')")
	p.click("#ways .switch button:nth-child(2)")
	p.until("location.hash.includes('order=leaf')")

	// a label that is too long is cut between two words
	cut := js[[]string](p, `import('./flame.js').then(f => Array.from({ length: 300 }, (_, room) =>
		f.fit('com.shop.Shop.handleOrders(Shop.java:3)', room)))`)
	slices.Sort(cut)
	want := []string{"", "Shop.handleOrders", "Shop.handleOrders(Shop.java:3)",
		"com.shop.Shop.handleOrders(Shop.java:3)", "handleOrders", "handle…"}
	if cut = slices.Compact(cut); !slices.Equal(cut, want) {
		t.Errorf("labels of a frame are %q, want %q", cut, want)
	}

	// the query bar completes words
	p.until("document.querySelector('#flame g[role=treeitem]')")
	js[bool](p, `((q) => { q.value = 'type, thr'; return q.dispatchEvent(new Event('input')); })(
		document.getElementById('query'))`)
	p.until("[...document.querySelectorAll('#offers option')].some(o => o.value === 'type, thread')")
}
