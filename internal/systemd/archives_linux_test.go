package systemd

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestArchives: each archive holds the program, its bill of materials and the documents; those for linux hold
// the probe of their architecture, arm64's where there is a compiler; and the same sources give the same bytes again.
func TestArchives(t *testing.T) {
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: archives for all systems, built twice (make test-full)")
	}
	if _, err := exec.LookPath("zip"); err != nil {
		t.Skip("not run: archives (no zip)")
	}
	build := func() string {
		dir := t.TempDir()
		c := exec.Command("tools/packages", "archives")
		c.Dir = module
		c.Env = append(os.Environ(), "DIST="+dir, "VERSION=0.0.1", "SOURCE_DATE_EPOCH=1700000000")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return dir
	}
	one, two := build(), build()
	archives, _ := filepath.Glob(one + "/*.[tz]*")
	if len(archives) != 6 {
		t.Errorf("archives: %q", archives)
	}
	mark := []byte("heapcam-probe-" + "version=")
	for _, path := range archives {
		a, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(two, filepath.Base(path))); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: other bytes the second time (%v)", filepath.Base(path), err)
		}
		files := unpack(t, path, a)
		exe := files["heapcam"]
		if strings.Contains(path, "windows") {
			exe = files["heapcam.exe"]
			_, err := exec.LookPath("x86_64-w64-mingw32-gcc")
			if has, want := bytes.Contains(files["heapcam.dll"], []byte("Agent_OnLoad")),
				err == nil && strings.Contains(path, "amd64"); has != want {
				t.Errorf("%s: holds a DLL: %v", filepath.Base(path), has)
			}
		}
		if len(exe) == 0 || len(files["LICENSE"]) == 0 || len(files["incident.md"]) == 0 {
			t.Errorf("%s lacks files", path)
		}
		// The mark stands in the library, and as two halves in whatever looks for it.
		has := bytes.Contains(exe, append([]byte{0}, mark...))
		if want := records(t, path, exe); has != want {
			t.Errorf("%s: holds a probe: %v", filepath.Base(path), has)
		}
		if !strings.Contains(path, "linux") && !bytes.Contains(exe, []byte("no probe is proven")) {
			t.Errorf("%s does not refuse by name", filepath.Base(path))
		}
		var sbom struct {
			Format     string `json:"bomFormat"`
			Components []struct {
				Name, Version string
				Hashes        []struct{ Content string }
			}
		}
		if err := json.Unmarshal(files["sbom.cdx.json"], &sbom); err != nil || sbom.Format != "CycloneDX" ||
			len(sbom.Components) < 15 {
			t.Errorf("%s: bill of materials: %v, %d components", filepath.Base(path), err, len(sbom.Components))
		}
		for _, c := range sbom.Components {
			if c.Version == "" || c.Name != "std" && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
				t.Errorf("%s: %+v", filepath.Base(path), c)
			}
		}
	}
}

// records says whether the program of an archive is to hold a probe, and checks that it is the right one.
func records(t *testing.T, path string, exe []byte) bool {
	t.Helper()
	for _, arch := range []string{"amd64", "arm64"} {
		if strings.Contains(path, "linux-"+arch) {
			lib, err := os.ReadFile(module + "/probe/lib/libheapcam-linux-" + arch + ".so")
			if err == nil && !bytes.Contains(exe, lib) {
				t.Errorf("%s: the probe inside is not the one for %s", filepath.Base(path), arch)
			}
			return err == nil
		}
	}
	return false
}

// unpack gives the files of an archive by the last part of their names.
func unpack(t *testing.T, path string, b []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	add := func(name string, r io.Reader) {
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = data
	}
	if strings.HasSuffix(path, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, r)
			r.Close()
		}
		return out
	}
	g, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(g); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		add(h.Name, tr)
	}
}
