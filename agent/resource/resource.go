// Package resource says whose a JVM is: service, version, host, unit, pod and container, by attributes of
// OpenTelemetry (trace.Resource).
//
// The first source that names an attribute wins, in this order: the process context, which the probe reads and
// sends (package session puts it over what Of returns); the JVM's options -Dotel.service.name and
// -Dotel.resource.attributes, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, rules of heapcam.yaml, systemd unit,
// container of the cgroup, pod (the API server if it may be asked, then the node's log folders), Spring Boot's name or
// the manifest of the jar, jar or main class.
//
// Invariants:
//
//  1. Of a process' environment two variables are looked at, and of what they hold only trace.ResourceKeys are kept.
//     The rest is neither kept nor returned nor shown, also in errors.
//  2. All of it was written by the JVM's user: reads are bounded, files are opened inside the process' root as package
//     procfs says, a jar only if its user can read it. Values are cleaned (trace.CleanAttr).
//  3. Nothing asks another program or a container runtime, and no network but by Process.Pod. Nothing in the process is
//     changed, and none of its memory is read: a page of it can make a reader wait for ever.
//
// On Windows only options, rules and the name of the program are known.
package resource

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/trace"
)

// Process is what is known of a JVM already.
type Process struct {
	PID        int
	StartTicks uint64 // 0: not known
	UID        int
	Owner      string   // name of its user
	Program    string   // main class, or file name of the jar
	Options    []string // of the VM
	Host       string   // name of this host
	Runtime    string   // version of the VM
	Cgroup     string   // path below the hierarchy's root
	// Rules are attributes that heapcam.yaml gives this JVM.
	Rules map[string]string
	// Pod, if set, gives what the API server of Kubernetes says of the pod with a UID (package pods).
	Pod func(uid string) map[string]string
}

// found is what sources have said so far: the first wins.
type found map[string]string

func (f found) add(key, value string) {
	if value = trace.CleanAttr(value); value != "" && f[key] == "" {
		f[key] = value
	}
}

// system is where the host's folders are: tests have another one.
type system struct{ pods, containers string }

var host = system{pods: "/var/log/pods", containers: "/var/log/containers"}

// Of resolves the attributes of a JVM. What cannot be found out is left out.
func Of(p Process) trace.Resource { return host.of(p) }

func (s system) of(p Process) trace.Resource {
	f := found{}
	service, attributes := "", ""
	for _, o := range p.Options { // the last one counts, as in the JVM
		if v, ok := strings.CutPrefix(o, "-Dotel.service.name="); ok {
			service = v
		} else if v, ok := strings.CutPrefix(o, "-Dotel.resource.attributes="); ok {
			attributes = v
		}
	}
	f.otel(service, attributes)
	in := inside(p)
	defer in.close()
	f.otel(in.variables())
	for _, k := range trace.ResourceKeys {
		f.add(k, p.Rules[k])
	}
	s.place(f, p)
	spring := ""
	for _, o := range p.Options {
		if v, ok := strings.CutPrefix(o, "-Dspring.application.name="); ok {
			spring = v
		}
	}
	f.add(trace.AttrService, spring)
	if f[trace.AttrService] == "" || f[trace.AttrVersion] == "" {
		m := in.manifest()
		f.add(trace.AttrService, m.name)
		f.add(trace.AttrVersion, m.version)
	}
	f.add(trace.AttrService, program(p.Program))
	f.add(trace.AttrHost, p.Host)
	f.add(trace.AttrPID, strconv.Itoa(p.PID))
	f.add(trace.AttrOwner, p.Owner)
	f.add(trace.AttrRuntime, p.Runtime)
	return trace.Resource(f).Clean()
}

// otel takes in OTEL_SERVICE_NAME, which wins, and OTEL_RESOURCE_ATTRIBUTES: key=value pairs, apart by commas, the
// values percent-encoded. As OpenTelemetry specifies, an error in one pair discards all pairs.
func (f found) otel(service, attributes string) {
	f.add(trace.AttrService, service)
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(attributes, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		k, v, ok := strings.Cut(pair, "=")
		v, err := url.PathUnescape(strings.TrimSpace(v))
		if !ok || err != nil || strings.TrimSpace(k) == "" {
			return
		}
		pairs[strings.TrimSpace(k)] = v
	}
	if old := pairs[trace.OldEnv]; pairs[trace.AttrEnv] == "" {
		pairs[trace.AttrEnv] = old
	}
	for _, k := range trace.ResourceKeys {
		if k != trace.AttrRedact {
			f.add(k, pairs[k])
		}
	}
}

// program gives a service's name for the name of a program: orders of orders-1.4.2.jar, OrderService of
// org.example.OrderService.
func program(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, suffix := range []string{".jar", ".war"} {
		if s, ok := strings.CutSuffix(name, suffix); ok {
			s, _ := cutVersion(s)
			return s
		}
	}
	return name[strings.LastIndexByte(name, '.')+1:]
}

// cutVersion parts orders-1.4.2-SNAPSHOT: a version begins with a digit behind a dash.
func cutVersion(s string) (name, version string) {
	for i := 1; i+1 < len(s); i++ {
		if s[i] == '-' && s[i+1] >= '0' && s[i+1] <= '9' {
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}
