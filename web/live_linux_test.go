package web_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// TestLive follows a JVM that is being recorded: the page is updated, saves an incident, downloads the recording and
// settles the verdicts. The first page lists the JVM and the incident.
func TestLive(t *testing.T) {
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
			break
		}
		if i > 20 {
			t.Fatalf("attach: %v: %s", err, said)
		}
		time.Sleep(300 * time.Millisecond)
	}
	url := view(t, pid, "--socket", sock, "--out", out)
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
	all := verb[struct{ Incidents []ringstore.Incident }](t, "incidents", "--json", "--out", out)
	if len(all.Incidents) != 1 || !strings.Contains(p.text("#notice"), all.Incidents[0].ID) {
		t.Errorf("frozen: %+v; the page says %s", all, p.text("#notice"))
	}

	resp, err := http.Get(url + "api/pull")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	file := filepath.Join(dir, "pulled.heapcam")
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
	p = open(t, view(t, "--socket", sock, "--out", out))
	p.see("#head", "1 of them recorded now")
	p.see("#recordings", "● recording")
	p.see("#recordings", "17.")
	p.see("#recordings", "48.0 MiB")
	p.see("#recordings", "incident")
	p.click("#recordings a")
	p.see("#live", "Live")
}
