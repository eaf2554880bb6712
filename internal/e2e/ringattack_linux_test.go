package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/shmring"
)

// mapped finds the ring that a process has mapped.
func mappedRing(t *testing.T, pid int) (path string) {
	t.Helper()
	await(t, "the ring", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		m := regexp.MustCompile(`/\S+\.ring\b`).Find(b)
		path = string(m)
		return m != nil
	})
	return path
}

func overwrite(path string, from, n int64, with []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for at := from; at < from+n; at += int64(len(with)) {
		if _, err := f.WriteAt(with[:min(int64(len(with)), from+n-at)], at); err != nil {
			return err
		}
	}
	return nil
}

func punch(path string, from, n int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, n)
}

// ringAttacks are what the owner of a ring's file can do to it. ends says whether the recording can go on.
type ringAttack struct {
	name string
	ends string // "yes", "no", "may": what was punched out may have been read already
	do   func(path string) error
}

var ringAttacks = []ringAttack{
	{"truncate to 0", "yes", func(p string) error { return os.Truncate(p, 0) }},
	{"truncate to 100", "yes", func(p string) error { return os.Truncate(p, 100) }},
	{"truncate to a page", "yes", func(p string) error { return os.Truncate(p, 4096) }},
	{"truncate behind the header", "yes", func(p string) error { return os.Truncate(p, shmring.HeaderSize) }},
	{"truncate to half", "yes", func(p string) error { return os.Truncate(p, shmring.HeaderSize+2<<20) }},
	{"truncate by a byte", "yes", func(p string) error { return os.Truncate(p, shmring.HeaderSize+4<<20-1) }},
	{"truncate and grow again", "yes", func(p string) error {
		st, err := os.Stat(p)
		if err == nil {
			err = os.Truncate(p, 0)
		}
		if err == nil {
			err = os.Truncate(p, st.Size())
		}
		return err
	}},
	{"punch out the header", "yes", func(p string) error { return punch(p, 0, 4096) }},
	{"punch out the data", "may", func(p string) error { return punch(p, shmring.HeaderSize, 4<<20) }},
	{"garbage everywhere", "yes", func(p string) error {
		return overwrite(p, 0, shmring.HeaderSize+4<<20, bytes.Repeat([]byte{0xa5}, 4096))
	}},
	{"garbage in the agent's words", "may", func(p string) error {
		return overwrite(p, shmring.OffTail, shmring.OffExhausted-shmring.OffTail, []byte{0xff})
	}},
	{"delete", "no", os.Remove},
	{"chmod 0", "no", func(p string) error { return os.Chmod(p, 0) }},
	{"rename", "no", func(p string) error { return os.Rename(p, p+".gone") }},
	{"make longer", "no", func(p string) error { return os.Truncate(p, 1<<30) }},
	{"a directory in its place", "no", func(p string) error {
		if err := os.Remove(p); err != nil {
			return err
		}
		return os.MkdirAll(filepath.Join(p, "x"), 0o700)
	}},
}

// Lengths that no other attack has, in the long rounds.
func init() {
	for i := int64(0); full && i < 64; i++ {
		to := (shmring.HeaderSize+4<<20)*i/64 + i*i*7%4096
		ringAttacks = append(ringAttacks, ringAttack{fmt.Sprintf("truncate to %d", to), "yes", func(p string) error {
			return os.Truncate(p, to)
		}})
	}
}

// TestRingAttacks does to the shared ring's file what its owner can do to it, while all threads of the JVM are in the
// probe's callbacks as often as possible. The JVM runs to its end. The recording continues, or the reason is reported.
func TestRingAttacks(t *testing.T) {
	t.Parallel()
	for i, a := range ringAttacks {
		// In the short rounds each attack is made on one pair, and those that end the recording on both JDKs.
		majors, gcs := []int{17, 25}, collectors
		if !full {
			gcs = gcs[i%3:][:1]
			if i > 0 && i != 7 {
				majors = majors[i%2:][:1]
			}
		}
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			eachPair(t, majors, gcs, func(t *testing.T, major int, gc string) {
				file := filepath.Join(t.TempDir(), "end")
				p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{file, "20000", "50"},
					flags: []string{"--sampling", "2KiB", "--shm-size", "4MiB"}}
				r := p.start(t)
				await(t, "collections", func() bool { return r.stops() >= 3 })
				if err := a.do(mappedRing(t, r.pid())); err != nil {
					t.Fatal(err)
				}
				n := r.stops()
				await(t, "collections after it", func() bool { return r.stops() >= n+5 })
				time.Sleep(200 * time.Millisecond) // some rounds of the control thread
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				code := r.wait(t)
				if !strings.HasSuffix(strings.TrimSpace(r.stdout.String()), "done") {
					t.Fatalf("the JVM did not come to its end: status %d", code)
				}
				said := strings.Contains(r.stderr.String(), "stopped recording") ||
					strings.Contains(r.stderr.String(), "protocol violation")
				if a.ends == "yes" && !said || a.ends == "no" && said {
					t.Errorf("the recording ends: %s; somebody says so: %v", a.ends, said)
				}
			})
		})
	}
}

// onTmpfs records a program whose ring is on a tmpfs of its own, does something to that, and wants the JVM to come to
// its end.
func onTmpfs(t *testing.T, do func(dir, ring string)) (said string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not run: a tmpfs of its own below a ring (mounting one takes root)")
	}
	somePair(t, t.Name(), []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
			t.Skipf("not run: a tmpfs of its own below a ring (mount: %v)", err)
		}
		t.Cleanup(func() {
			for unix.Unmount(dir, unix.MNT_DETACH) == nil {
			}
		})
		file := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{file, "20000", "50"},
			flags: []string{"--sampling", "2KiB"},
			probe: "dir=" + dir + ",ring=4194304"}
		r := p.start(t)
		await(t, "collections", func() bool { return r.stops() >= 3 })
		ring := mappedRing(t, r.pid())
		if filepath.Dir(ring) != dir {
			t.Fatalf("the ring is %s, not in %s", ring, dir)
		}
		do(dir, ring)
		n := r.stops()
		await(t, "collections after it", func() bool { return r.stops() >= n+5 })
		os.WriteFile(file, nil, 0o600)
		r.wait(t)
		if !strings.HasSuffix(strings.TrimSpace(r.stdout.String()), "done") {
			t.Fatal("the JVM did not come to its end")
		}
		said = r.stderr.String()
	})
	return said
}

// TestRingUnmounted unmounts the tmpfs of a ring that is in use, and makes it read-only or smaller.
func TestRingUnmounted(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(dir string) error{
		"unmount": func(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) },
		// refused while it is in use
		"read-only": func(dir string) error {
			unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
			return nil
		},
		"smaller": func(dir string) error {
			unix.Mount("", dir, "", unix.MS_REMOUNT, "size=4096")
			return nil
		},
		"another mount over it": func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") },
	} {
		t.Run(name, func(t *testing.T) {
			onTmpfs(t, func(dir, _ string) {
				if err := do(dir); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestFullTmpfsHole punches a hole into a ring on a tmpfs that somebody else then fills: the page that is missing can
// not be had again.
func TestFullTmpfsHole(t *testing.T) {
	t.Parallel()
	said := onTmpfs(t, func(dir, ring string) {
		if err := punch(ring, 0, shmring.HeaderSize+4<<20); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(dir, "full"))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1<<20)
		for err == nil {
			_, err = f.Write(b)
		}
		f.Close()
	})
	if said != "" && !strings.Contains(said, "stopped recording") {
		t.Error("nobody says that the recording has ended")
	}
}

// holds is what of a JVM's memory is ours: mappings of our files, and all that is resident.
func holds(t *testing.T, pid int) (maps, rss, fds int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	es, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("heapcam")), number(t, fmt.Sprintf("/proc/%d/status", pid), "VmRSS:"), len(es)
}

// TestDetachLeavesNothing attaches to a JVM and detaches from it again and again: only the library stays in the JVM,
// once, and no descriptor in the agent.
func TestDetachLeavesNothing(t *testing.T) {
	t.Parallel()
	needReader(t)
	cycles := 12
	if tiers.Short() {
		cycles = 7
	}
	if full {
		cycles = 200
	}
	d := newDaemon(t, "--max-trace-size", "1MiB", "--max-total-size", "16MiB", "--emergency", "off")
	d.start(t)
	somePair(t, t.Name(), []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		file := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "32m", main: "Until", args: []string{file, "2000", "5"},
			timeout: 20 * time.Minute,
			opts:    []string{"-Xms32m", "-XX:+AlwaysPreTouch", "-Xint"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		pid := r.pidText()
		var first, maps, rss, fds int
		var fds1, maps1, agent1 int
		agent := func() int { _, _, fds := holds(t, d.cmd.Process.Pid); return fds }
		const warm = 4 // what the JVM itself loads and compiles for the first ones
		for i := range cycles {
			if errs, code := d.attach(t, pid); code != 0 {
				t.Fatalf("attach %d: status %d: %s", i, code, errs)
			}
			n := r.stops()
			await(t, "collections", func() bool { return r.stops() >= n+2 })
			if _, errs, code := heapcam(t, "detach", pid, "--socket", d.sock); code != 0 {
				t.Fatalf("detach %d: status %d: %s", i, code, errs)
			}
			await(t, "the end of the recording", func() bool {
				for _, s := range d.status(t).JVMs {
					if s.PID == r.pid() && !s.Phase.Over() {
						return false
					}
				}
				maps, rss, fds = holds(t, r.pid())
				return strings.Count(ringsMapped(r.pid()), ".ring") == 0
			})
			if i+1 == warm {
				maps1, first, fds1, agent1 = maps, rss, fds, agent()
			}
		}
		t.Logf("after %d cycles: %d mappings of ours, %d KiB resident, %d descriptors; after %d: %d, %d, %d",
			warm, maps1,
			first, fds1, cycles, maps, rss, fds)
		if maps != maps1 || fds > fds1+1 {
			t.Errorf("mappings %d, then %d; descriptors %d, then %d", maps1, maps, fds1, fds)
		}
		if n := agent(); n > agent1+4 {
			t.Errorf("the agent has %d descriptors, then %d", agent1, n)
		}
		if rss > first+5<<10 {
			t.Errorf("%d KiB more after %d cycles, want at most 5 MiB", rss-first, cycles-warm)
		}
		r.end(t, file)
	})
	d.stop(t)
}

func ringsMapped(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	return string(b)
}
