package upload

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/bucket/buckettest"
	"github.com/heapcam/heapcam/internal/bucket/s3"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// rig is an agent's folder with incidents of one ring, and a bucket.
type rig struct {
	t   *testing.T
	out string
	max int64 // of incidents; 0: no bound
	s   *buckettest.Server
	log bytes.Buffer
}

func newRig(t *testing.T) *rig {
	s := buckettest.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	return &rig{t: t, out: t.TempDir(), s: s}
}

// incident freezes a new ring of size bytes.
func (r *rig) incident(name string, size int) string {
	r.t.Helper()
	dir := filepath.Join(r.out, name)
	session := fmt.Sprintf("%x", sha256.Sum256([]byte(name)))[:32]
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 30, Compression: ringstore.None},
		ringstore.Identity{Session: session, Name: name})
	if err != nil {
		r.t.Fatal(err)
	}
	rng := rand.NewChaCha8([32]byte{7})
	for gc := uint64(1); size > 0; gc++ {
		some := make([]byte, min(size, 1<<20))
		rng.Read(some)
		b := trace.AppendBlock(nil, trace.Block{Kind: trace.KindGap, Payload: some})
		info := ringstore.FrameInfo{Source: gc, FirstGC: gc, LastGC: gc, T0: gc, T1: gc, Flags: ringstore.FlagMarked}
		put := s.Append
		if gc == 1 {
			put = s.Rotate
		}
		if err := put(b, info); err != nil {
			r.t.Fatal(err)
		}
		size -= len(some)
	}
	if err := s.Close(); err != nil {
		r.t.Fatal(err)
	}
	in := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents"), Max: cmp.Or(r.max, 1<<40)}
	i, err := in.Freeze(dir, ringstore.CauseStorm, "test")
	if err != nil {
		r.t.Fatal(err)
	}
	return i.ID
}

// uploader is a new agent's.
func (r *rig) uploader(redact bool) *Uploader {
	r.t.Helper()
	to, err := bucket.Parse("s3://" + r.s.Bucket + "/fleet")
	if err != nil {
		r.t.Fatal(err)
	}
	u := New(Config{Out: r.out, Incidents: "incidents", To: to, Bucket: r.bucket(), Host: "db 7/ü", Redact: redact,
		Log: zerolog.New(&r.log)})
	u.load()
	return u
}

// bucket connects anew.
func (r *rig) bucket() *s3.Client {
	r.t.Helper()
	c, err := s3.Dial(r.s.Bucket, s3.Options{Endpoint: r.s.URL})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// stored gives the objects of the bucket, by key.
func (r *rig) stored() map[string]int64 {
	r.t.Helper()
	got := map[string]int64{}
	err := r.bucket().List(context.Background(), "", func(i bucket.Item) bool {
		got[i.Key] = i.Size
		return true
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// check opens an object as a recording, in place, and reads all of it.
func (r *rig) check(key string) {
	r.t.Helper()
	o, err := r.bucket().Open(context.Background(), key)
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := ringstore.OpenContainer(key, o, o.Size())
	if err != nil {
		r.t.Fatal(err)
	}
	defer rec.Close()
	if vs := rec.Check(); ringstore.Worst(vs) != ringstore.Sound {
		r.t.Errorf("%s: %+v", key, vs)
	}
}

// TestUploads: each incident is in the bucket once, across restarts of the agent and with a lost document.
func TestUploads(t *testing.T) {
	r := newRig(t)
	ids := []string{r.incident("shop-1-2", 3<<20), r.incident("cart-3-4", 40<<20)}
	u := r.uploader(false)
	if u.pass(context.Background()) {
		t.Fatalf("%+v", u.Status())
	}
	got := r.stored()
	for _, id := range ids {
		key := u.state.Known[id].Key
		if !strings.HasPrefix(key, "fleet/db_7__/"+id+"-") {
			t.Errorf("%s is %s", id, key)
		}
		if got[key] == 0 {
			t.Errorf("%s is not in %v", key, got)
			continue
		}
		r.check(key)
	}
	if st := u.Status(); st.Uploaded != 2 || st.Pending != 0 || st.Error != "" || len(got) != 2 || st.Bytes < 43<<20 {
		t.Errorf("%+v, %v", st, got)
	}
	again := r.uploader(false)
	again.pass(context.Background())
	if st := again.Status(); st.Uploaded != 2 || st.Bytes != 0 {
		t.Errorf("an agent after it sent %+v", st)
	}
	if err := os.Remove(filepath.Join(r.out, FileName)); err != nil {
		t.Fatal(err)
	}
	lost := r.uploader(false)
	lost.pass(context.Background())
	if st := lost.Status(); st.Uploaded != 2 || st.Pending != 0 || len(r.stored()) != 2 {
		t.Errorf("without a document: %+v, %v", st, r.stored())
	}
	if s := r.log.String(); strings.Contains(s, r.s.Secret) || strings.Contains(s, "Signature") {
		t.Errorf("a secret is in the log: %s", s)
	}
}

// TestOutage: while the server is away nothing is lost but what is deleted, which is counted; then the rest arrives.
func TestOutage(t *testing.T) {
	r := newRig(t)
	gone, stays := r.incident("a-1-2", 1<<20), r.incident("b-3-4", 40<<20)
	r.s.Kill()
	u := r.uploader(false)
	for range 4 {
		if !u.pass(context.Background()) {
			t.Fatal("uploaded without a server")
		}
	}
	if st := u.Status(); st.Pending != 2 || st.Failed != 4 || st.Error == "" || st.Since.IsZero() {
		t.Errorf("%+v", st)
	}
	if n := strings.Count(r.log.String(), "incident-not-uploaded"); n != 2 {
		t.Errorf("the errors of two incidents are logged %d times", n)
	}
	if err := (&ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}).Delete(gone); err != nil {
		t.Fatal(err)
	}
	r.s.Restart()
	u = r.uploader(false) // the document survives
	if u.pass(context.Background()) {
		t.Fatalf("%+v", u.Status())
	}
	if st := u.Status(); st.Dropped != 1 || st.Uploaded != 1 || st.Pending != 0 || st.Error != "" {
		t.Errorf("%+v", st)
	}
	if !strings.Contains(r.log.String(), "upload-dropped") || len(r.stored()) != 1 {
		t.Errorf("%v\n%s", r.stored(), r.log.String())
	}
	r.check(u.state.Known[stays].Key)
}

// TestKilledAmid: an agent that is killed amid an upload, and one whose server is, continue where they were.
func TestKilledAmid(t *testing.T) {
	r := newRig(t)
	id := r.incident("a-1-2", 70<<20)
	u := r.uploader(false)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		for u.Status().Bytes < 2*bucket.PartSize { // two parts of five
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	u.pass(ctx)
	if len(r.stored()) != 0 || u.state.Known[id].Upload == "" {
		t.Fatalf("%+v, %v", u.state.Known[id], r.stored())
	}
	u = r.uploader(false)
	if u.pass(context.Background()) {
		t.Fatalf("%+v", u.Status())
	}
	if st := u.Status(); st.Uploaded != 1 || st.Bytes > 70<<20-2*bucket.PartSize+1<<20 {
		t.Errorf("not continued: %+v", st)
	}
	r.check(u.state.Known[id].Key)
}

// TestRedacted: with upload_redact no name is in the bucket.
func TestRedacted(t *testing.T) {
	r := newRig(t)
	r.incident("secretname-1-2", 1<<20)
	u := r.uploader(true)
	if u.pass(context.Background()) {
		t.Fatalf("%+v", u.Status())
	}
	for key := range r.stored() {
		b, err := os.ReadFile(filepath.Join(r.s.Dir, r.s.Bucket, key))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(key, "secretname") || bytes.Contains(b, []byte("secretname")) {
			t.Errorf("%s names the program", key)
		}
	}
}

// TestHostileState: whatever the document is, the uploader works, and uses no key outside of its prefix.
func TestHostileState(t *testing.T) {
	for _, doc := range []string{"", "{", "[]", `{"schema":"heapcam.uploads/1"}`, strings.Repeat("[", 1<<20),
		`{"schema":"heapcam.uploads/1","to":"s3://incidents/fleet","incidents":{"x":null,"y":{"key":"other/z"}}}`} {
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, FileName), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		u := New(Config{Out: out, Incidents: "incidents", To: bucket.Location{Bucket: "incidents", Key: "fleet"},
			Log: zerolog.New(io.Discard)})
		u.load()
		if len(u.state.Known) != 0 {
			t.Errorf("%.40s: %v", doc, u.state.Known)
		}
		if u.pass(context.Background()) {
			t.Errorf("%.40s: %+v", doc, u.Status())
		}
	}
}

// TestHostileNames: whatever an incident says of itself, its key stays below the prefix, and is one that servers take.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"", "..", "../../x", "a/b", "\x00\n\x1b[31m", strings.Repeat("ü", 500), ".", "%2e%2e/",
	} {
		u := New(Config{To: bucket.Location{Bucket: "incidents", Key: "fleet"}, Host: name})
		key := u.key(ringstore.Incident{ID: name, Session: name})
		at, err := bucket.Parse(bucket.Location{Bucket: "incidents", Key: key}.String())
		if err != nil || at.Key != key || !strings.HasPrefix(key, "fleet/") || strings.Count(key, "/") != 2 ||
			strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./") != "" {
			t.Errorf("%q: key %q, %v", name, key, err)
		}
	}
}

// fake is a bucket that takes what put takes.
type fake struct {
	put func(key string, source func(io.Writer) error) error
}

func (f fake) Put(_ context.Context, key string, source func(io.Writer) error, _ bucket.Put) (bucket.Done, error) {
	return bucket.Done{}, f.put(key, source)
}

func (fake) Stat(context.Context, string) (bucket.Item, map[string]string, error) {
	return bucket.Item{}, nil, os.ErrNotExist
}

func newFake(r *rig, f fake) *Uploader {
	u := New(Config{Out: r.out, Incidents: "incidents", To: bucket.Location{Bucket: "incidents"}, Bucket: f,
		Log: zerolog.New(io.Discard)})
	u.load()
	return u
}

// TestOneFails: an incident that the bucket never takes does not keep the others.
func TestOneFails(t *testing.T) {
	r := &rig{t: t, out: t.TempDir()}
	bad := r.incident("bad-1-2", 1000)
	r.incident("good-1-2", 1000)
	u := newFake(r, fake{func(key string, _ func(io.Writer) error) error {
		if strings.Contains(key, bad) {
			return errors.New("never")
		}
		return nil
	}})
	for range 3 {
		u.pass(context.Background())
	}
	if st := u.Status(); st.Uploaded != 1 || st.Pending != 1 || st.Failed < 2 {
		t.Errorf("%+v", st)
	}
}

// TestRoomWhileUploading: an incident that is being uploaded makes room for a newer one. What the upload still reads
// counts until it ends, so another one makes room, too.
func TestRoomWhileUploading(t *testing.T) {
	r := &rig{t: t, out: t.TempDir()}
	r.incident("a-1-2", 4<<20)
	r.incident("b-1-2", 4<<20)
	newer := ""
	u := newFake(r, fake{func(_ string, source func(io.Writer) error) error {
		return source(writer(func(b []byte) (int, error) {
			if newer == "" {
				newer = "begun"
				r.max = 10 << 20
				newer = r.incident("c-1-2", 4<<20)
				if n := (&ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}).Size(); n > r.max {
					t.Errorf("%d bytes of at most %d", n, r.max)
				}
			}
			return len(b), nil
		}))
	}})
	u.pass(context.Background())
	all, err := u.list()
	if err != nil || len(all) != 1 || all[0].ID != newer {
		t.Errorf("%q was made, and there are %+v, %v", newer, all, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestRedactedKeys: incidents of one second have keys of their own.
func TestRedactedKeys(t *testing.T) {
	u := New(Config{To: bucket.Location{Bucket: "incidents"}, Redact: true})
	at := time.Unix(1_790_000_000, 0)
	id := "secretname-1-" + at.UTC().Format(idTime)
	keys := map[string]bool{}
	for _, more := range []string{"", "-2", "-3"} {
		k := u.key(ringstore.Incident{ID: id + more, Created: at, Session: "abc"})
		if keys[k] = true; strings.Contains(k, "secretname") {
			t.Errorf("%s names the program", k)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%v", keys)
	}
	u.cfg.Redact = false
	of := ringstore.Incident{ID: id, Created: at, Session: "abc", Resource: trace.Resource{trace.AttrRedact: "true"}}
	if k := u.key(of); strings.Contains(k, "secretname") {
		t.Errorf("%s names the program of which a rule says that nothing may", k)
	}
	if of.Resource = nil; !strings.Contains(u.key(of), "secretname") {
		t.Errorf("%s does not name the program", u.key(of))
	}
}
