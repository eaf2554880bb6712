package attach

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// target is what /proc says about the JVM.
type target struct {
	p        *procfs.Process
	nspid    int // its pid in its own namespace
	uid, gid int // effective, as our namespace counts
	userns   bool
	quit     bool // SIGQUIT is caught
}

// maxStatus bounds what is read of /proc/PID/status.
const maxStatus = 64 << 10

// inspect reads what must be known before anything is touched.
func inspect(p *procfs.Process) (target, error) {
	t := target{p: p, nspid: p.PID, uid: -1, gid: -1}
	b, err := p.Read("status", maxStatus)
	if err != nil {
		return t, procErr(err)
	}
	for line := range strings.Lines(string(b)) {
		key, v, _ := strings.Cut(line, ":")
		f := strings.Fields(v)
		switch {
		case key == "State" && len(f) > 0 && (f[0] == "Z" || f[0] == "X"):
			return t, ErrNoProcess
		case key == "Tgid" && len(f) > 0 && f[0] != strconv.Itoa(p.PID):
			return t, ErrNoProcess // a thread's id
		case key == "Uid" && len(f) > 1:
			t.uid = number(f[1])
		case key == "Gid" && len(f) > 1:
			t.gid = number(f[1])
		case key == "NSpid" && len(f) > 0:
			t.nspid = number(f[len(f)-1])
		case key == "SigCgt" && len(f) > 0:
			mask, err := strconv.ParseUint(f[0], 16, 64)
			t.quit = err == nil && mask>>(uint(unix.SIGQUIT)-1)&1 == 1
		}
	}
	maps, err := p.Read("maps", procfs.MaxMaps)
	switch {
	case err != nil:
		return t, procErr(err)
	case !strings.Contains(string(maps), "/libjvm.so"), strings.Contains(string(maps), "/libj9vm"):
		return t, ErrNotJVM // OpenJ9 has a libjvm.so, too; SIGQUIT makes it write a dump
	}
	if euid := os.Geteuid(); euid != 0 && euid != t.uid {
		return t, ErrPermission
	}
	apart, err := p.Apart("user")
	t.userns = apart || err != nil // unknown: no rights of root
	return t, nil
}

// number gives -1 for what is none.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// sameUser says that the process still has the user that it had.
func (t target) sameUser(now target) bool {
	return now.uid == t.uid && now.gid == t.gid && now.userns == t.userns
}

// forbids says whether the options that the process was started with, as far as they can be seen, set a flag of the JVM
// to off: "+DisableAttachMechanism". The last one counts, and the command line comes after JAVA_TOOL_OPTIONS and before
// _JAVA_OPTIONS.
func forbids(p *procfs.Process, off string) bool {
	var options []string
	env := strings.Split(p.Text("environ", procfs.MaxText), "\x00")
	variable := func(name string) {
		for _, v := range env {
			if v, ok := strings.CutPrefix(v, name); ok {
				options = append(options, strings.Fields(v)...)
			}
		}
	}
	variable("JAVA_TOOL_OPTIONS=")
	variable("JDK_JAVA_OPTIONS=")
	options = append(options, strings.Split(p.Text("cmdline", procfs.MaxText), "\x00")...)
	variable("_JAVA_OPTIONS=")
	last := ""
	for _, o := range options {
		if o, ok := strings.CutPrefix(o, "-XX:"); ok && o != "" && o[1:] == off[1:] {
			last = o
		}
	}
	return last == off
}
