package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/probe"
)

var (
	oracleSum = regexp.MustCompile(`objects=(\d+) bytes=(\d+) jvmti_objects=(\d+) jvmti_bytes=(\d+) classes=(\d+) ` +
		`differ=(\d+) unknown=(\d+) untagged=(\d+) holes=(\d+)\n`)
	oracleLine = regexp.MustCompile(
		`oracle: (differs|class only in the walk:) (\S+) (?:jvmti=(\d+)/\d+ walk=(\d+)/)?`)
)

// oracleAnswer reads the answer of that number: what is wrong with it, and whether the walk has more objects of some
// classes and fewer of none. G1 of 20 and later puts fillers over the dead objects of old space concurrently, after a
// marking. Until then JVMTI leaves them out, and the walk finds them. There may be fewer of them than holes.
//
// A class that is loaded between the oracle's list of classes and its stop has objects that JVMTI gives no name:
// loading.
func oracleAnswer(text string, number int) (problems []string, more, loading bool) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	sums := oracleSum.FindAllStringSubmatchIndex(text, number)
	from := 0
	if number > 1 {
		from = sums[number-2][1]
	}
	text = text[from:sums[number-1][1]]
	s := oracleSum.FindStringSubmatch(text)
	n := make([]int, len(s))
	for i := range s[1:] {
		n[i+1], _ = strconv.Atoi(s[i+1])
	}
	if n[3] < 10_000 || n[5] < 300 {
		bad("too little to compare: %s", s[0])
	}
	if n[7] != 0 {
		bad("objects of unknown classes: %s", s[0])
	}
	// A hole is the rest of a thread's buffer. JVMTI fills it for its own iteration and counts the filler: int[] on
	// 17, a class of its own on 25.
	holes, less := n[9], false
	for _, d := range oracleLine.FindAllStringSubmatch(text, -1) {
		jvmti, _ := strconv.Atoi(d[3])
		walk, _ := strconv.Atoi(d[4])
		if f := d[2]; d[1] == "differs" &&
			(f == "[I" || f == "Ljava/lang/Object;" || strings.Contains(f, "jdk/internal/vm/Filler")) {
			holes -= jvmti - walk
			continue
		}
		less = less || d[1] == "differs" && walk < jvmti
		bad("walk and JVMTI differ: %s", d[0])
	}
	more = !less && n[7] == 0 && n[1]+n[9] > n[3]
	if holes != 0 {
		bad("the fillers that JVMTI made and the holes that the walk stepped over differ by %d\n%s", holes, tail(text))
	}
	return problems, more, n[8] > 0
}

// TestOracleAnswer: a few dead objects beside more holes are no fault of the walk, and a missing object is one.
func TestOracleAnswer(t *testing.T) {
	t.Parallel()
	sum := func(walk, jvmti, differ, holes int) string {
		return fmt.Sprintf("heapcam: oracle: objects=%d bytes=1 jvmti_objects=%d jvmti_bytes=1 classes=400 differ=%d "+
			"unknown=0 untagged=0 holes=%d\n", walk, jvmti, differ, holes)
	}
	untagged := strings.NewReplacer("untagged=0", "untagged=1")
	differs := func(class string, jvmti, walk int) string {
		return fmt.Sprintf("heapcam: oracle: differs %s jvmti=%d/1 walk=%d/1\n", class, jvmti, walk)
	}
	const filler = "Ljdk/internal/vm/FillerArray;"
	fillers := differs(filler, 20, 0)
	for name, c := range map[string]struct {
		text                 string
		wrong, more, loading bool
	}{
		"equal":                   {fillers + sum(50_000, 50_020, 1, 20), false, false, false},
		"dead, more than holes":   {fillers + differs("LA;", 5, 605) + sum(50_600, 50_020, 2, 20), true, true, false},
		"dead, fewer than holes":  {fillers + differs("LA;", 5, 8) + sum(50_003, 50_020, 2, 20), true, true, false},
		"dead, of fillers' class": {differs("[I", 30, 13) + sum(50_003, 50_020, 1, 20), true, true, false},
		"missing":                 {fillers + differs("LA;", 8, 5) + sum(49_997, 50_020, 2, 20), true, false, false},
		"loading": {fillers + "heapcam: oracle: class only in the walk: LA; objects=1\n" +
			untagged.Replace(sum(50_000, 50_020, 1, 20)), true, false, true},
		"dead and missing": {fillers + differs("LA;", 8, 5) + differs("LB;", 5, 50) +
			sum(50_042, 50_020, 3, 20), true, false, false},
	} {
		problems, more, loading := oracleAnswer(c.text, 1)
		if len(problems) > 0 != c.wrong || more != c.more || loading != c.loading {
			t.Errorf("%s: %q, more: %v, loading: %v", name, problems, more, loading)
		}
	}
}

// TestOracleInside has the probe compare its walk with JVMTI's heap iteration inside one stop, twice in a program's
// run: every class has as many objects and bytes.
func TestOracleInside(t *testing.T) {
	t.Parallel()
	// no program: Until, which ends when both have been answered
	run := func(t *testing.T, program []string, major int, gc string, opts ...string) {
		t.Parallel()
		home := jdk(t, major)
		lib, err := probe.Library()
		if err != nil {
			t.Skip("not run: the oracle inside (the probe is not compiled: make probe)")
		}
		dir := t.TempDir()
		so := filepath.Join(dir, "libheapcam.so")
		if err := os.WriteFile(so, lib, 0o700); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr buffer
		c := exec.Command(filepath.Join(home, "bin", "java"),
			append(opts, "-Xmx64m", "-XX:+Use"+gc+"GC", "-agentpath:"+so+"=dir="+dir+",oracle=1",
				"-cp", classPath(t))...)
		end := filepath.Join(dir, "end")
		if program == nil {
			c.Args = append(c.Args, "Until", end, "20000", "0")
		}
		for _, a := range program {
			if a == "END" {
				a = end
			}
			c.Args = append(c.Args, a)
		}
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		defer c.Process.Kill()
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(tail(stderr.String()))
			}
		})
		ring := openRing(t, dir)
		defer ring.Close()
		const offEmergency, offMethod, oracle = 328, 336, 3
		for i, equal := byte(1), 0; equal < 2; i++ {
			time.Sleep(500 * time.Millisecond)
			ring.WriteAt([]byte{oracle}, offMethod)
			ring.WriteAt([]byte{i}, offEmergency)
			answered := func() bool { return len(oracleSum.FindAllString(stderr.String(), -1)) >= int(i) }
			// 15 s an answer where twenty programs share two processors
			for end := time.Now().Add(2 * time.Minute); !answered() && syscall.Kill(c.Process.Pid, 0) == nil; {
				if time.Now().After(end) {
					c.Process.Signal(syscall.SIGQUIT) // where the threads are
					time.Sleep(2 * time.Second)
					t.Fatalf("no answer of the oracle in 2 minutes\n%s", stdout.String())
				}
				time.Sleep(5 * time.Millisecond)
			}
			text := stderr.String()
			if !answered() {
				t.Fatalf("%d answers of the oracle, want 2\n%s", i-1, tail(text))
			}
			problems, more, loading := oracleAnswer(text, int(i))
			if len(problems) == 0 {
				equal++
			} else if more && gc == "G1" && major >= 20 && i < 10 {
				t.Log("a marking has ended, and not all dead objects have fillers over them: the oracle is asked again")
			} else if loading && i < 10 {
				t.Log("a class was loaded between the oracle's list of classes and its stop: the oracle is asked again")
			} else {
				for _, p := range problems {
					t.Error(p)
				}
				break
			}
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || !strings.HasSuffix(stdout.String(), "done\n") {
			t.Fatalf("the JVM: %v\n%s", err, tail(stderr.String()))
		}
	}
	for _, major := range majors() { // in the short rounds one pair each; the parts below have more
		gcs := collectors
		if !full && len(named()) == 0 {
			gcs = gcs[major/10%len(gcs):][:1]
		}
		eachPair(t, []int{major}, gcs, func(t *testing.T, major int, gc string) { run(t, nil, major, gc) })
	}
	virtual := []string{"Virtual", "800"}
	for _, c := range []struct {
		name     string
		program  []string
		from, to int
		gc       string
		opts     []string
	}{
		{"compact headers", nil, 25, 0, "G1", []string{"-XX:+UseCompactObjectHeaders"}},
		{"plain headers", nil, 27, 0, "G1", []string{"-XX:-UseCompactObjectHeaders"}},
		{"uncompacted", []string{"Uncompacted", "END"}, 17, 19, "G1", nil},
		{"virtual threads", virtual, 21, 0, "G1", nil},
		{"wide virtual threads", virtual, 21, 0, "Serial", []string{"-XX:-UseCompressedOops"}},
	} {
		for _, major := range between(c.from, c.to) {
			name := fmt.Sprintf("%s/%s/%d", c.name, c.gc, major)
			t.Run(name, func(t *testing.T) { run(t, c.program, major, c.gc, c.opts...) })
		}
	}
}
