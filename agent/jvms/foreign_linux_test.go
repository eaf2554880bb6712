package jvms

import (
	"bufio"
	"bytes"
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
	return fakeOfRelease(t, fmt.Sprintf("IMPLEMENTOR=\"x\"\nJAVA_VERSION=%q\n", version), libs...)
}

// fakeOfRelease is fakeJVM of a JDK with that release file.
func fakeOfRelease(t *testing.T, release string, libs ...string) JVM {
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
	if err := os.WriteFile(filepath.Join(home, "release"), []byte(release), 0o644); err != nil {
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

// TestOtherVMs: OpenJ9 is refused by its library, by its release file and by its name, GraalVM's HotSpot is not.
func TestOtherVMs(t *testing.T) {
	const version = "JAVA_VERSION=\"21.0.5\"\n"
	for _, c := range []struct {
		name, release string
		libs          []string
		want          Problem
		note          string
	}{
		{"OpenJ9's library", version, []string{"default/libj9vm29.so"}, NotHotSpot, ""},
		{"OpenJ9's library of an untested JDK", "JAVA_VERSION=\"19.0.1\"\n", []string{"libj9vm29.so"}, NotHotSpot, ""},
		{"OpenJ9's release file", version + "JVM_VARIANT=\"Openj9\"\n", nil, NotHotSpot, ""},
		{"HotSpot's release file", version + "JVM_VARIANT=\"Hotspot\"\n", nil, OK, ""},
		{"GraalVM Community", version + "IMPLEMENTOR=\"GraalVM Community\"\n", nil, OK, "GraalVM"},
		{"Oracle GraalVM", "GRAALVM_VERSION=\"25.0.1\"\n" + version, nil, OK, "GraalVM"},
		{"a library of a like name", version, []string{"libj9.so", "my-libj9vm29.so"}, OK, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := fakeOfRelease(t, c.release, c.libs...)
			v := Doctor(j)
			if v.Problem != c.want || v.Recordable != (c.want == OK) {
				t.Errorf("%+v of %+v", v, j)
			}
			if c.want == NotHotSpot && (v.Reason != "it is Eclipse OpenJ9: heapcam records only HotSpot JVMs" ||
				v.Remedy == "") {
				t.Errorf("%+v", v)
			}
			if noted := strings.Contains(strings.Join(v.Warnings, "\n"), "GraalVM"); noted != (c.note != "") {
				t.Errorf("warnings: %q", v.Warnings)
			}
		})
	}
	for name, want := range map[string]string{
		"Eclipse OpenJ9 VM": openJ9, "IBM J9 VM": openJ9, "Substrate VM": nativeImage, "OpenJDK 64-Bit Server VM": "",
		"Java HotSpot(TM) 64-Bit Server VM": "", "": "",
	} {
		j := JVM{readable: true}
		j.fromPerf(map[string]string{"java.property.java.vm.name": name})
		if v := Doctor(j); j.other != want || (v.Problem == NotHotSpot) != (want != "") {
			t.Errorf("%s: %q, %+v", name, j.other, v)
		}
	}
}

// TestNativeImage: a program that GraalVM has compiled is no JVM, and differs from others.
func TestNativeImage(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("not run: a native image (no sleep)")
	}
	image := filepath.Join(t.TempDir(), "image")
	text := filepath.Join(filepath.Dir(image), "heap")
	if err := os.WriteFile(text, []byte("objects"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("objcopy", "--add-section", ".svm_heap="+text, "--set-section-flags", ".svm_heap=alloc,data",
		sleep, image)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("not run: a native image (objcopy: %v: %s)", err, out)
	}
	for program, want := range map[string]string{
		image: "is a GraalVM native image, which has no JVM: heapcam records only HotSpot JVMs",
		sleep: "is not a JVM",
	} {
		c := exec.Command(program, "600")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		_, err := Resolve(fmt.Sprint(c.Process.Pid))
		c.Process.Kill()
		c.Wait()
		if text := fmt.Sprintf("process %d %s", c.Process.Pid, want); err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// FuzzNativeImage: a program's file is its user's.
func FuzzNativeImage(f *testing.F) {
	self, err := os.ReadFile("/bin/true")
	if err == nil {
		f.Add(self)
	}
	f.Add([]byte("\x7fELF\x02\x01" + strings.Repeat("\xff", 300)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if isNativeImage(bytes.NewReader(b)) && !bytes.Contains(b, []byte(".svm_heap\x00")) {
			t.Error("a native image without its section")
		}
	})
}
