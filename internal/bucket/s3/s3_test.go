package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func from(b []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(b); return err }
}

func dial(t *testing.T, s *buckettest.Server, rate int64) *Client {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	c, err := Dial(s.Bucket, Options{Endpoint: s.URL, Rate: rate})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	for in, want := range map[string]bucket.Location{
		"s3://abc": {Bucket: "abc"}, "s3://abc/": {Bucket: "abc"}, "s3://a.b-c/x/y": {Bucket: "a.b-c", Key: "x/y"},
	} {
		if got, err := bucket.Parse(in); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "s3://", "s3://ab", "s3://ABC/x", "s3://abc/../x", "s3://abc/x/./y", "/tmp/x",
		"s3://a@b:c/x", "s3://abc/" + strings.Repeat("x", 901)} {
		if got, err := bucket.Parse(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
	for _, in := range []string{"ftp://x", "x", "https://user:pw@x", "https://x/path", "https://x?y", "http://"} {
		if _, err := Dial("abc", Options{Endpoint: in}); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("endpoint %q: %v", in, err)
		}
	}
}

// TestServer: a real server gives back what was put, keeps the first of two, and lists in pages.
func TestServer(t *testing.T) {
	s := buckettest.Start(t)
	c, ctx := dial(t, s, 0), context.Background()
	for _, n := range []int{0, 1, 5000, bucket.PartSize, 2*bucket.PartSize + 77} {
		key, want := fmt.Sprintf("a/%d", n), random(n)
		d, err := c.Put(ctx, key, from(want), bucket.Put{Metadata: map[string]string{"Heapcam-Incident": "x"}})
		if err != nil || d.Bytes != int64(n) || d.Sent != d.Bytes {
			t.Fatalf("%d bytes: %+v, %v", n, d, err)
		}
		if _, err := c.Put(ctx, key, from([]byte("other")), bucket.Put{}); !errors.Is(err, bucket.ErrExists) {
			t.Errorf("%d bytes: a second object: %v", n, err)
		}
		item, meta, err := c.Stat(ctx, key)
		if err != nil || item.Size != int64(n) || meta["Heapcam-Incident"] != "x" {
			t.Errorf("%d bytes: %+v %v, %v", n, item, meta, err)
		}
		o, err := c.Open(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
	if _, err := c.Open(ctx, "a/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no object: %v", err)
	}
	for i := range 10_000 {
		if err := os.WriteFile(filepath.Join(s.Dir, s.Bucket, "a", fmt.Sprintf("p%05d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, last := 0, ""
	if err := c.List(ctx, "a/p", func(i bucket.Item) bool {
		if i.Key <= last {
			t.Fatalf("%s after %s", i.Key, last)
		}
		n, last = n+1, i.Key
		return true
	}); err != nil || n != 10_000 {
		t.Errorf("%d of 10,000 objects are listed, %v", n, err)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-word")
	wrong, err := Dial(s.Bucket, Options{Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = wrong.Put(ctx, "b", from([]byte("x")), bucket.Put{})
	if !errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), "wrong-secret-word") {
		t.Errorf("a wrong secret: %v", err)
	}
}

// TestResume: a server that is killed amid an upload has the rest sent when it is back, by another client.
func TestResume(t *testing.T) {
	s := buckettest.Start(t)
	want := random(5*bucket.PartSize + 123)
	ctx := context.Background()
	upload, written := "", 0
	_, err := dial(t, s, 0).Put(ctx, "k", func(w io.Writer) error {
		for b := want; len(b) > 0; {
			k := min(len(b), 1<<20)
			if written >= 3*bucket.PartSize+1<<20 && s.Running() { // three parts are there
				s.Kill()
			}
			if _, err := w.Write(b[:k]); err != nil {
				return err
			}
			b, written = b[k:], written+k
		}
		return nil
	}, bucket.Put{Begun: func(id string) error { upload = id; return nil }})
	if err == nil || upload == "" {
		t.Fatalf("upload %q with a dead server: %v", upload, err)
	}
	s.Restart()
	d, err := dial(t, s, 0).Put(ctx, "k", from(want), bucket.Put{Resume: upload})
	if err != nil || d.Bytes != int64(len(want)) || d.Sent > int64(len(want))-2*bucket.PartSize {
		t.Fatalf("%+v, %v", d, err)
	}
	o, err := dial(t, s, 0).Open(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size())); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
}

// TestOddServers: whatever a server answers, the caller gets an error that says it.
func TestOddServers(t *testing.T) {
	old := idleLimit
	idleLimit = time.Second
	defer func() { idleLimit = old }()
	ctx := context.Background()
	put := func(t *testing.T, url string) error {
		_, err := dial(t, &buckettest.Server{URL: url, Bucket: "abc", Key: "k", Secret: "s3cr3t"}, 0).Put(ctx, "k",
			from([]byte("x")), bucket.Put{})
		if err != nil && strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the secret is in %v", err)
		}
		return err
	}
	for status, want := range map[int]error{
		403: os.ErrPermission, 404: os.ErrNotExist, 412: bucket.ErrExists, 501: nil,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
		}))
		if err := put(t, s.URL); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("status %d: %v", status, err)
		}
		s.Close()
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1")
		w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	}))
	defer s.Close()
	if err := put(t, s.URL); !errors.Is(err, bucket.ErrDiffers) {
		t.Errorf("another checksum: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := put(t, "http://"+l.Addr().String()); err == nil {
		t.Error("a silent server: no error")
	}
}

// TestRate: what is sent is bounded in bytes per second, and a server that waits for it is not given up.
func TestRate(t *testing.T) {
	var got atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err == nil && r.Method == http.MethodPut {
			got.Add(n)
		}
	}))
	defer s.Close()
	old := idleLimit
	idleLimit = time.Second // less than the 3 s that the object takes: a slow upload is not a silent one
	defer func() { idleLimit = old }()
	begun := time.Now()
	c := dial(t, &buckettest.Server{URL: s.URL, Bucket: "abc", Key: "k", Secret: "s"}, 1<<20)
	_, err := c.Put(context.Background(), "k", from(random(3<<20)), bucket.Put{})
	if spent := time.Since(begun); spent < 2*time.Second {
		t.Errorf("3 MiB in %v at 1 MiB/s", spent)
	}
	if n := got.Load(); n < 3<<20 || n > 4<<20 {
		t.Errorf("%d bytes came of 3 MiB: %v", n, err)
	}
}

// TestReplaced: an object that is replaced while it is read is an error, not a mixture of both.
func TestReplaced(t *testing.T) {
	s := buckettest.Start(t)
	c, ctx := dial(t, s, 0), context.Background()
	if _, err := c.Put(ctx, "k", from(random(3*blockSize)), bucket.Put{}); err != nil {
		t.Fatal(err)
	}
	o, err := c.Open(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := o.ReadAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("rm", filepath.Join(s.Dir, s.Bucket, "k")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := c.Put(ctx, "k", from(random(2*blockSize)), bucket.Put{}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ReadAt(b[:], blockSize); err == nil {
		t.Error("read on in another object")
	}
}

// TestProfile: the file of credentials is read as AWS's tools read it, but no program is started.
func TestProfile(t *testing.T) {
	const text = "[other]\naws_access_key_id=a\naws_secret_access_key=b\n[default]\n# x\naws_access_key_id = k\n" +
		"aws_secret_access_key = s=/+\naws_session_token= t \n[bad]\ncredential_process = touch /tmp/x\n"
	v, err := profile(text, "default")
	if err != nil || v.AccessKeyID != "k" || v.SecretAccessKey != "s=/+" || v.SessionToken != "t" {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := profile(text, "other"); err != nil || v.AccessKeyID != "a" || v.SecretAccessKey != "b" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, name := range []string{"bad", "none", ""} {
		if v, err := profile(text, name); err == nil || v.AccessKeyID != "" {
			t.Errorf("%q: %+v, %v", name, v, err)
		}
	}
}

// TestEndlessAnswer: an answer without an end is an error, and takes no memory.
func TestEndlessAnswer(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	for name, begin := range map[string]string{"zeros": "", "contents": "<ListBucketResult>"} {
		var sent atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			io.WriteString(w, begin)
			part := make([]byte, 1<<16)
			if begin != "" {
				part = bytes.Repeat([]byte("<Contents><Key>k</Key><Size>1</Size></Contents>"), 1000)
			}
			for {
				n, err := w.Write(part)
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}))
		c, err := Dial("bucket", Options{Endpoint: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		err = c.List(t.Context(), "p", func(bucket.Item) bool { return true })
		s.CloseClientConnections()
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "longer than 16 MiB") && name != "zeros" {
			t.Errorf("%s: %v", name, err)
		}
		if n := sent.Load(); n > 12*mostAnswer { // some tries
			t.Errorf("%s: %d bytes were read", name, n)
		}
	}
}
