//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/shmring"
)

// installProbe writes the embedded library into a folder that only this user can write to, named by its content, and
// gives its path. An existing one is never written to: JVMs may have it mapped. Errors: probe.ErrNone, I/O errors.
func installProbe() (string, error) {
	b, err := probe.Library()
	if err != nil {
		return "", err
	}
	return installLibrary(b)
}

// packagedProbe is where the packages put the library: there before the agent is, and after it.
const packagedProbe = "/usr/lib/heapcam/libheapcam.so"

// toolOption gives the option that has a JVM load the probe, which makes its ring where the agent looks for it.
func (o *agentOptions) toolOption() (string, error) {
	lib, err := probeForOptions()
	if err != nil {
		return "", err
	}
	if lib != packagedProbe {
		ui.Fprintf(ui.Stderr, "heapcam: %s is this user's alone: JVMs of others need the library of the package, %s\n", lib, packagedProbe)
	}
	return "-agentpath:" + lib + "=" + o.rec.attachOptions(), nil
}

// probeForOptions gives the path of a library that may stand in the options of JVMs: the package's beside the package's binary, else our own.
func probeForOptions() (string, error) {
	if exe, err := os.Executable(); err == nil && exe == "/usr/bin/heapcam" {
		if st, err := os.Stat(packagedProbe); err == nil && st.Mode().IsRegular() {
			return packagedProbe, nil
		}
	}
	return installProbe()
}

// installLibrary does the same for library b.
func installLibrary(b []byte) (string, error) {
	dirs := []string{privateName(), ownName(os.TempDir()), ownName("/var/tmp"), ownName("/dev/shm")}
	if os.Getuid() == 0 { // nobody else gets into root's $XDG_RUNTIME_DIR
		dirs = dirs[1:]
	}
	var why []string
	for _, base := range dirs {
		path, err := installIn(base, b)
		if err == nil {
			return path, nil
		}
		why = append(why, err.Error())
	}
	return "", fmt.Errorf("there is no folder that a JVM could load the probe from: %s", strings.Join(why, "; "))
}

// installIn puts the library into dir and makes sure that programs can be loaded from there: a JVM that can not load
// an agent does not start. For the same reason what root places is open to JVMs of other users, which a command of
// root's may start.
func installIn(dir string, b []byte) (string, error) {
	if err := ownDir(dir, os.Getuid()); err != nil {
		return "", err
	}
	path, err := placeLibrary(dir, b)
	if err != nil {
		return "", err
	}
	if os.Getuid() == 0 {
		if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(path, 0o755)); err != nil {
			return "", err
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err != nil {
		return "", fmt.Errorf("programs can not be loaded from %s: %w", dir, err)
	}
	return path, unix.Munmap(m)
}

// placeLibrary puts the library into dir, a folder of ours.
func placeLibrary(dir string, b []byte) (string, error) {
	sum := sha256.Sum256(b)
	path := filepath.Join(dir, "libheapcam-"+hex.EncodeToString(sum[:8])+".so")
	if old, err := os.ReadFile(path); err == nil && sha256.Sum256(old) == sum {
		return path, nil
	}
	f, err := os.CreateTemp(dir, ".libheapcam-*")
	if err != nil {
		return "", fmt.Errorf("extract the probe: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o700)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("extract the probe: %w", err)
	}
	return path, nil
}

// privateDir gives a folder that only this user can write to.
func privateDir() (string, error) {
	dir := privateName()
	return dir, ownDir(dir, os.Getuid())
}

// privateName is the folder below $XDG_RUNTIME_DIR, else that below the folder for temporary files.
func privateName() string {
	if x := os.Getenv("XDG_RUNTIME_DIR"); x != "" && filepath.IsAbs(x) {
		if st, err := os.Stat(x); err == nil && st.IsDir() {
			return filepath.Join(x, "heapcam")
		}
	}
	return ownName(os.TempDir())
}

// ownName is this user's folder below base.
func ownName(base string) string { return filepath.Join(base, "heapcam-"+strconv.Itoa(os.Getuid())) }

// ownDir makes dir with mode 0700, owned by uid, or checks that it is such: in a shared folder somebody else may have made it first.
func ownDir(dir string, uid int) error {
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil:
		if uid != os.Getuid() {
			return os.Chown(dir, uid, -1)
		}
		return nil
	case !os.IsExist(err):
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || !st.IsDir() || int(sys.Uid) != uid || st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only uid %d can write to: remove it", dir, uid)
	}
	return nil
}

// makeRingDir makes a folder for shared rings, in memory if possible, owned by uid unless that is negative.
func makeRingDir(what string, uid int) (string, error) {
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || !st.IsDir() {
		base = os.TempDir()
	}
	sweep(base)
	pattern := fmt.Sprintf("heapcam-%s-%d-%d-", what, os.Getpid(), pidNamespace())
	dir, err := os.MkdirTemp(base, pattern)
	if err != nil {
		if dir, err = os.MkdirTemp("", pattern); err != nil {
			return "", fmt.Errorf("folder for shared rings: %w", err)
		}
	}
	if uid >= 0 && uid != os.Getuid() {
		if err := os.Chown(dir, uid, -1); err != nil {
			os.Remove(dir)
			return "", err
		}
	}
	return dir, nil
}

// pidNamespace tells namespaces of pids apart: folders of several of them may share /dev/shm. 0 where there are none.
func pidNamespace() (inode uint64) {
	var st syscall.Stat_t
	if syscall.Stat("/proc/self/ns/pid", &st) == nil {
		inode = st.Ino
	}
	return inode
}

// sweep removes this user's ring folders whose recorder was killed and whose JVMs are gone: they are memory that nobody gives back. Pids mean
// nothing in another namespace: what comes from there is left alone.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "heapcam-r*-*-*-*"))
	for _, dir := range dirs {
		var what string
		var pid int
		var ns uint64
		name := strings.ReplaceAll(filepath.Base(dir), "-", " ")
		if n, _ := fmt.Sscanf(name, "heapcam %s %d %d ", &what, &pid, &ns); n != 3 || pid <= 0 || ns != pidNamespace() || what != "run" && what != "record" {
			continue
		}
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || running(pid) {
			continue
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != os.Getuid() {
			continue
		}
		rings, err := shmring.Scan(dir)
		used := err != nil
		for _, r := range rings {
			if jvm, _, ok := shmring.ParseName(r); !ok || running(int(jvm)) {
				used = true
			}
		}
		if !used {
			os.RemoveAll(dir)
		}
	}
}

// running says whether there is a process of that pid that is more than a zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) == syscall.ESRCH {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
