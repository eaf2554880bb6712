package web_test

import (
	"os"
	"path/filepath"
	"testing"

	cdp "github.com/chromedp/chromedp"
)

// TestScreenshots takes the pictures in docs/images (make screenshots). HEAPCAM_SHOTS_OF names the recording,
// HEAPCAM_SHOTS the folder.
func TestScreenshots(t *testing.T) {
	dir, file := os.Getenv("HEAPCAM_SHOTS"), os.Getenv("HEAPCAM_SHOTS_OF")
	if dir == "" {
		t.Skip("not run: screenshots (make screenshots)")
	}
	url := view(t, file)
	p := open(t, url+"#state")
	p.until("document.querySelectorAll('#tree tbody tr').length > 10") // all heap states are read
	const drawn = "document.querySelector('#timeline')?.innerText.includes('the rest')"
	for _, s := range []struct{ name, at, ready string }{
		{"overview", "overview?at=last", drawn},
		{"overview-dark", "overview?at=last&theme=dark", drawn},
		{"state", "state?open=%5B%22%5B%5C%22byte%5B%5D%5C%22%5D%22%5D",
			"document.querySelectorAll('#flame rect').length > 10 && " +
				"document.querySelectorAll('#tree tbody tr').length > 10"},
		{"diff", "diff?by=type", "document.querySelectorAll('#diff tbody tr').length > 5"},
		{"trends", "trends?row=%5B%22byte%5B%5D%22%5D", "document.querySelectorAll('#curve canvas').length === 2"},
		{"leaks", "leaks", "document.querySelector('#leaks')"},
		{"coverage", "coverage", "document.querySelectorAll('main canvas').length === 2"},
	} {
		p.do(cdp.Navigate("about:blank"), cdp.Navigate(url+"#"+s.at))
		p.until(s.ready)
		p.until("document.getElementById('progress').hidden")
		b, err := cdp.Run(p.ctx, cdp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".png"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
