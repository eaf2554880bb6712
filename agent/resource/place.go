package resource

import (
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/heapcam/heapcam/trace"
)

// maxEntries bounds how many entries of a folder of the node's are looked at: a node has at most some hundred pods.
const maxEntries = 4096

var (
	containerID = regexp.MustCompile(`^(?:[a-z0-9]+-){0,2}([0-9a-f]{64})(?:\.scope)?$`)
	podUID      = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	// replica ends the name of a pod of a Deployment: hash of the template and five letters of Kubernetes' alphabet.
	replica = regexp.MustCompile(`-[bcdf-hj-np-tv-xz2-9]{6,10}-[bcdf-hj-np-tv-xz2-9]{5}$`)
	// ordinal ends that of a StatefulSet, daemon that of a DaemonSet.
	ordinal = regexp.MustCompile(`-[0-9]{1,5}$`)
	daemon  = regexp.MustCompile(`-[bcdf-hj-np-tv-xz2-9]{5}$`)
)

// foreign are units that start what is not a service of their own.
var foreign = []string{"user@", "user-runtime-dir@", "ssh.", "ssh@", "sshd.", "sshd@", "cron.", "crond.", "atd.",
	"containerd.", "docker.", "podman.", "kubelet.", "crio.", "getty@", "run-"}

// place takes in what the cgroup says, and of a pod what the API server and the node's log folders say.
func (s system) place(f found, p Process) {
	uid := ""
	for part := range strings.SplitSeq(p.Cgroup, "/") {
		if m := containerID.FindStringSubmatch(part); m != nil {
			f.add(trace.AttrContainer, m[1])
		}
		if m := podUID.FindStringSubmatch(part); m != nil {
			uid = strings.ReplaceAll(m[1], "_", "-")
		}
	}
	f.add(trace.AttrPodUID, uid)
	if uid == "" && f[trace.AttrContainer] == "" {
		f.unit(p.Cgroup)
		return
	}
	if p.Pod != nil && uid != "" {
		said := p.Pod(uid)
		for _, k := range trace.ResourceKeys {
			f.add(k, said[k])
		}
	}
	s.pod(f, uid)
}

// unit takes in the systemd unit of a process that is in no container.
func (f found) unit(cgroup string) {
	for p := cgroup; p != "/" && p != "." && p != ""; p = path.Dir(p) {
		unit := path.Base(p)
		name, ok := strings.CutSuffix(unit, ".service")
		if !ok {
			continue
		}
		for _, x := range foreign {
			if strings.HasPrefix(unit, x) {
				return
			}
		}
		f.add(trace.AttrUnit, unit)
		name, _, _ = strings.Cut(name, "@")
		f.add(trace.AttrService, name)
		return
	}
}

// pod finds namespace, pod and container: the kubelet keeps logs in /var/log/pods/NAMESPACE_POD_UID, and links to them
// as /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log.
func (s system) pod(f found, uid string) {
	if uid == "" {
		return
	}
	pod := ""
	for _, e := range entries(s.pods) {
		parts := strings.Split(e, "_")
		if len(parts) == 3 && parts[2] == uid {
			pod = parts[1]
			f.add(trace.AttrK8sNS, parts[0])
			f.add(trace.AttrPod, pod)
		}
	}
	for _, e := range entries(s.containers) {
		rest, ok := strings.CutSuffix(e, "-"+f[trace.AttrContainer]+".log")
		if parts := strings.Split(rest, "_"); ok && len(parts) == 3 && (pod == "" || parts[0] == pod) {
			f.add(trace.AttrK8sName, parts[2])
		}
	}
	f.add(trace.AttrService, workload(pod))
}

// workload gives the name of what made the pod, as its own name tells.
func workload(pod string) string {
	for _, suffix := range []*regexp.Regexp{replica, ordinal, daemon} {
		if at := suffix.FindStringIndex(pod); at != nil && at[0] > 0 {
			return pod[:at[0]]
		}
	}
	return pod
}

func entries(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxEntries)
	return names
}
