package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/internal/tiers"
)

// misplaced is an expression that lists texts of the page that overlap, or that their element or the window cuts off.
const misplaced = `(() => {
	const out = [], boxes = [];
	if (document.documentElement.scrollWidth > innerWidth) out.push('the page is wider than the window: ' +
		[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1)
			.slice(0, 2).map(e => e.outerHTML.slice(0, 120)).join(' '));
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; (n = texts.nextNode());) {
		const e = n.parentElement;
		if (!n.data.trim() || e.closest('.sr, .skip, title, option, script, noscript, thead, [hidden]') ||
			!e.checkVisibility({ visibilityProperty: true })) continue;
		if (/^(null|undefined|NaN)$|\bNaN\b/.test(n.data.trim())) out.push('no value: ' + e.outerHTML.slice(0, 120));
		const r = document.createRange();
		r.selectNodeContents(n);
		for (const b of r.getClientRects())
			if (b.width > 1 && b.height > 1) boxes.push([b, n.data.trim().slice(0, 60), e]);
		for (let x = e; x && x !== document.body; x = x.parentElement) {
			const s = getComputedStyle(x);
			if (x.tagName === 'NAV' || x.classList.contains('scroll')) break;
			if (x.id !== 'title' && s.overflowX === 'hidden' && x.scrollWidth > x.clientWidth + 1)
				out.push('cut: ' + n.data.slice(0, 60));
		}
		if (e.tagName === 'text') {
			const rect = e.ownerSVGElement.getBoundingClientRect(), b = e.getBoundingClientRect();
			if (b.right > rect.right + 1 || b.left < rect.left - 1) out.push('outside its drawing: ' + n.data);
		}
	}
	boxes.sort((a, b) => a[0].top - b[0].top);
	for (let i = 0; i < boxes.length && out.length < 10; i++)
		for (let j = i + 1; j < boxes.length && boxes[j][0].top < boxes[i][0].bottom - 3; j++) {
			const a = boxes[i][0], b = boxes[j][0];
			if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
				Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4 && boxes[i][2] !== boxes[j][2])
				out.push('overlap: ' + boxes[i][1] + ' / ' + boxes[j][1]);
		}
	return out.slice(0, 10);
})()`

// TestGeometry: no text overlaps another one or is cut off, in a wide window and on a phone, in the views of each
// recording.
func TestGeometry(t *testing.T) {
	widths := []int64{390, 1280}
	if tiers.Short() {
		widths = widths[:1] // where there is the least room
		t.Log("not run: the views' geometry at 1280 pixels (HEAPCAM_GATE=1, as .ci/run sets it)")
	}
	eachRecording(t, func(t *testing.T, path string, wait time.Duration) {
		url := view(t, path)
		p := patient(t, url, wait)
		for _, width := range widths {
			p.do(cdp.EmulateViewport(width, 900))
			for _, v := range strings.Fields(
				"overview?at=10 state diff trends leaks retained cost whatif coverage glossary") {
				p.do(cdp.Navigate("about:blank"), cdp.Navigate(url+"#"+v))
				p.until(fmt.Sprintf("document.querySelector('main').dataset.shown === %q", "#"+v))
				if strings.HasPrefix(v, "overview") {
					p.see("#timeline", "the rest")
				}
				for _, m := range js[[]string](p, misplaced) {
					t.Errorf("%s at %d pixels: %s", v, width, m)
				}
			}
		}
	})
}

// navigation is an expression that lists what is wrong with the links to the views: they must be in one line, seen
// whole or not at all; and the link of this view must be seen.
const navigation = `(() => {
	const out = [], links = [...nav.children];
	if (new Set(links.map(a => a.getBoundingClientRect().top)).size > 1) out.push('several lines');
	for (const a of links) {
		const r = a.getBoundingClientRect(), y = (r.top + r.bottom) / 2;
		const seen = [0.02, 0.25, 0.5, 0.75, 0.98]
			.filter(x => document.elementFromPoint(r.left + x * r.width, y) === a).length;
		if (seen > 0 && seen < 5) out.push('cut: ' + a.innerText);
		if (!seen && a.hasAttribute('aria-current')) out.push('not seen: ' + a.innerText);
	}
	const marks = ['before', 'after'].filter(x => document.querySelector('header').classList.contains(x)).join(' ');
	const more = [nav.scrollLeft > 1 && 'before', nav.scrollLeft + nav.clientWidth < nav.scrollWidth - 1 && 'after']
		.filter(Boolean).join(' ');
	if (marks !== more) out.push('the edges are marked ' + marks + ', not ' + more);
	return out;
})()`

// TestNavigation: on a phone the links to the views are in one line that scrolls. No link is cut, and that of the view
// is seen. In a wide window all are seen.
func TestNavigation(t *testing.T) {
	url := view(t, window)
	p := open(t, url)
	check := func(what string) {
		t.Helper()
		p.until("document.querySelector('main').dataset.shown === location.hash")
		for _, m := range js[[]string](p, navigation) {
			t.Errorf("%s: %s", what, m)
		}
	}
	p.do(cdp.EmulateViewport(390, 900))
	for _, v := range strings.Fields("overview leaks state retained diff trends cost whatif coverage glossary") {
		p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("location.hash = %q", v)))
		p.until(fmt.Sprintf("nav.querySelector('[aria-current]')?.href.endsWith(%q)", "#"+v))
		check(v)
	}
	if !js[bool](p, "nav.scrollWidth > nav.clientWidth") {
		t.Error("the navigation does not scroll")
	}
	p.do(cdp.Evaluate[cdp.Void]("nav.querySelector('[aria-current]').removeAttribute('aria-current')"))
	for _, x := range []int{0, 40, 80, 130, 200} {
		p.do(cdp.Evaluate[cdp.Void](fmt.Sprintf("nav.scrollLeft = %d", x)))
		for _, m := range js[[]string](p, "new Promise(ok => requestAnimationFrame(() => setTimeout(() => ok("+
			navigation+"), 50)))") {
			t.Errorf("scrolled by %d: %s", x, m)
		}
	}
	p.do(cdp.EmulateViewport(1280, 900))
	p.until("nav.scrollWidth <= nav.clientWidth && !nav.style.clipPath")
	check("in a wide window")
}
