package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/procfs"
)

const sleeper = `public class Sleeper {
	public static void main(String[] a) throws Exception { System.out.println("up"); Thread.sleep(600000); }
}`

// of gives the JVM that has a pid now.
func of(pid int) JVM { return JVM{PID: pid} }

// lookAt is look at the process that has a pid now.
func lookAt(t *testing.T, pid int) (target, error) {
	t.Helper()
	p, err := procfs.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return inspect(p)
}

// java gives a launcher of that major, or skips.
func java(t *testing.T, major string) string {
	m, _ := filepath.Glob("/usr/lib/jvm/*-" + major + "-*/bin/java")
	if len(m) == 0 {
		t.Skipf("not run: JDK %s", major)
	}
	return m[0]
}

// compiled gives a folder with Sleeper.class that any JVM here can run.
func compiled(t *testing.T) string {
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	os.Chmod(filepath.Dir(dir), 0o755) // another user runs it
	src := filepath.Join(dir, "Sleeper.java")
	if err := os.WriteFile(src, []byte(sleeper), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := exec.Command("../../tools/jdk-home").Output()
	if err != nil {
		t.Skip("not run: JVMs (no JDK: tools/setup)")
	}
	javac := filepath.Join(strings.TrimSpace(string(home)), "bin", "javac")
	if out, err := exec.Command(javac, "--release", "11", "-d", dir, src).CombinedOutput(); err != nil {
		t.Skipf("not run: javac: %v %s", err, out)
	}
	return dir
}

// launch starts a command and waits until it says "up".
func launch(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.Remove(fmt.Sprintf("/tmp/.java_pid%d", cmd.Process.Pid)) // a killed JVM leaves it
	})
	b := make([]byte, 2)
	if _, err := out.Read(b); err != nil || string(b) != "up" {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%v did not come up: %v %s", cmd.Args, err, stderr.String())
	}
	go func() { // a thread dump must not block it
		b := make([]byte, 4096)
		for {
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	return cmd
}

func TestJVM(t *testing.T) {
	dir := compiled(t)
	for _, major := range []string{"17", "25"} {
		t.Run(major, func(t *testing.T) {
			cmd := exec.Command(java(t, major), "-Xshare:auto", "-XX:+UseSerialGC", "-Dheapcam.test="+major,
				"-cp", dir, "Sleeper")
			cmd.Dir = dir
			launch(t, cmd)
			pid := cmd.Process.Pid
			ctx := context.Background()

			text, err := Command(ctx, of(pid), "properties")
			if err != nil || !strings.Contains(text, "heapcam.test="+major) {
				t.Fatalf("properties: %v, %.200q", err, text)
			}
			text, err = Command(ctx, of(pid), "jcmd", "VM.version")
			if err != nil || !strings.Contains(text, "JDK "+major) {
				t.Errorf("jcmd VM.version: %v, %q", err, text)
			}
			var bad *CommandError
			if _, err = Command(ctx, of(pid), "nonsense"); !errors.As(err, &bad) || bad.Status == 0 {
				t.Errorf("unknown command: %v", err)
			}
			var load *LoadError
			err = Load(ctx, of(pid), "/nonexistent/lib.so", "")
			if !errors.As(err, &load) || !strings.Contains(load.Text, "/nonexistent/lib.so") {
				t.Errorf("missing library: %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, ".attach_pid*"))
			if left2, _ := filepath.Glob(fmt.Sprintf("/tmp/.attach_pid%d", pid)); len(left)+len(left2) != 0 {
				t.Errorf("trigger left: %v %v", left, left2)
			}
		})
	}
}

// TestAgentReturns loads a library whose Agent_OnAttach returns what its options say.
func TestAgentReturns(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("not run: no C compiler")
	}
	dir := compiled(t)
	src, lib := filepath.Join(dir, "a.c"), filepath.Join(dir, "liba.so")
	code := "#include <stdlib.h>\nint Agent_OnAttach(void *vm, char *o, void *r) { return atoi(o); }\n"
	if err := os.WriteFile(src, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, src).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, major := range []string{"17", "25"} {
		t.Run(major, func(t *testing.T) {
			cmd := launch(t, exec.Command(java(t, major), "-XX:+UseSerialGC", "-cp", dir, "Sleeper"))
			if err := Load(context.Background(), of(cmd.Process.Pid), lib, "0"); err != nil {
				t.Error(err)
			}
			var ret *ReturnError
			err := Load(context.Background(), of(cmd.Process.Pid), lib, "42")
			if !errors.As(err, &ret) || ret.Code != 42 {
				t.Errorf("got %v, want return code 42", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	dir := compiled(t)
	ctx := context.Background()
	if err := Load(ctx, of(1<<22+5), "/x", ""); !errors.Is(err, ErrNoProcess) {
		t.Errorf("no process: %v", err)
	}
	if err := Load(ctx, of(-1), "/x", ""); !errors.Is(err, ErrNoProcess) {
		t.Errorf("pid -1: %v", err)
	}
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sleep.Process.Kill(); sleep.Wait() })
	if err := Load(ctx, of(sleep.Process.Pid), "/x", ""); !errors.Is(err, ErrNotJVM) {
		t.Errorf("sleep: %v", err)
	}
	if sleep.Process.Signal(syscall.Signal(0)) != nil {
		t.Error("sleep was killed")
	}
	off := launch(t, exec.Command(java(t, "17"),
		"-XX:+DisableAttachMechanism", "-XX:+UseSerialGC", "-cp", dir, "Sleeper"))
	if err := Load(ctx, of(off.Process.Pid), "/x", ""); !errors.Is(err, ErrDisabled) {
		t.Errorf("disabled: %v", err)
	}
	// -Xrs does not catch SIGQUIT, but listens from the start: must work, and without the signal that would kill it.
	rs := launch(t, exec.Command(java(t, "17"), "-Xrs", "-XX:+UseSerialGC", "-cp", dir, "Sleeper"))
	if tg, err := lookAt(t, rs.Process.Pid); err != nil || tg.quit {
		t.Errorf("-Xrs: %+v, %v", tg, err)
	}
	if _, err := Command(ctx, of(rs.Process.Pid), "properties"); err != nil {
		t.Errorf("-Xrs: %v", err)
	}
	// A stopped JVM does not answer.
	cmd := launch(t, exec.Command(java(t, "17"), "-XX:+UseSerialGC", "-cp", dir, "Sleeper"))
	cmd.Process.Signal(syscall.SIGSTOP)
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := Load(short, of(cmd.Process.Pid), "/x", ""); !errors.Is(err, ErrTimeout) {
		t.Errorf("stopped: %v", err)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	if _, err := Command(ctx, of(cmd.Process.Pid), "properties"); err != nil {
		t.Errorf("after SIGCONT: %v", err)
	}
}

// TestOtherUser: root may attach to a JVM of anybody; somebody else may not.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: needs root")
	}
	dir := compiled(t)
	cmd := exec.Command(java(t, "17"), "-XX:+UseSerialGC", "-cp", dir, "Sleeper")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	launch(t, cmd)
	// As yet another user, by this same test binary.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "attach.test")
	b, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(bin, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command(bin, "-test.run=^TestHelper$")
	other.Dir = "/"
	other.Env = append(os.Environ(), fmt.Sprintf("ATTACH_TO=%d", cmd.Process.Pid))
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("as another user: %v %s", err, out)
	}
	if _, err := Command(context.Background(), of(cmd.Process.Pid), "properties"); err != nil {
		t.Errorf("as root: %v", err)
	}
}

func TestHelper(t *testing.T) {
	var pid int
	if _, err := fmt.Sscan(os.Getenv("ATTACH_TO"), &pid); err != nil {
		t.Skip("only as a process of TestOtherUser")
	}
	if _, err := Command(context.Background(), of(pid), "properties"); !errors.Is(err, ErrPermission) {
		t.Errorf("got %v, want ErrPermission", err)
	}
}

// TestNamespaces attaches to a JVM in its own pid and mount namespace with its own /tmp, and in its own user
// namespace, too.
func TestNamespaces(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: needs root")
	}
	dir := compiled(t)
	for _, c := range []struct {
		name string
		attr syscall.SysProcAttr
	}{
		{"mount and pid", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}},
		{"user", syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 65536}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 65536}},
			Credential:  &syscall.Credential{},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := exec.Command("true")
			try.SysProcAttr = &c.attr
			if err := try.Run(); err != nil {
				t.Skipf("not run: namespaces: %v", err)
			}
			// Its /tmp hides the classes: they come by another way.
			script := fmt.Sprintf("mount --bind %s /mnt && mount -t tmpfs tmpfs /tmp && cd / && "+
				"exec %s -XX:+UseSerialGC -cp /mnt Sleeper", dir, java(t, "17"))
			cmd := exec.Command("sh", "-c", script)
			cmd.SysProcAttr = &c.attr
			launch(t, cmd)
			tg, err := lookAt(t, cmd.Process.Pid)
			if err != nil || tg.nspid != 1 {
				t.Fatalf("look: %+v, %v", tg, err)
			}
			text, err := Command(context.Background(), of(cmd.Process.Pid), "properties")
			if err != nil || !strings.Contains(text, "java.version=17") {
				t.Errorf("properties: %v", err)
			}
		})
	}
}
