package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const module = "../.."

// session is what `heapcam status --json` tells of a JVM.
type session struct {
	ID          string `json:"id"`
	PID         int    `json:"pid"`
	Phase       string `json:"phase"`
	Reason      string `json:"reason"`
	Collections uint64 `json:"collections"`
	LastGC      uint64 `json:"last_gc"`
	TraceBytes  int64  `json:"trace_bytes"`
	Rotations   uint64 `json:"rotations"`
}

// sessions gives the JVMs that the agent records, by pid.
func (h *host) sessions() (map[int]session, error) {
	out, err := h.try("heapcam", "status", "--json")
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var r struct {
		Agent bool      `json:"agent"`
		JVMs  []session `json:"jvms"`
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || !r.Agent {
		return nil, fmt.Errorf("no agent (%v): %s", err, out)
	}
	m := map[int]session{}
	for _, s := range r.JVMs {
		if s.Phase == "recording" {
			m[s.PID] = s
		}
	}
	return m, nil
}

// goOn waits until all pids are recorded and each has had collections since before.
func (h *host) goOn(what string, pids []int, before map[int]session, within time.Duration) (now map[int]session) {
	h.t.Helper()
	h.eventually(what, within, func() (err error) {
		now, err = h.sessions()
		if err != nil {
			return err
		}
		for _, p := range pids {
			if s, ok := now[p]; !ok || s.LastGC < before[p].LastGC+2 {
				return fmt.Errorf("pid %d: %+v, before %+v, of %+v", p, s, before[p], now)
			}
			if b, ok := before[p]; ok && b.ID != now[p].ID {
				return fmt.Errorf("pid %d: another recording than %s: %s", p, b.ID, now[p].ID)
			}
		}
		return nil
	})
	return now
}

// recorded waits until pid is recorded, and holds that it took no more than two seconds from begun, when it was
// started.
func (h *host) recorded(pid int, begun time.Time) {
	h.t.Helper()
	h.eventually("the new JVM is recorded", 20*time.Second, func() error {
		now, err := h.sessions()
		if _, ok := now[pid]; err == nil && !ok {
			err = fmt.Errorf("pid %d is not among %+v", pid, now)
		}
		return err
	})
	took := time.Since(begun)
	h.t.Logf("%6.2f s from the command that starts it to a JVM that is recorded", took.Seconds())
	if took > 2*time.Second {
		h.t.Errorf("a JVM was recorded only %v after it was started", took)
	}
}

// pulls holds who may copy the recording of pid, whose user is 64201: root, the group heapcam, that user; not a
// stranger.
func (h *host) pulls(pid int) {
	h.t.Helper()
	now, err := h.sessions()
	if err != nil {
		h.t.Fatal(err)
	}
	id := now[pid].ID
	h.do("useradd", "-M", "-u", "64203", "-G", "heapcam", "member")
	h.do("useradd", "-M", "-u", "64204", "stranger")
	for _, user := range []string{"root", "member", "u64201"} {
		file := "/tmp/pull-" + user
		h.do("runuser", "-u", user, "--", "heapcam", "pull", id, "-o", file)
		h.do("heapcam", "verify", file)
	}
	for _, user := range []string{"stranger", "u64202"} {
		if out, err := h.try("runuser", "-u", user, "--", "heapcam", "pull", id, "-o", "/tmp/pull-"+user); err == nil {
			h.t.Errorf("%s pulled the recording of another: %s", user, out)
		}
		if h.exists("tmp/pull-" + user) {
			h.t.Errorf("%s has got a file", user)
		}
		if out, _ := h.try("runuser", "-u", user, "--", "heapcam", "status", "--json"); strings.Contains(out, id) {
			h.t.Errorf("%s sees the recording of another: %s", user, out)
		}
	}
	h.logf("pulled by root, a member and the JVM's user; refused to others")
}

// frozenAfterOOM has a JVM run out of memory, which must leave an incident.
func (h *host) frozenAfterOOM() {
	h.t.Helper()
	h.do("systemd-run", "-q", "--unit=fill", "--uid=64201", "java", "-Xmx64m", "-XX:+UseSerialGC",
		"-XX:+ExitOnOutOfMemoryError", "-cp", "/opt/heapcam-test", "Fill")
	h.eventually("an OutOfMemoryError leaves an incident", 60*time.Second, func() error {
		out, err := h.try("heapcam", "incidents", "--json")
		if err == nil && !strings.Contains(out, "Fill-") {
			err = fmt.Errorf("incidents: %s", out)
		}
		return err
	})
}

func (h *host) signal(sig string) (pid string) {
	h.t.Helper()
	pid = h.show("MainPID")
	if n, _ := strconv.Atoi(pid); n <= 1 {
		h.t.Fatalf("MainPID %q\n%s", pid, h.journal())
	}
	h.do("kill", "-"+sig, pid)
	return pid
}

// comesBack waits for another agent than pid.
func (h *host) comesBack(what, pid string, within time.Duration) {
	h.t.Helper()
	h.eventually(what, within, func() error {
		if now := h.show("MainPID"); now == pid || now == "0" || h.show("ActiveState") != "active" {
			return fmt.Errorf("MainPID %s, %s", now, h.show("ActiveState"))
		}
		return nil
	})
}

func TestService(t *testing.T) {
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: the service in a real systemd (make test-full)")
	}
	need(t, "the service in a real systemd")
	deb := packages(t)
	h := boot(t, "the service in a real systemd")
	opt := filepath.Join(h.dir, "opt/heapcam-test")
	if err := os.MkdirAll(opt, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run("javac", "-d", opt, "testdata/Churn.java", "testdata/Fill.java"); err != nil {
		t.Skipf("not run: the service in a real systemd (%v)", err)
	}
	newer := t.TempDir()
	if _, err := buildPackages(newer, "0.0.2", runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{deb: "heapcam.deb", debIn(t, newer): "newer.deb"} {
		if err := run("cp", from, filepath.Join(opt, to)); err != nil {
			t.Fatal(err)
		}
	}

	// Two JVMs before the agent, two after; of two users and root; with a /tmp and a user namespace of their own.
	var pids []int
	gc, jvms := "", 0
	jvm := func(uid int, unit ...string) {
		t.Helper()
		name := "jvm" + strconv.Itoa(jvms)
		jvms++
		cmd := append([]string{"systemd-run", "-q", "--unit=" + name, "--uid=" + strconv.Itoa(uid)}, unit...)
		h.do(append(cmd, "java", "-Xmx64m", "-Xmn4m", gc, "-cp", "/opt/heapcam-test", "Churn")...)
		out := h.do("systemctl", "show", name, "-P", "MainPID")
		pid, _ := strconv.Atoi(strings.TrimSpace(out))
		if pid <= 1 {
			log, _ := h.try("systemctl", "status", "--no-pager", name)
			t.Fatalf("%s: %q: %s", name, out, log)
		}
		pids = append(pids, pid)
	}
	for _, u := range []string{"64201", "64202"} {
		h.do("useradd", "-M", "-u", u, "u"+u)
	}
	gc = "-XX:-UsePerfData"
	jvm(64201)
	refused := pids[0]
	pids, gc = nil, "-XX:+UseSerialGC"
	jvm(64201)
	jvm(64202, "-p", "PrivateTmp=yes")
	h.logf("before dpkg -i")
	h.do("dpkg", "--force-unsafe-io", "-i", "/opt/heapcam-test/heapcam.deb")
	// Small rings, so that files rotate while the test looks.
	yaml := filepath.Join(h.dir, "etc/heapcam/heapcam.yaml")
	good, err := os.ReadFile(yaml)
	if err != nil {
		t.Fatal(err)
	}
	good = append(good, "\nmax_trace_size: 1MiB\n"...)
	os.WriteFile(yaml, good, 0o644)
	h.do("heapcam", "service", "restart")
	if a, e := h.show("ActiveState"), h.show("UnitFileState"); a != "active" || e != "enabled" {
		t.Fatalf("after dpkg -i: %s, %s\n%s", a, e, h.journal())
	}
	h.logf("after dpkg -i")
	begun := time.Now()
	jvm(0)
	h.recorded(pids[len(pids)-1], begun)
	begun = time.Now()
	jvm(64202, "-p", "PrivateTmp=yes", "-p", "PrivateUsers=yes", "-p", "PrivateMounts=yes")
	h.recorded(pids[len(pids)-1], begun)
	begun = time.Now()
	h.do("systemd-run", "-q", "--unit=contained", "-p", "PrivateTmp=yes", "unshare", "--pid", "--fork", "--mount-proc",
		"java", "-Xmx64m", "-Xmn4m", "-XX:+UseSerialGC", "-cp", "/opt/heapcam-test", "Churn")
	h.eventually("the JVM in a pid namespace has started", 10*time.Second, func() error {
		out, err := h.try("pgrep", "-P", strings.TrimSpace(h.do("systemctl", "show", "contained", "-P", "MainPID")),
			"-x", "java")
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(out))
		if err == nil {
			pids = append(pids, pid)
		}
		return err
	})
	h.recorded(pids[len(pids)-1], begun)
	if log := h.journal(); !strings.Contains(log, "-agentpath:/usr/lib/heapcam/libheapcam.so=") {
		t.Errorf("the agent does not name the package's library:\n%s", log)
	}
	h.refuses(2, "package", "heapcam", "service", "install")
	h.refuses(2, "package", "heapcam", "service", "uninstall", "--purge")
	h.do("getent", "group", "heapcam")
	if out := h.do("heapcam", "service", "status"); !strings.HasPrefix(out, "active (running), pid ") ||
		!strings.Contains(out, "from a package") {
		t.Errorf("service status: %s", out)
	}
	before := h.goOn("all are found and recorded", pids, nil, 20*time.Second)

	h.eventually("the JVM without counters is listed with its reason", 10*time.Second, func() error {
		out, err := h.try("heapcam", "status", "--json")
		var r struct {
			Others []struct {
				PID            int
				Reason, Remedy string
			} `json:"others"`
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			return err
		}
		for _, o := range r.Others {
			if o.PID == refused && strings.Contains(o.Reason, "UsePerfData") {
				return nil
			}
		}
		return fmt.Errorf("%v: %s", err, out)
	})

	h.comesBack("another agent after kill -9", h.signal("KILL"), 10*time.Second)
	before = h.goOn("all go on after kill -9", pids, before, 20*time.Second)

	h.do("systemctl", "reload", "heapcam")
	os.WriteFile(yaml, append(good, "\nmax_trace_sice: 1GiB\n"...), 0o644)
	h.refuses(1, "", "systemctl", "reload", "heapcam")
	h.refuses(2, "max_trace_size", "heapcam", "reload")
	os.WriteFile(yaml, good, 0o644)
	h.do("systemctl", "reload", "heapcam")
	if n := h.show("NRestarts"); n != "1" {
		t.Errorf("reloading restarted the agent: %s", n)
	}

	h.pulls(pids[0])
	h.frozenAfterOOM()

	h.do("touch", "/etc/heapcam/disabled")
	h.eventually("the host's switch stops all", 5*time.Second, func() error {
		now, err := h.sessions()
		if err == nil && len(now) != 0 {
			err = fmt.Errorf("recorded: %+v", now)
		}
		return err
	})
	h.do("rm", "/etc/heapcam/disabled")
	before = h.goOn("all go on without the switch", pids, before, 20*time.Second)

	old := h.show("MainPID")
	h.do("dpkg", "--force-unsafe-io", "--force-confold", "-i", "/opt/heapcam-test/newer.deb")
	if out := h.do("heapcam", "version"); !strings.Contains(out, "0.0.2") {
		t.Errorf("after the upgrade: %s", out)
	}
	h.comesBack("another agent after an upgrade", old, 5*time.Second)
	before = h.goOn("all go on after an upgrade", pids, before, 20*time.Second)

	conf := filepath.Join(h.dir, "etc/systemd/system/heapcam.service.d")
	os.MkdirAll(conf, 0o755)
	if err := os.WriteFile(conf+"/test.conf", []byte("[Service]\nWatchdogSec=2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.do("systemctl", "daemon-reload")
	h.do("heapcam", "service", "restart")
	before = h.goOn("all go on after a restart", pids, before, 20*time.Second)
	time.Sleep(3 * time.Second) // more than a watchdog's interval: who is fed lives
	if n := h.show("NRestarts"); n != "0" {
		t.Errorf("restarted %s times for nothing\n%s", n, h.journal())
	}
	h.comesBack("another agent after a hang", h.signal("STOP"), 15*time.Second)
	before = h.goOn("all go on after a hang", pids, before, 20*time.Second)
	if out := h.do("journalctl", "--no-pager", "-u", "heapcam"); !strings.Contains(out, "atchdog") {
		t.Errorf("the journal does not speak of the watchdog:\n%s", out)
	}

	h.eventually("rings have rotated, within their size", 120*time.Second, func() error {
		now, err := h.sessions()
		if err != nil {
			return err
		}
		for _, p := range pids {
			s := now[p]
			if s.TraceBytes > 5<<20/4 {
				t.Fatalf("pid %d: %d bytes in a ring of 1 MiB and a quarter", p, s.TraceBytes)
			}
			if s.Rotations == 0 {
				return fmt.Errorf("pid %d: %+v", p, s)
			}
		}
		return nil
	})
	for _, p := range pids {
		h.do("heapcam", "verify", "/var/lib/heapcam/"+before[p].ID)
	}
	h.logf("verified")
	h.do("dpkg", "--force-unsafe-io", "-r", "heapcam")
	if s := h.show("ActiveState"); s == "active" {
		t.Error("runs after dpkg -r")
	}
	for _, p := range pids {
		if _, err := h.try("kill", "-0", strconv.Itoa(p)); err != nil {
			t.Errorf("JVM %d has not outlived dpkg -r", p)
		}
		if !h.exists("var/lib/heapcam/" + before[p].ID) {
			t.Errorf("dpkg -r took the recording %s", before[p].ID)
		}
	}
	if !h.exists("etc/heapcam/heapcam.yaml") || h.exists("usr/bin/heapcam") {
		t.Error("dpkg -r: the configuration stays, the binary goes")
	}
	h.do("dpkg", "--force-unsafe-io", "-P", "heapcam")
	h.logf("purged")
	for _, p := range []string{
		"var/lib/heapcam", "etc/heapcam", "usr/lib/heapcam", "lib/systemd/system/heapcam.service",
		"etc/systemd/system/multi-user.target.wants/heapcam.service"} {
		if h.exists(p) {
			t.Errorf("dpkg -P left /%s", p)
		}
	}
	if out, err := h.try("getent", "group", "heapcam"); err == nil {
		t.Errorf("dpkg -P left the group: %s", out)
	}
	for _, p := range pids {
		if _, err := h.try("kill", "-0", strconv.Itoa(p)); err != nil {
			t.Errorf("JVM %d has not outlived dpkg -P", p)
		}
	}

	// Without a package.
	os.RemoveAll(conf)
	if err := run("cp", module+"/bin/heapcam", filepath.Join(h.dir, "usr/local/bin/heapcam")); err != nil {
		t.Skipf("not run: heapcam service install (%v)", err)
	}
	h.refuses(3, "not installed", "heapcam", "service", "uninstall")
	h.refuses(3, "not installed", "heapcam", "service", "status")
	h.do("heapcam", "service", "install")
	if a, e := h.show("ActiveState"), h.show("UnitFileState"); a != "active" || e != "enabled" {
		t.Errorf("after service install: %s, %s\n%s", a, e, h.journal())
	}
	h.refuses(2, "already installed", "heapcam", "service", "install")
	h.do("heapcam", "service", "stop")
	h.refuses(3, "inactive", "heapcam", "service", "status")
	h.do("heapcam", "service", "start")
	h.do("heapcam", "service", "uninstall")
	if h.exists("etc/systemd/system/heapcam.service") || !h.exists("var/lib/heapcam") {
		t.Error("uninstall: the unit goes, the recordings stay")
	}
	h.do("heapcam", "service", "install")
	h.do("heapcam", "service", "uninstall", "--purge")
	h.logf("installed and removed without a package")
	if h.exists("var/lib/heapcam") || h.exists("etc/heapcam") {
		t.Error("uninstall --purge left recordings or configuration")
	}
}

// TestPackages holds what the packages promise without installing them.
func TestPackages(t *testing.T) {
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: packages (make test-full)")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("not run: packages (no dpkg-deb)")
	}
	deb := packages(t)
	st, err := os.Stat(deb)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d bytes", filepath.Base(deb), st.Size())
	if os.Getenv("HEAPCAM_FULL") != "" {
		dir := t.TempDir()
		if _, err := buildPackages(dir, "0.0.1"); err != nil {
			t.Fatal(err)
		}
		all, _ := filepath.Glob(packaged.dir + "/*")
		if len(all) != 2 && len(all) != 4 {
			t.Fatalf("packages: %q", all)
		}
		for _, one := range all {
			a, err1 := os.ReadFile(one)
			b, err2 := os.ReadFile(filepath.Join(dir, filepath.Base(one)))
			if err1 != nil || err2 != nil || string(a) != string(b) {
				t.Errorf("the same sources give another %s the second time (%v, %v)", filepath.Base(one), err1, err2)
			}
		}
	}
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("not run: lintian on the deb (not installed)")
	}
	debs, _ := filepath.Glob(packaged.dir + "/*.deb")
	c := exec.Command("lintian", append([]string{"--allow-root", "--fail-on", "error,warning"}, debs...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}
