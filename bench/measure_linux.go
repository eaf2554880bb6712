package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

type measurer struct {
	build, machine, file string
	done                 map[string]bool
}

// childResult is what the wrapper reports of its child.
type childResult struct {
	PID     int
	Wall    int64
	CPU     int64
	OwnCPU  int64 // of the wrapper, taken off the recorder's
	Success bool
}

// child runs a command as its only child and writes what it cost to file.
func child(file string, args []string) int {
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	t0 := time.Now()
	err := c.Run()
	if c.ProcessState == nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 127
	}
	r := childResult{PID: c.Process.Pid, Wall: int64(time.Since(t0)),
		CPU: int64(c.ProcessState.SystemTime() + c.ProcessState.UserTime()), Success: err == nil}
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) == nil {
		r.OwnCPU = ru.Utime.Nano() + ru.Stime.Nano()
	}
	b, _ := json.Marshal(r)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 127
	}
	return c.ProcessState.ExitCode()
}

// measure runs what is missing of one program on one JVM.
func (m *measurer) measure(w workload, major int, home, gc string, rounds int) error {
	script, err := filepath.Abs(filepath.Join("bench", "workloads", w.name, "run.sh"))
	if err != nil {
		return err
	}
	prepared := false
	for round := range rounds {
		order := slices.Clone(configs)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, config := range order {
			r := row{Build: m.build, Machine: m.machine, Program: w.name, N: w.n, JDK: major, GC: gc, Heap: w.heap,
				Config: config, Round: round}
			if m.done[r.key()] {
				continue
			}
			if !prepared {
				c := exec.Command(script, "prepare")
				if out, err := c.CombinedOutput(); err != nil {
					return fmt.Errorf("%s: %w (bench/workloads/install.sh installs what the programs need)\n%s",
						w.name, err, out)
				}
				prepared = true
			}
			if err := m.one(&r, script, home); err != nil {
				return fmt.Errorf("%s, JDK %d, %s, %s: %w", w.name, major, gc, config, err)
			}
			if err := appendRow(m.file, r); err != nil {
				return err
			}
			m.done[r.key()] = true
			fmt.Fprintf(os.Stderr,
				"%s %d %s %s/%d: %.2f s, CPU %.2f + %.2f s, probe %.1f ms, %d collections, %.1f MB, sample %.2f us\n",
				r.Program, r.JDK, r.GC, r.Config, r.Round,
				float64(r.Wall)/1e9, float64(r.AppCPU)/1e9, float64(r.RecCPU)/1e9,
				float64(r.Probe+r.Sample)/1e6, r.Pauses,
				float64(r.Trace)/1e6, float64(r.Sample)/1e3/float64(max(1, r.Samples)))
		}
	}
	return nil
}

func (m *measurer) one(r *row, script, home string) error {
	dir, err := os.MkdirTemp("", "heapcam-bench.")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	result, gclog, out := filepath.Join(dir, "child"), filepath.Join(dir, "gc.log"), filepath.Join(dir, "rec")
	args := []string{self, "-child", result, script}
	if flags := recorded[r.Config]; flags != nil {
		run := append([]string{"bin/heapcam", "run", "--out", out, "--max-trace-size", "8GiB", "--overhead-cpu", "0"},
			flags...)
		args = append(append(run, "--"), args...)
	}
	c := exec.Command(args[0], args[1:]...)
	options := fmt.Sprintf("JAVA_OPTS=-XX:+Use%sGC -Xms%s -Xmx%s -Xlog:gc:file=%s:uptime", r.GC, r.Heap, r.Heap, gclog)
	if o := others[r.Config]; o != "" {
		options += " " + fmt.Sprintf(o, filepath.Join(dir, r.Config+".jfr"))
	}
	c.Env = append(os.Environ(), "JAVA="+filepath.Join(home, "bin", "java"), "N="+strconv.Itoa(r.N), options)
	var talk strings.Builder
	c.Stdout, c.Stderr = &talk, &talk
	if err := c.Start(); err != nil {
		return err
	}
	stop := make(chan struct{})
	rings := make(chan *os.File, 1)
	go findRing(c.Process.Pid, stop, rings)
	err = c.Wait()
	close(stop)
	ring := <-rings
	if ring != nil {
		defer ring.Close()
	}
	if err != nil || !strings.Contains(talk.String(), "WORKLOAD ") {
		return fmt.Errorf("the run failed: %v\n%s", err, talk.String())
	}
	b, err := os.ReadFile(result)
	if err != nil {
		return err
	}
	var cr childResult
	if err := json.Unmarshal(b, &cr); err != nil {
		return err
	}
	all := int64(c.ProcessState.SystemTime() + c.ProcessState.UserTime())
	r.Date, r.Wall, r.AppCPU = time.Now().UTC().Format(time.DateOnly), cr.Wall, cr.CPU
	if len(args) > 4 && args[0] != self {
		r.RecCPU = max(0, all-cr.CPU-cr.OwnCPU)
	}
	if err := gcLog(gclog, r); err != nil {
		return err
	}
	if args[0] == self {
		return nil
	}
	if ring == nil {
		return errors.New("no shared ring was seen: was the JVM recorded?\n" + talk.String())
	}
	h := make([]byte, 4096)
	if _, err := ring.ReadAt(h, 0); err != nil {
		return err
	}
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(h[off:]) }
	r.Probe, r.Sample, r.Samples = u64(shmring.OffProbeNS), u64(shmring.OffSampleNS), u64(shmring.OffSamples)
	r.Collections, r.Lost = u64(shmring.OffEpochs), u64(shmring.OffEpochsDropped)
	return sizes(out, r)
}

// findRing opens the shared ring of the JVM below pid, so that its header can be read after the JVM and the file's name
// have gone. Where a larger ring takes over, that one has the counters.
func findRing(pid int, stop <-chan struct{}, found chan<- *os.File) {
	prefix := "/dev/shm/heapcam-run-*/*.ring"
	old, _ := filepath.Glob(prefix)
	var seen []os.FileInfo
	var last *os.File
	for {
		names, _ := filepath.Glob(prefix)
		for _, n := range names {
			if slices.Contains(old, n) {
				continue
			}
			f, err := os.Open(n)
			if err != nil {
				continue
			}
			var p [4]byte
			_, err = f.ReadAt(p[:], int64(shmring.OffPID))
			i, none := f.Stat()
			if err != nil || none != nil || !below(int(binary.LittleEndian.Uint32(p[:])), pid) ||
				slices.ContainsFunc(seen, func(s os.FileInfo) bool { return os.SameFile(s, i) }) {
				f.Close()
				continue
			}
			seen = append(seen, i)
			if last != nil {
				last.Close()
			}
			last = f
		}
		select {
		case <-stop:
			found <- last
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// below says that pid is a descendant of root.
func below(pid, root int) bool {
	for range 10 {
		if pid == root {
			return true
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(f[1]); err != nil || pid <= 1 {
			return false
		}
	}
	return false
}

var pauseLine = regexp.MustCompile(` Pause .* ([0-9.]+)ms$`)

func gcLog(file string, r *row) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, l := range strings.Split(string(b), "\n") {
		if m := pauseLine.FindStringSubmatch(l); m != nil {
			ms, _ := strconv.ParseFloat(m[1], 64)
			r.Pauses++
			r.PauseNS += int64(ms * 1e6)
		}
	}
	return nil
}

// sizes reads the recording: its bytes, what was born, and what sync points take.
func sizes(out string, r *row) error {
	files, _ := filepath.Glob(filepath.Join(out, "*", "*.hcr"))
	if len(files) == 0 {
		return errors.New("no recording was written")
	}
	for _, name := range files {
		if err := fileSizes(name, r); err != nil {
			return err
		}
	}
	return nil
}

func fileSizes(name string, r *row) error {
	f, err := ringstore.OpenFile(name)
	if err != nil {
		return err
	}
	defer f.Close()
	types := trace.NewTypeTable(8)
	var p pauses
	defer func() { p.fill(r) }()
	for fr, err := range f.Frames() {
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		r.Trace += int64(fr.Stored)
		for b, err := range trace.Blocks(fr.Payload) {
			if err != nil {
				return err
			}
			switch b.Kind {
			case trace.KindMeta:
				m, err := trace.DecodeMeta(b)
				if err != nil {
					return err
				}
				types.SetAlign(m.JVM.Align)
			case trace.KindDefs:
				d, err := trace.DecodeDefs(b)
				if err != nil {
					return err
				}
				if err := types.DefineAll(d.Types); err != nil {
					return err
				}
			case trace.KindEpoch:
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					return err
				}
				p.epoch(e.Pause)
				for _, blob := range e.Allocs { // full depth: all of eden, the census of births repeats its survivors
					w := trace.NewWalkTokens(blob, types)
					for w.Next() {
						r.Objects++
						r.ObjectBytes += 8 * w.Words
					}
					if err := w.Err(); err != nil {
						return err
					}
				}
				for _, c := range e.Census {
					if len(e.Allocs) > 0 {
						break
					}
					for _, i := range []int{trace.CensusBornYoung, trace.CensusBornOld} {
						r.Objects += c.Cells[i].Objects
						r.ObjectBytes += c.Cells[i].Bytes
					}
				}
			case trace.KindSlice:
				s, err := trace.DecodeSlice(b)
				if err != nil {
					return err
				}
				p.listing(s.Probe)
			case trace.KindSync:
				s, err := trace.DecodeSync(b)
				if err != nil {
					return err
				}
				r.Syncs++
				p.listing(s.Probe)
				r.SyncObjects += s.Objects
				r.SyncBytes += int64(float64(fr.Stored) * float64(len(b.Payload)) / float64(max(1, len(fr.Payload))))
			}
		}
	}
	return nil
}
