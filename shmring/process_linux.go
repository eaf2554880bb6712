package shmring

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/timens"
)

// process says whether the producer is there: a process with the header's start ticks, and, if it is silent and we
// may look, one that still has the ring mapped (an exec keeps pid and start time).
func (r *Ring) process(s Status, silent bool) Life {
	if r.opt.Away {
		if held, err := r.Held(); err == nil && !held {
			return Gone
		}
		return Alive
	}
	pid := r.opt.HostPID
	if pid == 0 {
		pid = int(r.found.Load()) // searched for once only
	}
	if pid == 0 {
		var ok bool
		if pid, ok = FindProcess(s.PID, s.StartTicks, s.PIDNS); !ok {
			return Gone
		}
		r.found.Store(int64(pid))
	} else if ticks, zombie, err := startTicks(pid); err == nil && (ticks != s.StartTicks || zombie) ||
		errors.Is(err, fs.ErrNotExist) {
		return Gone
	}
	if id, _ := r.ident(); silent && id.ino != 0 {
		if r.unmapped(pid, id) {
			return Gone
		}
	}
	return Alive
}

// The mappings of a silent process are looked through at each look as long as they are few, lookFree bytes of text;
// else each lookFree more make the next poll lookLater ns later: it takes about a millisecond, and one process may
// have made many rings.
const (
	lookFree  = 256 << 10
	lookLater = 2_000_000_000
)

// unmapped says that the process does not have the file mapped, as of the last poll.
func (r *Ring) unmapped(pid int, id identity) bool {
	r.looked.Lock()
	defer r.looked.Unlock()
	now := Monotonic()
	if now >= r.lookAt || r.lookedFor != id.ino {
		mapped, size, err := maps(pid, id.ino, id.name)
		r.lookedFor, r.gone = id.ino, err == nil && !mapped
		r.lookAt = now + uint64(size/lookFree)*lookLater
	}
	return r.gone
}

// Held says that the producer of a ring that was opened with Options.Away lives: it has its lock.
func (r *Ring) Held() (bool, error) {
	_, file := r.ident()
	f, ok := file.(*osFile)
	if !ok {
		return false, errors.ErrUnsupported
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, err
	}
	return lock.Type != unix.F_UNLCK, nil
}

// MappedBy says that the process pid, as we count, has this very file mapped: then it is the producer, or one of its
// user's.
func (r *Ring) MappedBy(pid int) bool {
	file := r.inMaps()
	found := false
	if file != "" {
		_ = eachMapping(pid, func(line []byte) bool {
			found = bytes.Contains(line, []byte(file))
			return found
		})
	}
	return found
}

// inMaps is how /proc/PID/maps shows the file, by device and inode; "": not known. They are not always those of stat
// (overlayfs, btrfs): a mapping of our own, which nobody reads, shows it.
func (r *Ring) inMaps() string {
	id, file := r.ident()
	f, ok := file.(*osFile)
	if !ok || id.ino == 0 {
		return ""
	}
	m, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return ""
	}
	defer unix.Munmap(m)
	at := fmt.Sprintf("%x-", uintptr(unsafe.Pointer(unsafe.SliceData(m))))
	shown := ""
	_ = eachMapping(os.Getpid(), func(line []byte) bool {
		if f := strings.Fields(string(line)); len(f) >= 5 && strings.HasPrefix(f[0], at) {
			shown = " " + f[3] + " " + f[4] + " "
		}
		return shown != ""
	})
	return shown
}

// FindProcess gives the pid, in the agent's namespace, of the process that calls itself pid in the namespace pidns
// (an inode; 0: not known) and started at ticks. Two JVMs in two namespaces may share pid, and even start time: then
// the namespace decides, where we may look at it.
func FindProcess(pid uint32, ticks, pidns uint64) (hostPID int, ok bool) {
	match := func(host int) bool {
		t, zombie, err := startTicks(host)
		if err != nil || t != ticks || zombie || lastNSPid(host) != int(pid) {
			return false
		}
		if pidns == 0 {
			return true
		}
		var st unix.Stat_t
		if unix.Stat(fmt.Sprintf("/proc/%d/ns/pid", host), &st) != nil {
			return true // not allowed to look
		}
		return st.Ino == pidns
	}
	if match(int(pid)) { // same namespace, mostly
		return int(pid), true
	}
	d, err := os.Open("/proc")
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, n := range names {
		if host, err := strconv.Atoi(n); err == nil && match(host) {
			return host, true
		}
	}
	return 0, false
}

// startTicks gives field 22 of /proc/PID/stat, and whether the process is a zombie (dead, not yet waited for).
func startTicks(pid int) (ticks uint64, zombie bool, err error) {
	var buf [1024]byte // its name has 16 bytes at most
	b, err := readAtOnce("/proc/"+strconv.Itoa(pid)+"/stat", buf[:])
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = fs.ErrNotExist
		}
		return 0, false, err
	}
	i := bytes.LastIndexByte(b, ')') // the name before it may hold anything
	if i < 0 {
		return 0, false, errors.New("shmring: /proc/PID/stat without a name")
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 20 {
		return 0, false, errors.New("shmring: /proc/PID/stat is short")
	}
	ticks, err = strconv.ParseUint(string(f[19]), 10, 64)
	return ticks - timens.Ticks(), f[0][0] == 'Z' || f[0][0] == 'X', err
}

// readAtOnce reads a small file of /proc into b, at a third of the cost of os.ReadFile: a hundred rings look twice a
// second whether their processes live.
func readAtOnce(path string, b []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	return b[:max(n, 0)], err
}

// lastNSPid gives the pid of a process in its own namespace, 0 if it is not there.
func lastNSPid(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "NSpid:"); ok {
			f := strings.Fields(v)
			if len(f) == 0 {
				return 0
			}
			n, _ := strconv.Atoi(f[len(f)-1])
			return n
		}
	}
	return pid // Linux before 4.1
}

// maxMaps bounds what is read of /proc/PID/maps. A process may have tens of thousands of mappings, with names of 4 KiB.
const maxMaps = 4 << 20

var errManyMaps = errors.New("shmring: the process has too many mappings to be looked through")

// eachMapping calls f with each line of /proc/PID/maps until it says that this was enough. A line is valid until f
// returns.
func eachMapping(pid int, f func(line []byte) (enough bool)) error {
	m, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	defer m.Close()
	left := &io.LimitedReader{R: m, N: maxMaps}
	b := bufio.NewReaderSize(left, 32<<10) // a name has 4 KiB at most, four times that as escapes
	for {
		line, err := b.ReadSlice('\n')
		switch {
		case len(line) > 0 && err == nil && f(line):
			return nil
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && left.N > 0:
			return nil
		case errors.Is(err, io.EOF):
			return errManyMaps
		default:
			return err
		}
	}
}

// maps says whether /proc/PID/maps has the file. By inode or by name: layered file systems show other inodes there
// than stat does. size is how much was looked at.
func maps(pid int, ino uint64, name string) (found bool, size int, err error) {
	byIno, byName := fmt.Appendf(nil, " %d ", ino), []byte("/"+name)
	err = eachMapping(pid, func(line []byte) bool {
		size += len(line)
		found = bytes.Contains(line, byIno) || name != "" && bytes.Contains(line, byName)
		return found
	})
	return found, size, err
}
