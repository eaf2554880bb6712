package agent

import (
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

const ownerUID, anotherUID = 61001, 61002

// owned are the JVMs of two users, and an agent that records them.
type owned struct {
	*rig
	sock      string
	log       *logBuffer
	producers map[int]*ringtest.Producer // by user
	ids       map[int]string
}

func newOwned(t *testing.T) *owned {
	dir := t.TempDir()
	log := &logBuffer{}
	a, err := New(Config{Out: filepath.Join(dir, "out"), Log: zerolog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	x := &owned{rig: &rig{t: t, a: a, dir: dir}, log: log}
	x.producers, x.ids = map[int]*ringtest.Producer{}, map[int]string{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	x.fresh()
	for _, uid := range []int{ownerUID, anotherUID} {
		p := x.ownedRing(uid, other(t, uint32(uid)))
		x.producers[uid] = p
		x.play(p, tracetest.New(tracetest.All(uint64(uid), trace.CollectorSerial, trace.DepthSurvivors)), 3)
		wait(t, func() bool {
			for _, s := range a.Status() {
				if s.UID == uid && s.Collections >= 3 {
					x.ids[uid] = s.ID
				}
			}
			return x.ids[uid] != ""
		}, a)
	}
	return x
}

// fresh serves the API anew: what bounds the changes of one user has its own test.
func (x *owned) fresh() { x.sock = x.serve(nil) }

// ask asks for a verb as a user.
func (x *owned) ask(uid int, verb, body string) (int, string) {
	x.t.Helper()
	code, b := apitest.As(x.t, x.sock, uid, nil, "POST", "/v1/"+verb, body)
	return code, strings.TrimSpace(string(b))
}

func byID(id string) string { return `{"id":"` + id + `"}` }

// paused returns why the JVM of a user is paused.
func (x *owned) paused(uid int) uint32 { return x.producers[uid].Peek32(shmring.OffPause) }

// status returns that of the owner's JVM.
func (x *owned) status() (st session.Status) {
	for _, s := range x.a.Status() {
		if s.UID == ownerUID {
			st = s
		}
	}
	return st
}

// TestOwnersControl: a JVM's own user pauses, resumes and detaches from it, and nobody else's: what is not one's own is
// answered like what is not there. Root's pause stays root's; a detachment is reported with who asked for it, also to
// an agent that comes later.
func TestOwnersControl(t *testing.T) {
	apitest.NeedRoot(t)
	x := newOwned(t)
	x.refusals(t)
	x.pauses(t)
	x.changesAreBounded(t)
	x.detaches(t)
}

// refusals asks for what is not one's own, as who has a JVM too, and as who has none.
func (x *owned) refusals(t *testing.T) {
	for _, verb := range []string{"pause", "resume", "detach"} { // another's, by who has a JVM too, and who has none
		for _, uid := range []int{ownerUID, 61003} {
			code, got := x.ask(uid, verb, byID(x.ids[anotherUID]))
			none, want := x.ask(uid, verb, byID("nothing-1-1"))
			if code < 400 || code != none ||
				strings.ReplaceAll(got, x.ids[anotherUID], "X") != strings.ReplaceAll(want, "nothing-1-1", "X") {
				t.Errorf("%s of another's JVM as %d: %d %s; of none: %d %s", verb, uid, code, got, none, want)
			}
			x.fresh()
		}
		if code, got := x.ask(61003, verb, `{"all":true}`); code != 200 || got != `{"asked":0}` {
			t.Errorf("%s of all as a stranger: %d %s", verb, code, got)
		}
		if code, got := x.ask(api.OverflowUID, verb, `{"all":true}`); code != http.StatusForbidden {
			t.Errorf("%s as the overflow user: %d %s", verb, code, got)
		}
	}
	for _, verb := range []string{"attach", "reload"} { // and nothing else
		if code, got := x.ask(ownerUID, verb, `{"jvm":"`+x.ids[ownerUID]+`"}`); code != http.StatusForbidden {
			t.Errorf("%s as an owner: %d %s", verb, code, got)
		}
	}
	if x.paused(anotherUID)|x.paused(ownerUID) != 0 ||
		x.producers[anotherUID].Peek32(shmring.OffDetach)|x.producers[ownerUID].Peek32(shmring.OffDetach) != 0 {
		t.Fatal("a refused verb did something")
	}
	if !strings.Contains(x.log.String(), `"audit":"pause","client":"uid 61003`) {
		t.Error("no word of it in the log")
	}
}

// pauses has the owner and root pause and resume.
func (x *owned) pauses(t *testing.T) {
	x.fresh()
	if code, got := x.ask(ownerUID, "pause", `{"all":true}`); code != 200 || got != `{"asked":1}` ||
		x.paused(ownerUID) != shmring.PauseOwner || x.paused(anotherUID) != 0 {
		t.Errorf("pause of all: %d %s, %d and %d", code, got, x.paused(ownerUID), x.paused(anotherUID))
	}
	if err := x.producers[ownerUID].State(shmring.StatePaused, ""); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool {
		return x.status().Phase == session.Paused && x.status().Reason == "requested by uid 61001"
	}, x.a)
	// Root resumes all that was paused for the host's sake; a user's own pause stays, unless root names it.
	if code, _ := x.ask(0, "pause", `{"all":true}`); code != 200 ||
		x.paused(ownerUID) != shmring.PauseOwner|shmring.PauseAsked {
		t.Errorf("root's pause: %d, %d", code, x.paused(ownerUID))
	}
	if code, got := x.ask(ownerUID, "resume", byID(x.ids[ownerUID])); code != http.StatusForbidden ||
		x.paused(ownerUID) != shmring.PauseAsked {
		t.Errorf("resume of what root has paused: %d %s, %d", code, got, x.paused(ownerUID))
	}
	x.ask(ownerUID, "pause", byID(x.ids[ownerUID]))
	if x.ask(0, "resume", `{"all":true}`); x.paused(ownerUID) != shmring.PauseOwner || x.paused(anotherUID) != 0 {
		t.Errorf("root's resume of all: %d and %d", x.paused(ownerUID), x.paused(anotherUID))
	}
	if code, got := x.ask(ownerUID, "resume", byID(x.ids[ownerUID])); code != 200 || x.paused(ownerUID) != 0 {
		t.Errorf("resume: %d %s, %d", code, got, x.paused(ownerUID))
	}
	x.ask(ownerUID, "pause", byID(x.ids[ownerUID]))
	if x.ask(0, "resume", byID(x.ids[ownerUID])); x.paused(ownerUID) != 0 {
		t.Errorf("root's resume of one: %d", x.paused(ownerUID))
	}
	x.producers[ownerUID].State(shmring.StateRecording, "")
}

// changesAreBounded has one user ask too often: only that user is refused.
func (x *owned) changesAreBounded(t *testing.T) {
	x.fresh()
	n := 0
	for range 3 * api.ChangesAtOnce {
		if code, _ := x.ask(ownerUID, "pause", byID(x.ids[ownerUID])); code == 200 {
			n++
		}
	}
	if n < api.ChangesAtOnce || n > 2*api.ChangesAtOnce {
		t.Errorf("%d changes in a row", n)
	}
	if code, _ := x.ask(anotherUID, "pause", byID(x.ids[anotherUID])); code != 200 {
		t.Errorf("another user pays for it: %d", code)
	}
	x.fresh()
}

// detaches has the owner detach, and asks an agent that comes later who did.
func (x *owned) detaches(t *testing.T) {
	atEnd := x.producers[ownerUID].EndWhenAsked()
	if code, got := x.ask(ownerUID, "detach", byID(x.ids[ownerUID])); code != 200 || got != `{"asked":1}` ||
		x.producers[ownerUID].Peek32(shmring.OffDetach) != 1 || x.producers[anotherUID].Peek32(shmring.OffDetach) != 0 {
		t.Fatalf("detach: %d %s", code, got)
	}
	if err := <-atEnd; err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return x.status().Phase == session.EndedPhase }, x.a)
	st := x.status()
	if st.Reason != "detached by uid 61001" || st.DetachedBy != "uid 61001" {
		t.Errorf("%+v", st)
	}
	later, err := New(Config{Out: x.a.Out()})
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
