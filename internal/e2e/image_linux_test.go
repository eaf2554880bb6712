package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestImage builds the agent's image and runs it with the rights, mounts and configuration of the DaemonSet: a JVM of
// another user in a container of its own is recorded, one on the host is left alone as the rules say, the recording
// comes through `exec … pull -o -`, and outlives the agent's container. The host is a pid namespace, so that no other
// JVM of the machine is in sight.
func TestImage(t *testing.T) {
	if !full {
		t.Skip("not run: the container image (HEAPCAM_FULL=1)")
	}
	needRoot(t, "the container image", "podman", "runc", "unshare", "nsenter")
	needReader(t)
	home := jdk(t, 17)
	dir := t.TempDir()
	for d := dir; d != "/" && d != "/tmp"; d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	read := func(file string) string {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	init := exec.Command("unshare", "-m", "-p", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
		"mount -t tmpfs none /dev/shm && while :; do sleep 1; done")
	if err := init.Start(); err != nil {
		t.Skipf("not run: the container image (%v)", err)
	}
	t.Cleanup(func() { init.Process.Kill(); init.Wait() })
	first := ""
	await(t, "a pid namespace", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", init.Process.Pid, init.Process.Pid))
		first = strings.TrimSpace(string(b))
		return first != ""
	})
	node := []string{"nsenter", "-t", first, "-m", "-p"}
	// What podman would raise needs a capability that a container of a build has not.
	conf := write("containers.conf", "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1000:1000\"]\n")
	run := func(args ...string) (stdout, stderr string, err error) {
		var o, e strings.Builder
		c := exec.Command(node[0],
			append(append(slices.Clone(node[1:]), "podman", "--root", filepath.Join(dir, "store"),
				"--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs",
				"--events-backend", "file", "--cgroup-manager", "cgroupfs", "--runtime", "runc"), args...)...)
		c.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
		c.Stdout, c.Stderr = &o, &e
		err = c.Run()
		return o.String(), e.String(), err
	}
	podman := func(args ...string) string {
		t.Helper()
		o, e, err := run(args...)
		if err != nil {
			t.Fatalf("podman %v: %v\n%s%s", args, err, o, e)
		}
		return o
	}
	t.Cleanup(func() { run("rm", "-f", "-t", "2", "-a") })

	// The image, of what `make images` makes.
	build := exec.Command("go", "build", "-trimpath", "-o",
		filepath.Join(dir, "context/bin/linux-"+runtime.GOARCH+"/heapcam"),
		"../../cmd/heapcam")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "XDG_CACHE_HOME=") // with go's own cache
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range []string{"LICENSE", "packaging/heapcam.yaml", "packaging/container/Containerfile"} {
		write("context/"+f, read("../../"+f))
	}
	podman("build", "--isolation", "chroot", "-q", "-t", "heapcam", "-f",
		filepath.Join(dir, "context/packaging/container/Containerfile"), filepath.Join(dir, "context"))
	podman("run", "--rm", "heapcam", "config", "check") // its own

	// What the DaemonSet gives it.
	set := read("../../packaging/kubernetes/daemonset.yaml")
	part := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(set)
		if m == nil {
			t.Fatalf("daemonset.yaml has no %s", pattern)
		}
		return m[1]
	}
	yaml := strings.ReplaceAll(part(`(?s)heapcam\.yaml: \|\n(.*?)\n---`), "0.0.0.0:9464", "127.0.0.1:0")
	write("etc/heapcam.yaml", regexp.MustCompile(`(?m)^    `).ReplaceAllString(yaml, "")+"\n")
	caps := strings.ReplaceAll(part(`add: \[(.*)\]`), " ", "")
	rec := filepath.Join(dir, "rec")
	for d, mode := range map[string]os.FileMode{rec: 0o755, filepath.Join(dir, "jvm"): 0o755,
		filepath.Join(dir, "jvm/tmp"): 0o777 | os.ModeSticky, filepath.Join(dir, "end"): 0o777} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, mode)); err != nil {
			t.Fatal(err)
		}
	}

	// A JVM on the host, and one of another user in a container with a file system, a network and pids of its own.
	classes := filepath.Join(dir, "classes")
	if err := os.CopyFS(classes, os.DirFS(classPath(t))); err != nil {
		t.Fatal(err)
	}
	for _, l := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+l, filepath.Join(dir, "jvm", l)); err != nil {
			t.Fatal(err)
		}
	}
	host := (&program{major: 17, gc: "Serial", heap: "64m", main: "Until",
		args: []string{filepath.Join(dir, "end/host"), "20000", "12"}}).plain(t, node...)
	args := []string{"run", "-d", "--net=none", "--user", "1234:1234", "-v", classes + ":/classes:ro", "-v",
		filepath.Join(dir, "end") + ":/end"}
	for _, v := range []string{"/usr", "/etc/alternatives", "/etc/java-17-openjdk"} {
		if _, err := os.Stat(v); err == nil {
			args = append(args, "-v", v+":"+v+":ro")
		}
	}
	box := strings.TrimSpace(podman(append(args, "--rootfs", filepath.Join(dir, "jvm"), filepath.Join(home, "bin/java"),
		"-XX:+UseSerialGC", "-Xmx64m", "-cp", "/classes", "Until", "/end/box", "20000", "12")...))
	agent := strings.TrimSpace(podman("run", "-d", "--pid=host", "--net=host", "--user", "0", "--read-only",
		"--security-opt", "no-new-privileges", "--cap-drop", "ALL", "--cap-add", caps,
		"-v", filepath.Join(dir, "etc")+":/etc/heapcam:ro", "-v", rec+":/var/lib/heapcam", "-v", "/dev/shm:/dev/shm",
		"--tmpfs", "/run/heapcam", "--tmpfs", "/tmp", "heapcam", "agent"))

	type status struct {
		JVMs []struct {
			ID          string `json:"id"`
			Phase       string `json:"phase"`
			Collections uint64 `json:"collections"`
			PID         int    `json:"pid"`
		} `json:"jvms"`
	}
	var of status
	defer func() {
		if t.Failed() {
			o, e, _ := run("logs", agent)
			t.Logf("the agent: %s%s", o, e)
		}
	}()
	await(t, "the JVM in a container is recorded", func() bool {
		out, _, err := run("exec", agent, "heapcam", "status", "--json")
		of = status{}
		return err == nil && json.Unmarshal([]byte(out), &of) == nil && len(of.JVMs) > 0 &&
			of.JVMs[0].Phase == "recording" &&
			of.JVMs[0].Collections >= 5
	})
	pid := strings.TrimSpace(podman("inspect", "-f", "{{.State.Pid}}", box))
	if len(of.JVMs) != 1 || fmt.Sprint(of.JVMs[0].PID) != pid || host.pid() == of.JVMs[0].PID {
		t.Fatalf("%+v are recorded, not %s alone", of.JVMs, pid)
	}
	pulled := write("box.heapcam", podman("exec", agent, "heapcam", "pull", of.JVMs[0].ID, "-o", "-"))
	if out, errs, code := heapcam(t, "verify", pulled); code != 0 || !strings.Contains(out, "0 mismatches") {
		t.Errorf("verify: status %d\n%s%s", code, out, errs)
	}
	var rep reportReply
	heapcamJSON(t, &rep, "report", pulled)
	if len(rep.Collections) < 5 {
		t.Errorf("%d collections were pulled", len(rep.Collections))
	}
	podman("stop", "-t", "20", agent)
	if out, errs, code := heapcam(t, "verify", filepath.Join(rec, of.JVMs[0].ID)); code != 0 {
		t.Errorf("what is left on the host: status %d\n%s%s", code, out, errs)
	}
	write("end/box", "")
	write("end/host", "")
	if out := strings.TrimSpace(podman("wait", box)); out != "0" {
		t.Errorf("the JVM in a container ended with %s", out)
	}
	if err := host.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
