package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestKeptRing: a JVM that can make no file for its ring has it in memory without a name. The agent is killed, then the
// JVM; systemd has kept the ring, and the agent that it starts stores the last collections, once, and has it dropped.
func TestKeptRing(t *testing.T) {
	const what = "rings in systemd's file descriptor store"
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: " + what + " (make test-full)")
	}
	need(t, what)
	if _, err := os.Stat(module + "/bin/heapcam"); err != nil {
		t.Skipf("not run: %s (%v: make build)", what, err)
	}
	h := boot(t, what)
	opt := filepath.Join(h.dir, "opt/heapcam-test")
	if err := os.MkdirAll(opt, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run("javac", "-d", opt, "testdata/Churn.java"); err != nil {
		t.Skipf("not run: %s (%v)", what, err)
	}
	if err := run("cp", module+"/bin/heapcam", filepath.Join(h.dir, "usr/local/bin/heapcam")); err != nil {
		t.Fatal(err)
	}
	h.do("useradd", "-M", "-u", "64201", "u64201")
	h.do("heapcam", "service", "install")
	h.do("systemd-run", "-q", "--unit=jvm", "--uid=64201", "-p", "ReadOnlyPaths=/dev/shm",
		"java", "-Xmx64m", "-Xmn4m", "-XX:+UseSerialGC", "-Xlog:gc:file=/tmp/gc.log", "-cp",
		"/opt/heapcam-test", "Churn")
	pid, err := strconv.Atoi(strings.TrimSpace(h.do("systemctl", "show", "jvm", "-P", "MainPID")))
	if err != nil {
		t.Fatal(err)
	}
	before := h.goOn("it is recorded", []int{pid}, nil, 60*time.Second)
	var st struct {
		JVMs []struct {
			Memfd bool `json:"ring_memfd"`
			Kept  bool `json:"ring_kept"`
		}
	}
	out := h.do("heapcam", "status", "--json")
	if json.Unmarshal([]byte(out), &st) != nil || len(st.JVMs) != 1 || !st.JVMs[0].Memfd || !st.JVMs[0].Kept {
		t.Fatalf("its ring is not memory that systemd keeps: %s\n%s", out, h.journal())
	}
	stored := func() string { return h.show("NFileDescriptorStore") }
	h.eventually("systemd has the descriptor", 5*time.Second, func() error {
		if n := stored(); n != "1" {
			return fmt.Errorf("it has %s", n)
		}
		return nil
	})

	logged := func() int { // GC(n) of the last pause
		b, _ := os.ReadFile("/proc/" + h.init + "/root/tmp/gc.log") // a file system of its own
		m := regexp.MustCompile(`GC\((\d+)\) Pause`).FindAllSubmatch(b, -1)
		if len(m) == 0 {
			return -1
		}
		n, _ := strconv.Atoi(string(m[len(m)-1][1]))
		return n
	}
	old := h.signal("KILL")
	unread := logged()
	h.eventually("collections that no agent reads", 20*time.Second, func() error {
		if n := logged(); n < unread+4 {
			return fmt.Errorf("GC(%d)", n)
		}
		return nil
	})
	h.do("kill", "-KILL", strconv.Itoa(pid))
	if now := h.show("MainPID"); now != "0" {
		t.Logf("agent %s runs already: this round says nothing of a JVM that ended while none did", now)
	}
	h.comesBack("another agent after kill -9", old, 10*time.Second)
	h.eventually("systemd has dropped the descriptor", 20*time.Second, func() error {
		if n := stored(); n != "0" {
			return fmt.Errorf("it has %s", n)
		}
		return nil
	})
	last := logged()
	t.Logf("the agent was killed at GC(%d), the JVM at GC(%d)", unread, last)

	dirs, _ := filepath.Glob(filepath.Join(h.dir, "var/lib/heapcam/*", ringstore.RecordingName))
	if len(dirs) != 1 || filepath.Base(filepath.Dir(dirs[0])) != before[pid].ID {
		t.Fatalf("recordings: %q, wanted %s\n%s", dirs, before[pid].ID, h.journal())
	}
	h.do("heapcam", "verify", "/var/lib/heapcam/"+before[pid].ID)
	rec, err := ringstore.OpenRecording(filepath.Dir(dirs[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	next := uint64(0) // GC(n) that is still to come
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			if b.Kind != trace.KindEpoch {
				continue
			}
			e, err := trace.DecodeEpoch(b)
			if err != nil {
				t.Fatal(err)
			}
			if next != 0 && e.Pause.JVMGC != next {
				t.Errorf("GC(%d) is recorded where GC(%d) was due", e.Pause.JVMGC, next)
			}
			next = e.Pause.JVMGC + 1
		}
	}
	if int(next) < last || int(next) > last+2 { // it may have been killed in a pause
		t.Errorf("the recording ends before GC(%d), the JVM's log at GC(%d)\n%s", next, last, h.journal())
	}
}
