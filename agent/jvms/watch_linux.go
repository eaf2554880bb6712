package jvms

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	rescan = 5 * time.Second       // finds what shows no PerfData here: containers, -XX:-UsePerfData; and mends lost events
	settle = 60 * time.Millisecond // after a PerfData file appears its counters take about 40 ms to be complete
)

// Watch calls f with the JVMs that are there, then with those that come and go, until the context ends; it gives the context's error.
// A JVM's name or collector may be missing at first: a later List knows more. f runs on Watch's goroutine.
func Watch(ctx context.Context, f func(added, gone []JVM)) error {
	// Without inotify (its instances are few) the rescan alone has to do.
	var events chan fsnotify.Event
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		events = w.Events
		go func() {
			for range w.Errors { // an overflow: the next rescan mends it
			}
		}()
		if w.Add("/tmp") == nil {
			dirs, _ := filepath.Glob("/tmp/hsperfdata_*")
			for _, d := range dirs {
				w.Add(d)
			}
		}
	}
	known := map[string]JVM{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if !strings.HasPrefix(e.Name, "/tmp/hsperfdata_") {
				continue
			}
			if filepath.Dir(e.Name) == "/tmp" && e.Has(fsnotify.Create) {
				w.Add(e.Name)
			}
			if !soon && (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove)) {
				soon = true
				timer.Reset(settle)
			}
			continue
		case <-timer.C:
		}
		soon = false
		timer.Reset(rescan)
		all, err := List()
		if err != nil {
			continue
		}
		now := make(map[string]JVM, len(all))
		var added, gone []JVM
		for _, j := range all {
			now[j.ID] = j
			if _, ok := known[j.ID]; !ok {
				added = append(added, j)
			}
		}
		for id, j := range known {
			if _, ok := now[id]; !ok {
				gone = append(gone, j)
			}
		}
		slices.SortFunc(gone, func(a, b JVM) int { return a.PID - b.PID })
		known = now
		if len(added)+len(gone) > 0 {
			f(added, gone)
		}
	}
}
