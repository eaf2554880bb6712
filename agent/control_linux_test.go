package agent

import (
	"bytes"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/rs/zerolog"
)

// TestOwnersControl: a JVM's own user pauses, resumes and detaches from it, and nobody else's: what is not one's own is
// answered like what is not there. Root's pause stays root's; a detachment is told with who asked for it, also to an
// agent that comes later.
func TestOwnersControl(t *testing.T) {
	apitest.NeedRoot(t)
	dir := t.TempDir()
	a, err := New(Config{Out: filepath.Join(dir, "out")})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a.cfg.Log = zerolog.New(zerolog.SyncWriter(&log))
	r := &rig{t: t, a: a, dir: dir}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	sock := r.serve(nil)
	const owner, other1 = 61001, 61002
	producers, ids := map[int]*ringtest.Producer{}, map[int]string{}
	for _, uid := range []int{owner, other1} {
		p := r.ownedRing(uid, other(t, uint32(uid)))
		producers[uid] = p
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
	paused := func(uid int) uint32 { return producers[uid].Peek32(shmring.OffPause) }
	ask := func(uid int, verb, body string) (int, string) {
		t.Helper()
		code, b := apitest.As(t, sock, uid, nil, "POST", "/v1/"+verb, body)
		return code, strings.TrimSpace(string(b))
	}
	name := func(id string) string { return `{"id":"` + id + `"}` }
	fresh := func() { sock = r.serve(nil) } // the limit has its own test

	for _, verb := range []string{"pause", "resume", "detach"} { // another's, by who has a JVM too, and who has none
		for _, uid := range []int{owner, 61003} {
			code, got := ask(uid, verb, name(ids[other1]))
			none, want := ask(uid, verb, name("nothing-1-1"))
			if code < 400 || code != none ||
				strings.ReplaceAll(got, ids[other1], "X") != strings.ReplaceAll(want, "nothing-1-1", "X") {
				t.Errorf("%s of another's JVM as %d: %d %s; of none: %d %s", verb, uid, code, got, none, want)
			}
			fresh()
		}
		if code, got := ask(61003, verb, `{"all":true}`); code != 200 || got != `{"asked":0}` {
			t.Errorf("%s of all as a stranger: %d %s", verb, code, got)
		}
		if code, got := ask(api.OverflowUID, verb, `{"all":true}`); code != http.StatusForbidden {
			t.Errorf("%s as the overflow user: %d %s", verb, code, got)
		}
	}
	for _, verb := range []string{"attach", "reload"} { // and nothing else
		if code, got := ask(owner, verb, `{"jvm":"`+ids[owner]+`"}`); code != http.StatusForbidden {
			t.Errorf("%s as an owner: %d %s", verb, code, got)
		}
	}
	if paused(other1)|paused(owner) != 0 ||
		producers[other1].Peek32(shmring.OffDetach)|producers[owner].Peek32(shmring.OffDetach) != 0 {
		t.Fatal("a refused verb did something")
	}
	if !strings.Contains(log.String(), `"audit":"pause","caller":"uid 61003`) {
		t.Error("no word of it in the log")
	}

	fresh()
	if code, got := ask(owner, "pause", `{"all":true}`); code != 200 || got != `{"asked":1}` ||
		paused(owner) != shmring.PauseOwner || paused(other1) != 0 {
		t.Errorf("pause of all: %d %s, %d and %d", code, got, paused(owner), paused(other1))
	}
	if err := producers[owner].State(shmring.StatePaused, ""); err != nil {
		t.Fatal(err)
	}
	status := func() (st session.Status) {
		for _, s := range a.Status() {
			if s.UID == owner {
				st = s
			}
		}
		return st
	}
	wait(t, func() bool { return status().Phase == session.Paused && status().Reason == "asked for by uid 61001" }, a)
	// Root resumes all that was paused for the host's sake; a user's own pause stays, unless root names it.
	if code, _ := ask(0, "pause", `{"all":true}`); code != 200 ||
		paused(owner) != shmring.PauseOwner|shmring.PauseAsked {
		t.Errorf("root's pause: %d, %d", code, paused(owner))
	}
	if code, got := ask(owner, "resume", name(ids[owner])); code != http.StatusForbidden ||
		paused(owner) != shmring.PauseAsked {
		t.Errorf("resume of what root has paused: %d %s, %d", code, got, paused(owner))
	}
	ask(owner, "pause", name(ids[owner]))
	if ask(0, "resume", `{"all":true}`); paused(owner) != shmring.PauseOwner || paused(other1) != 0 {
		t.Errorf("root's resume of all: %d and %d", paused(owner), paused(other1))
	}
	if code, got := ask(owner, "resume", name(ids[owner])); code != 200 || paused(owner) != 0 {
		t.Errorf("resume: %d %s, %d", code, got, paused(owner))
	}
	ask(owner, "pause", name(ids[owner]))
	if ask(0, "resume", name(ids[owner])); paused(owner) != 0 {
		t.Errorf("root's resume of one: %d", paused(owner))
	}
	producers[owner].State(shmring.StateRecording, "")

	// Only so often, and operators as often as they like.
	fresh()
	n := 0
	for range 3 * api.ChangesAtOnce {
		if code, _ := ask(owner, "pause", name(ids[owner])); code == 200 {
			n++
		}
	}
	if n < api.ChangesAtOnce || n > 2*api.ChangesAtOnce {
		t.Errorf("%d changes in a row", n)
	}
	if code, _ := ask(other1, "pause", name(ids[other1])); code != 200 {
		t.Errorf("another user pays for it: %d", code)
	}
	fresh()

	atEnd := producers[owner].EndWhenAsked()
	if code, got := ask(owner, "detach", name(ids[owner])); code != 200 || got != `{"asked":1}` ||
		producers[owner].Peek32(shmring.OffDetach) != 1 || producers[other1].Peek32(shmring.OffDetach) != 0 {
		t.Fatalf("detach: %d %s", code, got)
	}
	if err := <-atEnd; err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return status().Phase == session.EndedPhase }, a)
	st := status()
	if st.Reason != "detached by uid 61001" || st.DetachedBy != "uid 61001" {
		t.Errorf("%+v", st)
	}
	later, err := New(Config{Out: a.Out()})
	if err != nil {
		t.Fatal(err)
	}
	if who := later.DetachedBy(st.PID, st.StartTicks, 61001); who != "uid 61001" {
		t.Errorf("an agent that comes later: %q", who)
	}
	if who := later.DetachedBy(st.PID, st.StartTicks+1, 61001); who != "" {
		t.Errorf("another process of that number: %q", who)
	}
	if who := later.DetachedBy(st.PID, st.StartTicks, 0); who != "" {
		t.Errorf("what its user says of a JVM of root: %q", who)
	}
}
