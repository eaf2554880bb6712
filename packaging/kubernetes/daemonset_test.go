// Package kubernetes tests that the manifest is what Kubernetes takes: each object is decoded strictly against its API
// type, so that a field that is misspelt or misplaced fails, and what the parts say of each other agrees.
package kubernetes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestManifest(t *testing.T) {
	b, err := os.ReadFile("daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.DaemonSet
	var config corev1.ConfigMap
	var ns corev1.Namespace
	into := []any{&ns, &config, &set}
	docs := bytes.Split(b, []byte("\n---\n"))
	if len(docs) != len(into) {
		t.Fatalf("%d objects", len(docs))
	}
	for i, d := range docs {
		if err := yaml.UnmarshalStrict(d, into[i]); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
	}
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	if ns.Kind != "Namespace" || config.Kind != "ConfigMap" || set.Kind != "DaemonSet" || set.APIVersion != "apps/v1" ||
		config.Namespace != ns.Name || set.Namespace != ns.Name {
		t.Error("kinds or namespaces differ")
	}
	for k, v := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[k] != v {
			t.Errorf("the selector's %s is not the template's", k)
		}
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != config.Name {
			t.Errorf("volume %s: no ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("no volume %s", m.Name)
		}
	}
	if port := c.LivenessProbe.HTTPGet.Port.StrVal; port != c.Ports[0].Name {
		t.Errorf("the probe asks port %s", port)
	}
	if s := c.SecurityContext; !pod.HostPID || *s.AllowPrivilegeEscalation || s.Privileged != nil && *s.Privileged ||
		len(s.Capabilities.Drop) != 1 || len(s.Capabilities.Add) != 5 {
		t.Error("rights differ from what attaching needs")
	}
	architectures(t, pod)
	// The configuration within is one that the agent takes.
	tool, err := filepath.Abs("../../bin/heapcam")
	if _, serr := os.Stat(tool); err != nil || serr != nil {
		t.Skip("not run: the configuration in the DaemonSet (no bin/heapcam: make build)")
	}
	file := filepath.Join(t.TempDir(), "heapcam.yaml")
	if err := os.WriteFile(file, []byte(config.Data["heapcam.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "config", "check", file).CombinedOutput(); err != nil {
		t.Errorf("config check: %v\n%s", err, out)
	}
}

// architectures demands that the pods go to the nodes that the image is built for: of each architecture that
// tools/packages builds for, and of no other. The Containerfile must take the program of the platform it builds for.
func architectures(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	script, err1 := os.ReadFile("../../tools/packages")
	file, err2 := os.ReadFile("../container/Containerfile")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`"bin/linux-\$arch/heapcam"`).Find(script)
	built := regexp.MustCompile(`(?s)= images \].*?ARCHS:-([a-z0-9 ]+)\}`).FindSubmatch(script)
	if m == nil || built == nil {
		t.Fatal("tools/packages builds no programs for images")
	}
	const copied = "\nARG TARGETARCH\nCOPY bin/linux-${TARGETARCH}/heapcam /usr/bin/heapcam\n"
	if !strings.Contains(string(file), copied) {
		t.Error("the Containerfile does not take the program of its platform")
	}
	if _, ok := pod.NodeSelector[corev1.LabelArchStable]; ok || pod.NodeSelector[corev1.LabelOSStable] != "linux" {
		t.Errorf("node selector %v", pod.NodeSelector)
	}
	terms := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchExpressions) != 1 {
		t.Fatalf("node affinity %+v", terms)
	}
	arch := terms[0].MatchExpressions[0]
	if arch.Key != corev1.LabelArchStable || arch.Operator != corev1.NodeSelectorOpIn ||
		!slices.Equal(arch.Values, strings.Fields(string(built[1]))) {
		t.Errorf("nodes %+v, programs for %s", arch, built[1])
	}
}
