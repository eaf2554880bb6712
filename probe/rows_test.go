package probe

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run TestTablePage -update

var update = flag.Bool("update", false, "write the generated page anew")

const tablePage = "../docs/reference/jvm-tables.md"

// uses are the words for the last column of src/vmrows.def, in the order of the page.
var uses = []struct{ name, title, text string }{
	{"options", "Options of the JVM", "The probe reads which collector runs, and how objects are laid out."},
	{"heap", "The heap", "The probe reads where the heap is."},
	{"pauses", "Pauses", "The probe distinguishes kinds of pauses, and finds collections that no event announced."},
	{"spaces", "Spaces of Serial and Parallel", "The probe reads which parts the heap has."},
	{"regions", "Regions of G1", "The probe reads which regions the heap has, and what each is used for."},
	{"classes", "Classes", "The probe lists the classes and their loaders, and finds an object's class."},
	{"sizes", "Sizes", "The probe computes an object's size."},
	{"marks", "Headers", "The probe finds where an object moved, and with compact headers its class."},
	{"tlabs", "Threads and their buffers", "The probe steps over the unused end of each thread's buffer."},
	{"references", "References", "The probe finds the references of an object. Without these names it takes no " +
		"reference listings,\nor they lack some kinds of references."},
	{"proven", "Proven sites", "The probe reads bytecodes of methods that have run. Without these names it " +
		"proves\nno sites."},
	{"hashes", "Identity hashes", "`--sites hash` keeps the site of an object in its identity hash."},
	{"stacks", "Stacks", "The probe reads the stack of a sampled allocation. Without these names it asks the JVM " +
		"for each,\nwhich takes longer."},
	{"frames", "Methods of compiled code", "The probe reads which methods a return address stands for, on JDK 17 and " +
		"25. Without these names\nit asks the JVM for each stack that is new, which takes longer."},
	{"numbers", "Numbers of collections", "The probe reads the number that the JVM's log gives a concurrent cycle. " +
		"Without it those pauses have no number."},
}

// TestTablePage fails when the page on the JVM's tables is stale.
func TestTablePage(t *testing.T) {
	want := page(t)
	if *update {
		if err := os.WriteFile(tablePage, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(tablePage); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is stale (%v): run go generate ./probe", tablePage, err)
	}
}

func page(t *testing.T) []byte {
	var b bytes.Buffer
	majors := Tested()
	newest := majors[len(majors)-1]
	fmt.Fprintf(&b, `<!-- Generated from probe/src/vmrows.def: go generate ./probe. Do not edit. -->
# JVM tables

HotSpot exports tables of its own structures: names of fields, their C types, and constants. The probe reads them when
a recording begins. This page lists every name that it reads, and the JDKs that have the name. %[1]s has the
results of the tests on each JDK.

You need this page only after a refusal: a line on the JVM's stderr names the field, and its row below says in which
JDKs heapcam knows it.

- **Tested JDKs** (%[2]s) are recorded if they have every name whose column *JDK* includes
  them.
- **JDKs between them** are untested. heapcam records them with %[3]s. If a name changed between the
  two tested neighbours, either one is accepted. The probe walks the whole heap once before it begins.
- **JDKs after %[4]d** are untested, too. heapcam records them without a setting if they have every name whose column
  *JDK* has no end ("11 and later"). The probe walks the whole heap before it begins, and again after each of the
  first three collections. It stops recording if it meets unknown objects in two of these walks.
- **JDKs before %[5]d** are refused.

A missing name, an unknown C type, or a static field where an instance field is expected (or the reverse) is a refusal.
The JVM keeps running.

In the tables, *kind* says whether a field belongs to the class (static) or to each instance, or whether it is a
constant; *optional* names may be missing. *C type* is the type of a field, or the values that a constant may have.
Where *collector* is empty, all collectors need the name.

The probe's DLL for Windows reads the same names, but no test has loaded it into a real JVM there. %[6]s
makes these checks for Linux without starting a JVM:

`, "[JDKs](jdks.md)", majorList(majors), "`--allow-untested-jdk`", newest, majors[0], "`make check-tables`")
	b.WriteString("```sh elsewhere\ngo run ./tools/check-tables /usr/lib/jvm/java-21-openjdk-amd64\n```\n")
	var known []string
	for _, u := range uses {
		known = append(known, u.name)
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| name | kind | C type | JDK | collector |\n|---|---|---|---|---|\n",
			u.title, u.text)
		for _, r := range Rows() {
			if r.Use == u.name {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.FullName(), kind(r), ctype(r), r.versions(),
					r.Collector)
			}
		}
	}
	for _, r := range Rows() {
		if !slices.Contains(known, r.Use) {
			t.Errorf("%s has the use %q, which this page does not know", r.FullName(), r.Use)
		}
	}
	return b.Bytes()
}

func majorList(majors []int) string {
	s := fmt.Sprint(majors[0])
	for _, m := range majors[1 : len(majors)-1] {
		s += fmt.Sprintf(", %d", m)
	}
	return s + fmt.Sprintf(" and %d", majors[len(majors)-1])
}

func kind(r Row) string {
	k := "instance"
	if r.Constant {
		k = "constant"
	} else if r.Static {
		k = "static"
	}
	if r.Optional {
		k += ", optional"
	}
	return k
}

func ctype(r Row) string {
	switch {
	case r.Constant && r.Least == r.Most:
		return fmt.Sprint(r.Least)
	case r.Constant:
		return fmt.Sprintf("%d to %d", r.Least, r.Most)
	case r.Inner != "":
		return "`" + r.Inner + "`"
	}
	return map[string]string{"POINTER": "pointer", "UNTYPED_POINTER": "pointer or none", "SIZE": "64 bits",
		"INT": "32 bits", "SHORT": "16 bits", "UNTYPED_BYTES": "bytes or none"}[r.Shape]
}

func (r Row) versions() string {
	switch {
	case r.Last == 0:
		return fmt.Sprintf("%d and later", r.First)
	case r.First == r.Last:
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d to %d", r.First, r.Last)
}

// TestRows: the table makes sense, and the C compiler reads the same of it as this package.
func TestRows(t *testing.T) {
	if err := parsed().err; err != nil {
		t.Fatal(err)
	}
	tested := Tested()
	if len(tested) < 7 || !slices.IsSorted(tested) || len(Rows()) < 90 {
		t.Errorf("%d rows, tested: %v", len(Rows()), tested)
	}
	var want []string
	seen := map[string]bool{}
	for i, r := range Rows() {
		before := i > 0 && Rows()[i-1].Slot == r.Slot && Rows()[i-1].Constant == r.Constant
		if !before && seen[r.Slot+fmt.Sprint(r.Constant)] {
			t.Errorf("%s: the rows of a slot follow each other", r.FullName())
		}
		seen[r.Slot+fmt.Sprint(r.Constant)] = true
		if before && (Rows()[i-1].Collector != r.Collector || Rows()[i-1].Last >= r.First || Rows()[i-1].Last == 0) {
			t.Errorf("%s: the rows of a slot are of one collector, and of one JDK after the other", r.FullName())
		}
		if !slices.Contains(tested, r.First) || r.Last != 0 && !slices.Contains(tested, r.Last) {
			t.Errorf("%s: its range begins and ends at JDKs that are tested", r.FullName())
		}
		want = append(want, fmt.Sprintf("%s %d %t %t", r.FullName(), r.First, r.Static, r.Optional))
	}
	const c = `#include <stdio.h>
#define SAY(name, first, is_static, optional) \
    printf("%s %d %s %s\n", name, first, is_static ? "true" : "false", optional ? "true" : "false");
enum { STATIC = 1, INSTANCE = 0, OPTIONAL = 1, NEEDED = 0 };
#define ROW(s, gc, kind, shape, type, field, first, last, need, use) SAY(#type "::" #field, first, kind, need)
#define PART(s, gc, inner, type, field, first, last, need, use) SAY(#type "::" #field, first, 0, need)
#define CONSTANT(s, gc, table, least, most, name, first, last, need, use) SAY(#name, first, 0, need)
#define ALT_ROW ROW
#define ALT_PART PART
#define ALT_CONSTANT CONSTANT
#define TESTED(major)
int main(void) {
#include "vmrows.def"
}
`
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: the table as C reads it (there is no gcc)")
	}
	bin := filepath.Join(t.TempDir(), "rows")
	gcc := exec.Command("gcc", "-Isrc", "-x", "c", "-o", bin, "-")
	gcc.Stdin = strings.NewReader(c)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	out, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		t.Errorf("C reads %d rows, Go %d:\n%s\n%s", len(got), len(want), strings.Join(got, "\n"),
			strings.Join(want, "\n"))
	}
}

// TestSlots: which rows apply to a JDK, and what it must have.
func TestSlots(t *testing.T) {
	of := func(major int, slot string) (names []string, static, need bool) {
		slots, needed := Slots(major)
		for i, s := range slots {
			if s[0].Slot == slot {
				for _, r := range s {
					names = append(names, r.FullName())
				}
				return names, s[0].Static, needed[i]
			}
		}
		t.Fatalf("no slot %s", slot)
		return nil, false, false
	}
	for _, c := range []struct {
		major, names int
		slot         string
		static, need bool
	}{
		{26, 1, "PARALLEL_YOUNG", true, true},
		{27, 1, "PARALLEL_YOUNG", false, true},
		{29, 1, "PARALLEL_YOUNG", false, true},
		{11, 1, "FIRST_THREAD", true, true},
		{13, 1, "FIRST_THREAD", true, false}, // a JDK that no row names has this or the list of threads
		{23, 2, "SERIAL_YOUNG", false, true},
		{28, 1, "TLAB_PREFETCH", true, false},
		{17, 1, "PROCESSED_THREAD", false, false},
	} {
		if names, static, need := of(c.major, c.slot); len(names) != c.names || static != c.static || need != c.need {
			t.Errorf("JDK %d, %s: %v, static %t, needed %t", c.major, c.slot, names, static, need)
		}
	}
}
