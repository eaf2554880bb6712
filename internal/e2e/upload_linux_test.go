package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

// TestUpload: the incident of a killed JVM is in the bucket, where verbs read it in place and copy it.
func TestUpload(t *testing.T) {
	s := buckettest.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	at := "s3://" + s.Bucket + "/fleet"
	d := newDaemon(t, "--upload", at, "--depth", "full")
	d.start(t)
	p := program{major: 17, gc: "G1", main: "Steady", args: []string{"1000000", "20000"}, opts: []string{d.option(t)}}
	r := p.plain(t)
	await(t, "ten collections", func() bool {
		var st struct {
			JVMs []struct{ Collections uint64 }
		}
		out, _, _ := heapcam(t, "status", "--json", "--socket", d.sock)
		return json.Unmarshal([]byte(out), &st) == nil && len(st.JVMs) == 1 && st.JVMs[0].Collections > 10
	})
	r.cmd.Process.Kill()
	r.wait(t)
	type listed struct {
		Objects []struct {
			Name  string
			Bytes int64
		}
	}
	var l listed
	await(t, "an incident in the bucket", func() bool {
		heapcamJSON(t, &l, "incidents", at, "--json")
		return len(l.Objects) == 1
	})
	name := l.Objects[0].Name
	if !strings.HasPrefix(name, at+"/") || !strings.HasSuffix(name, ".heapcam") {
		t.Fatal(name)
	}
	file := filepath.Join(t.TempDir(), "i.heapcam")
	if _, said, code := heapcam(t, "pull", name, "-o", file); code != 0 {
		t.Fatalf("pull: status %d: %s", code, said)
	}
	if st, err := os.Stat(file); err != nil || st.Size() != l.Objects[0].Bytes {
		t.Errorf("%v, %v instead of %d bytes", err, st, l.Objects[0].Bytes)
	}
	verify(t, file, 1)
	for _, verb := range [][]string{{"report"}, {"histogram"}, {"leaks"}, {"coverage"}, {"group", "--by", "site"},
		{"cost"}} {
		there, said, code := heapcam(t, append(verb, name)...)
		here, _, codeHere := heapcam(t, append(verb, file)...)
		if code != codeHere || strings.ReplaceAll(there, name, "X") != strings.ReplaceAll(here, file, "X") {
			t.Errorf("%v: status %d of the object, %d of the file\n%s\n%s\n%s", verb, code, codeHere, said, there, here)
		}
	}
	again := at + "/by-hand.heapcam"
	if _, said, code := heapcam(t, "pull", "--out", d.out, "-o", again); code != 0 {
		t.Errorf("pull to the bucket: status %d: %s", code, said)
	}
	if _, said, code := heapcam(t, "pull", "--out", d.out, "-o", again); code == 0 ||
		!strings.Contains(said, "there is such") {
		t.Errorf("an object was replaced: status %d: %s", code, said)
	}
	heapcamJSON(t, &l, "incidents", at, "--json")
	if len(l.Objects) != 2 {
		t.Errorf("%+v", l)
	}
	out, _, _ := heapcam(t, "status", "--socket", d.sock)
	if !strings.Contains(out, "1 incident uploaded, 0 pending") || strings.Contains(d.stderr.String(), s.Secret) {
		t.Errorf("%s\n%s", out, d.stderr.String())
	}
}
