package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"golang.org/x/sys/unix"
)

// TestOwners lets two users see and pull what is their own, and nothing else: by status, by a pull of what is recorded
// and of what is over, and of an incident.
func TestOwners(t *testing.T) {
	apitest.NeedRoot(t)
	dir := t.TempDir()
	a, err := New(Config{Out: filepath.Join(dir, "out")})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, a: a, dir: dir}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	sock := r.serve(nil)
	ids := map[int]string{}
	for _, uid := range []int{61001, 61002} {
		p := r.ownedRing(uid, other(t, uint32(uid)))
		r.play(p, tracetest.New(tracetest.All(uint64(uid), trace.CollectorSerial, trace.DepthSurvivors)), 3)
		wait(t, func() bool {
			for _, s := range a.Status() {
				if s.UID == uid && s.Collections >= 3 {
					ids[uid] = s.ID
				}
			}
			return ids[uid] != ""
		}, a)
	}
	i, err := a.Freeze(ids[61001], "a test")
	if err != nil {
		t.Fatal(err)
	}
	list := func(uid int) (out []int) {
		t.Helper()
		code, body := apitest.As(t, sock, uid, nil, "GET", "/v1/status", "")
		var st api.StatusReply
		if err := json.Unmarshal(body, &st); err != nil || code != 200 {
			t.Fatalf("status as %d: %d %s", uid, code, body)
		}
		for _, s := range st.JVMs {
			out = append(out, s.UID)
		}
		return out
	}
	for uid, want := range map[int][]int{
		0: {61001, 61002}, 61001: {61001}, 61002: {61002}, 61003: nil, api.OverflowUID: nil} {
		if uid == api.OverflowUID {
			if code, _ := apitest.As(t, sock, uid, nil, "GET", "/v1/status", ""); code != http.StatusForbidden {
				t.Errorf("status as the overflow user: %d", code)
			}
			continue
		}
		got := list(uid)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("status as %d shows %v, want %v", uid, got, want)
		}
	}
	pulls := func(uid int, query string) bool {
		t.Helper()
		code, body := apitest.As(t, sock, uid, nil, "GET", "/v1/pull?"+query, "")
		if code != 200 {
			return false
		}
		file := filepath.Join(t.TempDir(), "p.heapcam")
		if err := os.WriteFile(file, body, 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := ringstore.OpenRecording(file)
		if err != nil || len(rec.Files) == 0 || len(rec.Problems) > 0 {
			t.Fatalf("pull %s as %d: not whole: %v", query, uid, err)
		}
		rec.Close()
		return true
	}
	for _, round := range []string{"running", "over"} {
		for _, c := range []struct {
			uid   int
			query string
			ok    bool
		}{
			{0, "id=" + ids[61001], true}, {61001, "id=" + ids[61001], true}, {61002, "id=" + ids[61001], false},
			{61003, "id=" + ids[61001], false},
			{61002, "id=" + ids[61002], true}, {api.OverflowUID, "id=" + ids[61002], false},
			{61001, "incident=true&id=" + i.ID, true}, {61002, "incident=true&id=" + i.ID, false},
			{0, "incident=true&id=" + i.ID, true},
			{0, "id=../../etc", false}, {0, "id=incidents", false}, {0, "id=.", false},
			{61001, "id=" + ids[61001] + "/../" + ids[61002], false},
			{0, "id=" + ids[61001] + "&last_bytes=-1", false},
		} {
			if got := pulls(c.uid, c.query); got != c.ok {
				t.Errorf("%s: pull %s as %d: %v, want %v", round, c.query, c.uid, got, c.ok)
			}
		}
		if round == "running" {
			cancel() // what is over is known by what stands in its folder
			<-ended
			wait(t, func() bool {
				for _, s := range a.Status() {
					if !s.Phase.Over() {
						return false
					}
				}
				return true
			})
			a.mu.Lock()
			a.ended = nil
			a.mu.Unlock()
		}
	}
}

// TestOwnedBy: only a process that is wholly one's own is one's own: not one that has another user among its users, nor
// one that has gone.
func TestOwnedBy(t *testing.T) {
	apitest.NeedRoot(t)
	pid := int(other(t, 61001))
	ticks, ok := jvms.StartTicks(pid)
	if !ok || !ownedBy(pid, ticks, 61001) || ownedBy(pid, ticks, 61002) || ownedBy(pid, ticks, 0) ||
		ownedBy(pid, ticks+1, 61001) || ownedBy(1<<22+1, ticks, 61001) {
		t.Errorf("process %d", pid)
	}
	// real, effective, saved
	for _, ids := range [][3]int{{61001, 0, 0}, {0, 61001, 0}, {61001, 61001, 0}, {61001, 61002, 61001}} {
		held, done := make(chan int), make(chan struct{})
		apitest.OnThread(func() { // a thread has its own, and can be looked at as a process
			unix.RawSyscall(unix.SYS_SETRESUID, uintptr(ids[0]), uintptr(ids[1]), uintptr(ids[2]))
			held <- unix.Gettid()
			<-done
		})
		tid := <-held
		ticks, ok := jvms.StartTicks(tid)
		if !ok || ownedBy(tid, ticks, 61001) {
			t.Errorf("one whose users are %v is 61001's", ids)
		}
		close(done)
	}
}
