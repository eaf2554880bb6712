package resource

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// process is one that is looked into; nil: it has ended.
type process struct {
	*procfs.Process
	of Process
}

func inside(p Process) *process {
	in, err := procfs.OpenStarted(p.PID, p.StartTicks)
	if err != nil {
		return nil
	}
	return &process{in, p}
}

func (in *process) close() {
	if in != nil {
		in.Close()
	}
}

// variables gives the values of the two variables, and nothing else of the environment.
func (in *process) variables() (service, attributes string) {
	if in == nil {
		return "", ""
	}
	for v := range strings.SplitSeq(in.Text("environ", procfs.MaxText), "\x00") {
		if s, ok := strings.CutPrefix(v, "OTEL_SERVICE_NAME="); ok && service == "" {
			service = strings.Clone(s)
		} else if s, ok := strings.CutPrefix(v, "OTEL_RESOURCE_ATTRIBUTES="); ok && attributes == "" {
			attributes = strings.Clone(s)
		}
	}
	return service, attributes
}

// manifest reads the archive that the process was started with, if its user can read it.
func (in *process) manifest() (id identity) {
	if in == nil {
		return id
	}
	jar := jarOf(strings.Split(in.Text("cmdline", procfs.MaxText), "\x00"))
	if jar == "" {
		return id
	}
	root, err := in.Root()
	if err != nil {
		return id
	}
	defer unix.Close(root)
	if !path.IsAbs(jar) {
		cwd, err := os.Readlink("/proc/" + strconv.Itoa(in.PID) + "/cwd")
		if err != nil {
			return id
		}
		jar = path.Join(cwd, jar)
	}
	f, st, err := procfs.RegularInRoot(root, jar)
	if err != nil {
		return id
	}
	defer f.Close()
	if int(st.Uid) != in.of.UID && st.Mode&unix.S_IROTH == 0 { // no user learns of files that are not the user's
		return id
	}
	return ofJar(f, st.Size, path.Base(jar))
}
