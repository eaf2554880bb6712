package web_test

import (
	"os"
	"testing"

	cdp "github.com/chromedp/chromedp"
)

const window = "testdata/window.heapcam"

// TestOverview looks at what happened, chooses a collection and two, and goes on to what was found.
func TestOverview(t *testing.T) {
	p := open(t, view(t, window))
	p.see("#headlines", "Window.audit")
	p.until("document.querySelectorAll('#timeline canvas').length >= 5")
	p.shot("/tmp/hc/s4/fx/o.png")
}

var _ = cdp.Headless
var _ = os.Getenv
