// Command check-tables says whether the probe can read the tables of a libjvm, for Serial, Parallel and G1. It reads
// the file and does not start a JVM.
//
//	check-tables [-major N] LIBJVM|JDK...
//	check-tables -tested
//
// It compares what the library exports with the rows of probe/src/vmrows.def: each name that this JDK must have, static
// or not, its declared C type, and the values of constants. Offsets and addresses are not in the file: a library
// computes most of them when it is loaded, and the probe checks them in the running JVM. Without -major the JDK's own
// release file has its version. -tested prints the JDKs that are tested. The exit status is 1 if the probe would
// refuse one of the libraries.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/probe"
)

func main() {
	major := flag.Int("major", 0, "the JDK's version, if there is no release file")
	tested := flag.Bool("tested", false, "print the majors of the tested JDKs")
	flag.Parse()
	if *tested {
		fmt.Println(strings.Trim(fmt.Sprint(probe.Tested()), "[]"))
		return
	}
	bad := flag.NArg() == 0
	if bad {
		fmt.Fprintln(os.Stderr, "usage: check-tables [-major N] LIBJVM|JDK...")
	}
	for _, path := range flag.Args() {
		if !report(path, *major) {
			bad = true
		}
	}
	if bad {
		os.Exit(1)
	}
}

func report(path string, major int) bool {
	lib := path
	if s, err := os.Stat(path); err == nil && s.IsDir() {
		lib = filepath.Join(path, "lib/server/libjvm.so")
	}
	if major == 0 {
		major = majorOf(lib)
	}
	t, err := read(lib)
	if err != nil || major == 0 {
		if err == nil {
			err = fmt.Errorf("no release file has the version: use -major")
		}
		fmt.Printf("%s: %v\n", path, err)
		return false
	}
	ok := true
	for _, gc := range []string{"Serial", "Parallel", "G1"} {
		problems, rows := check(t, major, gc)
		if len(problems) == 0 {
			fmt.Printf("JDK %d %s: %d rows are as expected (%s)\n", major, gc, rows, path)
			continue
		}
		ok = false
		for _, p := range problems {
			fmt.Printf("JDK %d %s: %s (%s)\n", major, gc, p, path)
		}
	}
	return ok
}

var javaVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="(?:1\.)?(\d+)`)

// majorOf reads the release file of the JDK that a libjvm is in.
func majorOf(lib string) int {
	for dir, i := filepath.Dir(lib), 0; i < 4; dir, i = filepath.Dir(dir), i+1 {
		if b, err := os.ReadFile(filepath.Join(dir, "release")); err == nil {
			if m := javaVersion.FindSubmatch(b); m != nil {
				n, _ := strconv.Atoi(string(m[1]))
				return n
			}
		}
	}
	return 0
}

// check gives what the probe would refuse, and how many rows it looked at.
func check(t *tables, major int, gc string) (problems []string, rows int) {
	if major < probe.Tested()[0] {
		return []string{fmt.Sprintf("older than JDK %d, the oldest that is recorded", probe.Tested()[0])}, 0
	}
	slots, needed := probe.Slots(major)
	for i, slot := range slots {
		if c := slot[0].Collector; c != "" && c != gc {
			continue
		}
		rows++
		found, why := t.slot(slot)
		if why == "" && !found && needed[i] {
			why = names(slot) + " is missing"
		}
		if why != "" {
			problems = append(problems, why)
		}
	}
	return problems, rows
}

func names(slot []probe.Row) string {
	var all []string
	for _, r := range slot {
		all = append(all, r.FullName())
	}
	return strings.Join(all, " or ")
}

// slot looks for the rows of a slot: whether one is there, and what is wrong with it.
func (t *tables) slot(slot []probe.Row) (found bool, why string) {
	for _, r := range slot {
		if r.Constant {
			if v, ok := t.consts[r.Name]; ok {
				if v < r.Least || v > r.Most {
					return true, fmt.Sprintf("%s is %d, not %d to %d", r.Name, v, r.Least, r.Most)
				}
				return true, ""
			}
			continue
		}
		for _, f := range t.fields {
			if f.typ != r.Type || f.name != r.Name {
				continue
			}
			if f.static != r.Static {
				why = r.FullName() + " is static"
				if !f.static {
					why = r.FullName() + " is not static"
				}
				continue
			}
			if !t.fits(r, f.declared) {
				return true, fmt.Sprintf("%s has the type %q", r.FullName(), f.declared)
			}
			return true, ""
		}
	}
	return false, why
}

// shapes are the C types of each shape, but pointers and structs: those of has_shape in probe/src/vmtable.c.
var shapes = map[string]string{
	"SIZE":          " size_t uintptr_t intptr_t uintx intx uint64_t julong ",
	"INT":           " int uint jint unsigned unsigned-int int32_t uint32_t u4 ",
	"SHORT":         " u2 jushort unsigned-short uint16_t ",
	"UNTYPED_BYTES": " u1 jbyte uint8_t bool ",
}

func (t *tables) fits(r probe.Row, declared string) bool {
	s := bare(declared)
	switch r.Shape {
	case "UNTYPED_POINTER", "UNTYPED_BYTES":
		if declared == "" {
			return true
		}
	case "STRUCT":
		return (s == r.Inner || s == "G1"+r.Inner) && t.sizeOf(r.Inner) > 0
	}
	if strings.HasSuffix(r.Shape, "POINTER") {
		return strings.HasSuffix(s, "*") || s == "address"
	}
	return s != "" && strings.Contains(shapes[r.Shape], " "+strings.ReplaceAll(s, " ", "-")+" ")
}

func (t *tables) sizeOf(inner string) uint64 {
	for name, size := range t.types {
		if s := bare(name); s == inner || s == "G1"+inner {
			return size
		}
	}
	return 0
}

// bare is a type without what does not change its layout.
func bare(s string) string {
	for {
		was := s
		s = strings.TrimSpace(s)
		for _, q := range []string{"const", "volatile"} {
			if !strings.Contains(s, "*") { // before a pointer it belongs to what is pointed at
				s = strings.TrimPrefix(s, q+" ")
			}
			if t := strings.TrimSuffix(s, q); t != s && (strings.HasSuffix(t, " ") || strings.HasSuffix(t, "*")) {
				s = t
			}
		}
		if in, ok := strings.CutPrefix(s, "Atomic<"); ok && strings.HasSuffix(in, ">") {
			s = strings.TrimSuffix(in, ">")
		}
		if s == was {
			return s
		}
	}
}
