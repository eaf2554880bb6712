package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// program writes a ring of a program that the model of `heapcam whatif` fits.
func program(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "program")
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir},
		ringstore.Identity{Session: strings.Repeat("cd", 16), Name: "program"})
	if err != nil {
		t.Fatal(err)
	}
	var frame []byte
	for _, b := range analysistest.Program(0, trace.CollectorParallel, 24) {
		frame = trace.AppendBlock(frame, b)
	}
	if err := s.Rotate(frame, ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 24, T0: 1, T1: 2}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWhatifView: the view has the predictions of `heapcam whatif` with their intervals, and the recorded heap; it fits
// a phone, and axe-core finds no violation.
func TestWhatifView(t *testing.T) {
	dir := program(t)
	url := view(t, dir)
	p := open(t, url+"#whatif")
	p.see("#fit", "The model fits this program")
	want := verb[whatif.Report](t, "whatif", "--json", dir)
	n := 0
	for i := range want.Configurations {
		c := &want.Configurations[i]
		if c.TooSmall {
			continue
		}
		n++
		p.until(fmt.Sprintf(`document.querySelectorAll('#heaps tbody tr')[%d].cells[4].innerText === '%.0f'`, i+1,
			c.Minor.Value))
	}
	p.until(fmt.Sprintf("document.querySelectorAll('#sizes .point').length === %d", n))
	p.until("document.querySelectorAll('#sizes .recorded').length === 1")
	if want.Advice == nil {
		t.Fatal("no advice")
	}
	p.see("#advice", want.Advice.Flags)
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Log("not run: accessibility of the view (axe-core is not there: cd web && npm ci)")
	}
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			p.do(cdp.EmulateViewport(width, 900), cdp.Navigate("about:blank"), cdp.Navigate(url+"#whatif?theme="+theme))
			p.until("document.querySelector('#sizes .recorded')")
			for _, m := range js[[]string](p, misplaced) {
				t.Errorf("at %d pixels, %s: %s", width, theme, m)
			}
			if axe == nil {
				continue
			}
			p.do(cdp.Evaluate[cdp.Void](string(axe)))
			for _, f := range js[[]string](p, `axe.run(`+axeRules+`).then(r => r.violations
				.map(v => v.id + ': ' + v.help + ': ' + v.nodes[0].html.slice(0, 160)))`) {
				t.Errorf("at %d pixels, %s: %s", width, theme, f)
			}
		}
	}
}

// TestWhatifOfG1: predictions of G1 are named an approximation, and a recording that the model does not fit says why.
func TestWhatifOfG1(t *testing.T) {
	tiers.Gate(t, "predictions of G1 on the page")
	p := open(t, view(t, window)+"#whatif")
	p.see("#fit", "does not fit")
	p.see("main", "System.gc()")
	p.see("main", "approximation")
}
