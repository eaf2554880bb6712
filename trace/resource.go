package trace

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Resource says whose recording it is, by attributes of OpenTelemetry: values by key. It is never changed in place.
type Resource map[string]string

// Keys of a Resource: those of OpenTelemetry's semantic conventions, and systemd.unit.
const (
	AttrService    = "service.name"
	AttrNamespace  = "service.namespace"
	AttrVersion    = "service.version"
	AttrInstance   = "service.instance.id"
	AttrEnv        = "deployment.environment.name"
	AttrHost       = "host.name"
	AttrContainer  = "container.id"
	AttrPod        = "k8s.pod.name"
	AttrPodUID     = "k8s.pod.uid"
	AttrK8sNS      = "k8s.namespace.name"
	AttrK8sName    = "k8s.container.name"
	AttrNode       = "k8s.node.name"
	AttrDeployment = "k8s.deployment.name"
	AttrCluster    = "k8s.cluster.name"
	AttrPID        = "process.pid"
	AttrOwner      = "process.owner"
	AttrRuntime    = "process.runtime.version"
	AttrUnit       = "systemd.unit"
	// AttrRedact is "true" where a rule of heapcam.yaml says that uploads name nothing of this JVM. It is no attribute
	// of OpenTelemetry, and no process can set it.
	AttrRedact = "heapcam.redact"
)

// ResourceKeys are the attributes that heapcam reads of a process and keeps, but for AttrRedact. It is the first, so
// that no others take its room.
var ResourceKeys = []string{AttrRedact, AttrService, AttrNamespace, AttrVersion, AttrInstance, AttrEnv, AttrHost,
	AttrContainer, AttrPod, AttrPodUID, AttrK8sNS, AttrK8sName, AttrNode, AttrDeployment, AttrCluster, AttrPID,
	AttrOwner, AttrRuntime, AttrUnit}

// Bounds of a Resource: bytes of a value, and of all keys and values together.
const (
	MaxAttr     = 128
	MaxResource = 1024
)

// CleanAttr gives a value that may stand in a Resource: printable, of one line, of at most MaxAttr bytes, and without
// what JSON would escape, so that recording.json stays within its block. Whoever started the JVM may have chosen it.
func CleanAttr(v string) string {
	v = v[:min(len(v), 4*MaxAttr)]
	v = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) || strings.ContainsRune(`"\<>&`, r) {
			return '_'
		}
		return r
	}, strings.TrimSpace(strings.ToValidUTF8(v, "_")))
	for len(v) > MaxAttr {
		_, n := utf8.DecodeLastRuneInString(v)
		v = v[:len(v)-n]
	}
	return strings.TrimSpace(v)
}

// Clean gives the named attributes of r (ResourceKeys) that fit, in that order; nil: none.
func (r Resource) Clean() (out Resource) {
	for _, k := range ResourceKeys {
		out = out.with(k, CleanAttr(r[k]))
	}
	return out
}

// with adds an attribute that is not there yet, if it may be.
func (r Resource) with(key, value string) Resource {
	if _, again := r[key]; again || value == "" || value != CleanAttr(value) || !isAttrKey(key) {
		return r
	}
	size := len(key) + len(value)
	for k, v := range r {
		size += len(k) + len(v)
	}
	if size > MaxResource {
		return r
	}
	if r == nil {
		r = Resource{}
	}
	r[key] = value
	return r
}

// OldEnv is the name of AttrEnv before version 1.27 of the conventions.
const OldEnv = "deployment.environment"

// Over gives the attributes of r, and those of below that r lacks. AttrRedact is below's alone.
func (r Resource) Over(below Resource) Resource {
	all := Resource{}
	for _, k := range ResourceKeys {
		v := r[k]
		if k == AttrEnv && v == "" {
			v = r[OldEnv]
		}
		if v == "" || k == AttrRedact {
			v = below[k]
		}
		all[k] = v
	}
	return all.Clean()
}

func isAttrKey(k string) bool {
	const set = "abcdefghijklmnopqrstuvwxyz0123456789._-"
	return k != "" && len(k) <= 64 && strings.Trim(k, set) == ""
}

func (r Resource) appendTo(b []byte) []byte {
	for _, k := range slices.Sorted(maps.Keys(r)) {
		b = put(b, TagResource, nil, k, r[k])
	}
	return b
}

// Redacted says that uploads must not name whose recording it is.
func (r Resource) Redacted() bool { return r[AttrRedact] == "true" }

// Namespace gives the service's namespace, else that of Kubernetes; "" if neither is known.
func (r Resource) Namespace() string {
	if ns := r[AttrNamespace]; ns != "" {
		return ns
	}
	return r[AttrK8sNS]
}

// Service gives the service with its namespace: shop/orders; "" if it is not known.
func (r Resource) Service() string {
	if ns := r.Namespace(); ns != "" && r[AttrService] != "" {
		return ns + "/" + r[AttrService]
	}
	return r[AttrService]
}

// Instance tells apart what has one service: instance id, pod, container or unit, else the user; "" if none is known.
func (r Resource) Instance() string {
	for _, k := range []string{AttrInstance, AttrPod, AttrContainer, AttrUnit, AttrOwner} {
		if v := r[k]; v != "" {
			if k == AttrContainer {
				v = v[:min(len(v), 12)]
			}
			return v
		}
	}
	return ""
}

// String gives service, version, instance and container, for people: shop/orders 1.4.2 (orders-7d4-x2kfq, web).
func (r Resource) String() string {
	s := r.Service()
	if v := r[AttrVersion]; v != "" && s != "" {
		s += " " + v
	}
	var in []string
	for _, v := range []string{r.Instance(), r[AttrK8sName], r[AttrOwner]} {
		if v != "" && !slices.Contains(in, v) {
			in = append(in, v)
		}
	}
	if len(in) > 0 {
		s += " (" + strings.Join(in, ", ") + ")"
	}
	return strings.TrimSpace(s)
}
