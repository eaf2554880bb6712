package profiles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// TestRestart: profiles that the server did not take before the agent ended are pushed by the next agent, each once.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	away := httptest.NewServer(nil)
	away.Close()
	run := func(url string, ready func(*Hub) bool) {
		h := New(Config{Every: time.Minute, URL: url, Tenant: "team", Host: "h", Out: dir, Log: zerolog.New(io.Discard),
			Credentials: func() (string, error) { return "heapcam:s3cr3t", nil }})
		h.push.wait = func(ctx context.Context, _ time.Duration) { pause(ctx, 20*time.Millisecond) }
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); h.Run(ctx) }()
		if url == away.URL {
			for at := range 5 {
				h.Take(heap(1, at))
			}
		}
		await(t, "it", func() bool { return ready(h) })
		stop()
		<-ended
	}
	run(away.URL, func(h *Hub) bool { return h.Status().Pending == 5 && h.Status().Failed > 0 })
	if st, err := os.Stat(filepath.Join(dir, KeptName)); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	s := &server{t: t, got: map[string]int{}, labels: map[string]int{}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	run(srv.URL, func(h *Hub) bool { return h.Status().Pushed == 5 })
	run(srv.URL, func(h *Hub) bool { return h.Status().Pending == 0 })
	if len(s.got) != 5 || len(s.labels) != 1 {
		t.Errorf("%v %v", s.got, s.labels)
	}
	for id, n := range s.got {
		if n != 1 {
			t.Errorf("%s was pushed %d times", id, n)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, KeptName)); err == nil {
		t.Error("the file stays")
	}
}

// FuzzKept: whatever the file holds, what is taken of it is bounded, and its labels are heapcam's.
func FuzzKept(f *testing.F) {
	const id = `{"id":"00000000-0000-8000-8000-000000000000","labels":{"host":"h"},"body":"H4s="}` + "\n"
	for _, s := range []string{"", "{", id + id, strings.Replace(id, "host", "x", 1), strings.Repeat("a", 1<<17)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range readKept(bytes.NewReader(b)) {
			if len(e.id) != 36 || len(e.body) < 2 {
				t.Errorf("%+v", e)
			}
			for k := range e.labels {
				if !labelNames[k] {
					t.Errorf("label %q", k)
				}
			}
			if _, err := request([]*encoded{e}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestKill: an agent that is killed while the server is away leaves a file that is at most keepEvery old. The next one
// pushes what it has, each profile once, and counts what it has not; the file is gone with the first push, so that a
// further kill pushes nothing again.
func TestKill(t *testing.T) {
	dir, clock := t.TempDir(), time.Now()
	away := httptest.NewServer(nil)
	away.Close()
	push := func(url string) *pusher {
		p := newPusher(Config{Every: time.Minute, URL: url, Tenant: "team", Host: "h", Out: dir,
			Log: zerolog.New(io.Discard), Credentials: func() (string, error) { return "heapcam:s3cr3t", nil }})
		p.now = func() time.Time { return clock }
		return p
	}
	profiles := func(p *pusher, from, to int) {
		for at := from; at < to; at++ {
			x := heap(1, at)
			b, err := Encode(x)
			if err != nil {
				t.Fatal(err)
			}
			p.put(&encoded{id: uuid(x), labels: labels(&x.Of, "h"), to: x.To, body: b})
		}
	}
	p := push(away.URL)
	p.recall()
	for _, add := range []struct {
		from, to int
		later    time.Duration
	}{{0, 2, 0}, {2, 5, keepEvery}, {5, 6, keepEvery / 2}} { // the last one is not written
		profiles(p, add.from, add.to)
		clock = clock.Add(add.later)
		ctx, stop := context.WithCancel(context.Background())
		p.wait = func(context.Context, time.Duration) { stop() } // behind the first try that fails
		p.run(ctx)
		stop()
	}
	s := &server{t: t, got: map[string]int{}, labels: map[string]int{}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	for again := range 2 {
		var log bytes.Buffer
		p := push(srv.URL)
		p.cfg.Log = zerolog.New(&log)
		p.recall()
		if lost := strings.Contains(log.String(), `"profiles":1`); lost != (again == 0) {
			t.Errorf("log: %s", &log)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); p.run(ctx) }()
		var st Status
		await(t, "it", func() bool {
			st = Status{}
			p.count(&st)
			return st.Pending == 0 && s.taken() == 5
		})
		if st.Dropped != 1 || st.Pushed != 5 { // over all agents
			t.Errorf("%+v", st)
		}
		stop()
		<-ended
		if _, err := os.Stat(filepath.Join(dir, KeptName)); err == nil {
			t.Error("the file stays")
		}
	}
	for id, n := range s.got {
		if n != 1 {
			t.Errorf("%s was pushed %d times", id, n)
		}
	}
}

// TestTally: a file that is missing, short or false counts nothing, and is replaced. A clean end loses nothing.
func TestTally(t *testing.T) {
	for _, text := range []string{"", "x", "heapcam.profiles/1 waiting=7", strings.Repeat("7", 1000),
		strings.Replace(fmt.Sprintf(tallyForm, 7, 8, 9), "0", " ", 1)} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, TallyName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPusher(Config{URL: "http://127.0.0.1:1", Out: dir, Log: zerolog.Nop()})
		p.recall()
		var st Status
		if p.count(&st); st.Dropped != 0 || st.Pushed != 0 {
			t.Errorf("%q: %+v", text, st)
		}
		for at := range 3 {
			p.put(&encoded{id: uuid(heap(1, at)), labels: map[string]string{"host": "h"}, body: []byte{0x1f, 0x8b}})
		}
		p.keep()
		p.end()
		q := newPusher(Config{URL: "http://127.0.0.1:1", Out: dir, Log: zerolog.Nop()})
		q.recall()
		q.end()
		if q.count(&st); st.Dropped != 0 || st.Pending != 3 {
			t.Errorf("%q: after a clean end: %+v", text, st)
		}
	}
}

// TestStatusNeverWaits: while a write of the counts hangs in the disk, status still answers.
func TestStatusNeverWaits(t *testing.T) {
	p := newPusher(Config{URL: "http://127.0.0.1:1", Out: t.TempDir(), Log: zerolog.Nop()})
	p.recall()
	p.tally.mu.Lock() // as during a write
	put := make(chan bool)
	go func() {
		p.put(&encoded{id: uuid(heap(1, 1)), labels: map[string]string{"host": "h"}, body: []byte{0x1f, 0x8b}})
		close(put)
	}()
	await(t, "the profile", func() bool {
		var st Status
		p.count(&st)
		return st.Pending == 1
	})
	p.tally.mu.Unlock()
	<-put
	p.end()
}
