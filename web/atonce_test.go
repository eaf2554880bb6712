package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

// countedViewer is a viewer of 30 collections that counts how often the recording is opened.
func countedViewer(t *testing.T) (s *web.Server, at string, opened *atomic.Int64) {
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 30 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = append(bs, m.End())
	opened = &atomic.Int64{}
	s = web.New(web.Config{Title: "at once", Open: func(func(done, total int64)) (*web.Input, error) {
		opened.Add(1)
		return &web.Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}})
	h := httptest.NewServer(s)
	t.Cleanup(func() { s.Close(); h.Close() })
	return s, h.URL + s.Path(), opened
}

// TestAtOnce: questions about several states may come at a time, in whatever order. States share what is known of names
// and stacks: the race detector sees if they do it without a lock, and the Go runtime may end the viewer.
func TestAtOnce(t *testing.T) {
	for range 5 {
		_, at, _ := countedViewer(t)
		var all sync.WaitGroup
		for k := range 8 {
			all.Go(func() {
				for i := range 4 {
					gc := 9 + (5*k+i)%20
					by := url.QueryEscape([]string{"thread", "type, site", "site, type", "thread, site, type"}[i])
					for _, what := range []string{"group?", "group?find=a&", "flame?", "export?format=csv&"} {
						ask(t, at, fmt.Sprintf("%sat=%d&by=%s", what, gc, by), nil)
					}
				}
			})
		}
		all.Wait()
	}
}

// TestCancelled: requests that their page cancels do not make the viewer read the recording again.
func TestCancelled(t *testing.T) {
	s, at, opened := countedViewer(t)
	all := []string{"nearest?at=9", "overview?", "group?at=9"}
	for _, what := range all {
		ask(t, at, what, nil)
	}
	before := opened.Load()
	for i := range 60 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, at+"api/"+all[i%3], nil)
		s.ServeHTTP(httptest.NewRecorder(), r)
	}
	for _, what := range all {
		ask(t, at, what, nil)
	}
	if n := opened.Load() - before; n > 0 {
		t.Errorf("the recording was opened %d times more", n)
	}
}

// TestSkip: a number that is too large for a list gives an empty part of it.
func TestSkip(t *testing.T) {
	_, at, _ := countedViewer(t)
	for _, what := range []string{"diff?from=9&to=20", "group?at=9"} {
		ask(t, at, what+"&skip=9223372036854775807", nil)
	}
}
