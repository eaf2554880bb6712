package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/timens"
)

// maxStat bounds what is read of stat: the name in it has 16 bytes at most.
const maxStat = 4096

// Process is one process. It is used by one goroutine at a time, and closed by who opened it.
type Process struct {
	PID        int
	StartTicks uint64 // field 22 of stat
	dir        int
}

// Open gives the process that has pid now. Errors: fs.ErrNotExist, I/O errors.
func Open(pid int) (*Process, error) {
	if pid <= 0 {
		return nil, fs.ErrNotExist
	}
	// Not O_PATH: pidfd_send_signal(2) takes no such descriptor.
	dir, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &Process{PID: pid, dir: dir}
	if p.StartTicks, err = p.startTicks(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// OpenStarted is Open for the process that was started at startTicks: another one of the same pid is fs.ErrNotExist.
// 0 stands for any.
func OpenStarted(pid int, startTicks uint64) (*Process, error) {
	p, err := Open(pid)
	if err == nil && startTicks != 0 && p.StartTicks != startTicks {
		p.Close()
		return nil, fs.ErrNotExist
	}
	return p, err
}

// Close gives the descriptor back.
func (p *Process) Close() { unix.Close(p.dir) }

// Read gives the first limit bytes of a file of the process' folder.
func (p *Process) Read(name string, limit int64) ([]byte, error) {
	fd, err := unix.Openat(p.dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, asNotExist(err)
	}
	f := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/%d/%s", p.PID, name))
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit))
	return b, asNotExist(err)
}

// Text is Read that gives "" for what cannot be read.
func (p *Process) Text(name string, limit int64) string {
	b, _ := p.Read(name, limit)
	return string(b)
}

// Link gives what a link of the process' folder leads to, "" for what cannot be read.
func (p *Process) Link(name string) string {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.dir, name, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// Alive says that the process has not ended.
func (p *Process) Alive() bool {
	_, err := p.startTicks()
	return err == nil
}

func (p *Process) startTicks() (uint64, error) {
	s := p.Text("stat", maxStat)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 || f[0] == "X" {
		return 0, fs.ErrNotExist
	}
	n, err := strconv.ParseUint(f[19], 10, 64)
	return n - timens.Ticks(), err
}

// Apart says whether the process lives in another namespace of that kind ("mnt", "user") than we do. An error means
// that this is not known.
func (p *Process) Apart(kind string) (bool, error) {
	ours, err := os.Readlink("/proc/self/ns/" + kind)
	if err != nil {
		return false, err
	}
	b := make([]byte, 256)
	n, err := unix.Readlinkat(p.dir, "ns/"+kind, b)
	return err == nil && string(b[:n]) != ours, asNotExist(err)
}

// Root opens the process' root folder: a place to resolve paths from (O_PATH).
func (p *Process) Root() (int, error) { return p.folder("root") }

// WorkingDir opens the process' working directory (O_PATH).
func (p *Process) WorkingDir() (int, error) { return p.folder("cwd") }

func (p *Process) folder(name string) (int, error) {
	fd, err := unix.Openat(p.dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return fd, asNotExist(err)
}

// Signal sends a signal to this process and never to another one that has its pid by now.
func (p *Process) Signal(s unix.Signal) error {
	return asNotExist(unix.PidfdSendSignal(p.dir, s, nil, 0))
}

// InRoot opens a path below root: no link in it, absolute or not, leads out. flags are those of open(2).
func InRoot(root int, path string, flags int) (int, error) {
	fd, err := unix.Openat2(root, strings.TrimLeft(path, "/"), &unix.OpenHow{
		Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) && isOurRoot(root) { // Linux before 5.6: links in our own root lead nowhere else
		return unix.Open(path, flags|unix.O_CLOEXEC, 0)
	}
	return fd, err
}

// FolderInRoot opens a folder below root, to resolve names from (O_PATH).
func FolderInRoot(root int, path string) (int, error) {
	return InRoot(root, path, unix.O_PATH|unix.O_DIRECTORY)
}

func isOurRoot(root int) bool {
	var here, there unix.Stat_t
	return unix.Fstat(root, &there) == nil && unix.Stat("/", &here) == nil && SameFile(&here, &there)
}

// SameFile says that both describe one file.
func SameFile(a, b *unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino }

// ErrNotRegular says that what has a file's name is a link, fifo, device, socket or folder.
var ErrNotRegular = errors.New("not a regular file")

// Regular opens the regular file name of the folder dir for reading, and says what it is. Nothing else is ever opened:
// neither a link's target, nor a fifo, nor a device.
func Regular(dir int, name string) (*os.File, unix.Stat_t, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, unix.Stat_t{}, err
	}
	return readable(fd, name)
}

// RegularInRoot is Regular for a path below root, whose links are followed inside of root.
func RegularInRoot(root int, path string) (*os.File, unix.Stat_t, error) {
	fd, err := InRoot(root, path, unix.O_PATH)
	if err != nil {
		return nil, unix.Stat_t{}, err
	}
	return readable(fd, path)
}

// readable opens for reading what the O_PATH descriptor at stands for, which it closes.
func readable(at int, name string) (*os.File, unix.Stat_t, error) {
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, ErrNotRegular
	}
	fd, err := unix.Open(DescriptorPath(at), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, err
	}
	return os.NewFile(uintptr(fd), name), st, nil
}

// DescriptorPath gives a path that leads to the file of a descriptor of ours and to no other.
func DescriptorPath(fd int) string { return "/proc/thread-self/fd/" + strconv.Itoa(fd) }

// asNotExist gives the errors of a process that has ended one name.
func asNotExist(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fs.ErrNotExist
	}
	return err
}
