// Command bench measures what recording costs real Java programs (bench/workloads).
//
// For each program, JDK and collector it runs six configurations: "none" and "again" (both without heapcam: the A/A
// pair that shows what the machine's own noise is), "survivors" and "full", "jfr" (Flight Recorder with its settings
// "profile") and "async" (async-profiler, which has to be installed); interleaved forwards and backwards (ABBA), so
// that a slow drift of the machine hits all alike. "-configs" selects others: "samples" (survivors, with a sampling
// interval that stays at 512 KiB), "exact" and "hash" (depth full with exact sites), "drag" and "dragall" (survivors,
// with the drag of the application or of all classes). Each run is one line of the results file. Runs that are there
// already are not repeated, so an interrupted measurement continues; nothing is ever removed. "-table" renders the file
// as Markdown.
//
// What is measured: wall time of the JVM; user+system CPU of the JVM by wait4, through a small wrapper that is the
// JVM's parent; CPU of everything, and by difference the recorder's; the pauses that the JVM logs; the probe's own
// clocks from the header of the shared ring; and from the recording its size, the objects born and the size of sync
// points. Compressed bytes of a block are its frame's, in proportion to its raw size.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// row is one run: a line of the results file. Times are ns unless named ms, sizes bytes.
type row struct {
	Date    string `json:"date"`
	Build   string `json:"build"`
	Machine string `json:"machine"`
	Program string `json:"program"`
	N       int    `json:"n"`
	JDK     int    `json:"jdk"`
	VM      string `json:"vm"`
	GC      string `json:"gc"`
	Heap    string `json:"heap"`
	Config  string `json:"config"`
	Round   int    `json:"round"` // each round runs every configuration once, odd rounds backwards

	Wall    int64 `json:"wall_ns"`
	AppCPU  int64 `json:"app_cpu_ns"`
	RecCPU  int64 `json:"recorder_cpu_ns"`
	Pauses  int   `json:"pauses"`
	PauseNS int64 `json:"pause_ns"` // as the JVM logs them, the probe's part included

	Probe       uint64 `json:"probe_ns,omitempty"`  // in pauses
	Sample      uint64 `json:"sample_ns,omitempty"` // in sampled allocations
	Samples     uint64 `json:"samples,omitempty"`
	Collections uint64 `json:"collections,omitempty"`
	Lost        uint64 `json:"lost,omitempty"`
	Trace       int64  `json:"trace_bytes,omitempty"`
	Objects     uint64 `json:"objects_born,omitempty"`
	ObjectBytes uint64 `json:"object_bytes,omitempty"`
	Syncs       int    `json:"sync_points,omitempty"`
	SyncBytes   int64  `json:"sync_bytes,omitempty"`
	SyncObjects uint64 `json:"sync_objects,omitempty"`

	Epochs   int      `json:"epochs,omitempty"`        // pauses that are in the recording
	Over     int      `json:"over,omitempty"`          // of these, lengthened by more than they may be
	OverSync int      `json:"over_sync,omitempty"`     // the same, by what they listed alone
	Added    []uint64 `json:"longest_added,omitempty"` // the longest times added to a pause, at most 20, longest first
}

func (r row) key() string {
	return fmt.Sprint(r.Build, " ", r.Program, " ", r.N, " ", r.JDK, " ", r.GC, " ", r.Heap, " ",
		r.Config, " ", r.Round)
}

// workload is a program of bench/workloads with the work and the heap that it is measured with.
type workload struct {
	name, heap string
	n          int
}

var workloads = []workload{
	{"compiler-compiler", "512m", 3}, {"compiler-crypto", "192m", 20}, {"derby", "192m", 60}, {"serial", "128m", 800},
	{"sunflow", "128m", 4}, {"xml-transform", "128m", 120}, {"xml-validation", "128m", 200},
	{"points", "128m", 1000}, {"numbers", "128m", 1500},
}

// configs of a round, in this order.
var configs = []string{"none", "survivors", "jfr", "full", "async", "again"}

// recorded are the configurations that heapcam records, and its flags for them.
var recorded = map[string][]string{
	"survivors": {"--depth", "survivors"},
	"full":      {"--depth", "full"},
	"samples":   {"--depth", "survivors", "--sampling", "512KiB"},
	"exact":     {"--sites", "exact"},
	"hash":      {"--sites", "hash"},
	"drag":      {"--depth", "survivors", "--drag", "app"},
	"dragall":   {"--depth", "survivors", "--drag", "all"},
}

// others are the recorders that heapcam is compared with, and the JVM's options for them. %s is a new file.
var others = map[string]string{
	"jfr":   "-XX:StartFlightRecording:settings=profile,filename=%s",
	"async": "-agentpath:" + asyncProfiler + "=start,event=alloc,live,file=%s,jfr",
}

// asyncProfiler is where its library is, "": nowhere.
var asyncProfiler = os.Getenv("ASYNC_PROFILER")

func main() {
	if len(os.Args) > 2 && os.Args[1] == "-child" {
		os.Exit(child(os.Args[2], os.Args[3:]))
	}
	program := flag.String("program", "", "one program (default: all)")
	jdk := flag.String("jdk", "", "17 or 25 (default: both)")
	gc := flag.String("gc", "", "Parallel, G1 or Serial (default: Parallel and G1)")
	rounds := flag.Int("rounds", 6, "rounds; each runs every configuration once")
	scale := flag.Float64("scale", 1, "amount of work, relative")
	file := flag.String("results", "bench/results/overhead.jsonl", "results file, appended to")
	table := flag.Bool("table", false, "render the results file as Markdown and measure nothing")
	list := flag.String("configs", strings.Join(configs, ","), "configurations of a round, in this order")
	build := flag.String("build", "", "name of the build (default: from git)")
	flag.Parse()
	configs = strings.Split(*list, ",")
	have, err := load(*file)
	if err != nil {
		fatal(err)
	}
	if *build == "" {
		*build = gitBuild()
	}
	if *table {
		render(os.Stdout, have)
		return
	}
	if asyncProfiler == "" && slices.Contains(configs, "async") {
		fmt.Fprintln(os.Stderr, "not run: async-profiler (ASYNC_PROFILER= its library)")
		configs = slices.DeleteFunc(configs, func(c string) bool { return c == "async" })
	}
	m := &measurer{build: *build, machine: machine(), done: map[string]bool{}, file: *file}
	for _, r := range have {
		m.done[r.key()] = true
	}
	gcs := []string{"Parallel", "G1"}
	if *gc != "" {
		gcs = []string{*gc}
	}
	for _, w := range workloads {
		if *program != "" && *program != w.name {
			continue
		}
		w.n = max(1, int(float64(w.n)**scale))
		for _, major := range []int{17, 25} {
			if *jdk != "" && *jdk != fmt.Sprint(major) {
				continue
			}
			home := jdkHome(major)
			if home == "" {
				fmt.Fprintf(os.Stderr, "not run: JDK %d\n", major)
				continue
			}
			for _, g := range gcs {
				if err := m.measure(w, major, home, g, *rounds); err != nil {
					fatal(err)
				}
			}
		}
	}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

func load(file string) ([]row, error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []row
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil { // the last line of an interrupted run
			fmt.Fprintf(os.Stderr, "bench: %s:%d: not read: %v\n", file, n, err)
			continue
		}
		out = append(out, r)
	}
	return out, sc.Err()
}

func appendRow(file string, r row) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(append(b, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// gitBuild names what is measured: the last commit that touched what runs beside or inside a JVM.
func gitBuild() string {
	out, err := exec.Command("git", "log", "-1", "--format=%h", "--", "probe", "agent", "ringstore", "shmring",
		"syncpoint", "emergency", "coverage", "trace", "cmd").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// machine is the class of the machine, without its name.
func machine() string {
	cpu, mem := "", ""
	for _, l := range lines("/proc/cpuinfo") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			cpu = strings.TrimSpace(v)
			break
		}
	}
	for _, l := range lines("/proc/meminfo") {
		var kb int
		if n, _ := fmt.Sscanf(l, "MemTotal: %d kB", &kb); n == 1 {
			mem = fmt.Sprintf("%d GB", (kb+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%d CPUs, %s, %s", cpus(), cpu, mem)
}

func lines(file string) []string {
	b, _ := os.ReadFile(file)
	return strings.Split(string(b), "\n")
}

func cpus() int {
	n := 0
	for _, l := range lines("/proc/cpuinfo") {
		if strings.HasPrefix(l, "processor") {
			n++
		}
	}
	return n
}

func jdkHome(major int) string {
	files, _ := filepath.Glob("/usr/lib/jvm/*/release")
	slices.Sort(files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), fmt.Sprintf(`JAVA_VERSION="%d`, major)) {
			return filepath.Dir(f)
		}
	}
	return ""
}
