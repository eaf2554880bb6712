package e2e

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/shmring"
)

// amid is a JVM of which an agent records references, and that somebody stops the agent of.
type amid struct {
	d   *daemon
	r   *running
	end string // the file that ends the program
}

// amidReferences starts an agent with a small shared ring, and a JVM with more references than the ring has room for.
func amidReferences(t *testing.T, major int, gc, out string, wrap ...string) *amid {
	t.Helper()
	x := &amid{d: newDaemon(t, "--shm-size", "4MiB", "--max-incidents-size", "0"),
		end: filepath.Join(t.TempDir(), "end")}
	if out != "" {
		x.d.out = out
	}
	x.d.start(t)
	p := program{major: major, gc: gc, heap: "160m", main: "Until", args: []string{x.end, "200000", "20"},
		opts: []string{x.d.withProbe(t, ",ring=4194304"), "-Xms160m", "-XX:+AlwaysPreTouch"}}
	x.r = p.plain(t, wrap...)
	await(t, "the first collections", func() bool {
		s := x.d.status(t).JVMs
		return len(s) == 1 && s[0].Collections > 5
	})
	return x
}

// fill stops the agent, and has the probe take a reference listing, of which the ring has no room for all.
func (x *amid) fill(t *testing.T) {
	t.Helper()
	if err := x.d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	x.ask(t)
	await(t, "a ring that has no room for the next part", func() bool {
		return x.d.ring(t).Backlog() > 2<<20
	})
}

// ask has the probe take a reference listing, as an agent does.
func (x *amid) ask(t *testing.T) {
	t.Helper()
	paths, _ := filepath.Glob(filepath.Join(x.d.rings, "*", "*.ring"))
	if len(paths) != 1 {
		t.Fatalf("rings: %v", paths)
	}
	ring, err := os.OpenFile(paths[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ring.Close()
	ask := uint64(20_000)<<32 | uint64(x.d.ring(t).ReferencesAsked+1) // ms and ticket
	if _, err := ring.WriteAt(binary.LittleEndian.AppendUint64(nil, ask), shmring.OffReferences); err != nil {
		t.Fatal(err)
	}
}

// lives waits until the JVM has collected some more.
func (x *amid) lives(t *testing.T, collections int) {
	t.Helper()
	before := x.r.stops()
	await(t, fmt.Sprintf("%d more collections", collections), func() bool { return x.r.stops() >= before+collections })
}

// finish ends the program, and the agent when it has ended the recording. The recording is sound.
func (x *amid) finish(t *testing.T) {
	t.Helper()
	dir := x.d.status(t).JVMs[0].Dir
	x.r.end(t, x.end)
	x.over(t, dir)
}

func (x *amid) over(t *testing.T, dir string) {
	t.Helper()
	await(t, "the end of the recording", func() bool {
		s := x.d.status(t).JVMs
		return len(s) == 0 || s[0].Phase.Over()
	})
	x.d.stop(t)
	out, errs, code := heapcam(t, "verify", dir)
	t.Logf("verify: %s", tail(out))
	if code != 0 {
		t.Errorf("verify: status %d: %s%s", code, out, errs)
	}
}

// TestAmidReferences: while parts of a reference listing wait in the shared ring, the agent is killed, then the JVM.
// Without the agent the JVM runs on, also when the ring is full. The next agent takes the rest. The recording is sound.
func TestAmidReferences(t *testing.T) {
	t.Parallel()
	somePair(t, "amid references", []int{17, 25}, []string{"Serial", "Parallel", "G1"},
		func(t *testing.T, major int, gc string) {
			x := amidReferences(t, major, gc, "")
			x.fill(t)
			x.lives(t, 5)
			t.Logf("%d bytes wait in the ring", x.d.ring(t).Backlog())
			x.d.kill()
			x.lives(t, 5)
			x.d.start(t)
			awaitSession(t, x.d)
			s := x.d.status(t).JVMs[0]
			var got referencesReply // behind what waits
			heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", x.d.sock, x.r.pidText())
			t.Logf("%d objects in %d bytes", got.Objects, got.Bytes)
			x.fill(t)
			x.r.cmd.Process.Kill()
			x.r.cmd.Wait()
			if err := x.d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			x.over(t, s.Dir)
		})
}

// TestAmidReferencesDisk fills the disk while parts of a reference listing are stored. The JVM runs on, the recording
// does as soon as there is room, and it is sound. Full tests only.
func TestAmidReferencesDisk(t *testing.T) {
	needReader(t)
	if !full {
		t.Skip("not run: a disk that fills amid a reference listing (make test-full)")
	}
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("not run: no tmpfs can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	x := amidReferences(t, 25, "G1", mount)
	x.fill(t)
	ballast := filepath.Join(mount, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for b := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(b)
	}
	f.Close()
	if err := x.d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	x.lives(t, 10)
	var asked time.Time
	await(t, "a listing that the disk refused", func() bool { // the first may fit: files grow ahead
		if time.Since(asked) > time.Second {
			x.ask(t)
			asked = time.Now()
		}
		s := x.d.status(t).JVMs
		return len(s) == 1 && s[0].Dropped.References > 0
	})
	if _, errs, code := heapcam(t, "references", "--max-reference-pause", "20s", "--socket", x.d.sock,
		x.r.pidText()); code != 10 {
		t.Errorf("on a full disk: status %d: %s", code, errs)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	time.Sleep(11 * time.Second) // a disk that said that it is full is left alone for ten
	x.lives(t, 10)
	var got referencesReply
	heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", x.d.sock, x.r.pidText())
	if got.Objects == 0 {
		t.Error("no listing with room again")
	}
	x.finish(t)
}

// TestReferencesTightGroup: a listing that does not fit into what the JVM's control group has left is refused with the
// figures, also when the limit falls right before it. With room it is taken, and the memory is given back.
func TestReferencesTightGroup(t *testing.T) {
	tiers.Gate(t, "reference listings in a control group with little memory")
	g := newMemoryGroup(t, "heapcam-references")
	x := amidReferences(t, 17, "Serial", "", g.wrap...)
	ask := func() (out, errs string, code int) {
		return heapcam(t, "references", "--max-reference-pause", "20s", "--socket", x.d.sock, x.r.pidText())
	}
	for _, more := range []int64{10, 16} {
		g.set(t, g.used(t)+more<<20)
		_, errs, code := ask()
		if code != 10 || !strings.Contains(errs, "MiB of memory, and the cgroup of this JVM has") {
			t.Errorf("with %d MiB left: status %d: %s", more, code, errs)
		}
		x.lives(t, 3)
	}
	g.set(t, 4<<30)
	if _, errs, code := ask(); code != 0 { // its size is known now
		t.Errorf("with room: status %d: %s", code, errs)
	}
	before := g.used(t)
	if _, errs, code := ask(); code != 0 {
		t.Errorf("with room: status %d: %s", code, errs)
	}
	x.lives(t, 3)
	await(t, "memory that is given back", func() bool { return g.used(t) < before+2<<20 })
	x.finish(t)
}

// memoryGroup is a control group with a limit on memory.
type memoryGroup struct {
	dir, limit, usage string
	wrap              []string // what starts a program in it
}

func newMemoryGroup(t *testing.T, name string) memoryGroup {
	t.Helper()
	g := memoryGroup{"/sys/fs/cgroup/memory/" + name, "memory.limit_in_bytes", "memory.usage_in_bytes", nil}
	if _, err := os.Stat("/sys/fs/cgroup/memory"); err != nil {
		g = memoryGroup{"/sys/fs/cgroup/" + name, "memory.max", "memory.current", nil}
	}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	t.Cleanup(func() {
		await(t, "an empty group", func() bool { return os.Remove(g.dir) == nil })
	})
	if _, err := os.Stat(filepath.Join(g.dir, g.limit)); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	g.wrap = g.starter()
	return g
}

// starter is what starts a program in the group.
func (g *memoryGroup) starter() []string {
	return []string{"sh", "-c", "echo $$ > " + filepath.Join(g.dir, "cgroup.procs") + ` && exec "$@"`, "sh"}
}

// child makes a group below the group.
func (g *memoryGroup) child(t *testing.T, name string) memoryGroup {
	t.Helper()
	_ = os.WriteFile(filepath.Join(g.dir, "cgroup.subtree_control"), []byte("+memory"), 0o644) // version 2
	c := *g
	c.dir = filepath.Join(g.dir, name)
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		t.Skipf("not run: memory limits of a control group (%v)", err)
	}
	t.Cleanup(func() {
		await(t, "an empty group", func() bool {
			err := os.Remove(c.dir)
			return err == nil || os.IsNotExist(err)
		})
	})
	c.wrap = c.starter()
	return c
}

// noSwap has the kernel swap out nothing of the group, where it can: it would not kill then.
func (g *memoryGroup) noSwap() {
	_ = os.WriteFile(filepath.Join(g.dir, "memory.swappiness"), []byte("0"), 0o644)
	_ = os.WriteFile(filepath.Join(g.dir, "memory.swap.max"), []byte("0"), 0o644)
}

func (g *memoryGroup) set(t *testing.T, bytes int64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, g.limit), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (g *memoryGroup) used(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, g.usage))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
