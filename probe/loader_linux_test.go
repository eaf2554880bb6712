package probe

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// The fields that each collector cannot be recorded without, by all names that JDKs 11 to 28 have for them. A second
// list beside vmrows.def: a row that is lost there is missed here. Which of the names a JDK has is looked up there.
var (
	always = `
		JVMFlag.flags JVMFlag.numFlags JVMFlag._name JVMFlag._addr Universe._collectedHeap CollectedHeap._reserved
		CollectedHeap._total_collections MemRegion._start MemRegion._word_size ClassLoaderDataGraph._head
		ClassLoaderData._next ClassLoaderData._klasses ClassLoaderData._class_loader Klass._next_link
		Klass._layout_helper Klass._name Klass._class_loader_data Symbol._length
		Universe._narrow_klass._base|CompressedKlassPointers._narrow_klass._base|CompressedKlassPointers._base
		Universe._narrow_klass._shift|CompressedKlassPointers._narrow_klass._shift|CompressedKlassPointers._shift
		java_lang_Class._oop_size_offset Threads._thread_list|ThreadsSMRSupport._java_thread_list
		JavaThread._next|ThreadsList._length ThreadsList._threads Thread._tlab
		ThreadLocalAllocBuffer._top ThreadLocalAllocBuffer._end ThreadLocalAllocBuffer._desired_size
		ThreadLocalAllocBuffer._reserve_for_allocation_prefetch CollectedHeap._lab_alignment_reserve
		PerfMemory._start PerfMemory._top`
	of = map[string]string{
		"Serial": `
			GenCollectedHeap._young_gen|SerialHeap._young_gen GenCollectedHeap._old_gen|SerialHeap._old_gen
			DefNewGeneration._eden_space DefNewGeneration._from_space DefNewGeneration._to_space
			TenuredGeneration._the_space Space._bottom|ContiguousSpace._bottom Space._end|ContiguousSpace._end
			ContiguousSpace._top`,
		"Parallel": `
			ParallelScavengeHeap._young_gen ParallelScavengeHeap._old_gen PSYoungGen._eden_space
			PSYoungGen._from_space PSYoungGen._to_space PSOldGen._object_space
			ImmutableSpace._bottom|MutableSpace._bottom MutableSpace._top ImmutableSpace._end|MutableSpace._end`,
		"G1": `
			G1CollectedHeap._hrm HeapRegionManager._regions|G1HeapRegionManager._regions G1HeapRegionTable._base
			G1HeapRegionTable._length Space._bottom|HeapRegion._bottom|G1HeapRegion._bottom
			G1ContiguousSpace._top|HeapRegion._top|G1HeapRegion._top
			Space._end|HeapRegion._end|G1HeapRegion._end HeapRegion._type|G1HeapRegion._type
			HeapRegionType._tag|G1HeapRegionType._tag HeapRegion.GrainBytes|G1HeapRegion.GrainBytes`,
	}
	statics = `
		JVMFlag.flags JVMFlag.numFlags Universe._collectedHeap ClassLoaderDataGraph._head
		CompressedKlassPointers._narrow_klass._base CompressedKlassPointers._base
		Universe._narrow_klass._base Universe._narrow_klass._shift Threads._thread_list
		CompressedKlassPointers._narrow_klass._shift CompressedKlassPointers._shift java_lang_Class._oop_size_offset
		ThreadsSMRSupport._java_thread_list ThreadLocalAllocBuffer._reserve_for_allocation_prefetch PerfMemory._start
		PerfMemory._top HeapRegion.GrainBytes G1HeapRegion.GrainBytes CollectedHeap._lab_alignment_reserve`
	// of Parallel: not static any more from 27 on
	staticTo26    = "ParallelScavengeHeap._young_gen ParallelScavengeHeap._old_gen"
	longConstants = []string{"marked_value", "age_shift"}
	tags          = []string{"EdenTag", "SurvTag", "OldMask", "FreeTag", "StartsHumongousTag", "ContinuesHumongousTag"}
	columns       = []string{
		"StructEntryTypeNameOffset", "StructEntryFieldNameOffset", "StructEntryTypeStringOffset",
		"StructEntryIsStaticOffset", "StructEntryOffsetOffset", "StructEntryAddressOffset", "StructEntryArrayStride",
		"TypeEntryTypeNameOffset", "TypeEntrySizeOffset", "TypeEntryArrayStride", "IntConstantEntryNameOffset",
		"IntConstantEntryValueOffset", "IntConstantEntryArrayStride", "LongConstantEntryNameOffset",
		"LongConstantEntryValueOffset", "LongConstantEntryArrayStride",
	}
	exported = []string{"Structs", "Types", "IntConstants", "LongConstants"}
)

// libjvms gives one library of each JDK on this machine that has a tested layout, by version.
func libjvms(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	releases, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, r := range releases {
		b, err := os.ReadFile(r)
		if err != nil {
			continue
		}
		for _, major := range Tested() {
			lib := filepath.Join(filepath.Dir(r), "lib/server/libjvm.so")
			if _, err := os.Stat(lib); err == nil && bytes.Contains(b, fmt.Appendf(nil, `JAVA_VERSION="%d`, major)) {
				found[fmt.Sprint(major)] = lib
			}
		}
	}
	if one, home, ok := strings.Cut(os.Getenv("HEAPCAM_JDKS"), "="); ok { // of tools/test-jdks: this one alone
		found = map[string]string{one: filepath.Join(home, "lib/server/libjvm.so")}
	}
	if len(found) == 0 {
		t.Skip("not run: damaged tables of a libjvm (no JDK in /usr/lib/jvm)")
	}
	return found
}

// loaderHarness compiles testdata/loader.c with the loader, or takes the file that HEAPCAM_LOADER names: where a JDK
// runs in a root of its own there is no compiler.
func loaderHarness(t *testing.T, lib string) string {
	t.Helper()
	made := os.Getenv("HEAPCAM_LOADER")
	if _, err := os.Stat(made); made != "" && err == nil {
		return made
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: damaged tables of a libjvm (there is no gcc)")
	}
	includes, _ := filepath.Glob(filepath.Join(filepath.Dir(lib), "../../include/jvmti.h"))
	if len(includes) == 0 {
		includes, _ = filepath.Glob("/usr/lib/jvm/*/include/jvmti.h")
	}
	if len(includes) == 0 {
		t.Skip("not run: damaged tables of a libjvm (there is no jvmti.h)")
	}
	include, out := filepath.Dir(includes[0]), filepath.Join(t.TempDir(), "loader")
	if made != "" {
		out = made
	}
	flags := []string{"-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I" + include,
		"-I" + include + "/linux", "-I.", "-Isrc"}
	gcc := func(args ...string) {
		t.Helper()
		if b, err := exec.Command("gcc", append(flags, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, b)
		}
	}
	// The guard is the probe's own; the tables and what is refused are the harness's.
	gcc("-Dos_symbol=real_os_symbol", "-Dos_library_of=real_os_library_of", "-Dsafe_read=real_safe_read", "-c",
		"src/os_posix.c", "-o", out+".o")
	gcc("testdata/loader.c", "src/vmstructs.c", "src/vmrows.c", "src/vmtable.c", "src/pool.c", "src/native.c",
		"src/guard.c", "src/perfmemory.c", out+".o", "-o", out, "-ldl", "-lpthread")
	return out
}

// expect is a case and what its refusal must name; "": the tables load.
type expect struct{ line, name string }

// named gives those of several names that this JDK has.
func named(major int, collector, names string) (of []string) {
	for _, n := range strings.Split(names, "|") {
		full := strings.Replace(n, ".", "::", 1)
		known := false
		for _, r := range Rows() {
			if r.FullName() == full && (r.Collector == "" || r.Collector == collector) {
				known = true
				if r.In(major) && !slices.Contains(of, n) {
					of = append(of, n)
				}
			}
		}
		if !known {
			of = append(of, n) // the table lost it
		}
	}
	return of
}

func directedCases(major int, collector string) [][]expect {
	isStatic := map[string]bool{}
	for _, s := range strings.Fields(statics) {
		isStatic[s] = true
	}
	for _, s := range strings.Fields(staticTo26) {
		isStatic[s] = major <= 26
	}
	all := [][]expect{{{"nothing", ""}}, {{"remove NamedThread _processed_thread", ""}}}
	for c, fields := range of {
		if c != collector { // what another collector needs may be missing or of another kind
			first := strings.Fields(fields)[0]
			var both []expect
			for _, n := range named(major, c, first) {
				both = append(both, expect{"flip " + strings.Replace(n, ".", " ", 1), ""})
			}
			all = append(all, both)
		}
	}
	for _, f := range strings.Fields(always + " " + of[collector]) {
		for _, d := range []string{"remove %s", "flip %s", "twice %s", "untyped %s", "offset %s 1048576",
			"offset %s -8", "offset %s 3", "address %s 0", "address %s 8"} {
			var either []expect
			for _, n := range named(major, collector, f) {
				if strings.HasPrefix(d, "offset") && isStatic[n] || strings.HasPrefix(d, "address") && !isStatic[n] {
					continue
				}
				name := strings.Replace(n, ".", "::", 1)
				switch {
				case strings.HasPrefix(d, "flip") && isStatic[n]:
					name += " is not static in this JVM"
				case strings.HasPrefix(d, "flip"):
					name += " is static in this JVM"
				case strings.HasPrefix(d, "untyped"):
					name += ` has the type "Widget"`
				}
				either = append(either, expect{fmt.Sprintf(d, strings.Replace(n, ".", " ", 1)), name})
			}
			if len(either) > 0 {
				all = append(all, either)
			}
		}
	}
	for _, c := range longConstants {
		c = map[bool]string{true: "markOopDesc::", false: "markWord::"}[major < 17] + c
		all = append(all, []expect{{"noconstant " + c, c}}, []expect{{"constant " + c + " 2", c}})
	}
	for _, c := range tags {
		a, b := "HeapRegionType::"+c, "G1HeapRegionType::"+c
		for _, d := range []string{"noconstant %s", "constant %s 100000", "constant %s -1"} {
			e := []expect{{fmt.Sprintf(d, a), a}, {fmt.Sprintf(d, b), b}}
			if collector != "G1" {
				e[0].name, e[1].name = "", ""
			}
			all = append(all, e)
		}
	}
	for _, s := range exported {
		all = append(all, []expect{{"nosymbol gHotSpotVM" + s, "gHotSpotVM" + s}},
			[]expect{{"symbol gHotSpotVM" + s + " 0", "gHotSpotVM" + s}},
			[]expect{{"symbol gHotSpotVM" + s + " 4096", "gHotSpotVM" + s}})
	}
	for _, s := range columns {
		name := "gHotSpotVM" + s
		all = append(all, []expect{{"nosymbol " + name, name}})
		if table, ok := strings.CutSuffix(s, "EntryArrayStride"); ok {
			name = "gHotSpotVM" + table + "s has" // "gHotSpotVMTypes is at … and has a stride of …"
			name = strings.TrimSuffix(name, " has")
		}
		for _, v := range []string{"7", "257", "4096", "18446744073709551608"} {
			all = append(all, []expect{{"symbol gHotSpotVM" + s + " " + v, name}})
		}
	}
	return append(all, []expect{{"flag UsePerfData 0", "-XX:-UsePerfData"}})
}

// TestDamagedTables feeds the loader with tables of real libraries that are damaged in many ways: it loads them or
// refuses them in one line, and neither crashes nor hangs. What it cannot do without it refuses by name. With
// HEAPCAM_FULL=1: 120,000 damaged tables instead of 1,200.
func TestDamagedTables(t *testing.T) {
	tiers.Gate(t, "1,200 damaged tables")
	libs := libjvms(t)
	var harness string
	for _, lib := range libs {
		harness = loaderHarness(t, lib)
		break
	}
	count := 100
	if os.Getenv("HEAPCAM_FULL") != "" {
		count = 10000
	}
	limit := make(chan struct{}, 2)
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	run := func(major, lib, collector, reads, input string, args ...string) []string {
		limit <- struct{}{}
		defer func() { <-limit }()
		cmd := exec.Command(harness, append([]string{lib, collector, reads}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		cmd.Env = append(os.Environ(), "LOADER_MAJOR="+major)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s %s %s: %v %s", lib, collector, reads, err, stderr.String())
		}
		return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	}
	verdict := func(line string) (what, v string) {
		p := strings.SplitN(line, "\t", 3)
		if len(p) != 3 {
			return line, "no answer"
		}
		return p[1], p[2]
	}
	survived := func(v string) bool { return v == "loaded" || strings.HasPrefix(v, "refused: ") }
	loaded, refused := 0, 0
	for major, lib := range libs {
		for collector := range of {
			for _, reads := range []string{"copy", "guard"} {
				wg.Add(1)
				go func() {
					defer wg.Done()
					seed := "1"
					lines := run(major, lib, collector, reads, "", "random", seed, fmt.Sprint(count))
					if len(lines) != count {
						t.Errorf("JDK %s, %s, %s: %d answers to %d cases", major, collector, reads, len(lines), count)
					}
					bad := 0
					mu.Lock()
					defer mu.Unlock()
					for _, l := range lines {
						_, v := verdict(l)
						if v == "loaded" {
							loaded++
						} else {
							refused++
						}
						if !survived(v) {
							if bad++; bad < 5 {
								t.Errorf("JDK %s, %s, %s, seed %s: case %s", major, collector, reads, seed, l)
							}
						}
					}
					if bad > 0 {
						t.Errorf("JDK %s, %s, %s: %d of %d cases are neither loaded nor refused", major, collector,
							reads, bad, count)
					}
				}()
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				n, err := strconv.Atoi(major)
				if err != nil {
					t.Error(err)
				}
				cases := directedCases(n, collector)
				var input strings.Builder
				for _, either := range cases {
					for _, e := range either {
						fmt.Fprintln(&input, e.line)
					}
				}
				lines := run(major, lib, collector, "copy", input.String(), "cases")
				for _, either := range cases {
					done := false
					for _, e := range either {
						if len(lines) == 0 {
							t.Errorf("JDK %s, %s: no answer to %q", major, collector, e.line)
							return
						}
						what, v := verdict(lines[0])
						lines = lines[1:]
						if v == "nothing to damage" { // the other name is this JDK's
							continue
						}
						done = true
						if what != e.line || e.name == "" && v != "loaded" ||
							e.name != "" && (!strings.HasPrefix(v, "refused: ") || !strings.Contains(v, e.name)) {
							t.Errorf("JDK %s, %s: %q: %s; want %q", major, collector, e.line, v, e.name)
						}
					}
					if !done {
						t.Errorf("JDK %s, %s: %q: this JDK has none of these", major, collector, either[0].line)
					}
				}
			}()
		}
	}
	wg.Wait()
	if loaded < refused/4 || refused < loaded/4 { // else the damage is too little or too much to say anything
		t.Errorf("%d loaded, %d refused", loaded, refused)
	}
	t.Logf("%d loaded, %d refused", loaded, refused)
}

// TestOtherMajors gives the tables of a JDK to the loader as those of another one. Too old a JDK is refused by its
// version. One between two tested JDKs may have the names of either. One that is newer than all of them must have the
// newest names and kinds.
func TestOtherMajors(t *testing.T) {
	harness := ""
	for major, lib := range libjvms(t) {
		if harness == "" {
			harness = loaderHarness(t, lib)
		}
		own, err := strconv.Atoi(major)
		if err != nil {
			t.Fatal(err)
		}
		newest := Tested()[len(Tested())-1]
		cases := map[int]string{8: "JDK 8 is too old", newest + 1: "loaded"}
		if own < 27 {
			cases[newest+1] = "ParallelScavengeHeap::_young_gen is static in this JVM"
		}
		// whatever a JVM says of itself
		cases[math.MaxInt32] = cases[newest+1]
		cases[0], cases[-1], cases[math.MinInt32] = "too old", "too old", "too old"
		if between := own + 2; !slices.Contains(Tested(), between) && between < newest {
			cases[between] = "loaded"
		}
		for as, want := range cases {
			cmd := exec.Command(harness, lib, "Parallel", "copy", "cases")
			cmd.Stdin = strings.NewReader("nothing\n")
			cmd.Env = append(os.Environ(), fmt.Sprintf("LOADER_MAJOR=%d", as))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("JDK %s as %d: %v %s; want %q", major, as, err, out, want)
			}
		}
	}
}
