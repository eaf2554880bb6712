package e2e

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/heapcam/heapcam/probe"
)

var collectors = []string{"Serial", "Parallel", "G1"}

// named is what HEAPCAM_JDKS says, as in "11=/opt/jdk-11,27=/opt/jdk-27": JDKs by their majors.
var named = sync.OnceValue(func() map[int]string {
	homes := map[int]string{}
	for one := range strings.SplitSeq(os.Getenv("HEAPCAM_JDKS"), ",") {
		if major, home, ok := strings.Cut(one, "="); ok {
			n, err := strconv.Atoi(major)
			if err != nil {
				panic("HEAPCAM_JDKS: " + err.Error())
			}
			homes[n] = home
		}
	}
	return homes
})

// majors are the JDKs that tests of any JDK run on: those of HEAPCAM_JDKS, or 17 and 25.
func majors() []int {
	if len(named()) == 0 {
		return []int{17, 25}
	}
	return slices.Sorted(maps.Keys(named()))
}

// between are the majors from first to last; last 0: there is no last one.
func between(first, last int) []int {
	return slices.DeleteFunc(majors(), func(m int) bool { return m < first || last != 0 && m > last })
}

// jdks finds one JDK of each major: those of HEAPCAM_JDKS, and 17 and 25 where Debian and Adoptium install them.
var jdks = sync.OnceValue(func() map[int]string {
	found := map[int]string{}
	files, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, major := range []int{17, 25} {
			home := filepath.Dir(f)
			if _, err := os.Stat(filepath.Join(home, "bin", "javac")); err == nil &&
				bytes.Contains(b, fmt.Appendf(nil, `JAVA_VERSION="%d`, major)) {
				found[major] = home
			}
		}
	}
	maps.Copy(found, named())
	return found
})

func jdk(t *testing.T, major int) string {
	t.Helper()
	if _, err := probe.Library(); err != nil && os.Getenv("HEAPCAM_BIN") == "" {
		t.Skip("not run: tests on real JVMs (the probe is not compiled: make probe)")
	}
	home, ok := jdks()[major]
	if !ok {
		t.Skipf("not run: JDK %d (%d collectors)", major, len(collectors))
	}
	return home
}

// classes compiles java/*.java once, for every JDK.
var classes = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "classes")
	home := jdks()[majors()[0]]
	if home == "" {
		found, err := exec.Command("../../tools/jdk-home").Output()
		if err != nil {
			return "", fmt.Errorf("tools/jdk-home: %w", err)
		}
		home = strings.TrimSpace(string(found))
	}
	src, err := filepath.Glob("java/*.java")
	more, _ := filepath.Glob("java/leaks/*.java")
	src = append(src, more...)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(filepath.Join(home, "bin", "javac"),
		append([]string{"--release", "11", "-Xlint:-options", "-d", dir}, src...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return dir, nil
})

func classPath(t *testing.T) string {
	t.Helper()
	dir, err := classes()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// eachPair runs f on every collector of every JDK.
func eachPair(t *testing.T, majors []int, gcs []string, f func(t *testing.T, major int, gc string)) {
	for _, major := range majors {
		for _, gc := range gcs {
			t.Run(fmt.Sprintf("%s/%d", gc, major), func(t *testing.T) { f(t, major, gc) })
		}
	}
}

// parts is all of these parts of a test in the long rounds, and in the short ones the first alone.
func parts[T any](t *testing.T, all ...T) []T {
	t.Helper()
	if full || len(named()) > 0 {
		return all
	}
	t.Logf("not run: %d more parts (make test-full)", len(all)-1)
	return all[:1]
}

// someMajors is all of these JDKs in the long rounds, and in the short ones the one whose turn it is for this name.
func someMajors(name string, majors []int) []int {
	if full || len(named()) > 0 {
		return majors
	}
	had := slices.DeleteFunc(slices.Clone(majors), func(m int) bool { return jdks()[m] == "" })
	if len(had) == 0 {
		return majors
	}
	return had[int(crc32.ChecksumIEEE([]byte(name))%uint32(len(had))):][:1]
}

// somePair is eachPair in the long rounds and for the JDKs of HEAPCAM_JDKS. In the short ones it runs f on one pair
// only, another one for each name: every test on its own pair, all pairs together; TestPairs has them all.
func somePair(t *testing.T, name string, majors []int, gcs []string, f func(t *testing.T, major int, gc string)) {
	if !full && len(named()) == 0 {
		wanted := majors
		majors = slices.DeleteFunc(slices.Clone(majors), func(m int) bool { return len(majors) > 1 && jdks()[m] == "" })
		if len(majors) == 0 {
			t.Skipf("not run: %s (none of JDK %d)", name, wanted)
		}
		n := int(crc32.ChecksumIEEE([]byte(name)) % uint32(len(majors)*len(gcs)))
		majors, gcs = majors[n%len(majors):][:1], gcs[n/len(majors):][:1]
	}
	eachPair(t, majors, gcs, f)
}
