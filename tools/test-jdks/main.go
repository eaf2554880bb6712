// Command test-jdks runs a set of the end-to-end tests with every JDK that heapcam records, and keeps the results.
//
//	test-jdks [-jdks 11,27] [-parts pairs,oracle] [-again] [-forget]
//	test-jdks -page
//
// A JDK that is installed in /usr/lib/jvm runs there; others run in a Debian root that tools/jdk-root makes. The
// results are in docs/benchmarks/jdks.json, and docs/reference/jdks.md is made from them; -page makes the page alone.
// What has passed with this version of the probe and of the JDK is not run again unless -again is given. So an
// interrupted run continues where it ended. -forget runs all, and writes no file of docs. The exit status is 1 if a
// test failed.
package main

import (
	"cmp"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/probe"
)

// part is one capability and the tests that show it.
type part struct {
	name, shows, tests string
	timeout            time.Duration
	folder             string // of the tests; "": internal/e2e
}

// set is what each JDK must pass. All of it takes less than 12 minutes on two cores.
var set = []part{
	{"tables", "the probe refuses damaged tables of this libjvm, and those of another JDK, in one line",
		"^Test(DamagedTables|OtherMajors)$", time.Minute, "probe"},
	{"pairs", "the heap that a reader rebuilds equals every listing, at depths `survivors` and " +
		"`full`", "^TestPairs$", 4 * time.Minute, ""},
	{"oracle", "the probe finds the same objects as JVMTI's own heap " +
		"iteration", "^TestOracleInside$", 5 * time.Minute, ""},
	{"histogram", "the recorded heap equals `jcmd GC.class_histogram`; with Serial and Parallel only from JDK " +
		"25 on\n([limits](../explanation/limits.md#limits-of-the-method))", "^TestHistogram$", 2 * time.Minute, ""},
	{"known sites", "the estimated number of objects of a site fits the true " +
		"one", "^TestKnownSites$", 4 * time.Minute, ""},
	{"situations", "a recording is right with class unloading, humongous objects, virtual threads and " +
		"others", "^TestSituations$",
		8 * time.Minute, ""},
	{"kills", "a recording can be read as a whole after a kill of the JVM, the recorder or the " +
		"agent", "^TestKill(JVM|Recorder|Agent)$",
		4 * time.Minute, ""},
	{"collectors", "ZGC, Shenandoah and Epsilon give right sites, live samples and cycles at depth samples",
		"^Test(Watched|WatchedCheckJNI|WatchedAttach|WatchedKill)$", 6 * time.Minute, ""},
	{"guard", "the recording continues after a memory fault of the probe in a " +
		"pause", "^TestGuard$", 2 * time.Minute, ""},
	{"untested", "the self-check accepts this JDK when the probe takes it for an untested " +
		"one", "^TestUntested$", 3 * time.Minute, ""},
}

func main() {
	jdks := flag.String("jdks", "", "majors, comma-separated; default: all that heapcam records")
	parts := flag.String("parts", "", "parts of the set, comma-separated; default: all")
	again := flag.Bool("again", false, "run what has passed, too")
	forget := flag.Bool("forget", false, "run what has passed, too, and keep no results")
	page := flag.Bool("page", false, "make docs/reference/jdks.md from the results, and run nothing")
	flag.Parse()
	r, err := load(resultsFile)
	if err == nil && *page {
		err = r.writePage()
	} else if err == nil {
		err = runAll(r, list(*jdks), list(*parts), *again || *forget, !*forget)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "test-jdks:", err)
		os.Exit(1)
	}
}

func list(s string) []string {
	return slices.DeleteFunc(strings.Split(s, ","), func(s string) bool { return s == "" })
}

func runAll(r *results, jdks, parts []string, again, keep bool) error {
	if err := build(); err != nil {
		return err
	}
	hash, err := sources()
	if err != nil {
		return err
	}
	failed := 0
	for _, major := range probe.Tested() {
		if len(jdks) > 0 && !slices.Contains(jdks, strconv.Itoa(major)) {
			continue
		}
		j, err := find(major)
		if err != nil {
			return err
		}
		for _, p := range set {
			if len(parts) > 0 && !slices.Contains(parts, p.name) || !again && r.passed(p.name, j, hash) {
				continue
			}
			res, err := j.run(p)
			if err != nil {
				return err
			}
			res.Probe = hash
			fmt.Println(res)
			failed += len(res.Failed)
			r.put(res)
			if !keep {
				continue
			}
			if err := r.save(); err != nil { // what is done stays done
				return err
			}
		}
	}
	if keep {
		if err := r.writePage(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d tests failed", failed)
	}
	return nil
}

// build compiles the tests here: a root has no compiler.
func build() error {
	for _, folder := range []string{"internal/e2e", "probe"} {
		c := exec.Command("go", "test", "-c", "-o", testBinary(folder), "./"+folder)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build of the tests: %w\n%s", err, out)
		}
	}
	loader, err := filepath.Abs(loaderFile)
	if err != nil {
		return err
	}
	if err := os.Remove(loader); err != nil && !os.IsNotExist(err) {
		return err
	}
	c := exec.Command("go", "test", "-count=1", "-run", "^TestDamagedTables$", "./probe")
	c.Env = append(os.Environ(), "HEAPCAM_LOADER="+loader)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("the tables of the JDKs here: %w\n%s", err, out)
	}
	return nil
}

const loaderFile = "bin/loader" // what the tests of the probe feed with tables

func testBinary(folder string) string { return "bin/" + filepath.Base(folder) + ".test" }

// sources is a hash of the probe's sources: results of other sources are not those of this probe.
func sources() (string, error) {
	files, err := filepath.Glob("probe/src/*")
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no probe/src here: run it in the repository's root (%v)", err)
	}
	h := sha256.New()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", f, len(b))
		h.Write(b)
	}
	return fmt.Sprintf("%.6x", h.Sum(nil)), nil
}

// jdk is one installed JDK.
type jdk struct {
	major   int
	home    string // as its tests see it
	version string // with the vendor
	root    bool   // in a root of tools/jdk-root
}

var (
	releaseVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="([^"]*)"`)
	releaseVendor  = regexp.MustCompile(`(?m)^IMPLEMENTOR="([^"]*)"`)
)

// find looks for a JDK on this machine, then makes a root with it.
func find(major int) (jdk, error) {
	homes, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, f := range homes {
		home := filepath.Dir(f)
		if _, err := os.Stat(filepath.Join(home, "bin/javac")); err != nil {
			continue
		}
		v := version(home)
		if m, _, _ := strings.Cut(strings.Fields(v + " ?")[0], "."); m == strconv.Itoa(major) {
			return jdk{major: major, home: home, version: v}, nil
		}
	}
	c := exec.Command("tools/jdk-root", strconv.Itoa(major))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return jdk{}, fmt.Errorf("tools/jdk-root %d: %w", major, err)
	}
	where := strings.Fields(string(out))
	if len(where) != 2 {
		return jdk{}, fmt.Errorf("tools/jdk-root %d says %q", major, out)
	}
	return jdk{major: major, home: where[0], version: version(filepath.Join(where[1], where[0])), root: true}, nil
}

func version(home string) string {
	b, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return ""
	}
	var words []string
	for _, re := range []*regexp.Regexp{releaseVersion, releaseVendor} {
		if m := re.FindSubmatch(b); m != nil {
			words = append(words, string(m[1]))
		}
	}
	return strings.Join(words, " ")
}

// run runs one part. A test binary that ends before its last test has failed.
func (j jdk) run(p part) (result, error) {
	dir, err := os.Getwd()
	if err != nil {
		return result{}, err
	}
	folder := cmp.Or(p.folder, "internal/e2e")
	args := []string{filepath.Join(dir, testBinary(folder)), "-test.v", "-test.parallel", "2", "-test.run", p.tests,
		"-test.timeout", p.timeout.String()}
	if j.root {
		args = append([]string{filepath.Join(dir, "tools/jdk-root"), strconv.Itoa(j.major)}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Dir = filepath.Join(dir, folder)
	c.Env = append(os.Environ(), fmt.Sprintf("HEAPCAM_JDKS=%d=%s", j.major, j.home),
		"HEAPCAM_BIN="+filepath.Join(dir, "bin/heapcam"), "HEAPCAM_LOADER="+filepath.Join(dir, loaderFile),
		"JDK_BIND="+dir)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	begun := time.Now()
	err = c.Run()
	res := result{Part: p.name, JDK: j.major, Version: j.version, Date: begun.UTC().Format(time.DateOnly),
		Seconds: int(time.Since(begun).Seconds())}
	res.count(out.String())
	if err != nil && len(res.Failed) == 0 {
		res.Failed = []string{"the test binary: " + err.Error()}
	}
	if len(res.Failed) > 0 {
		name := fmt.Sprintf("test-jdks-%d-%s.log", j.major, strings.ReplaceAll(p.name, " ", "-"))
		log := filepath.Join("bin", name)
		if err := os.WriteFile(log, []byte(out.String()), 0o644); err != nil {
			return res, err
		}
		fmt.Println("the output is in " + log)
	}
	return res, nil
}
