package e2e

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImages builds the image for two architectures under one name: each holds the program of its own architecture, and
// nothing runs in the build.
func TestImages(t *testing.T) {
	if !full {
		t.Skip("not run: the container image for two architectures (HEAPCAM_FULL=1)")
	}
	needRoot(t, "the container image", "podman")
	dir := t.TempDir()
	put := func(name string, b []byte) {
		t.Helper()
		file := filepath.Join(dir, "context", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"LICENSE", "packaging/heapcam.yaml", "packaging/container/Containerfile"} {
		b, err := os.ReadFile("../../" + f)
		if err != nil {
			t.Fatal(err)
		}
		put(f, b)
	}
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for arch, m := range machines {
		h := make([]byte, 64) // what tells the two apart is the header
		copy(h, "\x7fELF\x02\x01\x01")
		h[16], h[18], h[20], h[52] = 2, byte(m), 1, 64
		put("bin/linux-"+arch+"/heapcam", h)
	}
	podman := func(args ...string) []byte {
		t.Helper()
		c := exec.Command("podman", append([]string{"--root", filepath.Join(dir, "store"), "--runroot",
			filepath.Join(dir, "run"), "--storage-driver", "vfs", "--events-backend", "file"}, args...)...)
		var errs strings.Builder
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("podman %v: %v\n%s%s", args, err, out, errs.String())
		}
		return out
	}
	podman("build", "--isolation", "chroot", "-q", "--platform", "linux/amd64,linux/arm64", "--manifest", "heapcam",
		"-f", filepath.Join(dir, "context/packaging/container/Containerfile"), filepath.Join(dir, "context"))
	var list struct {
		Manifests []struct {
			Digest   string
			Platform struct{ Architecture, OS string }
		}
	}
	if err := json.Unmarshal(podman("manifest", "inspect", "heapcam"), &list); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range list.Manifests {
		arch := m.Platform.Architecture
		found = append(found, m.Platform.OS+"/"+arch)
		at := strings.TrimSpace(string(podman("image", "mount", "heapcam@"+m.Digest)))
		f, err := elf.Open(filepath.Join(at, "usr/bin/heapcam"))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machines[arch] {
			t.Errorf("the image for %s has a program for %s", arch, f.Machine)
		}
		f.Close()
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("images for %q", found)
	}
}
