// Command compare measures what reading costs: wall time, CPU time and the most memory that `heapcam` takes on a
// synthetic recording of many live objects, and on any recording that it is given; and beside it what tools that are
// not ours take to answer the same question, how many objects and bytes of each class a heap holds: `jcmd
// GC.class_histogram` on the JVM, and VisualVM's heap library on a heap dump.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// heapLibrary is Debian's place of VisualVM's reader of heap dumps.
const heapLibrary = "/usr/share/visualvm/visualvm/modules/org-graalvm-visualvm-lib-jfluid-heap.jar"

func main() {
	tool := flag.String("heapcam", "bin/heapcam", "the `program`")
	objects := flag.Int("objects", 50_000_000, "live objects of the synthetic recording; 0: none")
	thousands := flag.Int("heap", 10_000, "thousands of live objects of the JVM that others read, too; 0: none")
	java := flag.String("java", "java", "the JVM's `program`; javac and jcmd stand beside it")
	recording := flag.String("recording", "", "a `recording` to be read as well")
	write := flag.String("synthesise", "", "only write the synthetic recording, to this `folder`")
	flag.Parse()
	if *write != "" {
		if err := synthesise(*write, *objects); err != nil {
			fmt.Fprintln(os.Stderr, "compare:", err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "compare-")
	if err == nil {
		err = errors.Join(all(dir, *tool, *java, *recording, *objects, *thousands), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func all(dir, tool, java, recording string, objects, thousands int) error {
	tool, err := filepath.Abs(tool)
	if err != nil {
		return err
	}
	_ = os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	fmt.Println("| what | wall | CPU | memory at its most |\n|---|---|---|---|")
	if recording != "" {
		if err := read(tool, recording, "a recording", 0); err != nil {
			return err
		}
	}
	if objects > 0 {
		ring := filepath.Join(dir, "synthetic")
		// In a process of its own: a child's most memory is at least what its parent had.
		if out, err := exec.Command(os.Args[0], "-synthesise", ring, "-objects",
			strconv.Itoa(objects)).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if err := read(tool, ring, fmt.Sprintf("synthetic, %d live objects", objects), objects); err != nil {
			return err
		}
	}
	if thousands > 0 {
		return others(dir, tool, java, thousands)
	}
	return nil
}

// read opens a recording twice and groups its last state.
func read(tool, ring, name string, objects int) error {
	size := int64(0)
	err := filepath.WalkDir(ring, func(_ string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if st, err := e.Info(); err == nil {
				size += st.Size()
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	name += fmt.Sprintf(", %.1f MiB on disk", float64(size)/(1<<20))
	time.Sleep(3 * time.Second) // what was just written is not kept as read
	for _, args := range [][]string{
		{"report"}, {"report"}, {"group", "--by", "type"}, {"group", "--by", "type, site, age"}} {
		if _, err := measure(name+": heapcam "+strings.Join(args, " "), objects,
			exec.Command(tool, append(args, ring)...)); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a command and prints a row; with objects, memory for each of them too.
func measure(name string, objects int, c *exec.Cmd) (out []byte, err error) {
	var e bytes.Buffer
	c.Stderr = &e
	from := time.Now()
	if out, err = c.Output(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", c.Args, err, e.Bytes())
	}
	most := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss * 1024
	memory := fmt.Sprintf("%d MiB", most>>20)
	if objects > 0 {
		memory += fmt.Sprintf(", %.1f bytes an object", float64(most)/float64(objects))
	}
	fmt.Printf("| %s | %.2f s | %.2f s | %s |\n", name, time.Since(from).Seconds(),
		(c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), memory)
	return out, nil
}

// others has one heap read by the JVM itself, by VisualVM's library from a heap dump, and from a recording.
func others(dir, tool, java string, thousands int) error {
	home, err := exec.LookPath(java)
	if err == nil {
		home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		return err
	}
	dump, rec := filepath.Join(dir, "heap.hprof"), filepath.Join(dir, "rec")
	own, err := recordBig(dir, tool, home, rec, dump, thousands)
	if err != nil {
		return err
	}
	if st, err := os.Stat(dump); err == nil {
		fmt.Printf("| the heap dump | | | %d MiB on disk |\n", st.Size()>>20)
	}
	if _, err := os.Stat(heapLibrary); err != nil {
		fmt.Println("| VisualVM's heap library on the dump | not run: not installed | | |")
	} else {
		said, err := measure("VisualVM's heap library: histogram of the dump", 0,
			exec.Command(home, "-cp", heapLibrary, "bench/compare/HeapLibrary.java", dump))
		if err != nil {
			return err
		}
		same(own, rows(said), "VisualVM's library")
	}
	folders, err := filepath.Glob(filepath.Join(rec, "*"))
	if err != nil || len(folders) != 1 {
		return fmt.Errorf("%d recordings in %s: %w", len(folders), rec, err)
	}
	time.Sleep(3 * time.Second)
	said, err := measure("heapcam histogram of the recording", 0,
		exec.Command(tool, "histogram", "--top", "0", folders[0]))
	if err != nil {
		return err
	}
	same(own, rows(said), "heapcam")
	return read(tool, folders[0], "the recording", 0)
}

// recordBig records a JVM with a heap of so many thousand objects. It gives the JVM's own histogram, and writes a heap
// dump.
func recordBig(dir, tool, home, rec, dump string, thousands int) (own map[string]string, err error) {
	bin := filepath.Dir(home)
	javac := exec.Command(filepath.Join(bin, "javac"), "-d", dir, "bench/compare/Big.java")
	if out, err := javac.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("javac: %w\n%s", err, out)
	}
	c := exec.Command(tool, "run", "--out", rec, "--max-trace-size", "2GiB", "--max-sync-pause", "60s", "--", home,
		"-XX:+UseParallelGC", "-Xmx"+strconv.Itoa(thousands/10+512)+"m", "-cp", dir, "Big", strconv.Itoa(thousands))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	pid := ""
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		if p, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid = p
		}
	}
	own, err = askJVM(filepath.Join(bin, "jcmd"), pid, dump)
	in.Close()
	io.Copy(io.Discard, out)
	if werr := c.Wait(); err == nil {
		err = werr
	}
	return own, err
}

// askJVM has the JVM count, and dump its heap.
func askJVM(jcmd, pid, dump string) (map[string]string, error) {
	said, err := measure("`jcmd GC.class_histogram` (the JVM stands still; its own CPU and memory are not counted)", 0,
		exec.Command(jcmd, pid, "GC.class_histogram"))
	if err != nil {
		return nil, err
	}
	if _, err := measure("`jcmd GC.heap_dump` (the same)", 0,
		exec.Command(jcmd, pid, "GC.heap_dump", dump)); err != nil {
		return nil, err
	}
	return rows(said), nil
}

var histogramRow = regexp.MustCompile(`(?m)^ *(?:\d+: +)?(\d+) +(\d+) +(\S+)`)

// rows are the lines of a histogram by class.
func rows(said []byte) map[string]string {
	out := map[string]string{}
	for _, m := range histogramRow.FindAllStringSubmatch(string(said), -1) {
		out[m[3]] = m[1] + " " + m[2]
	}
	return out
}

// same says whether two readers agree on the classes of the program, which no one else makes.
func same(a, b map[string]string, who string) {
	for _, class := range []string{"Big$Pair", "java.lang.Integer"} {
		if a[class] != b[class] {
			fmt.Printf("| %s differs on %s | %s | %s | |\n", who, class, a[class], b[class])
		}
	}
}
