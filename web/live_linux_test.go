package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	cdp "github.com/chromedp/chromedp"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/ringstore"
)

// background starts a program that ends with the test.
func background(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, args...)
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(syscall.SIGTERM)
		c.Wait()
		if t.Failed() {
			t.Logf("%s said %s", filepath.Base(name), said.String())
		}
	})
	return c
}

// recorded is a JVM that an agent records: its pid, and the agent's socket and folder.
type recorded struct{ pid, sock, out, dir string }

// record runs Window, with an agent that records it.
func record(t *testing.T) recorded {
	t.Helper()
	homes, _ := filepath.Glob("/usr/lib/jvm/java-17-openjdk-*/bin/javac")
	if _, err := probe.Library(); err != nil || len(homes) == 0 {
		t.Skip("not run: a page that follows a JVM (no JDK 17, or the probe is not compiled)")
	}
	if chromium() == "" {
		t.Skip("not run: no chromium (tests of the viewer in a browser)")
	}
	dir := t.TempDir()
	if out, err := exec.Command(homes[0], "--release", "11", "-d", dir,
		"testdata/Window.java").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, sock := filepath.Join(dir, "rec"), filepath.Join(dir, "s")
	background(t, tool, "agent", "--socket", sock, "--out", out, "--shm-dir", dir, "--max-trace-size", "16MiB")
	for i := 0; ; i++ {
		if _, err := os.Stat(sock); err == nil {
			break
		}
		if i > 300 {
			t.Fatal("the agent does not listen")
		}
		time.Sleep(50 * time.Millisecond)
	}
	java := background(t, filepath.Join(filepath.Dir(homes[0]), "java"), "-XX:+UseSerialGC", "-Xmx48m", "-Xmn8m", "-cp",
		dir, "Window", "2000000000", "10")
	pid := fmt.Sprint(java.Process.Pid)
	for i := 0; ; i++ { // until the JVM accepts the attach
		said, err := exec.Command(tool, "attach", pid, "--socket", sock).CombinedOutput()
		if err == nil {
			return recorded{pid, sock, out, dir}
		}
		if i > 20 {
			t.Fatalf("attach: %v: %s", err, said)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// TestLive follows a JVM that is being recorded: the page is updated, saves an incident, downloads the recording and
// settles the verdicts. The first page lists the JVM and the incident.
func TestLive(t *testing.T) {
	j := record(t)
	url := view(t, j.pid, "--socket", j.sock, "--out", j.out)
	p := open(t, url)
	p.see("#live", "Live")
	p.see("#live", "recording")
	p.until("document.querySelectorAll('#timeline canvas').length > 0")
	last := `Number([...document.querySelectorAll('main .facts')].map(f => f.innerText).join(' ')
		.match(/Collections[^]*?\([\d,]+ to ([\d,]+)\)/)[1].replace(/,/g, ''))`
	p.until(last + " > 0")
	n := js[int](p, last)
	p.until(fmt.Sprintf("%s > %d", last, n+2))

	p.click("#freeze")
	p.click("dialog button.yes")
	p.see("#notice", "Saved incident")
	p.until("document.querySelector('#timeline figcaption').innerText.includes('incident')")
	all := verb[struct{ Incidents []ringstore.Incident }](t, "incidents", "--json", "--out", j.out)
	if len(all.Incidents) != 1 || !strings.Contains(p.text("#notice"), all.Incidents[0].ID) {
		t.Errorf("frozen: %+v; the page says %s", all, p.text("#notice"))
	}

	resp, err := http.Get(url + "api/pull")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	file := filepath.Join(j.dir, "pulled.heapcam")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if r := verb[analysis.Report](t, "report", "--json", file); len(r.Collections) < n {
		t.Errorf("%d collections were pulled, the page had shown %d", len(r.Collections), n)
	}

	p.click("#settle")
	p.click("dialog button.yes")
	p.see("#notice", "heapcam found out which of ")

	// the first page of a viewer without an argument
	p = open(t, view(t, "--socket", j.sock, "--out", j.out))
	p.see("#head", "1 of them recorded now")
	p.see("#recordings", "● recording")
	p.see("#recordings", "17.")
	p.see("#recordings", "48.0 MiB")
	p.see("#recordings", "incident")
	p.click("#recordings a")
	p.see("#live", "Live")
}

// TestListFromPage takes a reference listing from the page of a running JVM: nothing is taken before the reader has
// confirmed. Then the page shows who holds the objects, as `heapcam holders` does.
func TestListFromPage(t *testing.T) {
	j := record(t)
	holders := func() (string, error) {
		recordings, err := filepath.Glob(filepath.Join(j.out, "Window*"))
		if err != nil || len(recordings) != 1 {
			t.Fatalf("recordings: %v (%v)", recordings, err)
		}
		said, err := exec.Command(tool, "holders", recordings[0], "--class", "Window$Entry").CombinedOutput()
		return string(said), err
	}
	p := open(t, view(t, j.pid, "--socket", j.sock, "--out", j.out)+"#retained")
	p.see("#head", "no reference listing")
	p.click("#list")
	p.see("dialog", "Stop the JVM once, for at most 250.0 ms")
	p.click("dialog button:not(.yes)")
	if said, err := holders(); err == nil {
		t.Errorf("a listing without the reader's yes: %s", said)
	}
	p.click("#list")
	p.click("dialog button.yes")
	p.see("#notice", "The JVM stopped for ")
	p.see("#head", "References after collection ")
	p.see("#retained", "@ 0x")

	p.click("#whose")
	p.do(cdp.SendKeys(cdp.ID("whose"), "Window$Entry\r"))
	p.see("#held", "Who holds Window$Entry")
	p.see("#held", "static Window.trail")
	said, err := holders()
	if err != nil || !strings.Contains(said, "static Window.trail") {
		t.Errorf("heapcam holders: %v: %s", err, said)
	}
	share := regexp.MustCompile(`([\d.]+ %)\s+static Window.trail`).FindStringSubmatch(said)
	if share == nil || !strings.Contains(p.text("#held"), share[1]) {
		t.Errorf("heapcam holders says %s, the page %s", said, p.text("#held"))
	}
}
