// Command leaks records programs whose truth is known, and counts what `heapcam leaks` says about them.
//
//	leaks record DIR CLASSES [ROUNDS [aside]]   record the cases that DIR lacks; a later call continues
//	leaks judge DIR [aside]                     judge the recordings of DIR: a line each, and the table
//	leaks cover DIR CLASSES [open|aside]        record the covering array (covering.go), as far as DIR lacks it
//
// Programs are those of bench/leaks/java and internal/e2e/java/leaks. CLASSES is the folder that they were compiled
// to. A line with "// LEAK" leaks; a program without such a line is innocent. SETASIDE names the programs that nobody
// may look at while the detector is worked on; `judge` shows them only with "aside". The commands run from the
// repository's root and use bin/heapcam, or HEAPCAM_BIN.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// heapcam is the program that is tried.
var heapcam = cmp.Or(os.Getenv("HEAPCAM_BIN"), "bin/heapcam")

// variant is how a program is recorded.
type variant struct {
	jdk, gc, heap, sampling string
	seconds                 int
	args, flags             []string
}

// jdks are the folders of JDKs by major version: HEAPCAM_JDK_17 and HEAPCAM_JDK_25.
var jdks = map[string]string{"17": os.Getenv("HEAPCAM_JDK_17"), "25": os.Getenv("HEAPCAM_JDK_25")}

// table are the recordings of the report that the detector was redesigned for.
var table = map[string][]variant{
	"Callbacks": {{jdk: "17", gc: "G1", heap: "96m", seconds: 58}},
	"LruAndMap": {{jdk: "17", gc: "G1", heap: "256m", seconds: 58},
		{jdk: "25", gc: "Serial", heap: "256m", seconds: 58}},
	"SlowStart": {{jdk: "17", gc: "G1", heap: "48m", seconds: 58, sampling: "0"},
		{jdk: "25", gc: "Parallel", heap: "32m", seconds: 58, sampling: "0"}},
	"DbClient": {{jdk: "17", gc: "G1", heap: "128m", seconds: 40},
		{jdk: "17", gc: "Parallel", heap: "128m", seconds: 40, args: []string{"halt"}},
		{jdk: "25", gc: "G1", heap: "128m", seconds: 40, args: []string{"error"}},
		{jdk: "25", gc: "Serial", heap: "128m", seconds: 40, args: []string{"error"},
			flags: []string{"-XX:+ExitOnOutOfMemoryError"}}},
	"ParallelDies": {{jdk: "17", gc: "Parallel", heap: "128m", seconds: 40, sampling: "default"}},
	// of the black-box test: docs/benchmarks/2026-11-26-black-box.md
	"Tariffs": {{jdk: "17", gc: "G1", heap: "160m", seconds: 55}},
	"Tags": {{jdk: "17", gc: "Parallel", heap: "256m", seconds: 50},
		{jdk: "17", gc: "G1", heap: "256m", seconds: 70}},
	"SoftTiles": {{jdk: "17", gc: "G1", heap: "256m", seconds: 70}},
	"Layouts":   {{jdk: "25", gc: "Serial", heap: "128m", seconds: 65}},
	"Shells":    {{jdk: "17", gc: "Serial", heap: "128m", seconds: 50}},
}

// again are the recordings of docs/benchmarks/2026-11-26-leaks-again.md: all with default settings.
var again = map[string][]variant{
	"BatchRamp":   {{jdk: "17", gc: "G1", heap: "192m", seconds: 50}},
	"BesideIndex": {{jdk: "17", gc: "G1", heap: "256m", seconds: 50}},
	"BufferPool":  {{jdk: "25", gc: "Parallel", heap: "96m", seconds: 50}},
	"Carts": {{jdk: "17", gc: "G1", heap: "64m", seconds: 40, args: []string{"catch"}},
		{jdk: "25", gc: "Parallel", heap: "80m", seconds: 40, args: []string{"catch"},
			flags: []string{"-XX:+ExitOnOutOfMemoryError"}},
		{jdk: "25", gc: "G1", heap: "96m", seconds: 40, args: []string{"kill"}},
		{jdk: "17", gc: "Serial", heap: "64m", seconds: 40, args: []string{"throw"}}},
	"CancelledTimers": {{jdk: "17", gc: "G1", heap: "96m", seconds: 55}},
	"CatchesUp":       {{jdk: "17", gc: "Serial", heap: "128m", seconds: 50}},
	"ClockCache":      {{jdk: "17", gc: "Parallel", heap: "96m", seconds: 50}},
	"ConnCaches":      {{jdk: "25", gc: "G1", heap: "128m", seconds: 55}},
	"ExpiryUnit":      {{jdk: "25", gc: "Parallel", heap: "128m", seconds: 55}},
	"IndexSwap":       {{jdk: "17", gc: "G1", heap: "256m", seconds: 60}},
	"Interns":         {{jdk: "25", gc: "Serial", heap: "64m", seconds: 45}},
	"LoadRises":       {{jdk: "25", gc: "G1", heap: "96m", seconds: 60}},
	"LostReplies":     {{jdk: "25", gc: "G1", heap: "128m", seconds: 50}},
	"Redeploys":       {{jdk: "17", gc: "Parallel", heap: "128m", seconds: 60}},
	"Rejecting":       {{jdk: "17", gc: "G1", heap: "96m", seconds: 45}},
	"SerialStream":    {{jdk: "17", gc: "Parallel", heap: "256m", seconds: 55}},
	"SkipSeries":      {{jdk: "17", gc: "G1", heap: "64m", seconds: 45}},
	"SlidingWindow":   {{jdk: "25", gc: "G1", heap: "512m", seconds: 50}},
	"SlowFinalizers":  {{jdk: "17", gc: "G1", heap: "160m", seconds: 50}},
	"SoftMeta":        {{jdk: "17", gc: "G1", heap: "48m", seconds: 50}},
	"TaskBacklog":     {{jdk: "25", gc: "G1", heap: "1g", seconds: 60}},
	"TempFiles":       {{jdk: "25", gc: "Serial", heap: "64m", seconds: 50}},
	"Thumbnails":      {{jdk: "17", gc: "G1", heap: "128m", seconds: 50}},
	"Transcripts":     {{jdk: "17", gc: "Serial", heap: "96m", seconds: 55}},
	"TtlWarm":         {{jdk: "25", gc: "Serial", heap: "96m", seconds: 60}},
	"WrongRemove":     {{jdk: "25", gc: "G1", heap: "192m", seconds: 45}},
}

func init() { maps.Copy(table, again) }

// variants of the covering array: neighbours differ in everything.
var variants = []variant{
	{jdk: "17", gc: "G1", heap: "256m", seconds: 40},
	{jdk: "25", gc: "Parallel", heap: "96m", seconds: 40, sampling: "64KiB"},
	{jdk: "25", gc: "Serial", heap: "40m", seconds: 40, sampling: "0"},
	{jdk: "17", gc: "Serial", heap: "96m", seconds: 40},
	{jdk: "25", gc: "G1", heap: "40m", seconds: 40, sampling: "0"},
	{jdk: "17", gc: "Parallel", heap: "256m", seconds: 40, sampling: "64KiB"},
}

// lists are those that HEAPCAM_LEAKS_ONLY may name.
var lists = map[string]map[string][]variant{"again": again, "caches": caches, "unseen": unseen}

// chosen says whether a program is one of those in HEAPCAM_LEAKS_ONLY: the name of a list, or names with commas
// between. Without the variable all are.
func chosen(program string) bool {
	only := os.Getenv("HEAPCAM_LEAKS_ONLY")
	return only == "" || lists[only][program] != nil || slices.Contains(strings.Split(only, ","), program)
}

type recording struct {
	program string
	variant
}

func (r *recording) name() string {
	n := strings.Join(append([]string{r.program, r.jdk, r.gc, r.heap, strconv.Itoa(r.seconds), r.sampling},
		append(slices.Clone(r.args), r.flags...)...), ",")
	return strings.NewReplacer("/", "_", ":", "", "+", "").Replace(n)
}

// sources maps programs to their files.
func sources() map[string]string {
	out := map[string]string{}
	for _, dir := range []string{"bench/leaks/java", "internal/e2e/java/leaks"} {
		files, _ := filepath.Glob(filepath.Join(dir, "*.java"))
		for _, f := range files {
			if n := strings.TrimSuffix(filepath.Base(f), ".java"); n != "Work" {
				out[n] = f
			}
		}
	}
	return out
}

// hidden are the programs that are set aside.
func hidden() ([]string, error) {
	b, err := os.ReadFile("bench/leaks/SETASIDE")
	return strings.Fields(string(b)), err
}

// array gives all recordings of the programs that are set aside, or of the others: those of the report first, then n
// rounds over all.
func array(rounds int, aside bool) (all []recording) {
	hidden, err := hidden()
	if err != nil {
		return nil
	}
	var names []string
	for n := range sources() {
		if slices.Contains(hidden, n) == aside && chosen(n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	for _, n := range names {
		for _, v := range table[n] {
			all = append(all, recording{n, v})
		}
	}
	for k := range rounds {
		for _, n := range names {
			if len(table[n]) > k {
				continue
			}
			h := fnv.New32a()
			h.Write([]byte(n))
			all = append(all, recording{n, variants[(int(h.Sum32()%6)+k)%len(variants)]})
		}
	}
	return all
}

func main() {
	err := fmt.Errorf("usage: leaks record DIR CLASSES [ROUNDS [aside]]; leaks judge DIR [aside]; " +
		"leaks cover DIR CLASSES [open|aside]")
	switch {
	case len(os.Args) >= 4 && os.Args[1] == "record":
		rounds := 2
		if len(os.Args) > 4 {
			rounds, _ = strconv.Atoi(os.Args[4])
		}
		err = record(array(rounds, len(os.Args) > 5), os.Args[2], os.Args[3])
	case len(os.Args) >= 4 && os.Args[1] == "cover":
		err = record(covering(append(os.Args, "")[4]), os.Args[2], os.Args[3])
	case len(os.Args) >= 3 && os.Args[1] == "judge":
		err = judge(os.Args[2], len(os.Args) > 3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "leaks:", err)
		os.Exit(1)
	}
}

// record makes those recordings that dir lacks, HEAPCAM_LEAKS_JOBS (4) at a time, for at most HEAPCAM_LEAKS_SECONDS
// (240).
func record(all []recording, dir, classes string) error {
	limit, _ := strconv.Atoi(os.Getenv("HEAPCAM_LEAKS_SECONDS"))
	end := time.Now().Add(time.Duration(cmp.Or(limit, 240)) * time.Second)
	var wait sync.WaitGroup
	jobs, _ := strconv.Atoi(os.Getenv("HEAPCAM_LEAKS_JOBS"))
	slots := make(chan struct{}, cmp.Or(max(jobs, 0), 4))
	for _, r := range all {
		to := filepath.Join(dir, r.name())
		if _, err := os.Stat(filepath.Join(to, "done")); err == nil {
			continue
		}
		slots <- struct{}{}
		if time.Now().Add(time.Duration(r.seconds) * time.Second).After(end) {
			<-slots
			break
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if err := r.record(to, classes); err != nil {
				fmt.Fprintln(os.Stderr, r.name(), err)
			}
		})
	}
	wait.Wait()
	return nil
}

// record records one program. That it ends with an error is no error.
func (r *recording) record(to, classes string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	args := []string{"run", "--out", to, "--max-trace-size", "200MiB", "--max-trace-size-deviation", "0.25"}
	if r.sampling != "" && r.sampling != "default" {
		args = append(args, "--sampling", r.sampling)
	}
	args = append(args, "--", filepath.Join(jdks[r.jdk], "bin", "java"), "-XX:+Use"+r.gc+"GC", "-Xmx"+r.heap)
	args = append(append(append(args, r.flags...), "-cp", classes, r.program, strconv.Itoa(r.seconds)), r.args...)
	// One whose main thread ends with an OutOfMemoryError may run on for ever.
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.seconds)*time.Second*3/2+time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, heapcam, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute
	out, err := c.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended && ctx.Err() == nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "output"), out, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "done"), nil, 0o644)
}

type frame struct {
	Class, Method, File string
	Line                *int
}

type verdict struct {
	Kind     string
	Class    string
	Site     []frame
	Sentence string
	Members  []struct{ Site []frame }
}

type reply struct {
	Verdicts    []verdict
	CannotTell  string  `json:"cannot_tell"`
	Window      float64 `json:"window_seconds"`
	Collections int
	Floors      int
}

// lines gives the lines of a source that leak.
func lines(file string) (out []int) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for i, l := range strings.Split(string(b), "\n") {
		if strings.Contains(l, "// LEAK") {
			out = append(out, i+1)
		}
	}
	return out
}

// names says whether a verdict has a line that leaks.
func (v *verdict) names(program string, lines []int) bool {
	has := func(site []frame) bool {
		return slices.ContainsFunc(site, func(f frame) bool {
			return f.File == program+".java" && f.Line != nil && slices.Contains(lines, *f.Line)
		})
	}
	return has(v.Site) || slices.ContainsFunc(v.Members, func(m struct{ Site []frame }) bool { return has(m.Site) })
}

// outcome says in a word what a reply is worth. output is what the program printed: an innocent one that ran out of
// memory has a heap that is too small, and what fills it is no wrong verdict.
func outcome(program, source, output string, l *reply) string {
	marks := lines(source)
	if len(marks) == 0 && strings.Contains(output, "java.lang.OutOfMemoryError") {
		return "heap too small"
	}
	leaks, suspects := 0, 0
	for i := range l.Verdicts {
		right := l.Verdicts[i].names(program, marks)
		switch {
		case right:
		case l.Verdicts[i].Kind == "suspect":
			suspects++
		default:
			leaks++
		}
		if right && i == 0 {
			return "named first"
		}
		if right {
			return "named"
		}
	}
	switch {
	case leaks > 0:
		return "wrong"
	case suspects > 0:
		return "wrong suspect"
	case len(marks) == 0 && l.CannotTell == "":
		return "clean"
	case l.CannotTell != "":
		return "cannot tell"
	}
	return "missed"
}

var outcomes = []string{"named first", "named", "missed", "clean", "cannot tell", "wrong suspect", "wrong",
	"heap too small"}

// judge reads every recording of dir.
func judge(dir string, aside bool) error {
	hidden, err := hidden()
	if err != nil {
		return err
	}
	files := sources()
	found, err := filepath.Glob(filepath.Join(dir, "*", "done"))
	if err != nil {
		return err
	}
	count := map[bool]map[string]int{true: {}, false: {}}
	for _, f := range found {
		name := filepath.Base(filepath.Dir(f))
		program, _, _ := strings.Cut(name, ",")
		if slices.Contains(hidden, program) != aside || files[program] == "" || !chosen(program) {
			continue
		}
		out, err := exec.Command(heapcam, "leaks", "--json", filepath.Dir(f)).Output()
		l := reply{}
		if err != nil || json.Unmarshal(out, &l) != nil {
			fmt.Printf("%-13s %s: %v\n", "error", name, err)
			continue
		}
		output, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "output"))
		o := outcome(program, files[program], string(output), &l)
		count[len(lines(files[program])) > 0][o]++
		fmt.Printf("%-13s %s (%d collections, %d of old space, %.0f s) %s\n", o, name, l.Collections, l.Floors,
			l.Window, l.CannotTell)
		for _, v := range l.Verdicts[:min(3, len(l.Verdicts))] {
			fmt.Printf("      %s: %s\n", v.Kind, v.Sentence)
		}
	}
	fmt.Printf("\n%-10s", "")
	for _, o := range outcomes {
		fmt.Printf("%15s", o)
	}
	for _, leaks := range []bool{true, false} {
		fmt.Printf("\n%-10s", map[bool]string{true: "leaking", false: "innocent"}[leaks])
		for _, o := range outcomes {
			fmt.Printf("%15d", count[leaks][o])
		}
	}
	fmt.Println()
	return nil
}
