package e2e

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/shmring"
)

//go:embed native/faults.c
var faultsSource string

// probeLibrary is the probe as a file of its own; HEAPCAM_PROBE names another build of it.
func probeLibrary(t *testing.T) string {
	t.Helper()
	b, err := probe.Library()
	if other := os.Getenv("HEAPCAM_PROBE"); other != "" {
		b, err = os.ReadFile(other)
	}
	if err != nil {
		t.Skip("not run: attacks on the probe (it is not compiled: make probe)")
	}
	lib := filepath.Join(t.TempDir(), "libheapcam.so")
	if err := os.WriteFile(lib, b, 0o700); err != nil {
		t.Fatal(err)
	}
	return lib
}

// assault is one JVM with the probe and without an agent: the test itself is the ring's other side.
type assault struct {
	major  int
	gc     string
	lib    string
	dir    string // of the ring; default one in /dev/shm
	spool  bool
	opts   []string // of the JVM
	probe  string   // options
	env    []string
	wrap   []string
	main   []string                // default Assault with 3 threads
	grow   bool                    // wait for a larger ring
	unread bool                    // nobody reads the ring
	during func(pid int)           // while it records
	signal func(c *exec.Cmd) error // ends it otherwise
	keep   bool                    // do not detach
}

type ending struct {
	out, errs string
	code      int
	states    []uint32 // of the rings, the last one last
	capacity  uint64
	took      time.Duration
	killed    bool
	elsewhere bool // the ring is not where it was wanted
	detached  atomic.Bool
}

func word32(f *os.File, off int64) uint32 {
	var b [4]byte
	f.ReadAt(b[:], off)
	return binary.LittleEndian.Uint32(b[:])
}

func word64(f *os.File, off int64) uint64 {
	var b [8]byte
	f.ReadAt(b[:], off)
	return binary.LittleEndian.Uint64(b[:])
}

func put64(f *os.File, off int64, v uint64) {
	f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), off)
}

func monotonic() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

// reader is what an agent does to a ring, and no more: it says that it lives, takes a larger ring over, reads,
// detaches.
func (a *assault) reader(end *ending, stop <-chan struct{}, detach <-chan struct{}) {
	var f *os.File
	defer func() {
		if f != nil {
			end.states = append(end.states, word32(f, shmring.OffState))
			end.capacity = word64(f, shmring.OffCapacity)
			f.Close()
		}
	}()
	path := ""
	for ; ; time.Sleep(3 * time.Millisecond) {
		select {
		case <-stop:
			return
		default:
		}
		if f == nil {
			if m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring")); len(m) > 0 {
				path = m[0]
				f, _ = os.OpenFile(path, os.O_RDWR, 0)
			}
			continue
		}
		var magic [8]byte
		if f.ReadAt(magic[:], 0); string(magic[:]) != "HEAPCAMR" {
			continue
		}
		put64(f, shmring.OffAgentHeartbeat, monotonic())
		if a.grow {
			f.WriteAt([]byte{3, 0, 0, 0}, shmring.OffDepthWanted) // its epochs fill the ring
		}
		if word32(f, shmring.OffState) == 7 {
			next, err := os.OpenFile(path+".next", os.O_RDWR, 0)
			if err == nil {
				end.states = append(end.states, 7)
				os.Rename(path+".next", path)
				f.Close()
				f = next
			}
			continue
		}
		if !a.unread && (!a.grow || word64(f, shmring.OffCapacity) > 4<<20) {
			put64(f, shmring.OffTail, word64(f, shmring.OffHead))
		}
		select {
		case <-detach:
			f.WriteAt([]byte{1, 0, 0, 0}, shmring.OffDetach)
			if word32(f, shmring.OffState) == 4 {
				end.detached.Store(true)
			}
		default:
		}
	}
}

// elsewhere is the ring that could not be made in its folder.
func elsewhere(pid int) []string {
	m, _ := filepath.Glob(fmt.Sprintf("/dev/shm/heapcam-%d-*.ring", pid))
	return m
}

// run starts the JVM, has it recorded, makes the ring grow if it is to, detaches, and ends it.
func (a assault) run(t *testing.T) *ending {
	t.Helper()
	end := &ending{}
	home := jdk(t, a.major)
	if a.dir == "" {
		dir, err := os.MkdirTemp("/dev/shm", "heapcam-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		a.dir = dir
	}
	file := filepath.Join(a.dir, "end")
	opt := "dir=" + a.dir
	if a.spool {
		opt = "spool:" + a.dir
	}
	args := append([]string{}, a.wrap...)
	args = append(args, filepath.Join(home, "bin", "java"), "-Xmx64m", "-Xmn2m", "-XX:+Use"+a.gc+"GC",
		"-XX:-CreateCoredumpOnCrash",
		"-XX:ErrorFile="+filepath.Join(a.dir, "hs_err"), "-agentpath:"+a.lib+"="+opt+a.probe)
	args = append(append(args, a.opts...), "-cp", classPath(t))
	if a.main == nil {
		a.main = []string{"Assault", file, "3"}
	}
	var out, errs buffer
	args = append(args, a.main...)
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), a.env...)
	c.Stdout, c.Stderr = &out, &errs
	begun := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop, detach := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); a.reader(end, stop, detach) }()
	exited := make(chan struct{})
	watchdog := time.AfterFunc(60*time.Second, func() { end.killed = true; c.Process.Kill() })
	go func() {
		wait := func(d time.Duration, f func() bool) {
			for from := time.Now(); time.Since(from) < d && !f(); time.Sleep(5 * time.Millisecond) {
				select {
				case <-exited:
					return
				default:
				}
			}
		}
		wait(10*time.Second, func() bool {
			m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring"))
			return strings.HasPrefix(out.String(), "pid ") && (len(m) > 0 || errs.String() != "")
		})
		if a.grow {
			// It has grown, or cannot: by then the JVM has had time to fill it, however busy the machine is.
			wait(60*time.Second, func() bool {
				if spent, err := cpuTime(c.Process.Pid); err != nil || spent > 1000 {
					return true
				}
				m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring"))
				for _, f := range m {
					if st, err := os.Stat(f); err == nil && st.Size() > 5<<20 {
						return true
					}
				}
				return strings.Contains(errs.String(), "heapcam:")
			})
		}
		wait(300*time.Millisecond, func() bool { return false })
		if a.during != nil {
			a.during(c.Process.Pid)
		}
		if !a.keep {
			close(detach)
			if a.signal == nil {
				wait(5*time.Second, func() bool {
					return end.detached.Load() || strings.Contains(errs.String(), "heapcam:") ||
						elsewhere(c.Process.Pid) != nil
				})
			}
		}
		if a.signal != nil {
			a.signal(c)
		} else {
			os.WriteFile(file, nil, 0o600)
		}
	}()
	c.Wait()
	close(exited)
	for _, m := range elsewhere(c.Process.Pid) {
		end.elsewhere = true
		os.Remove(m)
	}
	watchdog.Stop()
	end.took = time.Since(begun)
	close(stop)
	wg.Wait()
	end.out, end.errs, end.code = out.String(), errs.String(), c.ProcessState.ExitCode()
	if b, err := os.ReadFile(filepath.Join(a.dir, "hs_err")); err == nil {
		i := bytes.Index(b, []byte("Problematic frame"))
		end.errs += string(b[max(i, 0):][:min(300, len(b)-max(i, 0))])
		if at := bytes.Index(b, []byte("Native frames")); at > 0 {
			end.errs += string(b[at:][:min(1200, len(b)-at)])
		}
	}
	return end
}

func (e *ending) last() uint32 {
	if len(e.states) == 0 {
		return 99
	}
	return e.states[len(e.states)-1]
}

// lines are those of the probe.
func (e *ending) lines() (n int) {
	for _, l := range strings.Split(e.errs, "\n") {
		if strings.HasPrefix(l, "heapcam: ") {
			n++
		}
	}
	return n
}

// well demands what must hold whatever happens: the JVM comes to its end with the right result, and either the
// recording has its end or one line says that there is none.
func (e *ending) well(t *testing.T, what string) {
	t.Helper()
	if e.killed || e.code != 0 || !strings.HasSuffix(e.out, "\ndone\n") {
		t.Errorf("%s: the JVM: status %d, killed %v after %v, rings %v\n%s\n%s", what, e.code, e.killed,
			e.took, e.states,
			tail(e.out), tail(e.errs))
		return
	}
	reported := e.last() == 4 || e.last() == 5 || e.elsewhere
	if n := e.lines(); n > 1 || n == 0 && !reported {
		t.Errorf("%s: %d lines of the probe, rings %v\n%s", what, n, e.states, tail(e.errs))
	}
}

// partOf gives the I-th of N parts of a list if which is I/N, else all of it.
func partOf(list []string, which string) (out []string) {
	i, n := 0, 1
	if found, _ := fmt.Sscanf(which, "%d/%d", &i, &n); found != 2 {
		return list
	}
	for ; n > 0 && i < len(list); i += n {
		out = append(out, list[i])
	}
	return out
}
