package session

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

const (
	// profileSites bounds the sites of a profile, profileFrames the frames of each.
	profileSites  = 1000
	profileFrames = 64
	// profileShare is what profiles may take of the time: after one that took long, some are left out.
	profileShare = 0.01

	// What stands for a stack where there is none.
	noFrame   = "(no Java frame)"
	noSite    = "(site not known)"
	noClass   = "(unknown class)"
	otherSite = "(other)"
)

// Profile is what a JVM's heap has by class and allocation site, and what happened in a time. Its live objects are
// those after the newest collection: garbage of the young generation is not among them.
type Profile struct {
	Of       Status
	From, To time.Time // of the flows
	GC       uint64    // the collection after which InUse holds
	Known    bool      // InUse is known
	Rows     []ProfileRow
}

// Values of a row of a profile, each objects and bytes.
const (
	InUse = iota
	Allocated
	Survived
	Freed
	ProfileValues
)

// ProfileRow is a class at an allocation site.
type ProfileRow struct {
	Class  string         // "" of what exceeds the bounds of a profile
	Stack  []ProfileFrame // innermost first; at least one
	Values [ProfileValues]coverage.Estimate
}

// ProfileFrame is a frame of a stack.
type ProfileFrame struct {
	Name, File string
	Line       int
}

// profiler takes profiles of one session.
type profiler struct {
	from, next time.Time
	kept       coverage.Flows // that tables have taken
}

// profileDue takes a profile if it is time for one, and hands it to the agent.
func (s *Session) profileDue(now time.Time) {
	every := s.cfg.ProfileEvery
	if s.hooks.Profile == nil || every <= 0 || now.Before(s.heap.profiles.next) {
		return
	}
	first := s.heap.profiles.from.IsZero()
	_ = s.charged(func() error {
		from := threadCPU()
		p := s.profile(now)
		if !first {
			s.hooks.Profile(p)
		}
		rest := time.Duration(float64(threadCPU()-from) / profileShare)
		s.heap.profiles.next = now.Truncate(every).Add(every)
		for s.heap.profiles.next.Before(now.Add(rest)) {
			s.heap.profiles.next = s.heap.profiles.next.Add(every)
		}
		return nil
	})
	s.heap.profiles.from = now
}

// profile gives the profile of what happened since the last one.
func (s *Session) profile(now time.Time) *Profile {
	est := s.heap.live.est
	p := &Profile{Of: s.Status(), From: s.heap.profiles.from, To: now, GC: s.heap.live.gc}
	type key struct {
		coverage.Site
		known bool
	}
	by := map[key]*ProfileRow{}
	add := func(k key, value int, e coverage.Estimate) {
		r := by[k]
		if r == nil {
			r = &ProfileRow{}
			by[k] = r
		}
		r.Values[value].Objects += e.Objects
		r.Values[value].Bytes += e.Bytes
	}
	p.Known = est.EachSite(func(at coverage.Site, known bool, e coverage.Estimate) { add(key{at, known}, InUse, e) })
	flows := s.profileFlows()
	for i, f := range []coverage.Flow{flows.Allocated, flows.Survived, flows.Freed} {
		for at, e := range f {
			add(key{at, true}, Allocated+i, e)
		}
	}
	type weighed struct {
		key
		*ProfileRow
		weight float64
	}
	all := make([]weighed, 0, len(by))
	for k, r := range by {
		w := weighed{key: k, ProfileRow: r}
		for _, v := range r.Values {
			w.weight += v.Bytes
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Frame, b.Frame))
	})
	names := map[uint64]ProfileFrame{}
	others := ProfileRow{Stack: []ProfileFrame{{Name: otherSite}}}
	for i, k := range all {
		r := k.ProfileRow
		if i >= profileSites || k.Site == coverage.Others {
			for v, e := range r.Values {
				others.Values[v].Objects += e.Objects
				others.Values[v].Bytes += e.Bytes
			}
			continue
		}
		r.Class, r.Stack = s.className(k.Type), s.stackOf(k.Frame, names)
		if !k.known {
			r.Stack = []ProfileFrame{{Name: noSite}}
		}
		p.Rows = append(p.Rows, *r)
	}
	if others.Values != [ProfileValues]coverage.Estimate{} {
		p.Rows = append(p.Rows, others)
	}
	return p
}

// profileFlows gives what happened since the last profile.
func (s *Session) profileFlows() coverage.Flows {
	f, kept := s.takeFlows(), s.heap.profiles.kept
	s.heap.profiles.kept = coverage.Flows{}
	if kept.Allocated == nil {
		return f
	}
	kept.Allocated.AddAll(f.Allocated)
	kept.Survived.AddAll(f.Survived)
	kept.Freed.AddAll(f.Freed)
	return kept
}

// className gives the name of a type as it is printed.
func (s *Session) className(typ uint32) string {
	t, ok := s.defs.Type(uint64(typ))
	if !ok {
		return noClass
	}
	return string(ui.Name(t.Pretty()))
}

// stackOf gives the frames of a node of the trie of stacks. names keeps what it works out of methods.
func (s *Session) stackOf(frame uint64, names map[uint64]ProfileFrame) (out []ProfileFrame) {
	for frame != 0 && len(out) < profileFrames {
		f, ok := s.defs.Frame(frame)
		if !ok {
			break
		}
		m, _ := s.defs.Method(f.Method)
		at, ok := names[f.Method]
		if !ok {
			at = ProfileFrame{Name: string(ui.Name(m.Pretty())), File: string(ui.Name(m.File))}
			names[f.Method] = at
		}
		at.Line = m.Line(f.BCI)
		out = append(out, at)
		frame = f.Parent
	}
	if len(out) == 0 {
		out = []ProfileFrame{{Name: noFrame}}
	}
	return out
}

// Value gives a figure of a row as whole objects and bytes.
func (r *ProfileRow) Value(v int) (objects, bytes int64) {
	whole := func(x float64) int64 { return int64(math.Round(max(0, min(x, trace.MaxBytes)))) }
	return whole(r.Values[v].Objects), whole(r.Values[v].Bytes)
}
