package e2e

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPodsFromAPI: an agent in a mount namespace of its own, with a service account as Kubernetes mounts it, records a
// JVM whose control group is a pod's. The recording has what the API server says of that pod.
func TestPodsFromAPI(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run: names of pods (needs root, for a mount namespace)")
	}
	const uid = "0a1b2c3d-1111-2222-3333-444455556666"
	answer, err := os.ReadFile("../../agent/pods/testdata/pods.json")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(answer)
	}))
	defer s.Close()
	at, _ := url.Parse(s.URL)
	account := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, b := range map[string][]byte{"token": []byte("t0ken"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(account, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	group := podGroup(t, uid)

	t.Setenv("KUBERNETES_SERVICE_HOST", at.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", at.Port())
	t.Setenv("HEAPCAM_NODE_NAME", "n1")
	t.Setenv("HEAPCAM_KUBERNETES_API", "true")
	d := newDaemon(t, "--max-trace-size", "4MiB")
	d.wrap = []string{"unshare", "-m", "sh", "-ec", `mount -t tmpfs none /run
		mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
		cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount
		shift; exec "$@"`, "sh", account}
	d.start(t)
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Until",
		args: []string{filepath.Join(t.TempDir(), "end"), "2000", "5"}}
	r := p.plain(t, "sh", "-c", "echo $$ > "+filepath.Join(group, "cgroup.procs")+` && exec "$@"`, "sh")
	await(t, "pid", func() bool { return r.pid() > 0 })
	if errs, code := d.attach(t, r.pidText()); code != 0 {
		t.Fatalf("attach: status %d: %s", code, errs)
	}
	out, errs, code := heapcam(t, "status", "--json", "--socket", d.sock)
	if code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	var st struct {
		JVMs []struct {
			Resource map[string]string `json:"resource"`
		} `json:"jvms"`
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil || len(st.JVMs) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	for k, v := range map[string]string{"service.name": "orders-eu", "service.namespace": "shop-eu",
		"service.version": "1.4.2", "k8s.pod.name": "orders-7d4b9c6f5d-x2kfq", "k8s.namespace.name": "shop",
		"k8s.deployment.name": "orders", "k8s.pod.uid": uid} {
		if got := st.JVMs[0].Resource[k]; got != v {
			t.Errorf("%s: %q, want %q", k, got, v)
		}
	}
	if strings.Contains(out+d.stderr.String(), "t0ken") || strings.Contains(out, "s3cret") {
		t.Error("a secret is shown")
	}
	heapcam(t, "detach", r.pidText(), "--socket", d.sock)
}

// podGroup makes a control group as a kubelet does for a pod.
func podGroup(t *testing.T, uid string) string {
	t.Helper()
	root := "/sys/fs/cgroup/unified"
	if _, err := os.Stat(root); err != nil {
		root = "/sys/fs/cgroup"
	}
	dir := filepath.Join(root, "kubepods-pod"+strings.ReplaceAll(uid, "-", "_")+".slice")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("not run: names of pods (%v)", err)
	}
	t.Cleanup(func() {
		await(t, "an empty group", func() bool { return os.Remove(dir) == nil })
	})
	return dir
}
