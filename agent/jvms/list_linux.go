package jvms

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxCmdline = 2 << 20
)

// List gives the JVMs of this host in the order of their pids. JVMs of other users that we may not look into are in it as far as the
// name of their program is java or their PerfData is listed, with little said about them.
func List() ([]JVM, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []JVM
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid <= 0 {
			continue
		}
		if j, err := Look(pid); err == nil {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b JVM) int { return a.PID - b.PID })
	return all, nil
}

// Look gives the JVM that has a pid. Errors: *NotFoundError, I/O errors.
func Look(pid int) (JVM, error) {
	notFound := &NotFoundError{Ref: strconv.Itoa(pid), Process: exists(pid)}
	j := JVM{PID: pid, NSPID: pid, UID: -1, GID: -1, shmFree: -1}
	start, err := startTicks(pid)
	if err != nil {
		return j, notFound
	}
	j.StartTicks, j.ID = start, ID(pid, start)
	if !j.status() {
		return j, notFound
	}
	maps, err := readLimited(fmt.Sprintf("/proc/%d/maps", pid), maxMaps)
	switch {
	case errors.Is(err, fs.ErrPermission):
		// Somebody else's: is it one at all?
		if !j.looksLikeJava() {
			return j, notFound
		}
	case err != nil:
		return j, notFound
	default:
		j.readable = true
		j.fromMaps(maps)
		if j.LibJVM == "" {
			return j, notFound
		}
	}
	args := splitNul(readText(fmt.Sprintf("/proc/%d/cmdline", pid), maxCmdline))
	name, options, sure := Program(args)
	if j.readable {
		j.Container = differs(pid, "mnt")
		j.Userns = differs(pid, "user")
		j.Apart = apart(pid)
		j.room()
		if p := j.perf(); p != nil {
			j.fromPerf(p)
		}
	}
	if name != "" && (sure || j.Name == "") {
		j.Name = name
	}
	if len(j.Args) == 0 { // PerfData is not there, or not complete yet: rules decide on the options
		env := splitNul(readText(fmt.Sprintf("/proc/%d/environ", pid), maxCmdline))
		j.Args = append(append(envOptions(env, "JAVA_TOOL_OPTIONS="), options...), envOptions(env, "_JAVA_OPTIONS=")...)
	}
	if !j.PerfData {
		j.fromRelease()
	}
	j.fromArgs()
	j.Name = clean(j.Name)
	if again, err := startTicks(pid); err != nil || again != start {
		return j, notFound
	}
	return j, nil
}

func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return pid > 0 && err == nil
}

// status reads ids; false: a thread, a zombie, or nothing.
func (j *JVM) status() bool {
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/status", j.PID), 1<<16)) {
		key, v, _ := strings.Cut(line, ":")
		f := strings.Fields(v)
		if len(f) == 0 {
			continue
		}
		last, _ := strconv.Atoi(f[len(f)-1])
		switch {
		case key == "State" && (f[0] == "Z" || f[0] == "X"):
			return false
		case key == "Tgid" && last != j.PID:
			return false
		case key == "NSpid":
			j.NSPID = last
		case key == "Uid" && len(f) > 1:
			j.UID, _ = strconv.Atoi(f[1])
		case key == "Gid" && len(f) > 1:
			j.GID, _ = strconv.Atoi(f[1])
		}
	}
	return j.UID >= 0
}

func (j *JVM) fromMaps(maps []byte) {
	for line := range bytes.Lines(maps) {
		i := bytes.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		p := strings.TrimSuffix(strings.TrimSuffix(string(line[i:]), "\n"), " (deleted)")
		base := filepath.Base(p)
		switch {
		case base == "libjvm.so" && j.LibJVM == "":
			j.LibJVM = clean(p)
		case strings.HasPrefix(base, "ld-musl-"), strings.HasPrefix(base, "libc.musl-"):
			j.musl = true
		case strings.HasPrefix(base, "heapcam-") && strings.HasSuffix(base, ".ring"), base == "memfd:heapcam.ring":
			j.Recorded = true
		case strings.HasPrefix(base, "libheapcam") && strings.HasSuffix(base, ".so"):
			j.Probe = true
		}
	}
}

// looksLikeJava is for processes whose maps are closed to us.
func (j *JVM) looksLikeJava() bool {
	if m, _ := filepath.Glob("/tmp/hsperfdata_*/" + strconv.Itoa(j.PID)); len(m) > 0 {
		return true
	}
	args := splitNul(readText(fmt.Sprintf("/proc/%d/cmdline", j.PID), maxCmdline))
	return len(args) > 0 && filepath.Base(args[0]) == "java"
}

// perf reads the PerfData file; nil if there is none that can be read. The folder's name holds a user name of the JVM's own passwd, so
// all are tried; the owner decides.
func (j *JVM) perf() map[string]string {
	tmp := fmt.Sprintf("/proc/%d/root/tmp", j.PID)
	d, err := os.Open(tmp)
	if err != nil {
		return nil
	}
	defer d.Close()
	for budget := 1 << 16; budget > 0; budget -= 256 {
		names, err := d.Readdirnames(256)
		for _, n := range names {
			if !strings.HasPrefix(n, "hsperfdata_") {
				continue
			}
			b, err := readOwned(int(d.Fd()), n, strconv.Itoa(j.NSPID), j.UID)
			if err != nil {
				continue
			}
			if p, err := parsePerf(b); err == nil {
				return p
			}
		}
		if err != nil {
			break
		}
	}
	return nil
}

// readOwned reads dir/name below tmp, following no link, if it is a regular file of that user.
func readOwned(tmp int, dir, name string, uid int) ([]byte, error) {
	dfd, err := unix.Openat(tmp, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dfd)
	var st unix.Stat_t
	if err := unix.Fstatat(dfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != uid {
		return nil, fs.ErrInvalid
	}
	fd, err := unix.Openat(dfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != uid {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxPerfData))
}

// fromRelease reads JAVA_VERSION from the JDK's release file, when the counters do not say it.
func (j *JVM) fromRelease() {
	home := filepath.Dir(filepath.Dir(filepath.Dir(j.LibJVM)))
	if !filepath.IsAbs(home) {
		return
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/root%s/release", j.PID, home), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "release")
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return
	}
	b, _ := io.ReadAll(io.LimitReader(f, 1<<16))
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "JAVA_VERSION="); ok {
			j.Version = clean(strings.Trim(v, `"`))
			j.Major = major(j.Version)
			j.Home = home
		}
	}
}

// room looks at the file systems that a recording needs.
func (j *JVM) room() {
	var st unix.Statfs_t
	if unix.Statfs(fmt.Sprintf("/proc/%d/root/tmp", j.PID), &st) == nil {
		j.noexec, j.readonly = st.Flags&unix.ST_NOEXEC != 0, st.Flags&unix.ST_RDONLY != 0
	}
	if unix.Statfs(fmt.Sprintf("/proc/%d/root/dev/shm", j.PID), &st) == nil {
		j.shmFree = int64(min(st.Bavail, 1<<40) * uint64(st.Bsize))
	}
}

func differs(pid int, ns string) bool {
	a, err1 := os.Readlink("/proc/self/ns/" + ns)
	b, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, ns))
	return err1 == nil && err2 == nil && a != b
}

// apart says whether pid has a root folder other than the first process in sight, which is the host's even where the agent is in a container itself,
// as long as it sees the host's processes. Mount namespaces say less: services have them, too.
func apart(pid int) bool {
	host, err := os.Stat("/proc/1/root")
	if err != nil { // not ours to see
		host, err = os.Stat("/")
	}
	its, err2 := os.Stat(fmt.Sprintf("/proc/%d/root", pid))
	return err == nil && err2 == nil && !os.SameFile(host, its)
}

func startTicks(pid int) (uint64, error) {
	s := readText(fmt.Sprintf("/proc/%d/stat", pid), 4096)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < 20 {
		return 0, fs.ErrNotExist
	}
	return strconv.ParseUint(f[19], 10, 64)
}

// StartTicks gives when a process was started, as JVM.StartTicks does; false: there is none.
func StartTicks(pid int) (uint64, bool) {
	t, err := startTicks(pid)
	return t, err == nil
}

func envOptions(env []string, name string) []string {
	for _, v := range env {
		if v, ok := strings.CutPrefix(v, name); ok {
			return strings.Fields(v)
		}
	}
	return nil
}

func splitNul(s string) []string {
	s = strings.TrimSuffix(s, "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// readText gives "" for what can not be read.
func readText(path string, limit int64) string {
	b, _ := readLimited(path, limit)
	return string(b)
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Cgroup gives a process' path in the unified hierarchy, or in that of systemd or memory where there is none; "" if it can not be told.
func Cgroup(pid int) string {
	best, rank := "", 0
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/cgroup", pid), 64<<10)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		r := map[string]int{"": 3, "name=systemd": 2, "memory": 1}[f[1]]
		if r > rank {
			best, rank = clean(f[2]), r
		}
	}
	return best
}
