package place

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/internal/procfs"
)

// rootsBase is the last folder for a ring that root makes: no other user can have taken a name in it.
const rootsBase = "/run"

var (
	// libraryBases are the folders, as the JVM sees them, that the probe's library may be put into: the first that the
	// JVM can load from.
	libraryBases = []string{"/tmp", "/var/tmp", "/dev/shm", "/run"}
	// ringBases are those for its ring.
	ringBases = []string{"/dev/shm", "/tmp"}
)

// libraryFor puts the probe's library b where j can load it, and gives its path as j sees it.
func libraryFor(j jvms.JVM, b []byte) (string, error) {
	r, err := openRoot(j)
	if err != nil {
		return "", err
	}
	defer r.Close()
	name := libraryName(b)
	// Where a container has nothing but a shared volume, there is no folder that others in it could not rename.
	base, err := r.first(libraryBases, r.Container, func(base string, want folder) error {
		want.name, want.exec = folderOf(j), true
		dir, err := r.make(base, want)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return putLibrary(dir, name, b, j.UID)
	})
	if err != nil {
		return "", jvms.Errorf(jvms.Unrecordable,
			"pid %d (%s) cannot be recorded: no folder can hold the probe's library: %w",
			j.PID, j.Name, err)
	}
	return filepath.Join(base, folderOf(j), name), nil
}

// RingDir is a folder for a shared ring.
type RingDir struct {
	AsJVM  string // its path as the JVM sees it
	Ours   string // as we see it
	remove func() // nil: it stays. Else it holds a descriptor
}

// Remove removes the folder and what is in it, if it was made for one recording. It is called once.
func (d RingDir) Remove() {
	if d.remove != nil {
		d.remove()
	}
}

// ringDirIn makes the folder name for j's ring. base is where ours would be: if j sees that too, it is there. stays:
// for the rings of others, too, so that nothing is held for its removal.
func ringDirIn(j jvms.JVM, base, name string, stays bool) (RingDir, error) {
	r, err := openRoot(j)
	if err != nil {
		return RingDir{}, err
	}
	if base, err = filepath.Abs(base); err != nil {
		r.Close()
		return RingDir{}, err
	}
	bases, ours := ringBases, fmt.Sprintf("/proc/%d/root", j.PID)
	if r.sees(base) {
		bases, ours = []string{base}, ""
		if unix.Geteuid() == 0 && r.sees(rootsBase) && takenBy(filepath.Join(base, name), j.UID) {
			bases = append(bases, rootsBase)
		}
	}
	at := -1 // the base, for removing what is made in it
	found, err := r.first(bases, true, func(base string, want folder) error {
		want.name = name
		dir, err := r.make(base, want)
		if err != nil {
			return err
		}
		unix.Close(dir)
		if stays {
			return nil
		}
		at, err = procfs.InRoot(r.fd, base, unix.O_PATH|unix.O_DIRECTORY)
		return err
	})
	r.Close()
	if errors.Is(err, errReadOnly) { // of all of them: the probe has its ring in memory without a name then
		path := filepath.Join(bases[0], name)
		return RingDir{AsJVM: path, Ours: ours + path}, nil
	}
	if err != nil {
		return RingDir{}, jvms.Errorf(jvms.Unrecordable,
			"pid %d (%s) cannot be recorded: no folder can hold its shared ring: %w", j.PID, j.Name, err)
	}
	path := filepath.Join(found, name)
	if stays {
		return RingDir{AsJVM: path, Ours: ours + path}, nil
	}
	return RingDir{AsJVM: path, Ours: ours + path, remove: func() {
		defer unix.Close(at)
		if err := r.as(func() error { return removeFolder(at, name) }); errors.Is(err, fs.ErrPermission) && !r.userns {
			_ = unix.Unlinkat(at, name, unix.AT_REMOVEDIR) // root made it; it is empty by now
		}
	}}, nil
}

// takenBy says whether another user than uid owns the folder.
func takenBy(path string, uid int) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && int(st.Uid) != uid
}

func folderOf(j jvms.JVM) string { return fmt.Sprintf("heapcam-%d", j.UID) }

// root is a JVM's root folder, and by whose rights it is changed.
type root struct {
	jvms.JVM
	fd     int // O_PATH
	userns bool
}

// openRoot opens j's root folder: that of the process that j was, not of one that has its pid by now.
func openRoot(j jvms.JVM) (*root, error) {
	ended := func() error { return jvms.Errorf(jvms.Ended, "pid %d (%s) has ended", j.PID, j.Name) }
	p, err := procfs.OpenStarted(j.PID, j.StartTicks)
	if err != nil {
		return nil, ended()
	}
	defer p.Close()
	fd, err := p.Root()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, jvms.Errorf(jvms.Denied,
			"not permitted: this user may not read the file system of pid %d (%s)", j.PID, j.Name)
	case err != nil:
		return nil, ended()
	}
	// Behind the root: a process that is in our user namespace by then was in it when it had that root. One that was in
	// it when j was looked at may have left it since, for mounts of its own making.
	apart, err := p.Apart("user")
	return &root{JVM: j, fd: fd, userns: j.Userns || apart || err != nil}, nil
}

// Close gives the descriptor back.
func (r *root) Close() { unix.Close(r.fd) }

// as runs f with the rights of the JVM's user, and no more.
func (r *root) as(f func() error) error {
	if unix.Geteuid() != 0 || r.UID == 0 && !r.userns {
		return f()
	}
	return attach.As(r.UID, r.GID, f)
}

// folder is what is wanted of a folder that is made.
type folder struct {
	name  string
	exec  bool // programs can be loaded from it
	loose bool // others than the JVM's user could rename it
}

// first calls f with each base until one does: as the JVM's user; then, where that user may not write, as root. A base
// whose folders other users can rename comes last, and only if loose is set. If all that exist are mounted read-only,
// the error is errReadOnly.
func (r *root) first(bases []string, loose bool, f func(base string, want folder) error) (string, error) {
	wants := []folder{{}}
	if loose {
		wants = append(wants, folder{loose: true})
	}
	var why []string
	var fixed bool // all are mounted read-only
	for _, want := range wants {
		why, fixed = nil, true
		for _, base := range bases {
			err := r.as(func() error { return f(base, want) })
			if errors.Is(err, fs.ErrPermission) && !r.userns && !want.loose && unix.Geteuid() == 0 {
				if f(base, want) == nil {
					err = nil
				}
			}
			if err == nil {
				return base, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				fixed = fixed && errors.Is(err, errReadOnly)
				why = append(why, fmt.Sprintf("%s %v", base, err))
			}
		}
	}
	if fixed && why != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(bases, ", "), errReadOnly)
	}
	return "", errors.New(strings.Join(why, "; "))
}

// sees says whether base is one folder to us and to the JVM.
func (r *root) sees(base string) bool {
	var here, there unix.Stat_t
	fd, err := procfs.FolderInRoot(r.fd, base)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, &there) == nil && unix.Stat(base, &here) == nil && procfs.SameFile(&here, &there)
}

// make opens a folder of base, made if it is not there.
func (r *root) make(base string, want folder) (int, error) {
	b, err := procfs.InRoot(r.fd, base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(b)
	return makeFolder(b, want, r.UID)
}

// makeFolder opens a folder of the open folder base, made if it is not there: one that belongs to uid and that nobody
// else can write to.
func makeFolder(base int, want folder, uid int) (int, error) {
	if err := checkBase(base, want, uid); err != nil {
		return -1, err
	}
	made := unix.Mkdirat(base, want.name, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return -1, fmt.Errorf("cannot hold a folder: %w", made)
	}
	dir, err := unix.Openat(base, want.name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if made == nil && unix.Geteuid() != uid {
		err = unix.Fchown(dir, uid, -1)
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(dir, &st)
	}
	if err == nil && (int(st.Uid) != uid || st.Mode&0o022 != 0) { // also what was made: it may have been replaced
		err = fmt.Errorf("holds %s, to which users other than uid %d can write: remove it", want.name, uid)
	}
	if err != nil {
		unix.Close(dir)
		if made == nil { // root's, which would stand in the way of that user's later
			_ = unix.Unlinkat(base, want.name, unix.AT_REMOVEDIR)
		}
		return -1, err
	}
	return dir, nil
}

// errReadOnly is why no folder may be made in a base, and first's answer if it is the only reason there is.
var errReadOnly = errors.New("is mounted read-only")

// checkBase says why no folder may be made in base.
func checkBase(base int, want folder, uid int) error {
	var sys unix.Statfs_t
	var st unix.Stat_t
	if err := errors.Join(unix.Fstatfs(base, &sys), unix.Fstat(base, &st)); err != nil {
		return err
	}
	switch {
	case sys.Flags&unix.ST_RDONLY != 0:
		return errReadOnly
	case want.exec && sys.Flags&unix.ST_NOEXEC != 0:
		return errors.New("is mounted noexec")
	case unix.Geteuid() != uid && st.Uid != 0:
		// What root makes there its owner could replace by a folder of root's, which would be given away.
		return fmt.Errorf("belongs to uid %d, where root creates no folder", st.Uid)
	case want.loose:
		return nil
	case int(st.Uid) != uid && st.Uid != 0 || st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("lets users other than uid %d rename its folders (no sticky bit, or another owner)", uid)
	}
	return nil
}

// removeFolder removes a folder of files.
func removeFolder(base int, name string) error {
	fd, err := unix.Openat(base, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, n := range names {
			_ = unix.Unlinkat(fd, n, 0)
		}
		if err != nil {
			return unix.Unlinkat(base, name, unix.AT_REMOVEDIR)
		}
	}
}

// putLibrary writes the library into dir, a folder of uid's, unless it is there. An existing file is never written to:
// JVMs may have it mapped.
func putLibrary(dir int, name string, b []byte, uid int) error {
	if isLibrary(dir, name, b, uid) {
		return nil
	}
	tmp := ".libheapcam-" + rand.Text()
	fd, err := unix.Openat(dir, tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return fmt.Errorf("cannot hold a file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o700)
	}
	if err == nil && unix.Geteuid() != uid {
		err = f.Chown(uid, -1)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
		return fmt.Errorf("cannot hold the library: %w", err)
	}
	return nil
}

// isLibrary says whether the file name of dir is the library b, and nobody but uid and root can change it.
func isLibrary(dir int, name string, b []byte, uid int) bool {
	f, st, err := procfs.Regular(dir, name)
	if err != nil {
		return false
	}
	defer f.Close()
	if int(st.Uid) != uid && st.Uid != 0 || st.Mode&0o022 != 0 || st.Nlink != 1 {
		return false
	}
	return holds(f, b)
}

// OwnFolder makes dir with mode 0700, owned by uid, or checks that it is such: in a shared folder somebody else may
// have made it first.
func OwnFolder(dir string, uid int) error {
	base, err := unix.Open(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(base)
	fd, err := makeFolder(base, folder{name: filepath.Base(dir), loose: true}, uid)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Dir(dir), err)
	}
	return unix.Close(fd)
}
