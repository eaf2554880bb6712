// Package jvms finds the JVMs of this host and says from outside which of them can be recorded.
//
// Terms. A JVM is a process that maps libjvm. Its *id* is pid and start time, in a short form that is never reused
// while the host is up. *PerfData* is the file of counters that HotSpot shares (/tmp/hsperfdata_<user>/<pid>, both as
// the JVM sees them).
//
// Invariants:
//
//  1. Everything under /proc/PID and every byte of PerfData was written by the JVM's user, who may be anyone: files
//     are opened without following links or blocking, read up to a limit, their owner compared, each offset checked;
//     texts are stripped of control characters. Otherwise listing as root would show, or follow, what they like.
//  2. Inspecting changes nothing: no signal, no attach, no file.
//  3. A process that ends while it is inspected is left out; it is no error.
//
// What it does not do: attach (package attach), read rings (shmring). Of VMs of other kinds than HotSpot it names
// OpenJ9, and a program that GraalVM has compiled where its pid is asked for. On systems other than Linux List finds
// nothing and says ErrUnsupported.
package jvms

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// JVM is one JVM as it can be seen from outside. Fields that could not be found out are zero.
type JVM struct {
	PID        int    `json:"pid"`         // in our namespace
	NSPID      int    `json:"nspid"`       // in its own
	StartTicks uint64 `json:"start_ticks"` // field 22 of /proc/PID/stat
	ID         string `json:"id"`          // see ID
	UID        int    `json:"uid"`         // effective, as we count
	GID        int    `json:"gid"`
	Name       string `json:"name"` // main class, or file name of the jar
	VM         string `json:"vm"`   // "OpenJDK 64-Bit Server VM"
	Version    string `json:"version"`
	Major      int    `json:"major"`
	Collector  string `json:"collector"` // Serial, Parallel, G1, Z, Shenandoah, Epsilon; "": not known
	Home       string `json:"home"`
	LibJVM     string `json:"libjvm"` // as it sees it
	PerfData   bool   `json:"perf_data"`
	Container  bool   `json:"container"` // has a mount namespace of its own
	Userns     bool   `json:"user_namespace"`
	Apart      bool   `json:"-"` // its root folder is not the first process' in sight: what rules call a container

	Args           []string `json:"-"` // the VM's options, those of the environment included; they may hold secrets
	AttachDisabled bool     `json:"attach_disabled"`
	Recorded       bool     `json:"recorded"` // maps a shared ring of heapcam
	Probe          bool     `json:"probe"`    // has a library of heapcam loaded, at work or not
	ringDeleted    bool     // it maps a shared ring whose file was deleted, and no other ring
	noPerf         bool     // it counts nothing: -XX:-UsePerfData
	loading        loading  // of agents while it runs
	exe            string   // the program that it runs; an exec changes it
	other          string   // the kind of VM that it is in the place of HotSpot
	graal          bool     // HotSpot with GraalVM's compiler
	musl           bool
	readable       bool // we may look at its maps, thus attach
	noexec         bool // its /tmp
	readonly       bool // its /tmp
	shmFree        int64
}

// loading says what -XX:EnableDynamicAgentLoading is set to.
type loading int

const (
	loadingDefault loading = iota // allowed; from JDK 21 on with a warning
	loadingOn
	loadingOff
)

// ID gives the short form of pid and start time that names a JVM everywhere: "4711-k3f9". The second part is base 36.
func ID(pid int, startTicks uint64) string {
	return strconv.Itoa(pid) + "-" + strconv.FormatUint(startTicks, 36)
}

// Resolve gives the JVM of this host that ref means: see Find. Errors: *NotFoundError, *AmbiguousError, List's.
func Resolve(ref string) (JVM, error) {
	all, err := List()
	if err != nil {
		return JVM{}, err
	}
	return Find(all, ref)
}

// Find picks the one JVM of all that ref means: its pid; else its id; else its name, the last part of its name (Main
// of org.example.Main), or the beginning of its id, whatever gives a match first. Errors: *NotFoundError,
// *AmbiguousError.
func Find(all []JVM, ref string) (JVM, error) {
	pid, number := strconv.Atoi(ref)
	for _, match := range []func(JVM) bool{
		func(j JVM) bool { return strconv.Itoa(j.PID) == ref },
		func(j JVM) bool { return j.ID == ref },
		func(j JVM) bool { return j.Name == ref },
		func(j JVM) bool { return j.Name != "" && ShortName(j.Name) == ref },
		// A bare number is a pid and nothing else: the first digits of another JVM's id must never attach to that one.
		func(j JVM) bool { return number != nil && strings.HasPrefix(j.ID, ref) },
	} {
		var found []JVM
		for _, j := range all {
			if ref != "" && match(j) {
				found = append(found, j)
			}
		}
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return JVM{}, &AmbiguousError{ref, found}
		}
	}
	there := number == nil && exists(pid)
	return JVM{}, &NotFoundError{Ref: ref, Process: there, NativeImage: there && runsNativeImage(pid)}
}

// fromPerf fills in what the counters say.
func (j *JVM) fromPerf(p map[string]string) {
	j.PerfData = true
	j.VM = p["java.property.java.vm.name"]
	j.other = cmp.Or(j.other, otherVM(j.VM))
	j.Version = p["java.property.java.vm.version"]
	j.Home = p["java.property.java.home"]
	j.Major = major(p["java.property.java.version"])
	if j.Major == 0 {
		j.Major = major(p["java.property.java.vm.specification.version"])
	}
	j.Name = commandName(p["sun.rt.javaCommand"])
	j.Args = append(strings.Fields(p["java.rt.vmFlags"]), strings.Fields(p["java.rt.vmArgs"])...)
	name := p["sun.gc.collector.0.name"]
	if name == "" { // ZGC on 17 has only number 2
		name = p["sun.gc.collector.2.name"]
	}
	first, _, _ := strings.Cut(name, " ")
	switch {
	case first == "" && p["sun.gc.generation.1.name"] == "Heap" && p["sun.gc.generation.0.name"] == "":
		j.Collector = "Epsilon"
	case first == "ZGC", first == "Z":
		j.Collector = "Z"
	case first == "Serial", first == "Parallel", first == "G1", first == "Shenandoah":
		j.Collector = first
	}
	// JDK 8 to 11 name collectors otherwise; the policy is named alike in all.
	if j.Collector == "" {
		j.Collector = collectorOfPolicy[p["sun.gc.policy.name"]]
	}
}

// collectorOfPolicy names collectors by sun.gc.policy.name.
var collectorOfPolicy = map[string]string{
	"Copy:MSC": "Serial", "ParScav:MSC": "Parallel", "GarbageFirst": "G1", "ParNew:CMS": "CMS",
}

// fromArgs fills in what is still open from the options.
func (j *JVM) fromArgs() {
	known := j.Collector != ""
	for _, o := range j.Args {
		switch {
		case o == "-XX:+DisableAttachMechanism":
			j.AttachDisabled = true
		case o == "-XX:-DisableAttachMechanism":
			j.AttachDisabled = false
		case o == "-XX:+EnableDynamicAgentLoading":
			j.loading = loadingOn
		case o == "-XX:-EnableDynamicAgentLoading":
			j.loading = loadingOff
		case o == "-XX:-UsePerfData":
			j.noPerf = true
		case o == "-XX:+UsePerfData":
			j.noPerf = false
		case !known && strings.HasPrefix(o, "-XX:+Use") && strings.HasSuffix(o, "GC"):
			switch g := strings.TrimSuffix(strings.TrimPrefix(o, "-XX:+Use"), "GC"); g {
			case "Serial", "Parallel", "G1", "Z", "Shenandoah", "Epsilon":
				j.Collector = g
			}
		}
	}
}

// major gives 17 for "17.0.15", 8 for "1.8.0_402", 0 for what is none.
func major(v string) int {
	v = strings.TrimPrefix(v, "1.")
	if i := strings.IndexFunc(v, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		v = v[:i]
	}
	n, err := strconv.Atoi(v)
	if err != nil || n > 999 {
		return 0
	}
	return n
}

// clean makes a foreign text fit for a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}
