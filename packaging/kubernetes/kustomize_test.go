package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// build gives the objects of the kustomization with some components, by kind, each decoded strictly.
func build(t *testing.T, components ...string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kustomization.yaml", "daemonset.yaml", "names/kustomization.yaml",
		"api/kustomization.yaml", "api/rbac.yaml"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "kustomization.yaml" { // as its own lines say
			for _, c := range components {
				if !strings.Contains(string(b), "\n# - "+c+" #") {
					t.Fatalf("no line for %s", c)
				}
				b = []byte(strings.Replace(string(b), "\n# - "+c+" #", "\n - "+c+" #", 1))
			}
			if len(components) > 0 {
				b = []byte(strings.Replace(string(b), "components: []", "components:", 1))
			}
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, r := range made.Resources() {
		b, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		into := map[string]any{"Namespace": &corev1.Namespace{}, "ConfigMap": &corev1.ConfigMap{},
			"DaemonSet": &appsv1.DaemonSet{}, "ServiceAccount": &corev1.ServiceAccount{},
			"ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}}[r.GetKind()]
		if into == nil || out[r.GetKind()] != nil {
			t.Fatalf("a second or unknown %s", r.GetKind())
		}
		if err := yaml.UnmarshalStrict(b, into); err != nil {
			t.Fatalf("%s: %v", r.GetKind(), err)
		}
		out[r.GetKind()] = into
	}
	return out
}

// TestKustomize: without components it is the manifest; each component adds what it says, and together they work.
func TestKustomize(t *testing.T) {
	for _, with := range [][]string{nil, {"names"}, {"api"}, {"names", "api"}} {
		t.Run(strings.Join(with, "+"), func(t *testing.T) {
			all := build(t, with...)
			set := all["DaemonSet"].(*appsv1.DaemonSet)
			pod := set.Spec.Template.Spec
			c := pod.Containers[0]
			if set.Namespace != "heapcam" || c.Image != "heapcam:latest" {
				t.Errorf("namespace %s, image %s", set.Namespace, c.Image)
			}
			mounts, volumes := 0, 0
			for _, m := range c.VolumeMounts {
				if strings.HasPrefix(m.MountPath, "/var/log/") && m.ReadOnly {
					mounts++
				}
			}
			for _, v := range pod.Volumes {
				if v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, "/var/log/") {
					volumes++
				}
			}
			want := 0
			if slices.Contains(with, "names") {
				want = 2
			}
			if mounts != want || volumes != want {
				t.Errorf("%d mounts, %d volumes", mounts, volumes)
			}
			asks(t, all, slices.Contains(with, "api"))
		})
	}
}

// asks checks that the agent may ask the API server, and knows that it shall; or neither.
func asks(t *testing.T, all map[string]any, want bool) {
	t.Helper()
	pod := all["DaemonSet"].(*appsv1.DaemonSet).Spec.Template.Spec
	set, node := false, false
	for _, e := range pod.Containers[0].Env {
		set = set || e.Name == "HEAPCAM_KUBERNETES_API" && e.Value == "true"
		node = node || e.Name == "HEAPCAM_NODE_NAME" && e.ValueFrom.FieldRef.FieldPath == "spec.nodeName"
	}
	if set != want || node != want || *pod.AutomountServiceAccountToken != want {
		t.Errorf("setting %v, node %v, token %v", set, node, *pod.AutomountServiceAccountToken)
	}
	if !want {
		if len(all) != 3 {
			t.Errorf("%d objects", len(all))
		}
		return
	}
	account := all["ServiceAccount"].(*corev1.ServiceAccount)
	role := all["ClusterRole"].(*rbacv1.ClusterRole)
	to := all["ClusterRoleBinding"].(*rbacv1.ClusterRoleBinding)
	if pod.ServiceAccountName != account.Name || len(to.Subjects) != 1 || to.Subjects[0].Name != account.Name ||
		to.Subjects[0].Namespace != account.Namespace || to.RoleRef.Name != role.Name {
		t.Errorf("the agent's account %s is not the one that is bound: %+v", pod.ServiceAccountName, to)
	}
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Resources, []string{"pods"}) ||
		!slices.Equal(role.Rules[0].Verbs, []string{"list"}) {
		t.Errorf("more than listing pods: %+v", role.Rules)
	}
}

// TestAnswer: what package agent/pods is tested with is an answer of the API server, field by field.
func TestAnswer(t *testing.T) {
	b, err := os.ReadFile("../../agent/pods/testdata/pods.json")
	if err != nil {
		t.Fatal(err)
	}
	var list metav1.PartialObjectMetadataList
	if err := yaml.UnmarshalStrict(b, &list); err != nil || len(list.Items) == 0 {
		t.Errorf("%d pods: %v", len(list.Items), err)
	}
}
