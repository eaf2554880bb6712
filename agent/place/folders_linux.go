package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
)

// Placing files where another user's JVM, or one in a container, sees them. All that lies below /proc/PID/root was made by that user: each
// step is taken from an open folder and follows links inside of that root only; a folder that we write to belongs to the JVM's user alone.

// libraryDirs are the folders, as the JVM sees them, that the probe's library may be put into: the first that the JVM can load from.
var libraryDirs = []string{"/tmp", "/var/tmp", "/dev/shm", "/run"}

// ringDirs are those for its ring.
var ringDirs = []string{"/dev/shm", "/tmp"}

// libraryFor puts the probe's library b where j can load it, and gives its path as j sees it.
func libraryFor(j jvms.JVM, b []byte) (string, error) {
	root, err := openRoot(j)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	sum := sha256.Sum256(b)
	name := "libheapcam-" + hex.EncodeToString(sum[:8]) + ".so"
	var why []string
	for _, base := range libraryDirs {
		err := as(j, func() error {
			dir, err := ownIn(root, base, folderOf(j), j.UID, true)
			if err != nil {
				return err
			}
			defer unix.Close(dir)
			return put(dir, name, b, sum, j)
		})
		if err == nil {
			return filepath.Join(base, folderOf(j), name), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			why = append(why, fmt.Sprintf("%s %v", base, err))
		}
	}
	return "", withCode(exitNoRecord, "pid %d (%s) can not be recorded: there is no folder that it could load the probe from: %s", j.PID, j.Name, strings.Join(why, "; "))
}

// ringDirIn makes the folder name for j's ring: as j sees it, and as we do. base is where ours would be: if j sees that too, it is there.
func ringDirIn(j jvms.JVM, base, name string) (asJVM, ours string, err error) {
	root, err := openRoot(j)
	if err != nil {
		return "", "", err
	}
	defer unix.Close(root)
	if shared(root, base) {
		dir := filepath.Join(base, name)
		return dir, dir, ownDirOf(j, dir)
	}
	var why []string
	for _, b := range ringDirs {
		err := as(j, func() error {
			dir, err := ownIn(root, b, name, j.UID, false)
			if err == nil {
				unix.Close(dir)
			}
			return err
		})
		if err == nil {
			dir := filepath.Join(b, name)
			return dir, fmt.Sprintf("/proc/%d/root%s", j.PID, dir), nil
		}
		why = append(why, fmt.Sprintf("%s %v", b, err))
	}
	return "", "", withCode(exitNoRecord, "pid %d (%s) can not be recorded: there is no folder for its ring: %s", j.PID, j.Name, strings.Join(why, "; "))
}

func folderOf(j jvms.JVM) string { return fmt.Sprintf("heapcam-%d", j.UID) }

func openRoot(j jvms.JVM) (int, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/root", j.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return -1, withCode(exitDenied, "not permitted: the file system of pid %d (%s) is closed to us", j.PID, j.Name)
	case err != nil:
		return -1, withCode(exitNotFound, "pid %d (%s) has gone", j.PID, j.Name)
	}
	return fd, nil
}

// as runs f as j's user: what it makes is that user's from the first, and the rights that it uses are no more than that user's. Only where
// that user can not make files does f run again as root, which no user namespace but ours knows.
func as(j jvms.JVM, f func() error) error {
	if unix.Geteuid() != 0 || j.UID == 0 && !j.Userns {
		return f()
	}
	err := attach.As(j.UID, j.GID, f)
	if err != nil && !j.Userns && f() == nil {
		return nil
	}
	return err
}

// ownDirOf makes dir, which we see as j does, a folder of j's user, or checks that it is such.
func ownDirOf(j jvms.JVM, dir string) error {
	return as(j, func() error { return ownDir(dir, j.UID) })
}

// shared says whether base is one folder to us and below root.
func shared(root int, base string) bool {
	var here, there unix.Stat_t
	fd, err := in(root, base)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, &there) == nil && unix.Stat(base, &here) == nil && here.Dev == there.Dev && here.Ino == there.Ino
}

// in opens a folder below root, which no link leads out of.
func in(root int, path string) (int, error) {
	return unix.Openat2(root, strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags: unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_RDONLY, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// ownIn opens base/name below root, made if it is not there: a folder that nobody but uid can write to. exec: programs can be loaded from it.
func ownIn(root int, base, name string, uid int, exec bool) (int, error) {
	b, err := in(root, base)
	if err != nil {
		return -1, err
	}
	defer unix.Close(b)
	var sys unix.Statfs_t
	if err := unix.Fstatfs(b, &sys); err != nil {
		return -1, err
	}
	switch {
	case sys.Flags&unix.ST_RDONLY != 0:
		return -1, errors.New("is mounted read-only")
	case exec && sys.Flags&unix.ST_NOEXEC != 0:
		return -1, errors.New("is mounted noexec")
	}
	made := unix.Mkdirat(b, name, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return -1, fmt.Errorf("does not take a folder: %w", made)
	}
	dir, err := unix.Openat(b, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
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
	if err == nil && made != nil && (int(st.Uid) != uid || st.Mode&0o022 != 0) {
		err = fmt.Errorf("holds a %s that others than uid %d can write to", name, uid)
	}
	if err != nil {
		unix.Close(dir)
		if made == nil { // root's, which would stand in the way of that user's later
			_ = unix.Unlinkat(b, name, unix.AT_REMOVEDIR)
		}
		return -1, err
	}
	return dir, nil
}

// put writes the library into dir unless it is there. An existing file is never written to: JVMs may have it mapped.
func put(dir int, name string, b []byte, sum [32]byte, j jvms.JVM) error {
	if fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
		old := os.NewFile(uintptr(fd), name)
		defer old.Close()
		have, err := io.ReadAll(io.LimitReader(old, int64(len(b))+1))
		if err == nil && sha256.Sum256(have) == sum {
			return nil
		}
	}
	tmp := ".libheapcam-" + rand.Text()
	fd, err := unix.Openat(dir, tmp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return fmt.Errorf("does not take a file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o700)
	}
	if err == nil && unix.Geteuid() != j.UID && !j.Userns {
		err = f.Chown(j.UID, -1)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(dir, tmp, dir, name)
	}
	if err != nil {
		unix.Unlinkat(dir, tmp, 0)
		return fmt.Errorf("does not take the library: %w", err)
	}
	return nil
}
