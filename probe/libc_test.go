package probe

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// allowed gives the names of testdata/libc.txt.
func allowed(t *testing.T) map[string]bool {
	t.Helper()
	b, err := os.ReadFile("testdata/libc.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		if name := strings.TrimSpace(line); name != "" && name[0] != '#' {
			names[name] = true
		}
	}
	return names
}

// TestAnyLibc: one library loads with glibc since 2.17 and with musl: it names no other library, its symbols have no
// versions, and all of them are in testdata/libc.txt.
func TestAnyLibc(t *testing.T) {
	names := allowed(t)
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		f, err := elf.Open("lib/libheapcam-linux-" + arch + ".so")
		if err != nil {
			t.Logf("not run: symbols of the probe for %s (no probe: make probe probe-arm64)", arch)
			continue
		}
		defer f.Close()
		if f.Machine != machine {
			t.Errorf("%s: the library is for %s", arch, f.Machine)
		}
		if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
			t.Errorf("%s: needs the libraries %q (%v)", arch, libs, err)
		}
		syms, err := f.ImportedSymbols()
		if err != nil || len(syms) < 30 {
			t.Errorf("%s: %d symbols (%v)", arch, len(syms), err)
		}
		for _, s := range syms {
			if !names[s.Name] || s.Version != "" || s.Library != "" {
				t.Errorf("%s: needs %s %s %s", arch, s.Name, s.Library, s.Version)
			}
		}
	}
}

// since gives the oldest version of each name that the libraries define, as a number (217: 2.17); 0: it has none.
func since(t *testing.T, libs ...string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, lib := range libs {
		f, err := elf.Open(lib)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		syms, err := f.DynamicSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range syms {
			if s.Section == elf.SHN_UNDEF {
				continue
			}
			var major, minor int
			if n, _ := fmt.Sscanf(s.Version, "GLIBC_%d.%d", &major, &minor); s.Version != "" && n != 2 {
				continue // GLIBC_PRIVATE
			}
			v := 100*major + minor
			if old, ok := found[s.Name]; !ok || v < old {
				found[s.Name] = v
			}
		}
	}
	return found
}

// TestLibcNames: each name of testdata/libc.txt is in glibc since 2.17 at least, on both architectures, and in musl.
func TestLibcNames(t *testing.T) {
	root := os.Getenv("HEAPCAM_ARM64_ROOT")
	for name, libs := range map[string][]string{
		"glibc for amd64": {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"},
		"glibc for arm64": {root + "/lib/aarch64-linux-gnu/libc.so.6", root + "/lib/ld-linux-aarch64.so.1"},
		"musl":            {"/usr/lib/x86_64-linux-musl/libc.so"},
	} {
		if _, err := os.Stat(libs[0]); err != nil {
			t.Logf("not run: the probe's symbols in %s (not on this machine: %s)", name, filepath.Base(libs[0]))
			continue
		}
		has := since(t, libs...)
		for n := range allowed(t) {
			if v, ok := has[n]; (!ok || v > 217) && (n != "__tls_get_addr" || !strings.HasSuffix(name, "arm64")) {
				t.Errorf("%s: %s: since %d (there: %v)", name, n, v, ok)
			}
		}
	}
}
