package svc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnit holds that what `service install` renders and what the packages ship are one text.
func TestUnit(t *testing.T) {
	if n := strings.Count(unit, packagedExe); n != 2 {
		t.Fatalf("the unit names the binary %d times: "+
			"it must be replaced in ExecStart and ExecReload, and nowhere else", n)
	}
	if got := strings.ReplaceAll(template(), "{{Path | cmdEscape}}", packagedExe); got != unit {
		t.Errorf("the template is not the unit:\n%s", got)
	}
	if strings.Contains(unit, "{{") {
		t.Error("the unit holds what the renderer takes for an action")
	}
	u := Unit("/opt/x/heapcam")
	if !strings.Contains(u, "\nExecStart=/opt/x/heapcam agent\n") ||
		!strings.Contains(u, "\nExecReload=/opt/x/heapcam reload\n") {
		t.Errorf("no ExecStart of the binary in:\n%s", u)
	}
	for i, line := range strings.Split(unit, "\n") {
		if k, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") && strings.ContainsAny(k, " \t") {
			t.Errorf("line %d: %q", i+1, line)
		}
	}
}

// TestUnitAnalyzed has systemd judge the unit.
func TestUnitAnalyzed(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("not run: systemd-analyze on the unit (no systemd)")
	}
	path := filepath.Join(t.TempDir(), unitName)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(Unit(exe)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	out, err := exec.Command(tool, "security", "--offline=true", "--no-pager", path).CombinedOutput()
	m := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`).FindSubmatch(out)
	if m == nil {
		if strings.Contains(string(out), "offline") {
			t.Skip("not run: systemd-analyze security (this systemd is too old for it)")
		}
		t.Fatalf("security: %v\n%s", err, out)
	}
	if v, _ := strconv.ParseFloat(string(m[1]), 64); v > 3.0 {
		t.Errorf("exposure level %v, above 3.0:\n%s", v, out)
	}
}

func TestNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		n := &notifier{watchdog: 9 * time.Second, send: func(s string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, s)
		}}
		take := func() string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			s := strings.Join(got, "|")
			got = nil
			return strings.ReplaceAll(s, "\n", " ")
		}
		expect := func(when, want string) {
			t.Helper()
			if s := take(); s != want {
				t.Errorf("%s: sent %q, want %q", when, s, want)
			}
		}
		text, err := "two JVMs", errors.New("no socket")
		block := make(chan struct{})
		blocks := false
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			n.run(ctx, func() (string, error) {
				mu.Lock()
				b, s, e := blocks, text, err
				mu.Unlock()
				if b {
					<-block
				}
				return s, e
			})
		}()
		set := func(f func()) { mu.Lock(); f(); mu.Unlock() }
		expect("before it answers", "STATUS=starting ")
		time.Sleep(time.Second)
		expect("before it answers", "")
		set(func() { err = nil })
		time.Sleep(2 * starting)
		expect("when it answers", "READY=1 WATCHDOG=1 STATUS=two JVMs ")
		time.Sleep(3 * time.Second)
		expect("three seconds later", "WATCHDOG=1 ")
		set(func() { text = "three\nJVMs" })
		time.Sleep(3 * time.Second)
		expect("another text", "WATCHDOG=1 STATUS=three JVMs ")
		set(func() { err = errors.New("no answer") })
		time.Sleep(9 * time.Second)
		expect("an error", "STATUS=hangs: no answer ")
		set(func() { err = nil })
		time.Sleep(3 * time.Second)
		expect("it lives again", "WATCHDOG=1 STATUS=three JVMs ")
		set(func() { blocks = true })
		time.Sleep(time.Minute)
		expect("a hang", "")
		set(func() { blocks = false })
		close(block)
		expect("it goes on", "WATCHDOG=1 ")
		cancel()
		<-over
		expect("the end", "STOPPING=1 STATUS=stopping ")
	})
}

func TestNotifyWithoutManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	Notify(t.Context(), func() (string, error) { t.Error("asked for nobody"); return "", nil })
	Reloading()()
}
