package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: callers of other users (needs root)")
	}
}

// onThread runs f on a thread that ends with it, and is not the process' first, which can not.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			done := make(chan struct{})
			onThread(func() { f(); close(done) })
			<-done
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
}

// as calls the API from a thread that is uid with the supplementary groups, and gives status and body.
func as(t *testing.T, sock string, uid int, groups []uint32, method, path, body string) (int, []byte) {
	t.Helper()
	type answer struct {
		fd  int
		err error
	}
	got := make(chan answer)
	onThread(func() {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		var first unsafe.Pointer
		if len(groups) > 0 {
			first = unsafe.Pointer(&groups[0])
		}
		_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(uid), uintptr(uid), uintptr(uid))
		_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e1 != 0 || e2 != 0 || e3 != 0 {
			err = errors.Join(err, e1, e2, e3)
		}
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: sock})
		}
		got <- answer{fd, err}
	})
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	f := os.NewFile(uintptr(a.fd), "caller")
	defer f.Close()
	fmt.Fprintf(f, "%s %s HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path,
		len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(f), nil)
	if err != nil {
		return 0, nil // turned away
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, b
}

// serve runs the API of an agent; log takes its audit lines.
func (r *rig) serve(attach api.Attacher) (sock string) {
	return r.serveWith(api.Config{Attach: attach, Log: r.a.cfg.Log, Reload: func() error { return nil }})
}

func (r *rig) serveWith(cfg api.Config) (sock string) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		r.t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	sock = filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.New(r.a, cfg).Serve(ctx, sock) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
		os.RemoveAll(dir)
	})
	wait(r.t, func() bool { c, err := api.Dial(sock); return err == nil && c != nil })
	return sock
}

// TestRoles asks for every verb as every role over a real socket and compares with the table of docs/security.md.
func TestRoles(t *testing.T) {
	needRoot(t)
	b, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	var log bytes.Buffer
	r.a.cfg.Log = zerolog.New(zerolog.SyncWriter(&log))
	sock := r.serve(func(context.Context, api.AttachRequest) (api.AttachReply, error) {
		return api.AttachReply{PID: 7}, nil
	})
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(
		string(b), -1)
	if len(rows) != len(api.Verbs) {
		t.Fatalf("the table has %d verbs, the API %d", len(rows), len(api.Verbs))
	}
	for _, row := range rows {
		verb := row[1]
		method, path := "POST", "/v1/"+verb
		if verb == "status" || verb == "pull" {
			method, path = "GET", path+"?id=x"
		}
		code, body := as(t, sock, 0, nil, method, path, `{"all":true}`)
		if code == http.StatusForbidden || code == 0 || code == http.StatusNotFound {
			t.Errorf("%s as root: %d %s", verb, code, body)
		}
		code, body = as(t, sock, 61234, nil, method, path, `{"all":true}`)
		if want := row[4] == "no" && api.Verbs[verb] == api.Operator; (code == http.StatusForbidden) != want {
			t.Errorf("%s as a stranger: %d %s", verb, code, body)
		}
		if api.Verbs[verb] == api.Operator &&
			!strings.Contains(log.String(), `"audit":"`+verb+`","caller":"uid 61234`) {
			t.Errorf("%s: no word of the refusal in the log", verb)
		}
	}
	if g := groupID(); g > 0 { // as a real member
		if code, body := as(t, sock, 61234, []uint32{uint32(g)}, "POST", "/v1/reload", "{}"); code != http.StatusOK {
			t.Errorf("reload as a member of the group: %d %s", code, body)
		}
	}
}

// groupID returns the id of the group of operators, 0 if there is none.
func groupID() int {
	g, err := user.LookupGroup(api.Group)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(g.Gid)
	return n
}

// other runs a process of another user that does nothing, and gives its pid.
func other(t *testing.T, uid uint32) uint32 {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return uint32(c.Process.Pid)
}

// ownedRing makes a ring of uid in a folder of uid, that says it is pid's.
func (r *rig) ownedRing(uid int, pid uint32) *ringtest.Producer {
	r.t.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("of-%d-%d", uid, pid))
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, uid, uid)); err != nil {
		r.t.Fatal(err)
	}
	p, err := ringtest.Create(dir, ringtest.Config{PID: pid, Starting: true})
	if err == nil {
		err = errors.Join(os.Chown(p.Path, uid, uid), p.State(shmring.StateRecording, ""), p.Ready())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.Close() })
	r.a.Watch(dir)
	return p
}

// TestOwners lets two users see and pull what is their own, and nothing else: by status, by a pull of what is recorded
// and of what is over, and of an incident.
func TestOwners(t *testing.T) {
	needRoot(t)
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
		code, body := as(t, sock, uid, nil, "GET", "/v1/status", "")
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
			if code, _ := as(t, sock, uid, nil, "GET", "/v1/status", ""); code != http.StatusForbidden {
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
		code, body := as(t, sock, uid, nil, "GET", "/v1/pull?"+query, "")
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
			a.over = nil
			a.mu.Unlock()
		}
	}
}

// TestForged: a ring that names the process of another user is not recorded, and keeps nobody from being recorded.
func TestForged(t *testing.T) {
	needRoot(t)
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	victim := uint32(os.Getpid())
	forged := r.ownedRing(61001, victim)
	why := func(path string) error {
		r.a.mu.Lock()
		defer r.a.mu.Unlock()
		if e := r.a.sessions[path]; e != nil {
			return e.bad
		}
		return nil
	}
	wait(t, func() bool { return why(forged.Path) != nil }, r.a)
	var bad *ForgedError
	if err := why(forged.Path); !errors.As(err, &bad) || bad.Owner != 61001 || bad.UID != 0 || bad.PID != int(victim) {
		t.Errorf("forged: %v", err)
	}
	p, err := ringtest.Create(r.dir, ringtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wait(t, func() bool { st := r.a.Status(); return len(st) == 1 && st[0].PID == int(victim) && st[0].UID == 0 }, r.a)

	// One that names the process, but another namespace, so that none is found, and never stops to send: nobody takes
	// that process for recorded.
	ticks, _ := jvms.StartTicks(int(victim))
	unseen := filepath.Join(r.dir, "unseen")
	if err := errors.Join(os.Mkdir(unseen, 0o700), os.Chown(unseen, 61001, 61001)); err != nil {
		t.Fatal(err)
	}
	liar, err := ringtest.Create(unseen, ringtest.Config{PID: victim, StartTicks: ticks, PIDNS: 1, Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer liar.Close()
	if err := errors.Join(os.Chown(liar.Path, 61001, 61001), p.End(shmring.StateGoodbye, "")); err != nil {
		t.Fatal(err)
	}
	r.play(liar, tracetest.New(tracetest.Config{Seed: 1}), 1)
	r.a.Watch(unseen)
	wait(t, func() bool {
		r.play(liar, tracetest.New(tracetest.Config{Seed: 1}), 1)
		for _, st := range r.a.Status() {
			if st.UID == 61001 {
				if st.Of(int(victim), ticks, -1) {
					t.Errorf("a ring of uid 61001 passes for that of process %d", victim)
				}
				return true
			}
		}
		return false
	}, r.a)
	if uid, of := 61001, (&session.Status{PID: 7, StartTicks: 7, UID: 61001}); of.Of(7, 7, 0) || !of.Of(7, 7, uid) ||
		of.Of(7, 8, uid) {
		t.Errorf("Of: another user's ring, or another start")
	}

	// A hard link to another's ring in one's own folder.
	p, err = ringtest.Create(r.dir, ringtest.Config{PID: other(t, 61001)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir := filepath.Join(r.dir, "links")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 61001, 61001),
		os.Link(p.Path, filepath.Join(dir, filepath.Base(p.Path)))); err != nil {
		t.Fatal(err)
	}
	r.a.Watch(dir)
	link := filepath.Join(dir, filepath.Base(p.Path))
	wait(t, func() bool { return why(link) != nil }, r.a)
	var owner *shmring.OwnerError
	if err := why(link); !errors.As(err, &owner) {
		t.Errorf("a link to another's ring: %v", err)
	}
}

// TestGuests: one user can not take the connections of others.
func TestGuests(t *testing.T) {
	needRoot(t)
	r := newRig(t, &sessiontest.MemStore{Limit: 1 << 30})
	sock := r.serve(nil)
	hold := func(uid int) {
		for range 24 {
			done := make(chan int)
			onThread(func() {
				fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
				unix.Connect(fd, &unix.SockaddrUnix{Name: sock})
				done <- fd
			})
			fd := <-done
			t.Cleanup(func() { unix.Close(fd) })
		}
	}
	hold(61001)
	time.Sleep(50 * time.Millisecond)
	if code, _ := as(t, sock, 61001, nil, "GET", "/v1/status", ""); code != 0 {
		t.Errorf("one connection too many: %d", code)
	}
	for _, uid := range []int{61002, 0} {
		if code, _ := as(t, sock, uid, nil, "GET", "/v1/status", ""); code != 200 {
			t.Errorf("uid %d: %d", uid, code)
		}
	}
}

// TestOwnersControl: a JVM's own user pauses, resumes and detaches from it, and nobody else's: what is not one's own is
// answered like what is not there. Root's pause stays root's; a detachment is told with who asked for it, also to an
// agent that comes later.
func TestOwnersControl(t *testing.T) {
	needRoot(t)
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
		code, b := as(t, sock, uid, nil, "POST", "/v1/"+verb, body)
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

// TestOwnedBy: only a process that is wholly one's own is one's own: not one that has another user among its users, nor
// one that has gone.
func TestOwnedBy(t *testing.T) {
	needRoot(t)
	pid := int(other(t, 61001))
	ticks, ok := jvms.StartTicks(pid)
	if !ok || !ownedBy(pid, ticks, 61001) || ownedBy(pid, ticks, 61002) || ownedBy(pid, ticks, 0) ||
		ownedBy(pid, ticks+1, 61001) || ownedBy(1<<22+1, ticks, 61001) {
		t.Errorf("process %d", pid)
	}
	// real, effective, saved
	for _, ids := range [][3]int{{61001, 0, 0}, {0, 61001, 0}, {61001, 61001, 0}, {61001, 61002, 61001}} {
		held, done := make(chan int), make(chan struct{})
		onThread(func() { // a thread has its own, and can be looked at as a process
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
