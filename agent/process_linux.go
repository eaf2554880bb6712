package agent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/shmring"
)

// findProcess gives the pid in the agent's namespace of a ring's maker; pidns may be 0.
func findProcess(pid uint32, ticks, pidns uint64) (int, bool) {
	return shmring.FindProcess(pid, ticks, pidns)
}

// ProcessName gives the name of the program that the JVM with this pid runs: its main class or jar, a tool of the JDK,
// else the name of its executable; "" if the process cannot be read.
func ProcessName(pid int) string {
	b, err := jvms.ReadProc(pid, "cmdline")
	if err != nil || len(b) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	name, _, sure := jvms.Program(args)
	program := filepath.Base(args[0])
	if !sure { // the JVM's own word is better
		if j, err := jvms.Inspect(pid); err == nil && j.Name != "" {
			name = j.Name
		}
	}
	if name == "" || name == program {
		return program
	}
	return jvms.ShortName(name)
}

// ProcessUID gives the effective user of a process, as the agent's user namespace counts; false if it cannot be read.
func ProcessUID(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Uid:"); ok {
			if f := strings.Fields(v); len(f) > 1 {
				n, err := strconv.Atoi(f[1])
				return n, err == nil
			}
		}
	}
	return 0, false
}

// ownedBy says that the process with this pid (as the agent counts) and start is wholly uid's: its real, effective,
// saved and file system's user.
func ownedBy(pid int, ticks uint64, uid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Uid:"); ok {
			f := strings.Fields(v)
			for _, id := range f {
				if id != strconv.Itoa(uid) {
					return false
				}
			}
			t, ok := jvms.StartTicks(pid) // behind the rest: it is still that process
			return len(f) == 4 && ok && t == ticks
		}
	}
	return false
}

// madeBy says that the file at path is uid's, or root's.
func madeBy(path string, uid int) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && (st.Uid == 0 || int(st.Uid) == uid)
}

// ringOptions are for a ring below a watched folder: it must be its owner's own. Otherwise a link in it would let one
// user read, and stop, the recording of another. In a folder that all may write to everybody's file is their own.
func (a *Agent) ringOptions(path string) shmring.Options {
	o := shmring.Options{MaxCapacity: a.cfg.MaxRing}
	var st unix.Stat_t
	if unix.Stat(filepath.Dir(path), &st) == nil && st.Mode&0o002 == 0 {
		o.CheckOwner, o.UID = true, int(st.Uid)
	}
	return o
}

// producer returns the process that made a ring of the spool folder, if it is one that this agent sees: the header
// names it, and it has this file mapped.
func producer(r *shmring.Ring, h shmring.Status) (host int, ok bool) {
	host, ok = findProcess(h.PID, h.StartTicks, h.PIDNS)
	return host, ok && r.MappedBy(host)
}
