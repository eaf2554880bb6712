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

	"github.com/heapcam/heapcam/internal/procfs"
)

const (
	rescan = 5 * time.Second        // finds what is started by other names than java, or late; and mends lost events
	glance = 500 * time.Millisecond // finds what shows no PerfData here, in containers or with -XX:-UsePerfData
	young  = 10 * time.Second       // a process that has not become a JVM by then is left to the rescan
	settle = 60 * time.Millisecond  // after a PerfData file appears its counters take about 40 ms to be complete

	// maxFolders bounds the folders of PerfData, one a user, that are watched. Anybody can make folders of such names,
	// and root's watches are few. JVMs in further folders are found by looking.
	maxFolders = 256
	// idleShare times what a rescan took passes before files that somebody made cause another one.
	idleShare = 10
	// A process that is no JVM may still load one. It is looked at by each rescan for a minute, then once a minute: to
	// read the mappings of all processes every five seconds costs them and us time. An event has all looked at.
	oftenFor, seldom = time.Minute, time.Minute
)

// watcher remembers which JVMs were reported.
type watcher struct {
	report  func(added, ended []JVM)
	wanted  func(pid int) bool // nil: all
	known   map[string]JVM     // by id
	others  map[string]other   // by id: processes that are no JVMs
	started newcomers
	folders folders
	timer   *time.Timer // of the next rescan
	soon    bool        // it was set by an event
	tired   time.Time   // no event causes a rescan before
}

// other is a process that is no JVM as long as it runs the program exe.
type other struct {
	exe          string
	since, again time.Time // when it was found, and when to look again
}

// Watch calls f with the JVMs that are there, then with those that start and end, until the context ends; it gives the
// context's error. A JVM's name or collector may be missing at first: a later List knows more. f runs on Watch's
// goroutine.
func Watch(ctx context.Context, f func(added, ended []JVM)) error { return watch(ctx, nil, f) }

// watch is Watch for JVMs that are wanted: to ask is cheaper than to inspect a process.
func watch(ctx context.Context, wanted func(pid int) bool, f func(added, ended []JVM)) error {
	w := watcher{report: f, wanted: wanted, known: map[string]JVM{}, started: newcomers{}, timer: time.NewTimer(0)}
	defer w.timer.Stop()
	// Without inotify (its instances are few) the rescan alone has to do.
	var events chan fsnotify.Event
	if n, err := fsnotify.NewWatcher(); err == nil {
		defer n.Close()
		events = n.Events
		go func() {
			for range n.Errors { // an overflow: the next rescan mends it
			}
		}()
		w.folders = folders{base: "/tmp", add: n.Add, watched: map[string]bool{}}
		w.folders.addAll()
	}
	often := time.NewTicker(glance)
	defer often.Stop()
	w.started.poll(nil) // what is there already the first List finds
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			w.event(e)
		case <-often.C:
			w.glance()
		case <-w.timer.C:
			w.rescan()
		}
	}
}

// event has the JVMs listed soon, if it is about PerfData.
func (w *watcher) event(e fsnotify.Event) {
	if !strings.HasPrefix(e.Name, filepath.Join(w.folders.base, perfFolder)) {
		return
	}
	if filepath.Dir(e.Name) == w.folders.base {
		if e.Has(fsnotify.Create) {
			w.folders.watch(e.Name)
		}
		if e.Has(fsnotify.Remove) {
			delete(w.folders.watched, e.Name) // inotify has dropped it
		}
	}
	if !w.soon && (e.Has(fsnotify.Create) || e.Has(fsnotify.Remove)) {
		w.soon = true
		w.timer.Reset(max(settle, time.Until(w.tired)))
	}
}

// glance inspects processes that have started lately.
func (w *watcher) glance() {
	var added []JVM
	w.started.poll(func(pid int) bool {
		if w.wanted != nil && !w.wanted(pid) {
			return false
		}
		j, err := Inspect(pid)
		if err != nil {
			return false
		}
		if _, ok := w.known[j.ID]; !ok {
			w.known[j.ID] = j
			added = append(added, j)
		}
		return true
	})
	if len(added) > 0 {
		w.report(added, nil)
	}
}

// look is Inspect with a memory. A JVM that is known stays as it was, if the process of that pid still is it: what else
// an inspection finds nobody asks the watcher for. now is when the rescan began; what is no JVM goes to others.
func (w *watcher) look(pid int, now time.Time, others map[string]other) (JVM, error) {
	p, err := procfs.Open(pid)
	if err != nil {
		return JVM{}, err
	}
	id, exe := ID(pid, p.StartTicks), p.Link("exe")
	p.Close()
	if j, ok := w.known[id]; ok && exe == j.exe {
		return j, nil
	}
	o, ok := w.others[id]
	if !ok || o.exe != exe {
		o = other{exe: exe, since: now}
	}
	if !w.soon && now.Before(o.again) {
		others[id] = o
		return JVM{}, &NotFoundError{Ref: strconv.Itoa(pid), Process: true}
	}
	j, err := Inspect(pid)
	if err == nil {
		return j, nil
	}
	if now.Sub(o.since) >= oftenFor {
		o.again = now.Add(seldom)
	}
	others[id] = o
	return j, err
}

// rescan lists all JVMs.
func (w *watcher) rescan() {
	w.timer.Reset(rescan)
	begun, others := time.Now(), make(map[string]other, len(w.others))
	all, err := list(w.wanted, func(pid int) (JVM, error) { return w.look(pid, begun, others) })
	w.soon = false
	w.tired = time.Now().Add(idleShare * time.Since(begun))
	if err != nil {
		return
	}
	now := make(map[string]JVM, len(all))
	var added, ended []JVM
	for _, j := range all {
		now[j.ID] = j
		if _, ok := w.known[j.ID]; !ok {
			added = append(added, j)
		}
	}
	for id, j := range w.known {
		if _, ok := now[id]; !ok {
			ended = append(ended, j)
		}
	}
	slices.SortFunc(ended, func(a, b JVM) int { return a.PID - b.PID })
	w.known, w.others = now, others
	if len(added)+len(ended) > 0 {
		w.report(added, ended)
	}
}

// folders are the folders of PerfData that are watched.
type folders struct {
	base    string
	add     func(path string) error
	watched map[string]bool
}

func (f *folders) addAll() {
	if f.add(f.base) != nil {
		return
	}
	all, _ := filepath.Glob(filepath.Join(f.base, perfFolder+"*"))
	for _, d := range all {
		f.watch(d)
	}
}

// watch watches a folder of PerfData. What a link of such a name leads to is none.
func (f *folders) watch(path string) {
	st, err := os.Lstat(path)
	if err != nil || !st.IsDir() || f.watched[path] || len(f.watched) >= maxFolders {
		return
	}
	if f.add(path) == nil {
		f.watched[path] = true
	}
}

// newcomers are the processes of this host, with when each was seen first; zero: nothing more is expected of it.
type newcomers map[int]time.Time

// poll calls f with the processes that have started of late and run a program named java, until f says that it knows
// them. It costs a listing of /proc, and a look at the name of each that is new.
func (n newcomers) poll(f func(pid int) (known bool)) {
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
