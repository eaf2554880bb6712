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

	"github.com/heapcam/heapcam/internal/procfs"
)

// maxStatus bounds what is read of /proc/PID/status.
const maxStatus = 64 << 10

// List gives the JVMs of this host in the order of their pids. JVMs of other users that we may not look into are in it
// as far as the name of their program is java or their PerfData is listed, with little said about them.
func List() ([]JVM, error) { return list(nil, Inspect) }

// list gives the JVMs that inspect finds among the processes that are wanted; nil: all.
func list(wanted func(pid int) bool, inspect func(pid int) (JVM, error)) ([]JVM, error) {
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
		if err != nil || pid <= 0 || wanted != nil && !wanted(pid) {
			continue
		}
		if j, err := inspect(pid); err == nil {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b JVM) int { return a.PID - b.PID })
	return all, nil
}

// Inspect gives the JVM that has a pid. Errors: *NotFoundError, I/O errors.
func Inspect(pid int) (JVM, error) {
	notFound := &NotFoundError{Ref: strconv.Itoa(pid), Process: exists(pid)}
	j := JVM{PID: pid, NSPID: pid, UID: -1, GID: -1, shmFree: -1}
	p, err := procfs.Open(pid)
	if err != nil {
		return j, notFound
	}
	defer p.Close()
	j.StartTicks, j.ID, j.exe = p.StartTicks, ID(pid, p.StartTicks), p.Link("exe")
	if !j.status(p) {
		return j, notFound
	}
	maps, err := p.Read("maps", procfs.MaxMaps)
	switch {
	case errors.Is(err, fs.ErrPermission):
		// Somebody else's: is it one at all?
		if !j.isLikelyJava(p) {
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
	j.describe(p)
	if !p.Alive() {
		return j, notFound
	}
	return j, nil
}

// describe fills in what the process' arguments, counters and files say.
func (j *JVM) describe(p *procfs.Process) {
	name, options, sure := Program(splitNul(p.Text("cmdline", procfs.MaxText)))
	root := -1
	if j.readable {
		j.Container = differs(p, "mnt")
		j.Userns = differs(p, "user")
		j.Apart = apart(j.PID)
		if fd, err := p.Root(); err == nil {
			root = fd
			defer unix.Close(fd)
		}
		j.room(root)
		if c := j.perf(root); c != nil {
			j.fromPerf(c)
		}
	}
	if name != "" && (sure || j.Name == "") {
		j.Name = name
	}
	if len(j.Args) == 0 { // PerfData is not there, or not complete yet: rules decide on the options
		env := splitNul(p.Text("environ", procfs.MaxText))
		j.Args = append(append(envOptions(env, "JAVA_TOOL_OPTIONS="), options...), envOptions(env, "_JAVA_OPTIONS=")...)
	}
	j.fromRelease(root)
	j.fromArgs()
	j.Name = clean(j.Name)
}

func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return pid > 0 && err == nil
}

// status reads ids; false: a thread, a zombie, or nothing.
func (j *JVM) status(p *procfs.Process) bool {
	for line := range strings.Lines(p.Text("status", maxStatus)) {
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
	deleted, named := false, false // rings that it maps: files without a name any more, and others
	defer func() { j.ringDeleted = deleted && !named }()
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
		case strings.HasPrefix(base, "libj9vm") && strings.Contains(base, ".so"):
			j.other = openJ9
			if j.LibJVM == "" { // a program of another kind may load it without the libjvm.so before it
				j.LibJVM = clean(p)
			}
		case strings.HasPrefix(base, "ld-musl-"), strings.HasPrefix(base, "libc.musl-"):
			j.musl = true
		case strings.HasPrefix(base, "heapcam-") && strings.HasSuffix(base, ".ring"):
			j.Recorded = true
			if bytes.HasSuffix(line, []byte(" (deleted)\n")) {
				deleted = true
			} else {
				named = true
			}
		case base == "memfd:heapcam.ring":
			j.Recorded, named = true, true
		case strings.HasPrefix(base, "libheapcam") && strings.HasSuffix(base, ".so"):
			j.Probe = true
		}
	}
}

// isLikelyJava is for processes whose maps are closed to us.
func (j *JVM) isLikelyJava(p *procfs.Process) bool {
	if m, _ := filepath.Glob("/tmp/" + perfFolder + "*/" + strconv.Itoa(j.PID)); len(m) > 0 {
		return true
	}
	args := splitNul(p.Text("cmdline", procfs.MaxText))
	return len(args) > 0 && filepath.Base(args[0]) == "java"
}

// perf reads the PerfData file; nil if there is none that can be read. The folder's name holds a user name of the
// JVM's own passwd, so all are tried; the owner decides.
func (j *JVM) perf(root int) map[string]string {
	tmp, err := procfs.InRoot(root, "tmp", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(tmp), "tmp")
	defer d.Close()
	for budget := 1 << 16; budget > 0; budget -= 256 {
		names, err := d.Readdirnames(256)
		for _, n := range names {
			if !strings.HasPrefix(n, perfFolder) {
				continue
			}
			b, err := readOwned(tmp, n, strconv.Itoa(j.NSPID), j.UID)
			if err != nil {
				continue
			}
			if c, err := parsePerf(b); err == nil {
				return c
			}
		}
		if err != nil {
			break
		}
	}
	return nil
}

// perfFolder begins the names of the folders with PerfData.
const perfFolder = "hsperfdata_"

// readOwned reads dir/name below tmp, following no link, if it is a regular file of that user.
func readOwned(tmp int, dir, name string, uid int) ([]byte, error) {
	at, err := unix.Openat(tmp, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	f, st, err := procfs.Regular(at, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if int(st.Uid) != uid {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxPerfData))
}

// maxRelease bounds what is read of a JDK's release file.
const maxRelease = 64 << 10

// fromRelease reads the JDK's release file: whose it is, and the version where the counters do not say it.
func (j *JVM) fromRelease(root int) {
	home := filepath.Dir(filepath.Dir(filepath.Dir(j.LibJVM)))
	if !filepath.IsAbs(home) {
		return
	}
	f, _, err := procfs.RegularInRoot(root, filepath.Join(home, "release"))
	if err != nil {
		return
	}
	defer f.Close()
	b, _ := io.ReadAll(io.LimitReader(f, maxRelease))
	for line := range strings.Lines(string(b)) {
		j.releaseLine(line)
	}
	if j.Home == "" {
		j.Home = home
	}
}

// room reads the state of the file systems that a recording needs.
func (j *JVM) room(root int) {
	if st, err := fileSystem(root, "tmp"); err == nil {
		j.noexec, j.readonly = st.Flags&unix.ST_NOEXEC != 0, st.Flags&unix.ST_RDONLY != 0
	}
	if st, err := fileSystem(root, "dev/shm"); err == nil {
		j.shmFree = int64(min(st.Bavail, 1<<40) * uint64(st.Bsize))
	}
}

func fileSystem(root int, path string) (st unix.Statfs_t, err error) {
	fd, err := procfs.FolderInRoot(root, path)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstatfs(fd, &st)
}

func differs(p *procfs.Process, ns string) bool {
	apart, err := p.Apart(ns)
	return err == nil && apart
}

// apart says whether pid has a root folder other than the first process in sight, which is the host's even where the
// agent is in a container itself, as long as it sees the host's processes. Mount namespaces say less: services have
// them, too.
func apart(pid int) bool {
	host, err := os.Stat("/proc/1/root")
	if err != nil { // not ours to see
		host, err = os.Stat("/")
	}
	its, err2 := os.Stat(fmt.Sprintf("/proc/%d/root", pid))
	return err == nil && err2 == nil && !os.SameFile(host, its)
}

// StartTicks gives when a process was started, as JVM.StartTicks does; false: there is none.
func StartTicks(pid int) (uint64, bool) {
	p, err := procfs.Open(pid)
	if err != nil {
		return 0, false
	}
	defer p.Close()
	return p.StartTicks, true
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

// Cgroup gives a process' path in the unified hierarchy, or in that of systemd or memory where there is none; "" if it
// is not known.
func Cgroup(pid int) string {
	best, rank := "", 0
	b, _ := ReadProc(pid, "cgroup")
	for line := range strings.Lines(string(b)) {
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
