// Command holders measures what it takes to learn who holds the objects of a heap: with a reference listing and
// `heapcam holders`, and with what else there is (a heap dump read by VisualVM's library, JFR's old object samples).
//
//	go run ./bench/holders -jdk HOME [-lib org-graalvm-visualvm-lib-jfluid-heap.jar] [OBJECTS…]
//	go run ./bench/holders -also '-cp CLASSES MAIN' [OBJECTS…]
//	go run ./bench/holders -stop [-program Mixed] [OBJECTS…]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var (
	home = flag.String("jdk", "/usr/lib/jvm/java-17-openjdk-amd64", "folder of the JDK")
	gc   = flag.String("gc", "Serial", "collector")
	prog = flag.String("program", "Held", "program of bench/holders; Held, unless -stop is given")
	stop = flag.Bool("stop", false, "compare the stop of a reference listing with a heap dump only, each several times")
	lib  = flag.String("lib", "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar",
		"VisualVM's heap library (package visualvm)")
	also = flag.String("also", "",
		"arguments of java for another program that reads a heap dump; it gets the file and how many objects to name")
)

func main() {
	flag.Parse()
	sizes := flag.Args()
	if len(sizes) == 0 {
		sizes = []string{"1000000", "5000000", "10000000"}
	}
	if *stop {
		fmt.Println("| objects | references an object | CPU of the stop, ms | stop, ms | ns of CPU an object | " +
			"CPU of a heap dump, s | share |\n|---|---|---|---|---|---|---|")
		each(sizes, measureStop)
		return
	}
	fmt.Println("| objects | what | CPU of the JVM, s | longest stop, s | file, MB | CPU until the answer, s | " +
		"elapsed, s | memory, MB |\n|---|---|---|---|---|---|---|---|")
	each(sizes, measure)
}

func each(sizes []string, measure func(n string) error) {
	for _, n := range sizes {
		if err := measure(n); err != nil {
			fmt.Fprintln(os.Stderr, "holders:", err)
			os.Exit(1)
		}
	}
}

// jvm is a running program.
type jvm struct {
	cmd *exec.Cmd
	in  interface{ Close() error }
}

func start(dir, n string, options ...string) (*jvm, error) {
	args := append(options, "-XX:+Use"+*gc+"GC", "-Xms8g", "-Xmx8g", "-Xlog:safepoint:file="+safepoints(dir),
		"-cp", dir, *prog, n)
	c := exec.Command(filepath.Join(*home, "bin", "java"), args...)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == "ready" {
			return &jvm{c, in}, nil
		}
	}
	return nil, errors.Join(errors.New("the program did not begin"), c.Wait())
}

func safepoints(dir string) string { return filepath.Join(dir, "safepoint.log") }

var atSafepoint = regexp.MustCompile(`At safepoint: *(\d+) ns`)

// longest gives the longest stop that the JVM has logged, s, and forgets it.
func longest(dir string) (seconds float64) {
	b, err := os.ReadFile(safepoints(dir))
	if err != nil {
		return 0
	}
	for _, m := range atSafepoint.FindAllStringSubmatch(string(b), -1) {
		ns, _ := strconv.ParseFloat(m[1], 64)
		seconds = max(seconds, ns/1e9)
	}
	_ = os.Truncate(safepoints(dir), 0)
	return seconds
}

func (j *jvm) pid() string { return strconv.Itoa(j.cmd.Process.Pid) }

func (j *jvm) end() {
	_ = errors.Join(j.in.Close(), j.cmd.Wait()) // its status says nothing: it ends twice
}

// cpu is what a process has used, s, in hundredths.
func cpu(pid string) float64 {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	u, _ := strconv.ParseFloat(f[11], 64)
	s, _ := strconv.ParseFloat(f[12], 64)
	return (u + s) / 100
}

// took is what a command used.
type took struct{ cpu, wall, memory float64 }

func timed(out *[]byte, name string, args ...string) (t took, err error) {
	begun := time.Now()
	c := exec.Command(name, args...)
	b, err := c.CombinedOutput()
	if err != nil {
		return t, fmt.Errorf("%s: %w: %s", name, err, b)
	}
	if out != nil {
		*out = b
	}
	t.wall = time.Since(begun).Seconds()
	t.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.memory = float64(u.Maxrss) * 1024 / 1e6
	}
	return t, nil
}

func size(path string) (mb float64) {
	_ = filepath.Walk(path, func(_ string, i os.FileInfo, err error) error {
		if err == nil && !i.IsDir() {
			mb += float64(i.Size()) / 1e6
		}
		return nil
	})
	return mb
}

func measure(n string) error {
	dir, err := os.MkdirTemp("", "holders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	j, err := compiled(dir, n)
	if err != nil {
		return err
	}
	defer j.end()
	if err := listing(dir, j); err != nil {
		return err
	}
	if err := dump(dir, j); err != nil {
		return err
	}
	j.end()
	return samples(dir, n)
}

// compiled compiles the program and starts it.
func compiled(dir, n string) (*jvm, error) {
	source := filepath.Join("bench/holders", *prog+".java")
	if _, err := timed(nil, filepath.Join(*home, "bin", "javac"), "-d", dir, source); err != nil {
		return nil, err
	}
	return start(dir, n)
}

// agent is an agent that records one JVM.
type agent struct {
	cmd       *exec.Cmd
	sock, out string
}

func (a *agent) end() { _ = errors.Join(a.cmd.Process.Signal(os.Interrupt), a.cmd.Wait()) }

func (a *agent) pid() string { return strconv.Itoa(a.cmd.Process.Pid) }

func attached(dir string, j *jvm) (*agent, error) {
	a := &agent{sock: filepath.Join(dir, "sock"), out: filepath.Join(dir, "out")}
	a.cmd = exec.Command("bin/heapcam", "agent", "--socket", a.sock, "--out", a.out, "--overhead-cpu", "0",
		"--max-trace-size", "1GiB", "--shm-size", "64MiB")
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	time.Sleep(3 * time.Second)
	if _, err := timed(nil, "bin/heapcam", "attach", j.pid(), "--socket", a.sock); err != nil {
		a.end()
		return nil, err
	}
	time.Sleep(3 * time.Second)
	return a, nil
}

// taken is what heapcam says of a reference listing.
type taken struct {
	Objects, Slots uint64
	StopNS         float64 `json:"stop_ns"`
	WalkNS         float64 `json:"walk_ns"`
}

// listing takes a reference listing and asks who holds the sessions.
func listing(dir string, j *jvm) error {
	g, err := attached(dir, j)
	if err != nil {
		return err
	}
	defer g.end()
	sock, out := g.sock, g.out
	rings, _ := filepath.Glob(filepath.Join(out, "*"))
	before := size(out)
	used, agentUsed := cpu(j.pid()), cpu(g.pid())
	var reply []byte
	_, err = timed(&reply, "bin/heapcam", "references", j.pid(), "--socket", sock, "--max-reference-pause", "20s",
		"--json")
	if err != nil {
		return err
	}
	used, agentUsed = cpu(j.pid())-used, cpu(g.pid())-agentUsed
	var got taken
	if err := json.Unmarshal(reply, &got); err != nil {
		return err
	}
	objects := float64(max(got.Objects, 1))
	fmt.Fprintf(os.Stderr, "%d objects, %.2f references an object, %.1f ns of CPU an object\n", got.Objects,
		float64(got.Slots)/objects, got.WalkNS/objects)
	if _, err := timed(nil, "bin/heapcam", "detach", j.pid(), "--socket", sock); err != nil {
		return err
	}
	written := size(out) - before
	time.Sleep(3 * time.Second) // the graph of a recording that has just changed is not kept
	if err := os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache")); err != nil {
		return err
	}
	var first []byte
	for _, what := range []string{"reference listing, `heapcam holders`", "the same again, from the kept graph"} {
		var said []byte
		a, err := timed(&said, "bin/heapcam", "holders", rings[0], "--class", "Held$Session")
		if err != nil {
			return err
		}
		if !strings.Contains(string(said), "BY_KEY") || first != nil && string(said) != string(first) {
			return fmt.Errorf("not the holder: %s", said)
		}
		first = said
		row(got.Objects, what, used, got.StopNS/1e9, written, agentUsed, a)
	}
	return nil
}

// dump writes a heap dump, and has VisualVM's library find what retains most.
func dump(dir string, j *jvm) error {
	file := filepath.Join(dir, "heap.hprof")
	used := cpu(j.pid())
	longest(dir)
	if _, err := timed(nil, filepath.Join(*home, "bin", "jcmd"), j.pid(), "GC.heap_dump", "-all", file); err != nil {
		return err
	}
	used = cpu(j.pid()) - used
	a, err := timed(nil, filepath.Join(*home, "bin", "java"), "-Xmx8g", "-cp", *lib, "bench/compare/Biggest.java",
		file, "10")
	if err != nil {
		return err
	}
	stopped, mb := longest(dir), size(file)
	row(0, "`jcmd GC.heap_dump`, VisualVM's library", used, stopped, mb, 0, a)
	if *also != "" {
		args := append(append([]string{"-Xmx8g"}, strings.Fields(*also)...), file, "10")
		var said []byte
		if a, err = timed(&said, filepath.Join(*home, "bin", "java"), args...); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s", said)
		row(0, "`jcmd GC.heap_dump`, `java "+*also+"`", used, stopped, mb, 0, a)
	}
	return os.Remove(file)
}

// samples has JFR look for the paths of its old object samples.
func samples(dir, n string) error {
	j, err := start(dir, n, "-XX:StartFlightRecording:settings=profile,name=held")
	if err != nil {
		return err
	}
	defer j.end()
	file := filepath.Join(dir, "held.jfr")
	time.Sleep(10 * time.Second) // it has no samples before
	used := cpu(j.pid())
	longest(dir)
	if _, err := timed(nil, filepath.Join(*home, "bin", "jcmd"), j.pid(), "JFR.dump", "name=held",
		"path-to-gc-roots=true", "filename="+file); err != nil {
		return err
	}
	used = cpu(j.pid()) - used
	var said []byte
	a, err := timed(&said, filepath.Join(*home, "bin", "jfr"), "print", "--events", "OldObjectSample",
		"--stack-depth", "64", file)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "JFR: %d samples, the holder is named in %d\n",
		strings.Count(string(said), "jdk.OldObjectSample"), strings.Count(string(said), "BY_KEY"))
	row(0, "JFR's old object samples with paths, `jfr print`", used, longest(dir), size(file), 0, a)
	return nil
}

// row prints what one way took. objects 0: as in the row before.
func row(objects uint64, what string, jvm, stop, file, more float64, a took) {
	of := "the same"
	if objects > 0 {
		of = strconv.FormatUint(objects, 10)
	}
	fmt.Printf("| %s | %s | %.2f | %.3f | %.1f | %.2f | %.2f | %.0f |\n", of, what, jvm, stop, file, a.cpu+more, a.wall,
		a.memory)
}
