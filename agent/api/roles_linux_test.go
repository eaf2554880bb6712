package api

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// TestRoles asks for every verb as every role over a real socket and compares with the table of docs/security.md.
func TestRoles(t *testing.T) {
	apitest.NeedRoot(t)
	b, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	sock := serveHere(t, New(recorder{t.TempDir()}, Config{
		Attach: func(context.Context, AttachRequest) (AttachReply, error) { return AttachReply{PID: 7}, nil },
		Reload: func() error { return nil },
		Log:    zerolog.New(&log),
	}))
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\| (.*?) \\| (.*?) \\| (.*?) \\|$")
	rows := row.FindAllStringSubmatch(string(b), -1)
	if len(rows) != len(Verbs) {
		t.Fatalf("the table has %d verbs, the API %d", len(rows), len(Verbs))
	}
	for _, row := range rows {
		verb := row[1]
		method, path := "POST", "/v1/"+verb
		if verb == "status" || verb == "pull" {
			method, path = "GET", path+"?id=x"
		}
		code, body := apitest.As(t, sock, 0, nil, method, path, `{"all":true}`)
		if code == http.StatusForbidden || code == 0 || code == http.StatusNotFound {
			t.Errorf("%s as root: %d %s", verb, code, body)
		}
		code, body = apitest.As(t, sock, 61234, nil, method, path, `{"all":true}`)
		if want := row[4] == "no" && Verbs[verb] == Operator; (code == http.StatusForbidden) != want {
			t.Errorf("%s as a stranger: %d %s", verb, code, body)
		}
		if Verbs[verb] == Operator &&
			!strings.Contains(log.String(), `"audit":"`+verb+`","client":"uid 61234`) {
			t.Errorf("%s: no word of the refusal in the log", verb)
		}
	}
	if g := groupID(); g > 0 { // as a real member
		code, body := apitest.As(t, sock, 61234, []uint32{uint32(g)}, "POST", "/v1/reload", "{}")
		if code != http.StatusOK {
			t.Errorf("reload as a member of the group: %d %s", code, body)
		}
	}
}

// TestGuests: one user cannot take the connections of others.
func TestGuests(t *testing.T) {
	apitest.NeedRoot(t)
	sock := serveHere(t, New(recorder{t.TempDir()}, Config{Log: zerolog.Nop()}))
	hold := func(uid int) {
		for range 3 * maxGuestsEach {
			done := make(chan int)
			apitest.OnThread(func() {
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
	if code, _ := apitest.As(t, sock, 61001, nil, "GET", "/v1/status", ""); code != 0 {
		t.Errorf("one connection too many: %d", code)
	}
	for _, uid := range []int{61002, 0} {
		if code, _ := apitest.As(t, sock, uid, nil, "GET", "/v1/status", ""); code != 200 {
			t.Errorf("uid %d: %d", uid, code)
		}
	}
}
