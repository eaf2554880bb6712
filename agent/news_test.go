package agent

import (
	"context"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestNews: a file that was written to is no reason to look for rings, and a new file is.
func TestNews(t *testing.T) {
	a := &Agent{rescan: make(chan struct{}, 1)}
	w := &fsnotify.Watcher{Events: make(chan fsnotify.Event, 4), Errors: make(chan error)}
	for range 3 {
		w.Events <- fsnotify.Event{Name: "ring", Op: fsnotify.Write}
	}
	w.Events <- fsnotify.Event{Name: "another", Op: fsnotify.Create}
	if !a.news(context.Background(), w, time.Hour) || len(w.Events) > 0 {
		t.Errorf("%d events are left", len(w.Events))
	}
	a.Rescan()
	if !a.news(context.Background(), w, time.Hour) {
		t.Error("a request is news")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if a.news(ctx, w, time.Hour) {
		t.Error("the end is no news")
	}
}
