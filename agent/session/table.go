package session

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/site"
)

const (
	// tableSites bounds the sites of a table. tableCollections bounds the collections that are kept for one.
	tableSites       = 2000
	tableCollections = 5_000
	// tableLate is how much later than others a session may give its rows.
	tableLate = 30 * time.Second
)

// Table is what the tables of an agent get of one JVM. Its rows do not say whose they are.
type Table struct {
	Of          Status
	To          time.Time
	Sites       []tables.SiteRow
	Stacks      []tables.StackRow // those of Sites
	Collections []tables.CollectionRow
	LeftOut     uint64 // collections that exceeded the bound
}

// tabler gathers the rows of one session.
type tabler struct {
	next        time.Time
	late        time.Duration // after the whole interval: not all sessions at once
	alloc       coverage.Flow // since the last table
	collections []tables.CollectionRow
	leftOut     uint64
}

// takeFlows takes what happened since it was taken last. The part that tables need is kept for them, too.
func (s *Session) takeFlows() coverage.Flows {
	f := s.heap.live.est.TakeFlows()
	if s.cfg.TableEvery > 0 {
		t := &s.heap.tables
		if t.alloc == nil {
			t.alloc = coverage.Flow{}
		}
		t.alloc.AddAll(f.Allocated)
	}
	return f
}

// tableDue gives the agent the rows of the last interval if it is time for that.
func (s *Session) tableDue(now time.Time) {
	t, every := &s.heap.tables, s.cfg.TableEvery
	if s.hooks.Table == nil || every <= 0 || now.Before(t.next) {
		return
	}
	first := t.next.IsZero()
	if first {
		t.late = rand.N(min(tableLate, every/2))
	}
	t.next = now.Add(-t.late).Truncate(every).Add(every + t.late)
	if first {
		_ = s.flowsOfProfiles()
		return
	}
	_ = s.charged(func() error {
		s.hooks.Table(s.table(now))
		return nil
	})
}

// lastTable gives the agent the rows since the last table, when the session ends.
func (s *Session) lastTable() {
	if s.hooks.Table != nil && len(s.heap.tables.collections) > 0 {
		s.hooks.Table(s.table(time.Now()))
	}
}

// flowsOfProfiles takes flows for tables without keeping them from profiles.
func (s *Session) flowsOfProfiles() coverage.Flows {
	p := &s.heap.profiles
	f := s.takeFlows()
	if s.cfg.ProfileEvery > 0 {
		if p.kept.Allocated == nil {
			p.kept = coverage.Flows{Allocated: coverage.Flow{}, Survived: coverage.Flow{}, Freed: coverage.Flow{}}
		}
		p.kept.Allocated.AddAll(f.Allocated)
		p.kept.Survived.AddAll(f.Survived)
		p.kept.Freed.AddAll(f.Freed)
	}
	return f
}

// table gives the rows of the last interval.
func (s *Session) table(now time.Time) *Table {
	s.flowsOfProfiles()
	t := &s.heap.tables
	out := &Table{Of: s.Status(), To: now, Collections: t.collections, LeftOut: t.leftOut}
	alloc := t.alloc
	t.alloc, t.collections, t.leftOut = nil, nil, 0
	type key struct {
		coverage.Site
		known bool
	}
	type row struct{ live, alloc coverage.Estimate }
	by := map[key]row{}
	s.heap.live.est.EachSite(func(at coverage.Site, known bool, e coverage.Estimate) {
		by[key{at, known}] = row{live: e}
	})
	for at, e := range alloc {
		r := by[key{at, true}]
		r.alloc = e
		by[key{at, true}] = r
	}
	keys := make([]key, 0, len(by))
	for k := range by {
		keys = append(keys, k)
	}
	weight := func(k key) float64 { return by[k].live.Bytes + by[k].alloc.Bytes }
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Frame, b.Frame))
	})
	at, rest, stacks := s.wall(s.heap.live.ended), row{}, map[string]bool{}
	put := func(class, id, stack string, r row) {
		out.Sites = append(out.Sites, tables.SiteRow{TimeMS: at, GC: s.heap.live.gc, Class: class, SiteID: id,
			StackID: stack, Objects: whole(r.live.Objects), Bytes: whole(r.live.Bytes),
			AllocObjects: whole(r.alloc.Objects), AllocBytes: whole(r.alloc.Bytes)})
	}
	for i, k := range keys {
		if i >= tableSites || k.Site == coverage.Others {
			rest.live, rest.alloc = rest.live.Plus(by[k].live), rest.alloc.Plus(by[k].alloc)
			continue
		}
		class, frames := s.rawClass(k.Type), s.frames(k.Frame)
		if !k.known {
			put(class, "", "", by[k])
			continue
		}
		text := site.Join(frames)
		id := site.StackID(text)
		if !stacks[id] {
			stacks[id] = true
			out.Stacks = append(out.Stacks, tables.StackRow{StackID: id, Stack: text})
		}
		put(class, site.ID(class, frames), id, by[k])
	}
	if rest != (row{}) {
		put(otherSite, "", "", rest)
	}
	return out
}

func whole(x float64) uint64 { return uint64(math.Round(max(0, min(x, trace.MaxBytes)))) }

// wall gives a time of the stream, Unix ms.
func (s *Session) wall(ns uint64) int64 {
	return int64(min(s.in.jvm.T0WallMS, 1<<47)) + int64(min(ns, trace.MaxTime)/uint64(time.Millisecond))
}

// collectionRow keeps a collection for the next table.
func (s *Session) collectionRow(e *trace.Epoch, used uint64) {
	s.heap.live.ended = e.Over()
	t := &s.heap.tables
	switch {
	case s.cfg.TableEvery <= 0:
		return
	case len(t.collections) >= tableCollections:
		t.leftOut++
		return
	}
	p := &e.Pause
	total, known := s.heap.live.total()
	t.collections = append(t.collections, tables.CollectionRow{TimeMS: s.wall(e.Over()), GC: p.GC, JVMGC: p.JVMGC,
		Kind: trace.PauseKindNames.String(p.Kind), Cause: trace.CleanAttr(p.Cause), PauseNS: p.Dur, ProbeNS: p.Probe,
		UsedBytes: used, Known: known, Objects: total.Objects, Bytes: total.Bytes})
}

// rawClass gives the name of a type as readers of a recording see it.
func (s *Session) rawClass(typ uint32) string {
	t, ok := s.defs.Type(uint64(typ))
	if !ok {
		return noClass
	}
	return t.Pretty()
}

// frames gives the frames of a node of the trie of stacks, as readers of a recording see them.
func (s *Session) frames(frame uint64) (out []site.Frame) {
	for frame != 0 && len(out) < site.MaxFrames {
		f, ok := s.defs.Frame(frame)
		if !ok {
			break
		}
		m, _ := s.defs.Method(f.Method)
		out = append(out, site.Frame{Class: trace.PrettySignature(m.Class), Method: m.Name, File: m.File,
			Line: max(m.Line(f.BCI), 0), Native: m.Flags&trace.MethodNative != 0})
		frame = f.Parent
	}
	return out
}
