// Command rotation prints for how many of the live objects the site is known if reading starts in a later file of a
// recording, at its first sync point and after each of the next nine collections, beside what the whole recording knows
// (Figure 18 of ICPE'16): `go run ./bench/rotation DIR`. It takes the mean of all files but the first that nine
// collections follow, and bytes after objects.
//
// What is missing in DIR is recorded first: programs of bench/workloads in the five modes that sites come from, with
// rings that are small enough to rotate.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// program is one of bench/workloads, with as much work and heap as rotates a ring, and the ring of samples, of those of
// all objects, and of exact sites: so small that it rotates, and so large that nine collections follow in a file.
type program struct{ name, n, heap, samples, all, exact string }

var programs = []program{{"xml-validation", "150", "64m", "1MiB", "6MiB", "4MiB"},
	{"derby", "120", "96m", "1MiB", "20MiB", "12MiB"}, {"serial", "600", "96m", "2MiB", "6MiB", "24MiB"},
	{"sunflow", "4", "64m", "1MiB", "6MiB", "24MiB"}}

// mode is how sites are found, and which ring of a program that takes.
type mode struct {
	name  string
	ring  func(p program) string
	flags []string
}

func samples(p program) string { return p.samples }
func all(p program) string     { return p.all }
func exact(p program) string   { return p.exact }

var modes = []mode{
	{"samples, the default", samples, nil},
	{"--proven-sites=false", samples, []string{"--proven-sites=false"}},
	{"--sampling 0", all, []string{"--sampling", "0"}},
	{"--sites exact", exact, []string{"--sites", "exact"}},
	{"--sites hash", exact, []string{"--sites", "hash"}},
}

// after is how many collections follow in the paper's figure.
const after = 9

// report is what is used of `heapcam coverage --json`.
type report struct {
	Collections []struct{} `json:"collections"`
	SyncPoints  []struct {
		GC         uint64    `json:"gc"`
		Alone      []float64 `json:"alone"`
		Whole      []float64 `json:"whole"`
		AloneBytes []float64 `json:"alone_bytes"`
		WholeBytes []float64 `json:"whole_bytes"`
	} `json:"sync_points"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rotation DIR")
		os.Exit(2)
	}
	fmt.Print("| program | mode | collections, files | what | sync point |")
	for i := range after {
		fmt.Printf(" %d |", i+1)
	}
	fmt.Print("\n|---|---|---|---|---|" + strings.Repeat("---|", after) + "\n")
	for _, p := range programs {
		for i, m := range modes {
			dir := filepath.Join(os.Args[1], p.name, strconv.Itoa(i))
			if err := one(dir, p, m); err != nil {
				fmt.Fprintf(os.Stderr, "%s, %s: %v\n", p.name, m.name, err)
			}
		}
	}
}

func one(dir string, p program, m mode) error {
	recordings, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(recordings) == 0 {
		if err := record(dir, p, m); err != nil {
			return err
		}
		recordings, _ = filepath.Glob(filepath.Join(dir, "*"))
	}
	if len(recordings) != 1 {
		return fmt.Errorf("%d recordings in %s", len(recordings), dir)
	}
	c := exec.Command("bin/heapcam", "coverage", "--json", recordings[0])
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return err
	}
	r.print(p, m)
	return nil
}

func record(dir string, p program, m mode) error {
	args := append([]string{"run", "--out", dir, "--max-trace-size", m.ring(p), "--overhead-cpu", "0"}, m.flags...)
	c := exec.Command("bin/heapcam", append(args, "--", "bench/workloads/"+p.name+"/run.sh")...)
	c.Env = append(os.Environ(), "N="+p.n, "JAVA_OPTS=-XX:+UseParallelGC -Xms"+p.heap+" -Xmx"+p.heap)
	var talk bytes.Buffer
	c.Stdout, c.Stderr = &talk, &talk
	if err := c.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, talk.String())
	}
	return nil
}

func (r *report) print(p program, m mode) {
	var sums [4][after + 1]float64
	files := 0
	for i, s := range r.SyncPoints {
		if i == 0 || len(s.Alone) <= after {
			continue
		}
		files++
		for row, of := range [][]float64{s.Alone, s.Whole, s.AloneBytes, s.WholeBytes} {
			for k := range after + 1 {
				sums[row][k] += of[k]
			}
		}
	}
	if files == 0 {
		fmt.Printf("| %s | %s | %d, 0 | no later file that %d collections follow |\n", p.name, m.name,
			len(r.Collections), after)
		return
	}
	for row, what := range []string{"objects", "objects, whole recording", "bytes", "bytes, whole recording"} {
		fmt.Printf("| %s | %s | %d, %d | %s |", p.name, m.name, len(r.Collections), files, what)
		for _, x := range sums[row] {
			fmt.Printf(" %.1f |", 100*x/float64(files))
		}
		fmt.Println()
	}
}
