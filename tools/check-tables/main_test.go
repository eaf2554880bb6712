package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// libjvms gives the library of each JDK of this machine.
func libjvms(t *testing.T) []string {
	t.Helper()
	homes, _ := filepath.Glob("/usr/lib/jvm/*")
	var libs []string
	for _, h := range homes {
		lib := filepath.Join(h, "lib/server/libjvm.so")
		if s, err := os.Lstat(h); err != nil || s.Mode()&os.ModeSymlink != 0 {
			continue
		}
		if _, err := os.Stat(lib); err == nil && majorOf(lib) != 0 {
			libs = append(libs, lib)
		}
	}
	if len(libs) == 0 {
		t.Skip("not run: tables of a libjvm (no JDK in /usr/lib/jvm)")
	}
	return libs
}

// TestCheck: the tables of the installed JDKs are as expected, and what is changed in them is found.
func TestCheck(t *testing.T) {
	for _, lib := range libjvms(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(lib)))), func(t *testing.T) {
			tab, err := read(lib)
			if err != nil {
				t.Fatal(err)
			}
			major := majorOf(lib)
			for _, gc := range []string{"Serial", "Parallel", "G1"} {
				if p, n := check(tab, major, gc); len(p) != 0 || n < 40 {
					t.Errorf("%s: %d rows, %q", gc, n, p)
				}
			}
			at := func(typ, name string) *field {
				for i := range tab.fields {
					if f := &tab.fields[i]; f.typ == typ && f.name == name {
						return f
					}
				}
				t.Fatalf("no field %s::%s", typ, name)
				return nil
			}
			for _, c := range []struct {
				typ, name, gc, want string
				change              func(*field)
			}{
				{"ParallelScavengeHeap", "_young_gen", "Parallel", "static", func(f *field) { f.static = !f.static }},
				{"Klass", "_layout_helper", "Serial", `has the type "jlong"`, func(f *field) { f.declared = "jlong" }},
				{"Universe", "_collectedHeap", "G1", "is missing", func(f *field) { f.name = "_heap" }},
			} {
				f := at(c.typ, c.name)
				was := *f
				c.change(f)
				p, _ := check(tab, major, c.gc)
				if len(p) != 1 || !strings.Contains(p[0], c.typ+"::"+c.name) || !strings.Contains(p[0], c.want) {
					t.Errorf("%s::%s: %q, want %q", c.typ, c.name, p, c.want)
				}
				*f = was
			}
			tab.consts["markWord::marked_value"]++
			p, _ := check(tab, major, "Serial")
			if major >= 17 && (len(p) != 1 || !strings.Contains(p[0], "is 4, not 3")) {
				t.Errorf("another value of a constant: %q", p)
			}
			if p, _ := check(tab, 8, "Serial"); len(p) != 1 {
				t.Errorf("JDK 8: %q", p)
			}
		})
	}
}

func TestBare(t *testing.T) {
	for in, want := range map[string]string{
		"HeapWord* const": "HeapWord*", "const uint": "uint", "Atomic<G1HeapRegionType::Tag>": "G1HeapRegionType::Tag",
		"JavaThread *const *const": "JavaThread *const *", "HeapWord* volatile": "HeapWord*",
		"const char*": "const char*",
	} {
		if got := bare(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
