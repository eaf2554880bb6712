package place

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/probe"
)

// PackagedProbe is where the packages put the library: there before the agent is, and after it.
const PackagedProbe = "/usr/lib/heapcam/libheapcam.so"

// InstallProbe writes the embedded library into a folder that only this user can write to, named by its content, and
// gives its path. Errors: probe.ErrNone, I/O errors.
func InstallProbe() (string, error) {
	b, err := probe.Library()
	if err != nil {
		return "", err
	}
	return installLibrary(b)
}

// ProbeForOptions gives the path of a library that may stand in the options of JVMs: the package's beside the
// package's binary, else our own. Errors: InstallProbe's.
func ProbeForOptions() (string, error) {
	if exe, err := os.Executable(); err == nil && exe == "/usr/bin/heapcam" {
		if st, err := os.Stat(PackagedProbe); err == nil && st.Mode().IsRegular() {
			return PackagedProbe, nil
		}
	}
	return InstallProbe()
}

// installLibrary does the same as InstallProbe for library b.
func installLibrary(b []byte) (string, error) {
	dirs := []string{privateName(), ownName(os.TempDir()), ownName("/var/tmp"), ownName("/dev/shm")}
	if os.Getuid() == 0 { // nobody else gets into root's $XDG_RUNTIME_DIR
		dirs = dirs[1:]
	}
	var why []string
	for _, loose := range []bool{false, true} {
		why = nil
		for _, dir := range dirs {
			err := trusted(filepath.Dir(dir), loose)
			if err == nil {
				var path string
				if path, err = installIn(dir, b); err == nil {
					return path, nil
				}
			}
			why = append(why, err.Error())
		}
	}
	return "", fmt.Errorf("no folder can hold the probe's library: %s", strings.Join(why, "; "))
}

// trusted says why others could put another library in the place of one below base: they can rename a folder on the
// way to it. loose takes a folder of ours or root's that all may write to and that has no sticky bit: in a container
// there may be nothing else.
func trusted(base string, loose bool) error {
	base, err := filepath.EvalSymlinks(base)
	if err != nil {
		return err
	}
	for p := base; ; p = filepath.Dir(p) {
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return &fs.PathError{Op: "lstat", Path: p, Err: err}
		}
		shared := st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0
		if st.Uid != 0 && int(st.Uid) != os.Geteuid() || shared && !loose {
			return fmt.Errorf("users other than this one can rename files in %s", p)
		}
		if p == "/" || p == "." {
			return nil
		}
	}
}

// installIn puts the library into dir and makes sure that programs can be loaded from there: a JVM that cannot load
// an agent does not start. For the same reason what root places is open to JVMs of other users, which a command of
// root's may start.
func installIn(dir string, b []byte) (string, error) {
	if err := OwnFolder(dir, os.Getuid()); err != nil {
		return "", err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	name := libraryName(b)
	path := filepath.Join(dir, name)
	if err := putLibrary(fd, name, b, os.Getuid()); err != nil {
		return "", fmt.Errorf("%s %w", dir, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if os.Getuid() == 0 {
		if err := errors.Join(unix.Fchmod(fd, 0o711), f.Chmod(0o755)); err != nil {
			return "", err
		}
	}
	m, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return "", fmt.Errorf("libraries cannot be loaded from %s: %w", dir, err)
	}
	return path, unix.Munmap(m)
}

// MakeRingDir makes a folder for shared rings, in memory if possible, owned by uid unless that is negative. what is
// "run" or "record", for who finds one that was left over.
func MakeRingDir(what string, uid int) (RingDir, error) {
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || !st.IsDir() {
		base = os.TempDir()
	}
	sweep(base)
	pattern := fmt.Sprintf("heapcam-%s-%d-%d-", what, os.Getpid(), pidNamespace())
	dir, err := os.MkdirTemp(base, pattern)
	if err != nil {
		if dir, err = os.MkdirTemp("", pattern); err != nil {
			return RingDir{}, fmt.Errorf("folder for shared rings: %w", err)
		}
	}
	if uid >= 0 && uid != os.Getuid() {
		if err := giveAway(dir, uid); err != nil {
			os.Remove(dir)
			return RingDir{}, err
		}
	}
	return RingDir{AsJVM: dir, Ours: dir, remove: func() { os.RemoveAll(dir) }}, nil
}

// giveAway makes uid the owner of dir, an empty folder that we made: of nothing that was put into its place.
func giveAway(dir string, uid int) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	if err := trusted(filepath.Dir(dir), false); err != nil {
		return err
	}
	return unix.Fchown(fd, uid, -1)
}
