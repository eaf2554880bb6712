package jvms

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeOf names the environment variable by which this test program plays a JVM: it maps the files that are named
// there.
const fakeOf = "HEAPCAM_TEST_MAPS"

// chrootOf names the root folder that it then changes to, if any.
const chrootOf = "HEAPCAM_TEST_CHROOT"

func TestMain(m *testing.M) {
	if files := os.Getenv(fakeOf); files != "" {
		for _, name := range strings.Split(files, ":") {
			f, err := os.Open(name)
			if err == nil {
				_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			}
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		if dir := os.Getenv(chrootOf); dir != "" {
			if err := unix.Chroot(dir); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		fmt.Println("up")
		bufio.NewReader(os.Stdin).ReadByte() // until the test ends
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeJVM starts a process that maps a libjvm.so of a JDK of that version, and further files of those names.
func fakeJVM(t *testing.T, version string, libs ...string) JVM {
	t.Helper()
	home := t.TempDir()
	maps := []string{filepath.Join(home, "lib/server/libjvm.so")}
	for _, l := range libs {
		maps = append(maps, filepath.Join(home, "lib", l))
	}
	for _, name := range maps {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, make([]byte, 4096), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	release := fmt.Appendf(nil, "IMPLEMENTOR=\"x\"\nJAVA_VERSION=%q\n", version)
	if err := os.WriteFile(filepath.Join(home, "release"), release, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-XX:+UseG1GC", "org.example.Main", "secret")
	cmd.Args[0] = "java"
	cmd.Env = append(os.Environ(), fakeOf+"="+strings.Join(maps, ":"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	if said, _ := bufio.NewReader(out).ReadString('\n'); said != "up\n" {
		t.Fatalf("the process that plays a JVM says %q", said)
	}
	all, err := List()
	if err != nil {
		t.Fatal(err)
	}
	j, err := Find(all, fmt.Sprint(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestForeign: JVMs that no test machine has, played by a process that maps what they map, are listed with reason and
// remedy.
func TestForeign(t *testing.T) {
	for _, c := range []struct {
		name, version string
		libs          []string
		want          Problem
		reason        string
	}{
		{"Alpine's JDK", "17.0.13", []string{"ld-musl-x86_64.so.1"}, OK, ""},
		{"Alpine's JDK for arm64", "17.0.13", []string{"ld-musl-aarch64.so.1"}, OK, ""},
		{"musl by its other name", "25", []string{"libc.musl-x86_64.so.1"}, OK, ""},
		{"an older JDK", "10.0.2", nil, OldMajor, "JDK 10 is too old"},
		{"a JDK of 8", "1.8.0_432", nil, OldMajor, "JDK 8 is too old"},
		{"a JDK between", "19.0.2", nil, UntestedMajor, "JDK 19 is untested"},
		{"a JDK that is tested", "25.0.1", nil, OK, ""},
		{"a library of a like name", "17.0.13", []string{"libmusl.so", "held-musl-x.so"}, OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := fakeJVM(t, c.version, c.libs...)
			v := Doctor(j)
			ok := c.want == OK
			if v.Problem != c.want || v.Recordable != ok || (v.Remedy == "") != ok ||
				!strings.Contains(v.Reason, c.reason) {
				t.Errorf("%+v of %+v", v, j)
			}
			warned := strings.Contains(strings.Join(v.Warnings, "\n"), "musl")
			if musl := strings.Contains(c.name, "Alpine") || strings.HasPrefix(c.name, "musl"); warned != musl {
				t.Errorf("warnings: %q", v.Warnings)
			}
			if j.Name != "org.example.Main" || j.Collector != "G1" {
				t.Errorf("name %q, collector %q", j.Name, j.Collector)
			}
		})
	}
}
