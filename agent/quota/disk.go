package quota

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/ringstore"
)

// ErrNoShare says that max_total_size leaves no room for one more JVM, the smallest ring included.
var ErrNoShare = errors.New("max_total_size leaves no room for another recording")

const (
	// minShare is the smallest limit of a ring that is worth recording into, bytes.
	minShare = 1 << 20
	// surveyEnded is how often the folder is looked through for rings of ended JVMs.
	surveyEnded = 5 * time.Second
	// pendingFor is how long a JVM that was refused counts as one that wants a share.
	pendingFor = 10 * time.Second
)

// Disk shares max_total_size among the rings below one folder. It grants bytes before a ring occupies them: the sum of
// what it granted to living rings, of the rings of ended JVMs and of all incidents never exceeds the limit. Files that
// are in a ring and in an incident count twice.
//
// Each living ring may have an equal part, and no more than its own limit. A ring gets what is free of it. Disk removes
// ended rings, oldest first, only for what a ring needs soon (need), beyond what larger rings are about to give back. A
// ring that would get less than minShare is refused and may ask again.
//
// All methods are safe for concurrent use. Those but Share may wait for the disk.
type Disk struct {
	max, want int64         // max_total_size; M(1+d) of one ring
	retain    time.Duration // of ended rings; 0: until space is needed
	out       string
	log       zerolog.Logger
	now       func() time.Time

	mu       sync.Mutex
	granted  map[string]int64 // by ring folder
	pending  map[string]time.Time
	surveyed time.Time
	ended    []endedRing         // oldest first
	seen     map[string]sighting // by ring folder
	foreign  map[string]bool     // folders of removed rings that still hold files of other recordings
	frozen   int64
	taking   int64 // reserved for a recording that is being copied from the spool folder
}

type endedRing struct {
	dir  string
	size int64
	last time.Time
}

// sighting is when a ring was first seen to have ended, and its age then. From then on a steady clock counts: a wall
// clock that is set forward makes no ring older.
type sighting struct {
	at  time.Time
	age time.Duration
}

// DiskConfig says what Disk shares.
type DiskConfig struct {
	Out    string        // the folder for recordings
	Max    int64         // max_total_size, bytes; 0: no limit
	Ring   int64         // limit of one ring, bytes
	Retain time.Duration // how long rings of ended JVMs are kept; 0: until space is needed
	Log    zerolog.Logger
}

// NewDisk makes a Disk that has granted nothing. It reads no folder before the first Admit.
func NewDisk(c DiskConfig) *Disk {
	return &Disk{
		max: c.Max, want: c.Ring, retain: c.Retain, out: c.Out, log: c.Log, now: time.Now,
		granted: map[string]int64{}, pending: map[string]time.Time{}, foreign: map[string]bool{},
		seen: map[string]sighting{},
	}
}

// Admit grants a new or returning ring in the folder dir its first limit, bytes that it may occupy.
// Errors: ErrNoShare.
func (t *Disk) Admit(dir string) (int64, error) {
	if t.max == 0 && t.retain == 0 {
		return t.want, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.granted[dir] = 0 // it is not ended
	delete(t.foreign, dir)
	delete(t.seen, dir)
	t.survey(true)
	if t.max == 0 {
		t.granted[dir] = t.want
		return t.want, nil
	}
	used := ringstore.Occupied(ringstore.OS, dir)
	goal := t.goal()
	soon := need(goal, used)
	for (t.free() < min(minShare, soon) || t.free()+t.excess(goal) < soon) && t.dropOldest() {
	}
	g := min(goal, t.free())
	if g < min(minShare, t.want) && g < used {
		g = min(used, t.free())
	}
	if g < min(minShare, t.want) {
		delete(t.granted, dir)
		if int64(len(t.granted)+1)*minShare <= t.max-t.frozen { // the others can make room
			t.pending[dir] = t.now()
		}
		return 0, ErrNoShare
	}
	delete(t.pending, dir)
	t.granted[dir] = g
	return g, nil
}

// Share takes note that the ring in dir occupies used bytes and returns its limit, bytes; 0: the limit is as before.
// It never waits for the disk.
func (t *Disk) Share(dir string, used int64) int64 {
	if t.max == 0 && t.retain == 0 {
		return t.want
	}
	if !t.mu.TryLock() { // somebody looks at the disk, which may hang: nothing changes for now
		return 0
	}
	defer t.mu.Unlock()
	t.survey(false)
	if t.max == 0 {
		return t.want
	}
	goal := t.goal()
	g := t.granted[dir]
	if goal <= g {
		t.granted[dir] = max(goal, min(used, g))
		return goal
	}
	for soon := need(goal, used); t.free()+t.excess(goal) < soon-g && t.dropOldest(); {
	}
	g += min(goal-g, max(t.free(), 0))
	t.granted[dir] = g
	return g
}

// Leave says that no JVM is recorded into dir any more: the ring counts as ended.
func (t *Disk) Leave(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.granted, dir)
	if t.retain > 0 {
		t.seen[dir] = sighting{at: t.now()}
	}
	t.surveyed = time.Time{}
}

// ForIncidents returns what incidents may occupy, bytes, at most limit.
func (t *Disk) ForIncidents(limit int64) int64 {
	if t.max == 0 {
		return limit
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.survey(true)
	return min(limit, t.frozen+max(t.free(), 0))
}

// Reserve says whether there is room for a recording of size bytes that comes from elsewhere, and keeps the room until
// Unreserve. Disk removes ended rings for it, since it is newer. One reservation at a time.
func (t *Disk) Reserve(size int64) bool {
	if t.max == 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.survey(true)
	if all := t.free() + t.endedSize(); size > all {
		return false
	}
	for t.free() < size && t.dropOldest() {
	}
	if t.free() < size {
		return false
	}
	t.taking = size
	return true
}

// Unreserve ends a reservation: the recording is in the folder, or will not be.
func (t *Disk) Unreserve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taking, t.surveyed = 0, time.Time{}
}

// endedSize is what ended rings occupy.
func (t *Disk) endedSize() (n int64) {
	for _, e := range t.ended {
		n += e.size
	}
	return n
}

// Recount makes the next Admit, Share or Reserve survey the folder, since incidents have changed.
func (t *Disk) Recount() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.surveyed = time.Time{}
}

// goal is the limit of each living ring.
func (t *Disk) goal() int64 {
	n := len(t.granted)
	for d, at := range t.pending {
		if t.now().Sub(at) > pendingFor {
			delete(t.pending, d)
		} else if _, ok := t.granted[d]; !ok {
			n++
		}
	}
	return min(t.want, max((t.max-t.frozen)/int64(max(n, 1)), minShare))
}

// need is the limit that a ring of used bytes needs soon, if it may have goal. A ring evicts its own files from about
// 0.6 of its limit on; so it gets more room before that, and ended rings stay while it is small.
func need(goal, used int64) int64 { return min(goal, max(goal/4, minShare, used/4*7)) }

// excess is what living rings have beyond goal: they give it back when they ask the next time.
func (t *Disk) excess(goal int64) (n int64) {
	for _, g := range t.granted {
		n += max(g-goal, 0)
	}
	return n
}

// TraceSize returns the max_trace_size whose limit M(1+d) is at most limit, bytes, m at most; d is the deviation.
func TraceSize(limit, m int64, d float64) int64 {
	if limit >= RingLimit(m, d) {
		return m
	}
	return int64(float64(limit) / (1 + d))
}

// RingLimit returns M(1+d): what a ring of max_trace_size m and deviation d may occupy, bytes.
func RingLimit(m int64, d float64) int64 { return m + int64(float64(m)*d) }

// free is what is neither granted nor occupied.
func (t *Disk) free() int64 {
	n := t.max - t.frozen - t.taking
	for _, g := range t.granted {
		n -= g
	}
	return n - t.endedSize()
}

// needed is why an ended ring is removed before its time.
const needed = "max_total_size needs the space"

// dropOldest removes the ring of an ended JVM, false if there is none that can be.
func (t *Disk) dropOldest() bool {
	for i, e := range t.ended {
		if t.drop(e, needed) {
			t.ended = append(t.ended[:i], t.ended[i+1:]...)
			return true
		}
	}
	return false
}

// drop removes an ended ring; false: it cannot be removed now.
func (t *Disk) drop(e endedRing, why string) bool {
	var foreign *ringstore.ForeignError
	switch err := ringstore.RemoveRing(e.dir); {
	case errors.Is(err, ringstore.ErrInUse):
		return false
	case errors.As(err, &foreign):
		t.foreign[e.dir] = true
		logs.Write(&t.log, logs.EndedForeign, logs.Err.Of(err), logs.Path.Of(e.dir), logs.Cause.Of(why))
		return true
	case err != nil:
		logs.Write(&t.log, logs.EndedStays, logs.Err.Of(err), logs.Path.Of(e.dir))
		return false
	}
	if why == needed {
		logs.Write(&t.log, logs.EndedReplaced, logs.Path.Of(e.dir), logs.Bytes.Of(e.size), logs.Last.Of(e.last))
	} else {
		logs.Write(&t.log, logs.EndedRemoved, logs.Path.Of(e.dir), logs.Bytes.Of(e.size), logs.Last.Of(e.last))
	}
	return true
}

// survey looks what ended rings and incidents occupy, and removes what has been retained long enough.
func (t *Disk) survey(now bool) {
	if !now && t.now().Sub(t.surveyed) < surveyEnded {
		return
	}
	t.surveyed = t.now()
	t.ended = t.ended[:0]
	es, err := os.ReadDir(t.out)
	if err != nil {
		return
	}
	t.frozen = 0
	for _, e := range es {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			t.surveyFolder(e.Name())
		}
	}
	maps.DeleteFunc(t.seen, func(dir string, _ sighting) bool {
		_, err := os.Lstat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
	sort.Slice(t.ended, func(i, j int) bool { return t.ended[i].last.Before(t.ended[j].last) })
}

// age is how long ago an ended ring was last written to.
func (t *Disk) age(r endedRing) time.Duration {
	now := t.now()
	s, ok := t.seen[r.dir]
	if !ok {
		s = sighting{now, now.Sub(r.last)}
		t.seen[r.dir] = s
	}
	return s.age + now.Sub(s.at)
}

// surveyFolder takes note of one folder: incidents, or the ring of an ended JVM.
func (t *Disk) surveyFolder(name string) {
	dir := filepath.Join(t.out, name)
	if name == IncidentsName {
		t.frozen = ringstore.Occupied(ringstore.OS, dir)
		return
	}
	if _, ok := t.granted[dir]; ok || t.foreign[dir] {
		return
	}
	r := endedRing{dir: dir, size: ringstore.Occupied(ringstore.OS, dir)}
	files, _ := os.ReadDir(dir)
	for _, f := range files {
		if st, err := f.Info(); err == nil && strings.HasSuffix(f.Name(), ".hcr") && st.ModTime().After(r.last) {
			r.last = st.ModTime()
		}
	}
	if r.last.IsZero() { // no ring
		return
	}
	if t.retain > 0 && t.age(r) > t.retain && t.drop(r, "retain_ended has passed") {
		return
	}
	t.ended = append(t.ended, r)
}
