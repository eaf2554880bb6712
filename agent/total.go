package agent

import (
	"errors"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/ringstore"
)

// errNoShare says that max_total_size leaves no room for one more JVM, the smallest ring included.
var errNoShare = errors.New("max_total_size leaves no room for another ring")

const (
	// minShare is the smallest limit of a ring that is worth recording into, bytes.
	minShare = 1 << 20
	// surveyEnded is how often the folder is looked through for rings of ended JVMs.
	surveyEnded = 5 * time.Second
	// pendingFor is how long a JVM that was refused counts as one that wants a share.
	pendingFor = 10 * time.Second
)

// total shares max_total_size among the rings below one folder. What may be occupied is granted before it is taken: the sum of what is granted
// to living rings, of the rings of ended JVMs and of all incidents (the files that a ring has too counted twice) never exceeds the limit.
// Each living ring may have an equal part, and no more than its own limit. A new one gets what is free, then what ended rings give up, oldest
// first, then what larger ones give up as they hear of their smaller part; with less than minShare it is refused and may ask again.
type total struct {
	max, want int64         // max_total_size; M(1+d) of one ring
	retain    time.Duration // of ended rings; 0: until space is needed
	out       string
	log       zerolog.Logger
	now       func() time.Time

	mu       sync.Mutex
	granted  map[string]int64 // by ring folder
	pending  map[string]time.Time
	surveyed time.Time
	ended    []endedRing     // oldest first
	foreign  map[string]bool // folders of removed rings where files of other recordings were left: nobody's ring
	frozen   int64
	taking   int64 // a recording that is being taken from the spool folder
}

type endedRing struct {
	dir  string
	size int64
	last time.Time
}

func newTotal(cfg *Config) *total {
	return &total{
		max: cfg.MaxTotal, want: cfg.MaxTraceSize + int64(float64(cfg.MaxTraceSize)*cfg.Deviation), retain: cfg.RetainEnded, out: cfg.Out, log: cfg.Log,
		now: time.Now, granted: map[string]int64{}, pending: map[string]time.Time{}, foreign: map[string]bool{},
	}
}

// admit grants a new or returning ring its first limit, bytes that it may occupy. Errors: errNoShare.
func (t *total) admit(dir string) (int64, error) {
	if t.max == 0 && t.retain == 0 {
		return t.want, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.granted[dir] = 0 // it is not ended
	delete(t.foreign, dir)
	t.survey(true)
	if t.max == 0 {
		t.granted[dir] = t.want
		return t.want, nil
	}
	used := ringstore.Occupied(ringstore.OS, dir)
	goal := t.goal()
	for t.free() < goal && t.dropOldest() {
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
		return 0, errNoShare
	}
	delete(t.pending, dir)
	t.granted[dir] = g
	return g, nil
}

// look tells how much a ring occupies and gives what it may; 0: what it may already. It waits for nobody.
func (t *total) look(dir string, used int64) int64 {
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
	for t.free() < goal-g && t.dropOldest() {
	}
	g += min(goal-g, max(t.free(), 0))
	t.granted[dir] = g
	return g
}

// leave says that a ring's JVM has ended.
func (t *total) leave(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.granted, dir)
	t.surveyed = time.Time{}
}

// forIncidents is what incidents may occupy, bytes.
func (t *total) forIncidents(limit int64) int64 {
	if t.max == 0 {
		return limit
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.survey(true)
	return min(limit, t.frozen+max(t.free(), 0))
}

// take says whether a recording of size bytes, from elsewhere, finds room, and keeps it until took. It is the newest: ended rings make room for it.
func (t *total) take(size int64) bool {
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

// took says that it is there, or will not be.
func (t *total) took() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taking, t.surveyed = 0, time.Time{}
}

func (t *total) endedSize() (n int64) {
	for _, e := range t.ended {
		n += e.size
	}
	return n
}

// frozenNow looks again at what incidents occupy.
func (t *total) frozenNow() { t.mu.Lock(); t.surveyed = time.Time{}; t.mu.Unlock() }

// goal is the limit of each living ring.
func (t *total) goal() int64 {
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

// free is what is neither granted nor occupied.
func (t *total) free() int64 {
	n := t.max - t.frozen - t.taking
	for _, g := range t.granted {
		n -= g
	}
	return n - t.endedSize()
}

// dropOldest removes the ring of an ended JVM, false if there is none that can be.
func (t *total) dropOldest() bool {
	for i, e := range t.ended {
		if t.drop(e, "space is needed") {
			t.ended = append(t.ended[:i], t.ended[i+1:]...)
			return true
		}
	}
	return false
}

func (t *total) drop(e endedRing, why string) bool {
	var foreign *ringstore.ForeignError
	switch err := ringstore.RemoveRing(e.dir); {
	case errors.Is(err, ringstore.ErrInUse):
		return false
	case errors.As(err, &foreign):
		t.foreign[e.dir] = true
		t.log.Warn().Err(err).Str("dir", e.dir).Str("why", why).
			Msg("the ring of an ended JVM was removed; its folder stays, with ring files of another recording")
		return true
	case err != nil:
		t.log.Warn().Err(err).Str("dir", e.dir).Msg("the ring of an ended JVM can not be removed")
		return false
	}
	t.log.Info().Str("dir", e.dir).Int64("bytes", e.size).Time("last", e.last).Str("why", why).Msg("the ring of an ended JVM was removed")
	return true
}

// survey looks what ended rings and incidents occupy, and removes what has been retained long enough.
func (t *total) survey(now bool) {
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
		dir := filepath.Join(t.out, e.Name())
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if e.Name() == IncidentsName {
			t.frozen = ringstore.Occupied(ringstore.OS, dir)
			continue
		}
		if _, ok := t.granted[dir]; ok || t.foreign[dir] {
			continue
		}
		r := endedRing{dir: dir, size: ringstore.Occupied(ringstore.OS, dir)}
		files, _ := os.ReadDir(dir)
		for _, f := range files {
			if st, err := f.Info(); err == nil && strings.HasSuffix(f.Name(), ".hcr") && st.ModTime().After(r.last) {
				r.last = st.ModTime()
			}
		}
		if r.last.IsZero() { // no ring
			continue
		}
		if t.retain > 0 && t.now().Sub(r.last) > t.retain && t.drop(r, "retain_ended") {
			continue
		}
		t.ended = append(t.ended, r)
	}
	sort.Slice(t.ended, func(i, j int) bool { return t.ended[i].last.Before(t.ended[j].last) })
}
