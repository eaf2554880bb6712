package jvms

import (
	"fmt"
	"os/user"
	"slices"
	"strconv"

	"github.com/heapcam/heapcam/probe"
)

// Problem is why a JVM cannot be recorded, for programs; part of what doctor prints as JSON.
type Problem string

// Problems.
const (
	OK             Problem = ""
	BadCollector   Problem = "collector"
	UntestedMajor  Problem = "untested-jdk"
	OldMajor       Problem = "old-jdk"
	NotHotSpot     Problem = "not-hotspot"
	NoRights       Problem = "rights"
	AttachDisabled Problem = "attach-disabled"
	NoPerfData     Problem = "perf-data"
	ReadOnlyTmp    Problem = "read-only-tmp"
)

// Verdict says whether a running JVM can be recorded by attaching, as far as can be seen from outside. The probe has
// the last word.
type Verdict struct {
	Recordable bool     `json:"recordable"`
	Problem    Problem  `json:"problem,omitempty"`
	Reason     string   `json:"reason,omitempty"`   // one line
	Remedy     string   `json:"remedy,omitempty"`   // one line; "": none
	Warnings   []string `json:"warnings,omitempty"` // what a recording would lack
}

// tested are the majors that the tests run on, from the oldest up. The probe takes those and newer ones without
// --allow-untested-jdk.
var tested = probe.Tested()

// recorded are the collectors that the probe records, as JVM.Collector names them. Of those without addresses it
// records samples alone.
var (
	recorded         = append([]string{"Serial", "Parallel", "G1"}, withoutAddresses...)
	withoutAddresses = []string{"Z", "Shenandoah", "Epsilon"}
)

// minShm is the smallest default ring in bytes.
const minShm = 4 << 20

// Doctor judges one JVM of List.
func Doctor(j JVM) Verdict {
	no := func(p Problem, remedy, format string, args ...any) Verdict {
		return Verdict{Problem: p, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	switch {
	case !j.readable:
		return no(NoRights, "run heapcam as root or as that user",
			"the JVM runs as user %s, and this user may not inspect it", userName(j.UID))
	case j.other != "":
		return no(NotHotSpot, fmt.Sprintf("run the program on a HotSpot JDK of %d or later", tested[0]),
			"it is %s: heapcam records only HotSpot JVMs", j.other)
	case j.Collector != "" && !slices.Contains(recorded, j.Collector):
		return no(BadCollector, "start the JVM with -XX:+UseG1GC, -XX:+UseParallelGC or -XX:+UseSerialGC",
			"the collector %s is not supported", j.Collector)
	case j.Major != 0 && j.Major < tested[0]:
		return no(OldMajor, fmt.Sprintf("use JDK %d or later", tested[0]),
			"JDK %d is too old: heapcam records JDK %d and later", j.Major, tested[0])
	case j.Major != 0 && j.Major < newest() && !slices.Contains(tested, j.Major):
		return no(UntestedMajor, "use --allow-untested-jdk: the probe checks itself before it records",
			"JDK %d is untested", j.Major)
	case j.AttachDisabled:
		return no(AttachDisabled, "start the JVM with the option that `heapcam doctor --java-tool-options` "+
			"prints, with `heapcam run`, or without -XX:+DisableAttachMechanism", "attaching is disabled in the JVM")
	case j.loading == loadingOff && !j.Recorded:
		return no(AttachDisabled, "start the JVM with -XX:+EnableDynamicAgentLoading, with `heapcam run`, or with the "+
			"option that `heapcam doctor --java-tool-options` prints",
			"the JVM does not load agents while it runs (-XX:-EnableDynamicAgentLoading)")
	case j.readonly && !j.Recorded:
		return no(ReadOnlyTmp, "mount a writable /tmp for the JVM, "+
			"or start it with the option that `heapcam doctor --java-tool-options` prints",
			"its /tmp is mounted read-only, so the JVM cannot open the socket for attaching")
	case j.noPerf:
		return no(NoPerfData, "start the JVM without that flag",
			"-XX:-UsePerfData hides the counters by which the probe tells pauses apart")
	}
	return Verdict{Recordable: true, Warnings: warnings(j)}
}

// warnsFrom is the first JDK that prints a warning when a library is attached to it.
const warnsFrom = 21

// warnings says what a recording of j would lack, or cost beside.
func warnings(j JVM) (all []string) {
	warn := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if j.Major >= warnsFrom && j.loading == loadingDefault && !j.Recorded && !j.Probe {
		warn("JDK %d prints a warning on stderr when heapcam attaches, and a later JDK may refuse it: start the JVM "+
			"with -XX:+EnableDynamicAgentLoading, with `heapcam run`, or with the option that "+
			"`heapcam doctor --java-tool-options` prints", j.Major)
	}
	if j.ringDeleted {
		warn("the file of its shared ring was deleted, as systemd-logind does when a user logs out (RemoveIPC=no in " +
			"/etc/systemd/logind.conf prevents it): an agent that restarts finds the ring only through a descriptor " +
			"of the JVM, which the agent must be allowed to open")
	}
	if j.graal {
		warn("it is GraalVM's HotSpot, with which heapcam was not tested")
	}
	if j.Major > newest() {
		warn("JDK %d is untested: the probe checks itself before it records", j.Major)
	}
	if slices.Contains(withoutAddresses, j.Collector) {
		warn("with this collector heapcam records samples only: sites of allocations, which of a random part of them " +
			"live, pauses and heap usage")
	}
	if !j.PerfData {
		warn("the JVM's PerfData file cannot be read; its properties are taken from its command line")
	}
	if j.Collector == "" {
		warn("the collector cannot be seen from outside; the probe checks it")
	}
	if j.Major == 0 {
		warn("the JDK version cannot be seen from outside; the probe checks it")
	}
	if j.Container {
		warn("the JVM runs in a container: attaching copies the probe into its file system")
		if j.noexec {
			warn("its /tmp is mounted noexec: the probe cannot be loaded from there")
		}
	}
	if j.musl {
		warn("it runs on musl libc: the probe is tested in a process of musl, and unproven with a real JVM of Alpine")
	}
	if j.shmFree >= 0 && j.shmFree < minShm {
		warn("its /dev/shm has only %d KiB left: the shared ring will be an unnamed memory file, lost if both JVM and "+
			"heapcam end, unless heapcam runs as a systemd service", j.shmFree>>10)
	}
	return all
}

func newest() int { return tested[len(tested)-1] }

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return strconv.Itoa(uid)
}
