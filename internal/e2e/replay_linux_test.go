package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// workload is a program of bench/workloads at a size that makes it collect often.
type workload struct {
	name, n, heap string           // heap is -Xmx, and more if need be
	limit         map[string]int64 // by depth: --max-trace-size to begin with, bytes
}

var workloads = []workload{
	{"compiler-compiler", "6", "280m", map[string]int64{"survivors": 12 << 20, "full": 24 << 20}},
	{"derby", "80", "40m -Xmn4m", map[string]int64{"survivors": 1280 << 10, "full": 5 << 20}},
	{"xml-transform", "80", "48m", map[string]int64{"survivors": 3 << 20, "full": 8 << 20}},
}

// leastRotations is how often the ring of each recording must rotate.
const leastRotations = 5

// replayWords begins each page of replay results.
const replayWords = "Each recording is of one program of `bench/workloads` under `heapcam run` with the default " +
	"emergency method. Its ring is\nso small that it rotates at least five times. A copy of every ring file is kept, " +
	"so the whole recording is verified, not\nits window alone. The columns:\n\n" +
	"- *compared*: sync points that met a known state and were compared with it object by object;\n" +
	"- *explained*: differences that the facts explain, by name;\n" +
	"- *alone*: files that were opened alone, and collections at which their state was compared with the whole's,\n" +
	"  by address, type, size and length of each object;\n" +
	"- *dropped*: epochs that the shared ring or the store lost;\n" +
	"- *window*: what was in the ring at the end."

// leastCompared is how many sync points must have met a known state, of those that may: the first one and those after a
// collection without object data (full ones) begin anew.
const leastCompared = 1

// TestReplayWorkloads is oracle 3 at full size: real programs on every pair at both walking depths, recorded into rings
// that rotate at least five times. verify finds no difference that the facts do not explain, and each file opened alone
// gives the states that the whole gives. HEAPCAM_ONLY, a regular expression, selects by name. What it saw is appended
// to docs/benchmarks/DATE-replay.md.
func TestReplayWorkloads(t *testing.T) {
	if !full {
		t.Skip("not run: replay of real programs on all pairs (make test-full)")
	}
	needReader(t)
	out := results(t, "replay.md", "Replay against sync points",
		replayWords, "",
		"program | pair | depth | ring | collections | rotations | sync points | compared | mismatches | explained | "+
			"dropped | alone: files, states | differing | window: collections, compared, mismatches")
	only := regexp.MustCompile(os.Getenv("HEAPCAM_ONLY"))
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			eachPair(t, []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
				for _, depth := range []string{"survivors", "full"} {
					t.Run(depth, func(t *testing.T) {
						if !only.MatchString(t.Name()) {
							t.Skip("not selected")
						}
						replayWorkload(t, w, major, gc, depth, out)
					})
				}
			})
		})
	}
}

func replayWorkload(t *testing.T, w workload, major int, gc, depth string, out func(cells ...any)) {
	run, err := filepath.Abs(filepath.Join("../../bench/workloads", w.name, "run.sh"))
	if err != nil {
		t.Fatal(err)
	}
	java := filepath.Join(jdk(t, major), "bin", "java")
	prepare := exec.Command(run, "prepare")
	prepare.Env = append(os.Environ(), "JAVA="+java)
	if msg, err := prepare.CombinedOutput(); err != nil {
		t.Skipf("not run: workload %s (bench/workloads/install.sh installs what it needs): %v: %s", w.name, err,
			tail(string(msg)))
	}
	limit := w.limit[depth]
	for try := 1; ; try++ {
		dir := t.TempDir()
		all, stop := keepFiles(t, dir)
		c := exec.Command(tool, "run", "--out", dir, "--max-trace-size", fmt.Sprint(limit), "--depth", depth,
			"--overhead-cpu", "0", "--", run)
		c.Env = append(os.Environ(), "JAVA="+java, "N="+w.n, "JAVA_OPTS=-XX:+Use"+gc+"GC -Xmx"+w.heap)
		r := running{stderr: &buffer{}}
		var stdout bytes.Buffer
		c.Stdout, c.Stderr = &stdout, r.stderr
		err := c.Run()
		stop()
		if err != nil || !strings.Contains(stdout.String(), "WORKLOAD "+w.name) {
			t.Fatalf("%v\n%s%s", err, tail(stdout.String()), tail(r.stderr.String()))
		}
		rec := r.recorded(t)
		whole, err := ringstore.OpenRecording(all)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		rotations, bytes := len(whole.Files)-1, int64(0)
		for i, f := range whole.Files {
			if bytes += f.Size; f.Index != uint64(i)+1 {
				t.Fatalf("file %s stands at place %d: one was missed", f.Name, i+1)
			}
		}
		if rotations < leastRotations && limit > 1<<20 && try < 4 {
			t.Logf("%d rotations, %d bytes in a ring of %d: again with a smaller one", rotations, bytes, limit)
			limit = max(min(bytes*4/(leastRotations+3), limit*2/3), 1<<20)
			continue
		}
		v, text := verifyText(t, all)
		window, textWindow := verifyText(t, rec.dir)
		files, states, differing := readAlone(t, whole)
		var explained []string
		for k, n := range v.Explained {
			explained = append(explained, fmt.Sprintf("%d %s", n, k))
		}
		sort.Strings(explained)
		if len(explained) == 0 {
			explained = []string{"-"}
		}
		f, in := v.Files[0], window.Files[0]
		out(w.name, fmt.Sprintf("%s/%d", gc, major), depth, fmt.Sprintf("%.1f MiB", float64(limit)/(1<<20)),
			rec.collections,
			rotations, f.SyncPoints, f.Compared, v.Mismatches,
			strings.Join(explained, ", "), rec.lost, fmt.Sprintf("%d, %d", files, states), differing,
			fmt.Sprintf("%d, %d, %d", in.Collections, in.Compared, window.Mismatches))
		if n := v.Mismatches + window.Mismatches; n != 0 {
			t.Errorf("%d mismatches: %s%s", n, text, textWindow)
		}
		if differing != 0 {
			t.Errorf("%d states differ between a file alone and the whole", differing)
		}
		if rotations < leastRotations {
			t.Errorf("%d rotations", rotations)
		}
		if f.Compared < leastCompared && f.SyncPoints > f.Untold+leastCompared {
			t.Errorf("%d sync points met a known state", f.Compared)
		}
		if keep := os.Getenv("HEAPCAM_KEEP"); t.Failed() && keep != "" {
			t.Log(os.CopyFS(filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "_")), os.DirFS(all)))
		}
		for _, l := range strings.Split(r.stderr.String(), "\n") {
			if l != "" && !strings.HasPrefix(l, "heapcam: recorded ") && !strings.HasPrefix(l, "Picked up ") {
				t.Logf("stderr: %s", l)
			}
		}
		return
	}
}

// keepFiles copies every ring file below dir into a folder of its own until stop is called: one that has a successor is
// finished.
func keepFiles(t *testing.T, dir string) (all string, stop func()) {
	all = t.TempDir()
	look := func(last bool) {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*.hcr"))
		for i, f := range files { // by number
			to := filepath.Join(all, filepath.Base(f))
			if _, err := os.Stat(to); !last && (err == nil || i == len(files)-1) {
				continue
			}
			// what is missed is reported by its number
			if b, err := os.ReadFile(f); err == nil && os.WriteFile(to+".part", b, 0o600) == nil {
				os.Rename(to+".part", to)
			}
		}
	}
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				look(true)
				return
			case <-time.After(5 * time.Millisecond):
				look(false)
			}
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { close(end); <-done }) }
	t.Cleanup(stop)
	return all, stop
}

// verifyLong is what verify says of a recording and of each of its files.
type verifyLong struct {
	verifyReply
	Explained map[string]uint64 `json:"explained"`
	Files     []struct {
		File        string   `json:"file"`
		Alone       bool     `json:"alone"`
		Collections uint64   `json:"collections"`
		SyncPoints  uint64   `json:"sync_points"`
		Compared    uint64   `json:"compared"`
		Untold      uint64   `json:"untold_pauses"`
		Objects     uint64   `json:"objects_compared"`
		Mismatches  uint64   `json:"mismatches"`
		First       string   `json:"first_mismatch"`
		Faults      []string `json:"faults"`
	} `json:"files"`
}

// verifyText runs verify, whatever it finds, and gives what it says of the first difference.
func verifyText(t *testing.T, dir string) (v verifyLong, text string) {
	t.Helper()
	out, errs, _ := heapcam(t, "verify", dir, "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Files) == 0 {
		t.Fatalf("verify: %v\n%s%s", err, tail(out), tail(errs))
	}
	for _, f := range v.Files {
		if f.First != "" {
			text += f.File + ": " + f.First + "\n"
		}
		if len(f.Faults) > 0 {
			text += fmt.Sprintf("%s: %v\n", f.File, f.Faults)
			t.Errorf("%s: faults: %v", f.File, f.Faults)
		}
	}
	return v, text
}

// readAlone replays the whole and each file alone, and compares the states after every collection that both know.
func readAlone(t *testing.T, whole *ringstore.Recording) (files, states, differing int) {
	t.Helper()
	seed := maphash.MakeSeed()
	want := map[uint64]state{}
	for gc, s := range replayed(t, seed, whole.Files...) {
		want[gc] = s
	}
	for _, f := range whole.Files {
		n := 0
		for gc, s := range replayed(t, seed, f) {
			w, ok := want[gc]
			// the listing behind a file's last collection begins the next one: verify compares these two
			if !ok || w.synced != s.synced {
				continue
			}
			n++
			if s.hash != w.hash {
				if differing++; differing < 4 {
					t.Logf("%s alone differs after gc %d", f.Name, gc)
				}
			}
		}
		if n > 0 {
			files++
		}
		states += n
	}
	if states == 0 {
		t.Error("no file alone gives a state")
	}
	return files, states, differing
}

// state is what a replay knows after a collection: a hash of all its objects, and whether any were listed there.
type state struct {
	hash   uint64
	synced bool
}

// replayed gives each collection after which the state is known.
func replayed(t *testing.T, seed maphash.Seed, files ...*ringstore.File) iter.Seq2[uint64, state] {
	return func(yield func(uint64, state) bool) {
		src := &blockSource{files: files}
		defer src.close()
		r := heap.NewReplay(src)
		for {
			c, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !c.Known {
				continue
			}
			h := uint64(0)
			r.State.Each(func(o heap.Object) bool {
				h = h*0x9e3779b97f4a7c15 + maphash.Comparable(seed,
					[4]uint64{o.Addr, o.Words, o.Length, uint64(o.Type)})
				return true
			})
			if !yield(c.GC, state{h, c.Synced || c.Slice != 0}) {
				return
			}
		}
	}
}

// blockSource gives the blocks of files in order.
type blockSource struct {
	files []*ringstore.File
	next  func() (trace.Block, error, bool)
	stop  func()
}

func (s *blockSource) Next() (trace.Block, error) {
	for {
		if s.next == nil {
			if len(s.files) == 0 {
				return trace.Block{}, io.EOF
			}
			s.next, s.stop = iter.Pull2(s.files[0].Blocks())
			s.files = s.files[1:]
		}
		if b, err, ok := s.next(); ok {
			return b, err
		}
		s.close()
	}
}

func (s *blockSource) close() {
	if s.stop != nil {
		s.stop()
	}
	s.next, s.stop = nil, nil
}

// results begins a table about something in docs/benchmarks/DATE-NAME and returns a function that appends a row to it.
// It creates the file with title and words if there is none. Rows are written one by one: an aborted run leaves those
// that it had.
func results(t *testing.T, name, title, words, about, columns string) func(cells ...any) {
	t.Helper()
	date := time.Now().UTC().Format(time.DateOnly)
	path := filepath.Join("../../docs/benchmarks", date+"-"+name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(s string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(s)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		write("# " + title + "\n\n" + words +
			"\n\n`make test-full` appends to this page; the newest run is the last.\n")
	}
	version, _ := exec.Command(tool, "version").Output()
	v, rest, _ := strings.Cut(string(version), "\n")
	if second, _, _ := strings.Cut(rest, "\n"); strings.HasPrefix(second, "commit ") {
		v += ", " + second
	}
	if about != "" {
		about += ", "
	}
	begun := false
	return func(cells ...any) {
		if !begun {
			begun = true
			write(fmt.Sprintf("\n## %s%s\n\n%s\n\n| %s |\n|%s\n", about, date, v, columns,
				strings.Repeat("---|", strings.Count(columns, "|")+1)))
		}
		var row []string
		for _, c := range cells {
			row = append(row, fmt.Sprint(c))
		}
		write("| " + strings.Join(row, " | ") + " |\n")
	}
}
