package probe

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"
)

// TestOldGlibc: the library loads wherever JDK 17 runs: it needs no symbol that is newer than glibc 2.17 (CentOS 7,
// 2012), and no library beside libc, libdl, libpthread and the loader.
func TestOldGlibc(t *testing.T) {
	f, err := elf.Open("lib/libheapcam-linux-amd64.so")
	if err != nil {
		t.Skip("not run: symbols of the probe (no probe: make build)")
	}
	defer f.Close()
	syms, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	versions := 0
	for _, s := range syms {
		v, ok := strings.CutPrefix(s.Version, "GLIBC_")
		if !ok {
			continue
		}
		versions++
		var major, minor int
		if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err != nil || major != 2 || minor > 17 {
			t.Errorf("%s needs %s", s.Name, s.Version)
		}
	}
	if versions < 10 {
		t.Errorf("only %d symbols with a version", versions)
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libs {
		switch l {
		case "libc.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2":
		default:
			t.Errorf("needs %s", l)
		}
	}
}
