package systemd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// packaged is the folder that the packages were built into, once for all tests.
var packaged struct {
	once sync.Once
	dir  string
	skip string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if packaged.dir != "" {
		os.RemoveAll(packaged.dir)
	}
	os.Exit(code)
}

// packages gives the path of the deb for this machine.
func packages(t *testing.T) string {
	t.Helper()
	packaged.once.Do(func() {
		if _, err := os.Stat(module + "/probe/lib/libheapcam-linux-" + runtime.GOARCH + ".so"); err != nil {
			packaged.skip = "no probe: make build"
			return
		}
		if packaged.dir, packaged.err = os.MkdirTemp("", "heapcam-packages-"); packaged.err == nil {
			packaged.skip, packaged.err = buildPackages(packaged.dir, "0.0.1")
		}
	})
	if packaged.skip != "" {
		t.Skipf("not run: packages (%s)", packaged.skip)
	}
	if packaged.err != nil {
		t.Fatal(packaged.err)
	}
	return debIn(t, packaged.dir)
}

// buildPackages builds for the architectures, or for all that there are compilers for.
func buildPackages(dir, version string, archs ...string) (skip string, err error) {
	c := exec.Command("tools/packages")
	c.Dir = module
	c.Env = append(os.Environ(), "DIST="+dir, "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000",
		"ARCHS="+strings.Join(archs, " "))
	out, err := c.CombinedOutput()
	if err != nil && strings.Contains(string(out), "goreleaser/nfpm") {
		return fmt.Sprintf("nfpm cannot be had: %.200s", out), nil
	}
	if err != nil {
		return "", fmt.Errorf("tools/packages: %w\n%s", err, out)
	}
	return "", nil
}

func debIn(t *testing.T, dir string) string {
	t.Helper()
	debs, _ := filepath.Glob(dir + "/*_" + runtime.GOARCH + ".deb")
	if len(debs) != 1 {
		t.Fatalf("debs: %q", debs)
	}
	return debs[0]
}

// TestPackagedProbe: the list of what packages contain has the probe where their environment file names it.
func TestPackagedProbe(t *testing.T) {
	var packed struct {
		Contents []struct{ Src, Dst string }
	}
	text, err := os.ReadFile(module + "/packaging/nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &packed); err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, c := range packed.Contents {
		at[c.Dst] = c.Src
	}
	env, err := os.ReadFile(filepath.Join(module, at["/usr/lib/heapcam/java.env"]))
	if err != nil {
		t.Fatal(err)
	}
	_, lib, ok := strings.Cut(string(env), "\nJAVA_TOOL_OPTIONS=-agentpath:")
	if src := at[strings.TrimSpace(lib)]; !ok || src != "${STAGE}/libheapcam.so" {
		t.Errorf("the environment file names %q, which is %q", lib, src)
	}
}

// TestProbeInDeb: so has a deb. To compile its tool and the programs takes minutes.
func TestProbeInDeb(t *testing.T) {
	if os.Getenv("HEAPCAM_FULL") == "" {
		t.Skip("not run: the probe in a deb (make test-full)")
	}
	deb, dir := packages(t), t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-x", deb, dir).CombinedOutput(); err != nil {
		t.Skipf("not run: files of the deb (dpkg-deb: %v: %s)", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "usr/lib/heapcam/java.env"))
	if err != nil {
		t.Fatal(err)
	}
	_, lib, ok := strings.Cut(string(b), "\nJAVA_TOOL_OPTIONS=-agentpath:")
	if st, err := os.Stat(filepath.Join(dir, strings.TrimSpace(lib))); !ok || err != nil || !st.Mode().IsRegular() {
		t.Errorf("no library at %q: %v", lib, err)
	}
}
