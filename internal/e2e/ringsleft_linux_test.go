package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/shmring"
)

// TestRingsLeft: a JVM makes no ring where many of ended JVMs wait for an agent, nor if the folder of its recording has
// gone: nobody would read it, and it is memory.
func TestRingsLeft(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 4096)
	binary.LittleEndian.PutUint64(header[shmring.OffPIDNS:], st.Ino)
	made := func(rings int) string {
		dir := t.TempDir()
		for i := range rings {
			name := fmt.Sprintf("heapcam-%d-%d.ring", gone.Process.Pid, 1000+i)
			if err := os.WriteFile(filepath.Join(dir, name), header, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, c := range []struct {
		dir, says string
	}{
		{made(15), ""},
		{made(16), "holds 16 shared rings of JVMs that have ended"},
		{filepath.Join(t.TempDir(), "heapcam-record-1-2-3"), "No such file or directory"},
	} {
		p := program{major: 17, gc: "Serial", heap: "32m", main: "Crowd", args: []string{"1", "1000"},
			opts: []string{"-agentpath:" + probeLibrary(t) + "=dir=" + c.dir}}
		r := p.plain(t)
		if code := r.wait(t); code != 0 {
			t.Errorf("%s: status %d", c.dir, code)
		}
		if errs := r.stderr.String(); !strings.Contains(errs, c.says) || c.says == "" && errs != "" {
			t.Errorf("%s: the probe says %q, want %q", c.dir, errs, c.says)
		}
		for _, dir := range []string{c.dir, "/dev/shm"} {
			left, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("heapcam-%d-*", r.cmd.Process.Pid)))
			if err != nil || len(left) > 0 != (c.says == "" && dir == c.dir) {
				t.Errorf("%s: rings in %s: %v %v", c.dir, dir, left, err)
			}
		}
	}
}

// TestManyLoaders: with more class loaders than the probe's table has places at first, a pause does not search for each
// of them in all of it.
func TestManyLoaders(t *testing.T) {
	t.Parallel()
	needReader(t)
	p := program{major: 17, gc: "Serial", heap: "400m", main: "ManyLoaders", args: []string{"75000", "600"},
		opts: []string{"-Xmn40m"}, flags: []string{"--overhead-cpu", "0"}, limit: "64MiB"}
	r := p.start(t)
	r.finish(t)
	rec := r.recorded(t)
	verify(t, rec.dir, 1)
	least, n := probeBeside(t, rec.dir, "young", 8) // when all loaders are there
	t.Logf("%d of the newest 8 are young; of one the probe took %.2f times as long as the JVM", n, least)
	if n < 3 || least > 10 { // 18 with a full table
		t.Errorf("of each of the last %d the probe took at least %.2f times as long as the JVM", n, least)
	}
}

// TestGroupAbove: a limit on memory of a control group above that of the JVM counts as one of its own.
func TestGroupAbove(t *testing.T) {
	t.Parallel()
	g := newMemoryGroup(t, "heapcam-above")
	below := g.child(t, "jvm")
	p := program{major: 17, gc: "Serial", heap: "400m", main: "Crowd", args: []string{"1", "1000"},
		flags: []string{"--sites", "exact"}, wrap: below.wrap}
	for _, c := range []struct {
		mib int64
		off bool
	}{{500, true}, {1500, false}} {
		g.set(t, c.mib<<20)
		r := p.start(t)
		r.finish(t)
		if off := strings.Contains(r.stderr.String(), "do not fit into the memory that is left"); off != c.off {
			t.Errorf("%d MiB: exact sites are off: %v, want %v\n%s", c.mib, off, c.off, r.stderr.String())
		}
	}
}
