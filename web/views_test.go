package web_test

import "testing"

const window = "testdata/window.heapcam"

// TestOverview looks at what happened.
func TestOverview(t *testing.T) {
	p := open(t, view(t, window))
	p.see("#headlines", "Window.audit")
	p.until("document.querySelectorAll('#timeline canvas').length >= 5")
}
