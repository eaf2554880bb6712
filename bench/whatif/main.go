// Command whatif measures how well `heapcam whatif` predicts: for each program of bench/workloads and of
// bench/whatif/programs it records one run, runs the program with other heaps, and compares what happened with what was
// predicted.
//
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] [-budget DURATION] [-prefix COMMAND] run
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] [-mode MODE] table
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] times
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] perturb
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] [-prefix COMMAND] onegen
//	whatif [-heapcam FILE] [-dir DIR] [-programs A,B] [-prefix COMMAND] [-goal GOAL] goal
//
// Runs that are in DIR/runs.jsonl are not repeated, so an interrupted measurement goes on where it stopped. The runs
// are plain ones, without the probe; -Xlog:gc says what they did. table predicts and prints a table in Markdown; times
// does the same for the lengths of pauses. perturb shows how predictions from two shares alone depend on these. onegen
// runs the programs without generations, and compares with equations 1 and 2; goal runs them with the flags of --goal.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// program is one to measure. Sizes are in MiB.
type program struct {
	name       string
	n          int // amount of work
	young, old int // of the recording
	youngs     []int
	olds       []int
}

// programs have old spaces from a little above what lives, so that full collections happen in some.
var programs = []program{
	{"derby", 10, 24, 26, []int{12, 24, 48, 96}, []int{24, 32, 64}},
	{"serial", 60, 24, 20, []int{12, 24, 48, 96}, []int{16, 24, 48}},
	{"xml-transform", 12, 16, 14, []int{8, 16, 32, 64}, []int{12, 18, 36}},
	{"xml-validation", 20, 16, 14, []int{8, 16, 32, 64}, []int{12, 18, 36}},
	{"compiler-crypto", 2, 32, 48, []int{16, 32, 64, 128}, []int{44, 64, 128}},
	{"sunflow", 1, 20, 12, []int{10, 20, 40, 80}, []int{10, 16, 32}},
	{"compiler-compiler", 1, 64, 160, []int{32, 64, 128, 256}, []int{144, 192, 384}},
	{"bytecode", 2, 24, 44, []int{12, 24, 48, 96}, []int{40, 56, 96}},
	{"beanshell", 20, 8, 6, []int{4, 8, 16, 32}, []int{4, 6, 12}},
	{"h2", 10, 12, 12, []int{6, 12, 24, 48}, []int{9, 12, 24}},
	{"lucene", 10, 12, 9, []int{6, 12, 24, 48}, []int{7, 9, 18}},
}

// folder is where its run.sh is.
func (p program) folder() string {
	d := filepath.Join("bench", "workloads", p.name)
	if _, err := os.Stat(d); err != nil {
		d = filepath.Join("bench", "whatif", "programs", p.name)
	}
	return d
}

// result is one plain run.
type result struct {
	Program   string  `json:"program"`
	Young     int     `json:"young_mib"`
	Old       int     `json:"old_mib"`
	Minor     int     `json:"minor"`
	Full      int     `json:"full"`
	GCSeconds float64 `json:"gc_seconds"`
	Longest   float64 `json:"longest_seconds"` // of all pauses; 0: not kept
	Seconds   float64 `json:"seconds"`
	Exit      int     `json:"exit"`
	JVM       string  `json:"jvm"`
	Date      string  `json:"date"`
}

type bench struct {
	heapcam, dir, prefix, mode string
	done                       map[string]result
}

func main() {
	var b bench
	flag.StringVar(&b.heapcam, "heapcam", "bin/heapcam", "heapcam to measure")
	flag.StringVar(&b.dir, "dir", "whatif-runs", "folder of recordings and results")
	flag.StringVar(&b.prefix, "prefix", "", "command to start each JVM with")
	flag.StringVar(&b.mode, "mode", "observed", "mode of heapcam whatif, for table")
	which := flag.String("programs", "", "programs to measure, separated by commas; default all")
	goal := flag.String("goal", "gc=2%", "what heapcam whatif is asked for, for goal")
	budget := flag.Duration("budget", time.Hour, "when to begin no further run")
	flag.Parse()
	if err := b.main(flag.Arg(0), *which, *goal, *budget); err != nil {
		fmt.Fprintln(os.Stderr, "whatif:", err)
		os.Exit(1)
	}
}

func (b *bench) main(verb, which, goal string, budget time.Duration) error {
	var err error
	if b.dir, err = filepath.Abs(b.dir); err != nil {
		return err
	}
	if b.heapcam, err = filepath.Abs(b.heapcam); err != nil {
		return err
	}
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	if err := b.load(); err != nil {
		return err
	}
	end := time.Now().Add(budget)
	var chosen []program
	for _, p := range programs {
		if which == "" || strings.Contains(","+which+",", ","+p.name+",") {
			chosen = append(chosen, p)
		}
	}
	switch verb {
	case "table":
		return b.table(chosen)
	case "times":
		return b.times(chosen)
	case "perturb":
		return b.perturb(chosen)
	}
	for _, p := range chosen {
		if err := b.record(p); err != nil {
			return err
		}
	}
	switch verb {
	case "onegen":
		return b.oneGeneration(chosen)
	case "goal":
		return b.goal(chosen, goal)
	}
	for i := range points { // all programs in turn, so that a measurement cut short has some of each
		for _, p := range chosen {
			if time.Now().After(end) {
				return nil
			}
			if err := b.run(p, p.youngs[i%4], p.olds[i%3]); err != nil {
				return err
			}
		}
	}
	return nil
}

// points is how many there are of a program: each of four young generations with each of three old spaces.
const points = 12

// load reads the results so far.
func (b *bench) load() error {
	b.done = map[string]result{}
	f, err := os.Open(filepath.Join(b.dir, "runs.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r result
		if err := json.Unmarshal(sc.Bytes(), &r); err == nil {
			b.done[key(r.Program, r.Young, r.Old)] = r
		}
	}
	return nil
}

func key(program string, young, old int) string { return fmt.Sprintf("%s %d %d", program, young, old) }

// options are those of the paper, with today's names: Parallel, one thread, no adaptive sizes.
func options(young, old int) string {
	return fmt.Sprintf("-XX:+UseParallelGC -XX:ParallelGCThreads=1 -XX:-UseAdaptiveSizePolicy -Xms%dm -Xmx%dm -Xmn%dm "+
		"-XX:SurvivorRatio=6 -XX:InitialTenuringThreshold=4 -XX:MaxTenuringThreshold=4", young+old, young+old, young)
}

// start runs a workload, behind other words of the command line.
func (b *bench) start(p program, opts string, before ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Minute)
	defer stop()
	words := append(strings.Fields(b.prefix), before...)
	words = append(words, "./run.sh")
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir = p.folder()
	c.Env = append(os.Environ(), "JAVA_OPTS="+opts, "N="+strconv.Itoa(p.n))
	out, err := c.CombinedOutput()
	return string(out), err
}

// record records a run at depth full, unless there is a recording.
func (b *bench) record(p program) error {
	dir := filepath.Join(b.dir, p.name)
	if _, err := os.Stat(dir + ".done"); err == nil {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	prepare := exec.Command("./run.sh", "prepare") // else its compiler would be recorded, too
	prepare.Dir = p.folder()
	if out, err := prepare.CombinedOutput(); err != nil {
		return fmt.Errorf("preparing %s: %w\n%s", p.name, err, out)
	}
	out, err := b.start(p, options(p.young, p.old), b.heapcam, "run", "--out", dir, "--depth", "full",
		"--overhead-cpu", "0", "--max-sync-pause", "0", "--shm-size", "64MiB", "--max-trace-size", "4GiB", "--")
	if err != nil {
		return fmt.Errorf("recording %s: %w\n%s", p.name, err, out)
	}
	fmt.Printf("%s recorded\n", p.name)
	return os.WriteFile(dir+".done", []byte(time.Now().UTC().Format(time.DateOnly)+"\n"), 0o644)
}

var pauseLine = regexp.MustCompile(`GC\(\d+\) Pause (Young|Full) .* ([0-9.]+)ms`)

// plain runs a program without the probe, and reads its log. A run that ends for lack of memory is a result.
func (b *bench) plain(p program, opts string) (r result, err error) {
	log := filepath.Join(b.dir, "gc.log")
	if err := os.RemoveAll(log); err != nil {
		return r, err
	}
	begin := time.Now()
	out, err := b.start(p, opts+" -Xlog:gc:file="+log)
	r = result{Program: p.name, Seconds: time.Since(begin).Seconds(), JVM: "17",
		Date: begin.UTC().Format(time.DateOnly)}
	if err != nil {
		if r.Exit = 1; !strings.Contains(out, "OutOfMemoryError") {
			return r, fmt.Errorf("%w\n%s", err, out)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return r, err
	}
	for _, m := range pauseLine.FindAllSubmatch(text, -1) {
		ms, _ := strconv.ParseFloat(string(m[2]), 64)
		r.GCSeconds += ms / 1000
		if r.Longest = max(r.Longest, ms/1000); bytes.Equal(m[1], []byte("Young")) {
			r.Minor++
		} else {
			r.Full++
		}
	}
	return r, nil
}

// run makes one plain run, unless its result is there.
func (b *bench) run(p program, young, old int) error {
	if _, ok := b.done[key(p.name, young, old)]; ok {
		return nil
	}
	r, err := b.plain(p, options(young, old))
	if err != nil {
		return fmt.Errorf("%s with %d + %d MiB: %w", p.name, young, old, err)
	}
	r.Young, r.Old = young, old
	b.done[key(p.name, young, old)] = r
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "runs.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Printf("%s\n", line)
	_, err = f.Write(append(line, '\n'))
	return err
}
