package jvms

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
	"github.com/heapcam/heapcam/trace"
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	vmstatPath = "/proc/vmstat"

	// maxGroups bounds how many cgroups are read of one process: the lowest ones.
	maxGroups = 8
	// maxEvents and maxVMStat bound what is read of a cgroup's counters and of the machine's, bytes.
	maxEvents = 1 << 10
	maxVMStat = 16 << 10
	maxStatm  = 128
	// noLimit is from which limit on a cgroup has none: version 1 says a number near 2^63 then.
	noLimit = 1 << 60
)

// Kills are counters of the processes that the kernel killed for want of memory, as far as they concern one process.
// The zero value knows nothing.
type Kills struct {
	groups  []killGroup // the process' memory cgroup and those above it that exist, the lowest first
	deep    bool        // a group counts what is killed in those below it, too
	machine uint64      // kills on this machine
	known   bool        // machine is
}

// killGroup is a memory cgroup and its counters.
type killGroup struct {
	path   string // of its folder
	id     fileID // another cgroup of the same path has another one
	depth  int    // 0: it is that of the process; else so many steps above it
	kills  uint64 // processes that the kernel killed in it
	failed uint64 // how often its limit was reached
	limit  uint64 // bytes; 0: none
}

// fileID identifies a file while it exists.
type fileID struct{ dev, ino uint64 }

// KillsOf reads the counters of kills that concern the process with that pid and start. Errors: fs.ErrNotExist if there
// is no such process any more, or if it has given its memory back.
func KillsOf(pid int, startTicks uint64) (Kills, error) {
	p, err := procfs.OpenStarted(pid, startTicks)
	if err != nil {
		return Kills{}, err
	}
	defer p.Close()
	if strings.HasPrefix(p.Text("statm", maxStatm), "0 ") { // it is ending: the kernel may have killed it already
		return Kills{}, fs.ErrNotExist
	}
	return killsOf(p.Text("cgroup", maxStatus), cgroupRoot, vmstatPath), nil
}

// killsOf is KillsOf for the text of /proc/PID/cgroup.
func killsOf(text, root, vmstat string) Kills {
	top, path := memoryGroup(text)
	k := Kills{deep: top == ""}
	k.machine, k.known = machineKills(vmstat)
	// A path with ".." is that of a cgroup outside of what our own namespace of cgroups shows: below root is another.
	if path == "" || slices.Contains(strings.Split(path, "/"), "..") {
		return k
	}
	path = filepath.Clean("/" + path)
	for depth := range maxGroups {
		if g, ok := readGroup(filepath.Join(root, top, path), k.deep); ok {
			g.depth = depth
			k.groups = append(k.groups, g)
		}
		if path == "/" {
			break
		}
		path = filepath.Dir(path)
	}
	return k
}

// Killed reads the counters again, and says which one has risen since (trace.KilledCgroup …; 0: none) and the limit of
// memory that was reached meanwhile, bytes; 0: none, or not known.
func (k *Kills) Killed() (scope, limit uint64) { return k.killed(vmstatPath) }

func (k *Kills) killed(vmstat string) (scope, limit uint64) {
	for i := range k.groups {
		was := &k.groups[i]
		if was.depth > 0 && !k.deep {
			break // it does not count what was killed below it
		}
		now, ok := readGroup(was.path, k.deep)
		switch {
		case !ok || now.id != was.id: // it is gone, as the runtime of containers does it
			continue
		case now.kills <= was.kills:
			return 0, 0
		case was.depth == 0:
			return trace.KilledCgroup, k.reached(0)
		case now.failed > was.failed: // the limit of one of those that are gone, or its own
			return trace.KilledAbove, k.lowest()
		}
		return trace.KilledAbove, k.reached(i + 1)
	}
	if n, ok := machineKills(vmstat); ok && k.known && n > k.machine {
		return trace.KilledMachine, 0
	}
	return 0, 0
}

// reached gives the limit of the lowest cgroup, from the one at the index from up, that reached it since.
func (k *Kills) reached(from int) uint64 {
	for i := range k.groups[from:] {
		was := &k.groups[from+i]
		if now, ok := readGroup(was.path, k.deep); ok && now.id == was.id && now.failed > was.failed {
			return was.limit
		}
	}
	return 0
}

// lowest gives the limit of the lowest cgroup that has one.
func (k *Kills) lowest() uint64 {
	for i := range k.groups {
		if l := k.groups[i].limit; l > 0 {
			return l
		}
	}
	return 0
}

// readGroup reads the counters of the cgroup with that folder; ok: there are some. v2: it is one of version 2.
func readGroup(path string, v2 bool) (g killGroup, ok bool) {
	g.path = path
	kills, failed, limit := "memory.oom_control", "memory.failcnt", "memory.limit_in_bytes"
	if v2 {
		kills, failed, limit = "memory.events", "", "memory.max"
	}
	text, id := readBounded(filepath.Join(path, kills), maxEvents)
	if g.kills, ok = counter(text, "oom_kill"); !ok {
		return g, false
	}
	g.id = id
	if v2 {
		g.failed, _ = counter(text, "oom")
	} else {
		g.failed, _ = strconv.ParseUint(strings.TrimSpace(readSmall(filepath.Join(path, failed))), 10, 64)
	}
	if n, err := strconv.ParseUint(strings.TrimSpace(readSmall(filepath.Join(path, limit))), 10, 64); err == nil &&
		n < noLimit {
		g.limit = n
	}
	return g, true
}

// machineKills gives how many processes the kernel has killed on this machine.
func machineKills(vmstat string) (uint64, bool) {
	text, _ := readBounded(vmstat, maxVMStat)
	return counter(text, "oom_kill")
}

// counter gives the number behind a name at the beginning of a line.
func counter(text, name string) (uint64, bool) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// readBounded reads at most limit bytes of a file of the kernel's, and says which file it is; "" if it cannot.
func readBounded(path string, limit int) (string, fileID) {
	f, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", fileID{}
	}
	defer unix.Close(f)
	var st unix.Stat_t
	if err := unix.Fstat(f, &st); err != nil {
		return "", fileID{}
	}
	b := make([]byte, limit)
	n := 0
	for n < limit {
		m, err := unix.Read(f, b[n:])
		if err != nil {
			return "", fileID{}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return string(b[:n]), fileID{uint64(st.Dev), st.Ino}
}
