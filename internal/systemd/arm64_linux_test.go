package systemd

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesArm64: the packages for arm64 hold program and probe of that architecture, the probe is in the program as
// well, and the program runs below qemu-user.
func TestPackagesArm64(t *testing.T) {
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: packages for arm64 (make test-full)")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("not run: packages for arm64 (no dpkg-deb)")
	}
	lib, err := os.ReadFile(module + "/probe/lib/libheapcam-linux-arm64.so")
	if err != nil {
		t.Skip("not run: packages for arm64 (no probe: make probe-arm64)")
	}
	dir := filepath.Dir(packages(t))
	debs, _ := filepath.Glob(dir + "/heapcam_*_arm64.deb")
	rpms, _ := filepath.Glob(dir + "/heapcam-*.aarch64.rpm")
	if len(debs) != 1 || len(rpms) != 1 {
		t.Fatalf("debs %q, rpms %q", debs, rpms)
	}
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-x", debs[0], root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	exe, probe := root+"/usr/bin/heapcam", root+"/usr/lib/heapcam/libheapcam.so"
	for _, path := range []string{exe, probe} {
		f, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != elf.EM_AARCH64 {
			t.Errorf("%s is for %s", path, f.Machine)
		}
		f.Close()
	}
	if b, err := os.ReadFile(exe); err != nil || !bytes.Contains(b, lib) {
		t.Errorf("the program does not hold the probe for arm64 (%v)", err)
	}
	// the architecture of an rpm is in its header; what holds it is compressed
	if b, err := os.ReadFile(rpms[0]); err != nil || !bytes.Contains(b, []byte("\x00aarch64\x00")) {
		t.Errorf("%s names another architecture (%v)", filepath.Base(rpms[0]), err)
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("not run: the packaged program for arm64 (no qemu-aarch64-static)")
	}
	out, err := exec.Command(qemu, exe, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "probe inside: linux/arm64") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
