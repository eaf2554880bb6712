package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
)

// takes is what an agent holds of the machine.
// rss in KiB; files: rings, others below the folder for rings, recordings
type takes struct{ threads, fds, rss, rings, other, recordings int }

func (d *daemon) takes(t *testing.T) (n takes) {
	t.Helper()
	pid := d.cmd.Process.Pid
	n.threads = number(t, fmt.Sprintf("/proc/%d/status", pid), "Threads:")
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	n.fds = len(fds)
	n.rss = number(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	filepath.WalkDir(d.rings, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if filepath.Ext(path) == ".ring" {
				n.rings++
			} else {
				n.other++
			}
		}
		return nil
	})
	n.recordings = len(d.recordings())
	return n
}

// TestChurn lets small JVMs come and go below one agent that discovers, some at a time, every second of them killed,
// for as long as HEAPCAM_CHURN_FOR says: each is recorded, and in the end the agent holds no more than when the first
// ones had gone: memory, descriptors, threads, goroutines, rings, recordings.
func TestChurn(t *testing.T) {
	needReader(t)
	span, err := time.ParseDuration(os.Getenv("HEAPCAM_CHURN_FOR"))
	if err != nil {
		t.Skip("not run: JVMs that come and go for half an hour (make soak)")
	}
	const atOnce, warm, total = 4, 24, 16 << 20
	d, mark := discoverer(t, "--max-trace-size", "1MiB", "--max-total-size", fmt.Sprint(total), "--max-incidents-size",
		"2MiB", "--emergency", "off")
	d.start(t)
	launch := func(file string) *running {
		p := program{major: 17, gc: "Serial", heap: "16m", main: "Tides",
			args:    []string{file, "100000", "5000", "500000"},
			timeout: span + 10*time.Minute,
			opts: []string{mark, "-Xss256k", "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=8m",
				"-XX:CICompilerCount=1"}}
		return p.plain(t)
	}
	stays := filepath.Join(t.TempDir(), "end")
	living := launch(stays)
	of := func(r *running) session.Status {
		s, _ := d.of(t, r.pid())
		return s
	}
	// calm is what the agent takes when nothing happens: the least of some looks, since its heap breathes.
	calm := func() takes {
		best := takes{rss: 1 << 40}
		for range 20 {
			if n := d.takes(t); n.rss < best.rss {
				best = n
			}
			time.Sleep(500 * time.Millisecond)
		}
		return best
	}
	var before takes
	ended := 0
	for begun := time.Now(); time.Since(begun) < span || ended <= warm; {
		if ended == warm {
			before = calm()
		}
		file := filepath.Join(t.TempDir(), "end")
		var some []*running
		for range atOnce {
			some = append(some, launch(file))
		}
		for i, r := range some {
			await(t, "its pid", func() bool { return r.pid() > 0 })
			for end := time.Now().Add(30 * time.Second); of(r).Collections < 2 && time.Now().Before(end); {
				time.Sleep(50 * time.Millisecond)
			}
			if of(r).Collections < 2 {
				t.Errorf("JVM %d is not recorded: %+v", ended+i, of(r))
			}
		}
		for i, r := range some {
			if i%2 == 1 {
				r.cmd.Process.Kill()
			}
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, r := range some {
			r.cmd.Wait()
			await(t, "the end of its recording", func() bool { return of(r).Phase.Over() })
		}
		ended += atOnce
		if ended%100 == 0 {
			t.Logf("%v: %d JVMs: %+v", time.Since(begun).Round(time.Second), ended, d.takes(t))
		}
	}
	after := calm()
	t.Logf("%d JVMs came and went in %v; after %d: %+v, in the end: %+v", ended, span, warm, before, after)
	if after.fds > before.fds+4 || after.threads > before.threads+6 || after.rss > before.rss*5/4+16<<10 {
		t.Errorf("the agent takes more and more: %+v, then %+v", before, after)
	}
	if after.rings != 1 || after.other > before.other {
		t.Errorf("files are left where rings are: %+v, then %+v", before, after)
	}
	if n := onDiskBelow(d.out); n > total {
		t.Errorf("%d bytes of recordings, %d are allowed", n, total)
	}
	if s := of(living); s.Phase != session.Recording || s.Dropped.RingEpochs+s.Dropped.StoreEpochs != 0 {
		t.Errorf("the JVM that stayed: %+v", s)
	}
	d.cmd.Process.Signal(syscall.SIGQUIT) // which tells its goroutines
	d.cmd.Wait()
	d.cmd = nil
	if n := len(regexp.MustCompile(`(?m)^goroutine \d+ .*\[`).FindAllString(d.stderr.String(), -1)); n == 0 || n > 60 {
		t.Errorf("%d goroutines", n)
	} else {
		t.Logf("%d goroutines", n)
	}
	os.WriteFile(stays, nil, 0o600)
	living.cmd.Wait()
}

// onDiskBelow is what the files below dir occupy, in bytes.
func onDiskBelow(dir string) (n int64) {
	seen := map[uint64]bool{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if st, err := e.Info(); err == nil {
				if s := st.Sys().(*syscall.Stat_t); !seen[s.Ino] {
					seen[s.Ino] = true
					n += s.Blocks * 512
				}
			}
		}
		return nil
	})
	return n
}
