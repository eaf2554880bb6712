package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
	"github.com/heapcam/heapcam/web"
)

// graphs keeps the newest graph in memory.
type graphs struct {
	mu   sync.Mutex
	kept *graph.Graph
	read int // graphs that were given
}

func (g *graphs) Get(_ *room.Room, listing, objects uint64) *graph.Graph {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept != nil && listing == 1 && uint64(g.kept.Objects()) == objects {
		g.read++
		return g.kept
	}
	return nil
}

func (g *graphs) Keep(h *retention.Heap) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept = h.Graph
}

// TestKeptGraph: the viewer keeps the graph that it makes, and answers from one that was kept as from its own.
func TestKeptGraph(t *testing.T) {
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	list := b.New("[Ljava/lang/Object;")
	b.Root(list, references.Root{Kind: references.JNIGlobal})
	for range 20 {
		b.Add(list, b.New("app/Order"))
	}
	g := &graphs{}
	answer := func() string {
		s := web.New(web.Config{Title: "kept", Graphs: g, Open: func(func(done, total int64)) (*web.Input, error) {
			return &web.Input{Source: &blocks{b.Blocks()}, Close: func() {}}, nil
		}})
		h := httptest.NewServer(s)
		defer func() { s.Close(); h.Close() }()
		r, err := http.Get(h.URL + s.Path() + "api/holders?class=app.Order")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v: %s", r.Status, err, text)
		}
		return string(text)
	}
	first := answer()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g.mu.Lock()
		done := g.kept != nil
		g.mu.Unlock()
		if done {
			break
		}
		if time.Now().After(until) {
			t.Fatal("no graph was kept")
		}
	}
	if second := answer(); second != first || g.read != 1 {
		t.Errorf("%d graphs read; got %s\nwant %s", g.read, second, first)
	}
}
