package upload

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/bucket/s3"
)

// TestFailures: a bucket that is full, that forbids, that says that an object is there which is not, that fails, and
// one whose answers are lost, for ten minutes and more of the uploader's clock. No incident is lost, no object is there
// twice, and tries become rarer, but not rarer than once in five minutes and a quarter.
func TestFailures(t *testing.T) {
	answer := func(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
		}
	}
	for name, bad := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"full": answer(507, "XMinioStorageFull"), "wrong keys": answer(403, "SignatureDoesNotMatch"),
		"not there": answer(412, "PreconditionFailed"), "broken": answer(501, "NotImplemented"),
		"cut off": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		},
		"the answer is lost": func(_ http.ResponseWriter, r *http.Request, real http.Handler) {
			real.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) { failing(t, name, bad) })
	}
}

func failing(t *testing.T, name string, bad func(http.ResponseWriter, *http.Request, http.Handler)) {
	r := newRig(t)
	r.incident("a-1-2", 1<<20)
	r.incident("b-3-4", 1<<20)
	to, err := url.Parse(r.s.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.Out.Host = p.In.Host // it is signed
	}}
	var away atomic.Bool
	away.Store(true)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if away.Load() && q.Method == http.MethodPut {
			bad(w, q, proxy)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ErrorLog = front.Config.ErrorLog
	defer front.Close()
	u := r.uploader(false)
	if u.cfg.Bucket, err = s3.Dial(r.s.Bucket, s3.Options{Endpoint: front.URL}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var clock, longest time.Duration
	u.wait = func(_ context.Context, d time.Duration) {
		if d != lookEvery {
			clock, longest = clock+d, max(longest, d)
		}
		away.Store(clock < 10*time.Minute)
		if u.Status().Uploaded == 2 {
			stop()
		}
	}
	u.Run(ctx)
	st := u.Status()
	if st.Uploaded != 2 || st.Pending != 0 || st.Dropped != 0 || st.Error != "" || len(r.stored()) != 2 {
		t.Errorf("%+v, %v\n%s", st, r.stored(), r.log.String())
	}
	if lost := name == "the answer is lost"; !lost && (clock < 10*time.Minute || st.Failed < 5) {
		t.Errorf("%d failures in %v", st.Failed, clock)
	}
	if longest > lastRetry*5/4+time.Second {
		t.Errorf("it waited for %v", longest)
	}
	answered := name != "cut off" && name != "the answer is lost" // the errors of others name ports
	if n := strings.Count(r.log.String(), "incident-not-uploaded"); answered && n > 4 {
		t.Errorf("%d lines:\n%s", n, r.log.String())
	}
}
