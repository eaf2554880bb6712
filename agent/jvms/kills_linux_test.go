package jvms

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// fakeGroups are memory cgroups and a machine whose counters a test writes.
type fakeGroups struct {
	t            *testing.T
	root, vmstat string
	v2           bool
}

func newFakeGroups(t *testing.T, v2 bool) *fakeGroups {
	dir := t.TempDir()
	f := &fakeGroups{t, filepath.Join(dir, "cgroup"), filepath.Join(dir, "vmstat"), v2}
	f.machine(7)
	return f
}

func (f *fakeGroups) write(path, text string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeGroups) dir(path string) string {
	if f.v2 {
		return filepath.Join(f.root, path)
	}
	return filepath.Join(f.root, "memory", path)
}

// set writes the counters of a cgroup; limit 0: it has none.
func (f *fakeGroups) set(path string, kills, failed, limit int) {
	f.t.Helper()
	dir := f.dir(path)
	if f.v2 {
		most := "max"
		if limit > 0 {
			most = fmt.Sprint(limit)
		}
		f.write(filepath.Join(dir, "memory.max"), most+"\n")
		f.write(filepath.Join(dir, "memory.events"), fmt.Sprintf(
			"low 0\nhigh 0\nmax 99\noom %d\noom_kill %d\noom_group_kill 0\n", failed, kills))
		return
	}
	if limit == 0 {
		limit = 0x7ffffffffffff000
	}
	f.write(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Sprintln(limit))
	f.write(filepath.Join(dir, "memory.failcnt"), fmt.Sprintln(failed))
	f.write(filepath.Join(dir, "memory.oom_control"), fmt.Sprintf("oom_kill_disable 0\nunder_oom 0\noom_kill %d\n",
		kills))
}

func (f *fakeGroups) machine(kills int) {
	f.t.Helper()
	f.write(f.vmstat, fmt.Sprintf("nr_free_pages 1\noom_killer 9\noom_kill %d\nnuma_hit 3\n", kills))
}

// remove removes a cgroup. Its folder stays elsewhere, so that no other one gets its number.
func (f *fakeGroups) remove(path string) {
	f.t.Helper()
	if err := os.Rename(f.dir(path), filepath.Join(f.t.TempDir(), "removed")); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeGroups) read(path string) Kills {
	text := "1:cpu:/else\n0::/else\n4:name=systemd,memory:" + path + "\n"
	if f.v2 {
		text = "1:name=systemd:/else\n0::" + path + "\n"
	}
	return killsOf(text, f.root, f.vmstat)
}

// TestKills: whose counter of kills rose, and which limit was reached, with both versions of cgroups.
func TestKills(t *testing.T) {
	const limit, above = 256 << 20, 900 << 20
	for _, v2 := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			happen func(f *fakeGroups)
			scope  [2]uint64 // versions 1 and 2
			limit  [2]uint64
		}{
			{"nothing", func(f *fakeGroups) {}, [2]uint64{}, [2]uint64{}},
			{"killed at its limit", func(f *fakeGroups) { f.set("pod/jvm", 3, 9, limit); f.machine(8) },
				[2]uint64{trace.KilledCgroup, trace.KilledCgroup}, [2]uint64{limit, limit}},
			{"killed at the limit of the one above", func(f *fakeGroups) {
				f.set("pod/jvm", 3, 5, limit)
				f.set("pod", 1, 6, above)
			}, [2]uint64{trace.KilledCgroup, trace.KilledCgroup}, [2]uint64{above, above}},
			{"killed as the machine has no memory", func(f *fakeGroups) { f.set("pod/jvm", 3, 5, limit) },
				[2]uint64{trace.KilledCgroup, trace.KilledCgroup}, [2]uint64{}},
			{"its limit was reached, no kill", func(f *fakeGroups) { f.set("pod/jvm", 2, 9, limit) }, [2]uint64{},
				[2]uint64{}},
			{"another was killed", func(f *fakeGroups) { f.set("pod", 9, 9, above); f.machine(9) }, [2]uint64{},
				[2]uint64{}},
			{"gone, killed at its limit", func(f *fakeGroups) {
				f.remove("pod/jvm")
				f.set("pod", 1, 5, above)
				f.machine(8)
			}, [2]uint64{trace.KilledMachine, trace.KilledAbove}, [2]uint64{0, limit}},
			{"gone, killed at the limit of the second one above", func(f *fakeGroups) {
				f.remove("pod/jvm")
				f.set("pod", 1, 4, above)
				f.set("", 1, 5, 0)
				f.machine(8)
			}, [2]uint64{trace.KilledMachine, trace.KilledAbove}, [2]uint64{}},
			{"gone, nothing was killed there", func(f *fakeGroups) { f.remove("pod/jvm"); f.machine(8) },
				[2]uint64{trace.KilledMachine, 0}, [2]uint64{}},
			{"gone with the one above", func(f *fakeGroups) { f.remove("pod"); f.set("", 9, 9, 0); f.machine(8) },
				[2]uint64{trace.KilledMachine, trace.KilledAbove}, [2]uint64{0, limit}},
			{"made again", func(f *fakeGroups) {
				f.remove("pod/jvm")
				f.set("pod/jvm", 0, 0, limit)
				f.set("pod", 1, 5, above)
				f.machine(8)
			}, [2]uint64{trace.KilledMachine, trace.KilledAbove}, [2]uint64{0, limit}},
			{"all gone", func(f *fakeGroups) { f.remove(""); f.machine(8) },
				[2]uint64{trace.KilledMachine, trace.KilledMachine}, [2]uint64{}},
			{"all gone, nothing was killed", func(f *fakeGroups) { f.remove("") }, [2]uint64{}, [2]uint64{}},
		} {
			f := newFakeGroups(t, v2)
			f.set("pod/jvm", 2, 5, limit)
			f.set("pod", 0, 4, above)
			f.set("", 0, 4, 0)
			k := f.read("/pod/jvm")
			c.happen(f)
			i := 0
			if v2 {
				i = 1
			}
			if scope, most := k.killed(f.vmstat); scope != c.scope[i] || most != c.limit[i] {
				t.Errorf("%s (version %d): scope %d, limit %d; want %d, %d", c.name, i+1, scope, most, c.scope[i],
					c.limit[i])
			}
		}
	}
}

// TestKillsUnknown: without counters, and of a cgroup that the agent cannot see, nothing is known but what the machine
// says.
func TestKillsUnknown(t *testing.T) {
	var none Kills
	if scope, limit := none.Killed(); scope != 0 || limit != 0 {
		t.Errorf("of no process: %d, %d", scope, limit)
	}
	for _, v2 := range []bool{false, true} {
		f := newFakeGroups(t, v2)
		f.set("pod/jvm", 2, 5, 1<<20)
		for _, path := range []string{"/../pod/jvm", "/pod/../pod/jvm", "/none", ""} {
			k := f.read(path)
			if len(k.groups) > 0 {
				t.Errorf("%q: read %+v", path, k.groups)
			}
			f.set("pod/jvm", 3, 6, 1<<20)
			if scope, _ := k.killed(f.vmstat); scope != 0 {
				t.Errorf("%q: scope %d", path, scope)
			}
			f.machine(8)
			if scope, _ := k.killed(f.vmstat); scope != trace.KilledMachine {
				t.Errorf("%q: scope %d though the machine killed", path, scope)
			}
			f.machine(7)
		}
		f.write(f.vmstat, "nr_free_pages 1\n")
		k := f.read("/none")
		f.machine(8)
		if scope, _ := k.killed(f.vmstat); scope != 0 {
			t.Errorf("scope %d of a counter that was not there before", scope)
		}
		f.write(filepath.Join(f.dir("odd"), "memory.events"), "oom_kill -1\n")
		f.write(filepath.Join(f.dir("odd"), "memory.oom_control"), "oom_kill 99999999999999999999\n")
		if k := f.read("/odd"); len(k.groups) > 0 {
			t.Errorf("read %+v", k.groups)
		}
		deep := "/pod/jvm"
		for range 50 {
			deep += "/a"
			f.set(deep, 0, 0, 0)
		}
		if k := f.read(deep); len(k.groups) != maxGroups {
			t.Errorf("%d cgroups were read", len(k.groups))
		}
	}
}

// TestKillsOfSelf: of a real process there is a counter, of one that has ended there is none.
func TestKillsOfSelf(t *testing.T) {
	k, err := KillsOf(os.Getpid(), 0)
	if err != nil || len(k.groups) == 0 && !k.known {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := KillsOf(os.Getpid(), 1); err == nil {
		t.Error("a process that started at another time has counters")
	}
	c := exec.Command("true")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := KillsOf(c.Process.Pid, 0)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a process that has ended and waits for its parent has counters: %v", err)
		}
	}
}

func BenchmarkKillsOf(b *testing.B) {
	for b.Loop() {
		if _, err := KillsOf(os.Getpid(), 0); err != nil {
			b.Fatal(err)
		}
	}
}
