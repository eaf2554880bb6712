package web_test

import "testing"

const window = "testdata/window.heapcam"

// TestOverview looks at what happened.
func TestOverview(t *testing.T) {
	p := open(t, view(t, window))
	p.see("#headlines", "Window.audit")
	p.until("document.querySelectorAll('#timeline canvas').length >= 5")
}

func TestState(t *testing.T) {
	p := open(t, view(t, window)+"#state?at=63")
	p.see("#tree", "byte[]")
	p.until("document.querySelectorAll('#icicle rect').length > 20")
}
