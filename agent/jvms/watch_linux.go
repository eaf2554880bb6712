package jvms

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	rescan = 5 * time.Second        // finds what is started by other names than java, or long after its process; and mends lost events
	glance = 500 * time.Millisecond // finds what shows no PerfData here, in containers or with -XX:-UsePerfData
	young  = 10 * time.Second       // a process that has not become a JVM by then is left to the rescan
	settle = 60 * time.Millisecond  // after a PerfData file appears its counters take about 40 ms to be complete
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
	often := time.NewTicker(glance)
	defer often.Stop()
	soon := false
	procs := newcomers{}
	procs.look(nil) // what is there already the first List finds
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
		case <-often.C:
			var added []JVM
			procs.look(func(pid int) bool {
				j, err := Look(pid)
				if err != nil {
					return false
				}
				if _, ok := known[j.ID]; !ok {
					known[j.ID] = j
					added = append(added, j)
				}
				return true
			})
			if len(added) > 0 {
				f(added, nil)
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

// newcomers are the processes of this host, with when each was seen first; zero: nothing more is expected of it.
type newcomers map[int]time.Time

// look calls f with the processes that have come of late and run a program named java, until f says that it knows them. It costs a listing of
// /proc, and a look at the name of each that is new.
func (n newcomers) look(f func(pid int) (known bool)) {
	d, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	now := time.Now()
	there := make(map[int]bool, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		there[pid] = true
		first, seen := n[pid]
		switch {
		case f == nil:
			n[pid] = time.Time{}
			continue
		case !seen:
			first = now
			n[pid] = first
		case first.IsZero():
			continue
		}
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if strings.HasPrefix(filepath.Base(exe), "java") && f(pid) || now.Sub(first) > young {
			n[pid] = time.Time{}
		}
	}
	for pid := range n {
		if !there[pid] {
			delete(n, pid)
		}
	}
}
