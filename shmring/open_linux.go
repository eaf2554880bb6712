package shmring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/timens"
)

// identity is what a Ring keeps of where it was opened.
type identity struct {
	dev, ino uint64
	uid      int
	dir      int    // O_PATH of the folder, -1: none (memfd)
	name     string // within dir
}

// Open opens the ring at a path of the agent's own namespace. The last element may not be a symbolic link.
// Errors: ErrNotReady, *NotRingError, *TooNewError, *OwnerError, I/O errors (fs.ErrNotExist, fs.ErrPermission).
func Open(path string, opt Options) (*Ring, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	return openAt(dir, filepath.Base(path), path, opt)
}

// OpenIn opens the ring at a path as the process pid sees it (its mount namespace and root). Links on the way are
// followed within that root only. Errors as Open.
func OpenIn(pid int, path string, opt Options) (*Ring, error) {
	rootPath := "/proc/" + strconv.Itoa(pid) + "/root"
	root, err := unix.Open(rootPath, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: rootPath, Err: err}
	}
	defer unix.Close(root)
	shown := rootPath + filepath.Clean("/"+path)
	dir, err := openInRoot(root, filepath.Dir(filepath.Clean("/"+path)))
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Dir(shown), Err: err}
	}
	return openAt(dir, filepath.Base(path), shown, opt)
}

// OpenFD opens the memfd ring that is descriptor fd of the process pid. Errors as Open.
func OpenFD(pid, fd int, opt Options) (*Ring, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	p, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) // follows: it is a magic link
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return openPath(p, path, identity{dir: -1}, opt)
}

// OpenFile opens the ring that f is a descriptor of, by a description of its own: an flock that somebody holds on f's
// is another one. f stays open and belongs to the caller; errors have its name. Errors as Open.
func OpenFile(f *os.File, opt Options) (*Ring, error) {
	p, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	return openPath(p, f.Name(), identity{dir: -1}, opt)
}

// Reopen gives a descriptor of the ring's file for somebody who keeps it over our death: read-only, and of a
// description of its own, so that it does not keep the lock that Acquire took.
func (r *Ring) Reopen() (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.f.(*osFile)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "reopen", Path: r.path, Err: err}
	}
	return os.NewFile(uintptr(fd), r.path), nil
}

// Unnamed says that the ring was opened by a descriptor: it has no file that another agent finds.
func (r *Ring) Unnamed() bool {
	id, _ := r.ident()
	return id.name == ""
}

// openInRoot opens the folder dir (absolute, clean) below root. Without openat2 (Linux < 5.6, or a seccomp filter) no
// link is followed.
func openInRoot(root int, dir string) (int, error) {
	rel := strings.TrimPrefix(dir, "/")
	if rel == "" {
		rel = "."
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat2(root, rel, &unix.OpenHow{Flags: flags,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return fd, err
	}
	if fd, err = unix.Openat(root, ".", flags, 0); err != nil {
		return -1, err
	}
	for _, name := range strings.Split(rel, "/") {
		next, err := unix.Openat(fd, name, flags|unix.O_NOFOLLOW, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// openAt opens name in dir; it takes dir over.
func openAt(dir int, name, path string, opt Options) (*Ring, error) {
	p, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(dir)
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	r, err := openPath(p, path, identity{dir: dir, name: name}, opt)
	if err != nil {
		unix.Close(dir)
		return nil, err
	}
	return r, nil
}

// openPath looks at what p (O_PATH; taken over) is before it opens it: opening a fifo or a device has effects of its
// own.
func openPath(p int, path string, id identity, opt Options) (*Ring, error) {
	defer unix.Close(p)
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &NotRingError{path, "not a regular file"}
	}
	if opt.Away && st.Nlink != 1 { // another's, linked to here
		return nil, &NotRingError{path, fmt.Sprintf("the file has %d names", st.Nlink)}
	}
	if opt.CheckOwner && int(st.Uid) != opt.UID {
		return nil, &OwnerError{path, int(st.Uid), opt.UID}
	}
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(p), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) { // O_NOATIME is for the owner
		fd, err = unix.Open("/proc/self/fd/"+strconv.Itoa(p), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := &osFile{os.NewFile(uintptr(fd), path)}
	r, err := newRing(path, f, opt)
	if err != nil {
		f.Close()
		return nil, err
	}
	id.dev, id.ino, id.uid = uint64(st.Dev), st.Ino, int(st.Uid)
	r.id = id
	return r, nil
}

// Remove removes a ring's file by its path, and says whether there was one. The folder may not be a symbolic link;
// only regular files are removed.
func Remove(path string) (bool, error) {
	dir, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if err = unix.Fstatat(dir, filepath.Base(path), &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return false, nil
		}
		err = unix.Unlinkat(dir, filepath.Base(path), 0)
	}
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return true, nil
}

// successor opens the ring that takes over; nil: there is none that is complete. r.mu is held.
func (r *Ring) successor() (*Ring, error) {
	if r.id.name == "" || r.opt.Away {
		return nil, nil
	}
	if next := r.inherited(); next != nil {
		return next, nil
	}
	next, err := r.openBeside(r.id.name + NextSuffix)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, ErrNotReady) {
		return nil, nil
	}
	return next, err
}

// inherited opens the ring that takes over if it has this one's name already: somebody removed this one's file, and
// Scan found the other. A later ring may have the name with NextSuffix by now. nil: the name is not that ring's.
func (r *Ring) inherited() *Ring {
	next, err := r.openBeside(r.id.name)
	if err != nil {
		return nil
	}
	s, err := next.status(make([]byte, headerUsed))
	if next.id.dev == r.id.dev && next.id.ino == r.id.ino || err != nil || s.Base != r.tail {
		next.f.Close()
		return nil
	}
	return next
}

// openBeside opens a ring of the same owner in the same folder.
func (r *Ring) openBeside(name string) (*Ring, error) {
	path := filepath.Join(filepath.Dir(r.path), name)
	p, err := unix.Openat(r.id.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	opt := r.opt
	opt.CheckOwner, opt.UID = true, r.id.uid
	return openPath(p, path, identity{dir: -1}, opt)
}

// rename gives the ring that takes over the name of this one. false: the file of that name is not, or was not, the
// one that was opened. Whoever can do that owns the folder, and it is that user's own files that change names.
func (r *Ring) rename(next identity) (bool, error) {
	is := func(name string) bool {
		var st unix.Stat_t
		return unix.Fstatat(r.id.dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && uint64(st.Dev) == next.dev &&
			st.Ino == next.ino
	}
	if is(r.id.name) { // inherited
		return true, nil
	}
	if !is(r.id.name + NextSuffix) {
		return false, nil
	}
	if err := unix.Renameat(r.id.dir, r.id.name+NextSuffix, r.id.dir, r.id.name); err != nil {
		return false, &os.PathError{Op: "rename", Path: r.path + NextSuffix, Err: err}
	}
	return is(r.id.name), nil
}

// short reports whether err says that this machine lacks memory, descriptors or the like.
func short(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// inherit gives the file name+NextSuffix in the open folder dir the name, if nothing has that.
func inherit(dir *os.File, name string) bool {
	fd, next := int(dir.Fd()), name+NextSuffix
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != unix.ENOENT {
		return false
	}
	if unix.Fstatat(fd, next, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	err := unix.Renameat2(fd, next, fd, name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // a file system, or a Linux, without
		if err = unix.Linkat(fd, next, fd, name, 0); err == nil {
			err = unix.Unlinkat(fd, next, 0)
		}
	}
	return err == nil
}

// ident gives what was opened, as it is now.
func (r *Ring) ident() (identity, file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id, r.f
}

// Owner gives the user, as we count, whose the file was when it was opened: who made it, since nobody but root can
// give a file away.
func (r *Ring) Owner() int {
	id, _ := r.ident()
	return id.uid
}

// become makes id that of the ring that has taken the name over.
func (id *identity) become(next identity) { id.dev, id.ino = next.dev, next.ino }

func (id *identity) close() {
	if id.name != "" {
		unix.Close(id.dir)
		id.name = ""
	}
}

// Unlink removes the ring's file, if its name still is this ring. Call it before Close, when a ring whose JVM is gone
// or whose probe is detached has been drained and persisted. A memfd needs none.
func (r *Ring) Unlink() error {
	id, _ := r.ident()
	if id.name == "" {
		return nil
	}
	var st unix.Stat_t
	err := unix.Fstatat(id.dir, id.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && (uint64(st.Dev) != id.dev || st.Ino != id.ino) {
		return nil
	}
	if err == nil {
		err = unix.Unlinkat(id.dir, id.name, 0)
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "unlink", Path: r.path, Err: err}
	}
	return nil
}

type osFile struct{ *os.File }

func (f *osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// Lock takes the file's flock. It ends with the descriptor: a killed agent leaves none.
func (f *osFile) Lock() (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// Monotonic gives CLOCK_MONOTONIC in ns, the clock of heartbeats.
func Monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano() - int64(clockShift()))
}

// clockShift is what the time namespace adds.
var clockShift = sync.OnceValue(func() time.Duration { return timens.Shift(timens.Monotonic) })
