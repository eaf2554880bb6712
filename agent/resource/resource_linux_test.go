package resource

import (
	"archive/zip"
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/procfs"
	"github.com/heapcam/heapcam/trace"
)

const uid = "0a1b2c3d-1111-2222-3333-444455556666"

var id64 = strings.Repeat("0123456789abcdef", 4)

// TestMain lets this program be a process that only waits.
func TestMain(m *testing.M) {
	if os.Getenv("HC_WAIT") != "" {
		io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// started gives a process with an environment and arguments as a JVM would have them.
func started(t *testing.T, dir string, env []string, args ...string) Process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Args = append([]string{"java"}, args...)
	c.Env, c.Dir = append(env, "HC_WAIT=1"), dir
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Process.Kill(); c.Wait() })
	p, err := procfs.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for end := time.Now().Add(10 * time.Second); p.Text("environ", 1<<20) == ""; {
		if time.Now().After(end) {
			t.Fatal("the process has no environment")
		}
		time.Sleep(time.Millisecond)
	}
	return Process{PID: p.PID, StartTicks: p.StartTicks, UID: os.Getuid(), Owner: "alice", Program: "OrderService"}
}

// TestEnvironment: of a process' environment the two variables are read, and of these the named attributes are kept.
// Nothing else of it is in what Of returns, whatever it looks like.
func TestEnvironment(t *testing.T) {
	p := started(t, "", []string{
		"AWS_SECRET_ACCESS_KEY=s3cret", "XOTEL_SERVICE_NAME=s3cret", "OTEL_SERVICE_NAME_X=s3cret",
		"service.name=s3cret",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=s3cret",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=loses, service.version=1%2E4 beta,deployment.environment=prod," +
			"password=s3cret,k8s.pod.name=a%0Ab,heapcam.redact=false",
		"OTEL_SERVICE_NAME=orders",
	})
	want := trace.Resource{trace.AttrService: "orders", trace.AttrVersion: "1.4 beta", trace.AttrEnv: "prod",
		trace.AttrPod: "a_b", trace.AttrOwner: "alice"}
	got := host.of(p)
	delete(got, trace.AttrPID)
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for k, v := range got {
		if strings.Contains(k+v, "s3cret") {
			t.Errorf("%s=%s", k, v)
		}
	}
	p.Options = []string{"-Dotel.service.name=option", "-Dotel.resource.attributes=service.namespace=shop"}
	p.Rules = map[string]string{trace.AttrVersion: "9", trace.AttrInstance: "rule", trace.AttrRedact: "true"}
	if r := host.of(p); !r.Redacted() {
		t.Errorf("a rule's upload_redact: %v", r)
	}
	if r := host.of(p); r.String() != "shop/option 1.4 beta (rule, alice)" {
		t.Errorf("%s", r)
	}
	p.StartTicks++ // another process with its pid: nothing is read of it
	if r := host.of(p); r[trace.AttrPod] != "" {
		t.Errorf("of another process: %v", r)
	}
}

// TestAttributes: pairs as OpenTelemetry specifies them; an error discards all.
func TestAttributes(t *testing.T) {
	for text, want := range map[string]string{
		"service.name=a,service.name=b": "b", "service.name=a%20b%2Cc": "a b,c", " service.name = a ": "a",
		"service.name=a=b": "a=b", "service.name=a+b": "a+b", ",,service.name=a,": "a",
		"service.name=a,broken": "", "service.name=%zz": "", "service.name=a,=x": "", "service.name": "",
		"service.name=" + strings.Repeat("x", 1<<20): strings.Repeat("x", trace.MaxAttr),
	} {
		f := found{}
		f.otel("", text)
		if f[trace.AttrService] != want {
			t.Errorf("%.40q: %q, want %.40q", text, f[trace.AttrService], want)
		}
	}
}

// TestPlaces: ten JVMs of one class differ by unit, container, pod, version and user.
func TestPlaces(t *testing.T) {
	dir := t.TempDir()
	s := system{pods: dir + "/pods", containers: dir + "/containers"}
	for _, d := range []string{s.pods + "/shop_orders-7d4b9c6f5d-x2kfq_" + uid, s.pods + "/a_b", s.containers} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range []string{"orders-7d4b9c6f5d-x2kfq_shop_web-" + id64, "other-pod_shop_web2-" + id64, "junk"} {
		if err := os.WriteFile(filepath.Join(s.containers, l+".log"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pod := "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") +
		".slice/cri-containerd-" + id64 + ".scope"
	seen := map[string]string{}
	for cgroup, want := range map[string]string{
		"/system.slice/orders.service":                            "orders (orders.service, alice)",
		"/system.slice/system-orders.slice/orders@1.service":      "orders (orders@1.service, alice)",
		"/system.slice/system-orders.slice/orders@2.service":      "orders (orders@2.service, alice)",
		"/user.slice/user-1000.slice/user@1000.service/app":       "OrderService (alice)",
		"/system.slice/ssh.service":                               "OrderService (alice) ",
		"/system.slice/docker-" + id64 + ".scope":                 "OrderService (0123456789ab, alice)",
		"/docker/f" + id64[1:]:                                    "OrderService (f123456789ab, alice)",
		"/machine.slice/libpod-e" + id64[1:] + ".scope/container": "OrderService (e123456789ab, alice)",
		pod: "shop/orders (orders-7d4b9c6f5d-x2kfq, web, alice)",
		"/kubepods/besteffort/pod" + uid[:35] + "7/d" + id64[1:]: "OrderService (d123456789ab, alice)",
	} {
		r := s.of(Process{Owner: "alice", Program: "org.example.OrderService", Cgroup: cgroup})
		if r.String() != strings.TrimSpace(want) {
			t.Errorf("%s: %s, want %s", cgroup, r, want)
		}
		if was := seen[r.String()]; was != "" && !strings.HasSuffix(want, " ") && !strings.Contains(was, "ssh") {
			t.Errorf("%s is not told from %s", cgroup, was)
		}
		seen[r.String()] = cgroup
	}
	r := s.of(Process{Owner: "alice", Program: "X", Cgroup: pod, Rules: map[string]string{trace.AttrEnv: "rule"},
		Pod: func(of string) map[string]string {
			return map[string]string{trace.AttrService: "eu-" + of[:4], trace.AttrEnv: "pod", trace.AttrPod: "p"}
		}})
	if r.String() != "shop/eu-0a1b (p, web, alice)" && r.String() != "shop/eu-0a1b (p, alice)" ||
		r[trace.AttrEnv] != "rule" {
		t.Errorf("with what the API server says: %s, %v", r, r)
	}
	for pod, want := range map[string]string{"orders-7d4b9c6f5d-x2kfq": "orders", "db-0": "db", "agent-x2kfq": "agent",
		"orders": "orders", "-0": "-0", "": ""} {
		if got := workload(pod); got != want {
			t.Errorf("%s: %q", pod, got)
		}
	}
}

func jar(t *testing.T, members map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range members {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestManifest reads the archive of a process inside of its root, only where its user can read it.
func TestManifest(t *testing.T) {
	dir := t.TempDir()
	boot := jar(t, map[string]string{
		"META-INF/MANIFEST.MF": "Implementation-Title: orders-parent\r\n" +
			"Implementation-Version: 1.4\r\n .2\r\n",
		"BOOT-INF/classes/application.properties": "spring.application.name = order-service\n"})
	if err := os.WriteFile(dir+"/orders.jar", boot, 0o644); err != nil {
		t.Fatal(err)
	}
	p := started(t, dir, nil, "-Xmx1g", "-jar", "orders.jar")
	p.Program = "orders.jar"
	if r := host.of(p); r.Service() != "order-service" || r[trace.AttrVersion] != "1.4.2" {
		t.Errorf("%v", r)
	}
	if err := os.Chmod(dir+"/orders.jar", 0o600); err != nil {
		t.Fatal(err)
	}
	p.UID = 12345
	if r := host.of(p); r.Service() != "orders" || r[trace.AttrVersion] != "" {
		t.Errorf("of a jar that its user cannot read: %v", r)
	}
}

// TestHostileJar: whatever an archive holds, what is read of it is bounded and nothing panics.
func TestHostileJar(t *testing.T) {
	many := map[string]string{}
	for i := range 2000 {
		many[strings.Repeat("x", 200)+string(rune('a'+i%26))+strings.Repeat("y", i)] = ""
	}
	bomb := map[string]string{"META-INF/MANIFEST.MF": strings.Repeat("A: \x1b[2J\n", 1<<20)}
	for name, b := range map[string][]byte{"none": nil, "text": []byte("no archive"), "many": jar(t, many),
		"bomb": jar(t, bomb), "cut": jar(t, bomb)[:100]} {
		l := &limited{bytes.NewReader(b), maxJarRead}
		if id := ofJar(l, int64(len(b)), "a-1.2.jar"); id.version != "1.2" && id != (identity{}) {
			t.Errorf("%s: %v", name, id)
		}
		if l.left < 0 {
			t.Errorf("%s: %d bytes too many were read", name, -l.left)
		}
	}
	if id := ofJar(bytes.NewReader(nil), maxJar+1, "a-1.2.jar"); id != (identity{}) {
		t.Errorf("%v", id)
	}
}

func FuzzJar(f *testing.F) {
	f.Add([]byte("PK\x05\x06"), "a-1.jar")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		id := ofJar(bytes.NewReader(b), int64(len(b)), name)
		fo := found{}
		fo.otel(name, string(b))
		fo.add(trace.AttrService, id.name)
		fo.add(trace.AttrService, program(name))
		host.place(fo, Process{Cgroup: string(b)})
		size := 0
		for k, v := range trace.Resource(fo).Clean() {
			size += len(k) + len(v)
		}
		if size > trace.MaxResource {
			t.Errorf("%d bytes", size)
		}
	})
}
