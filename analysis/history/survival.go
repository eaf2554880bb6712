package history

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// SurvivalReport is the whole of `heapcam trend --survival`.
type SurvivalReport struct {
	Schema string      `json:"schema"`
	Types  []Curve     `json:"types"`
	Sites  []Curve     `json:"sites"`
	Advice []Pretenure `json:"pretenure"`
	// collections, such as full ones and those soon after them, of which it is not known which objects died. Types do
	// not count these deaths: the true shares may be lower
	Uncounted int `json:"uncounted_collections"`
}

// Curve is the share of objects that lives so many collections: Survive[k] is of those that were there after k,
// Survive[0] is 1. Of a type it begins with what the state saw first (at depth survivors with what survived a
// collection), exactly, but for deaths at the collections of SurvivalReport.Uncounted; of a site with what was
// allocated, estimated from samples. Ages that nothing of the window has are missing (Kaplan and Meier: what still
// lives at the end counts up to there).
type Curve struct {
	Class   string             `json:"class"`
	Site    []sites.StackFrame `json:"site,omitempty"`
	Objects uint64             `json:"objects"` // that the curve begins with
	Samples uint64             `json:"samples,omitempty"`
	Survive []float64          `json:"survive"`
}

// Pretenure names a site whose objects nearly all reach old space (VEE'10): allocated there at once they would not be
// copied.
type Pretenure struct {
	Class   string             `json:"class"`
	Site    []sites.StackFrame `json:"site"`
	Samples uint64             `json:"samples"`
	Objects uint64             `json:"objects"` // allocated, estimated
	Bytes   uint64             `json:"bytes"`   // allocated, estimated
	Tenured float64            `json:"tenured"` // share of them that reached old space
	// by young collections: between survivor spaces, and into old space
	Copied uint64 `json:"copied_bytes"`
}

// maxAge is how many collections curves go; leastSamples how many samples a site needs for a curve or for advice;
// nearlyAll the tenured share that is worth advice.
const (
	maxAge       = 32
	leastSamples = 20
	nearlyAll    = 0.8
)

// leastRisk is how many objects, or samples, of an age must be at risk to go on with a curve: the death of the last one
// would make it 0.
const leastRisk = 5

// hazards counts, by age, what was at risk and what of it did not reach the next, and how many objects or samples that
// were.
type hazards struct {
	risk, lost, many [maxAge]float64
}

func (h *hazards) curve() []float64 {
	out := []float64{1}
	s := 1.0
	for k := range maxAge {
		if h.risk[k] <= 0 || h.many[k] < leastRisk {
			break
		}
		s *= max(0, 1-h.lost[k]/h.risk[k])
		out = append(out, math.Round(s*1e6)/1e6)
	}
	return out
}

// siteLife is what becomes of the samples of a site.
type siteLife struct {
	hazards
	n                      uint64
	objects, bytes         float64
	tenured, known, copied float64
}

// sampleLife is a sample that is followed.
type sampleLife struct {
	s    *heap.Sample
	site *siteLife
	age  int  // collections survived
	old  bool // has reached old space
}

// Survival replays r and gives the survival of types and sites, most objects first, and what to pretenure, most copying
// first. most bounds each.
func Survival(r *heap.Replay, most int) (*SurvivalReport, error) {
	x := newSurviving(r)
	if err := x.follow(); err != nil {
		return nil, err
	}
	return x.report(most), nil
}

func newSurviving(r *heap.Replay) *surviving {
	return &surviving{r: r, types: map[uint32]*hazards{}, born: map[uint32]uint64{}, was: map[[2]uint32]uint64{},
		bySite: map[siteOf]*siteLife{}, samplesOf: map[uint64]*sampleLife{},
		fold: func() ([]heap.Folded, error) { return r.View().Fold(heap.WantBirth, nil, 1) }}
}

// follow replays all.
func (x *surviving) follow() error {
	return collection.Each(x.r, func(c *heap.Collection) bool {
		begun := x.begun
		if counted := c.Known && x.objects(c); begun && !counted {
			x.uncounted++
		}
		x.begun = begun || c.Known
		x.taken()
		switch {
		case c.Flags&trace.PauseEdenKept != 0:
		case c.Kind == trace.PauseRemark || c.Kind == trace.PauseCleanup || c.Kind == trace.PauseWalk:
		default: // a collection that a young object could survive
			x.samples(c)
		}
		return true
	})
}

// surviving is a SurvivalReport that is being made.
type surviving struct {
	r     *heap.Replay
	types map[uint32]*hazards
	born  map[uint32]uint64
	was   map[[2]uint32]uint64 // by type and birth, after collection wasGC
	wasGC uint64
	begun bool // a state was known
	// collections since then at which deaths of objects were not counted
	uncounted int
	bySite    map[siteOf]*siteLife
	// of samples that are followed, by id
	samplesOf map[uint64]*sampleLife
	fold      func() ([]heap.Folded, error) // the state by type and birth
}

// siteOf names a site by ids: names may follow later.
type siteOf struct{ frame, typ uint64 }

// objects takes in how many objects of each age have survived c. It says whether deaths at c could be counted.
func (x *surviving) objects(c *heap.Collection) bool {
	fs, err := x.fold()
	if err != nil { // who has died is not known: the next collection begins anew
		x.was, x.wasGC = nil, 0
		return false
	}
	now := map[[2]uint32]uint64{}
	unsure := map[uint32]uint32{} // by type, the newest birth of objects whose birth is not known: they may be older
	lost := false                 // a full collection that lost identities says nothing of who died
	for _, f := range fs {
		lost = lost || f.AtLeast && uint64(f.Birth) > x.r.First
		if f.AtLeast {
			unsure[f.Type] = max(unsure[f.Type], f.Birth)
			continue
		}
		now[[2]uint32{f.Type, f.Birth}] += f.Objects
		if uint64(f.Birth) == c.GC {
			x.born[f.Type] += f.Objects
		}
	}
	counted := x.wasGC+1 == c.GC && !lost
	if counted {
		for k, n := range x.was {
			age := x.wasGC - uint64(k[1])
			if newest, is := unsure[k[0]]; age >= maxAge || is && k[1] <= newest {
				continue
			}
			h := x.types[k[0]]
			if h == nil {
				h = &hazards{}
				x.types[k[0]] = h
			}
			h.risk[age] += float64(n)
			h.many[age] += float64(n)
			h.lost[age] += float64(n - min(n, now[k]))
		}
	}
	x.was, x.wasGC = now, c.GC
	return counted
}

// taken begins to follow the samples that were taken before the newest collection.
func (x *surviving) taken() {
	for _, s := range x.r.Sampled {
		k := siteOf{s.Frame, s.Type}
		l := x.bySite[k]
		if l == nil {
			l = &siteLife{}
			x.bySite[k] = l
		}
		l.n++
		l.objects += s.Weight
		l.bytes += s.Weight * float64(s.Size)
		x.samplesOf[s.ID] = &sampleLife{s: s, site: l}
	}
}

// samples takes in which samples have survived c, and which of them are in old space now.
func (x *surviving) samples(c *heap.Collection) {
	old := x.places(c)
	for id, l := range x.samplesOf {
		if l.s.Birth > c.GC { // read ahead: of the phase that continues
			continue
		}
		w := l.s.Weight
		if l.age < maxAge {
			l.site.risk[l.age] += w
			l.site.many[l.age]++
		}
		if x.r.Live.Get(id) == nil {
			if l.age < maxAge {
				l.site.lost[l.age] += w
			}
			if !l.old {
				l.site.known += w
			}
			delete(x.samplesOf, id)
			continue
		}
		l.age++
		if l.old {
			continue
		}
		if in, ok := old[id]; ok {
			l.site.copied += w * float64(l.s.Size)
			if in {
				l.old = true
				l.site.known += w
				l.site.tenured += w
			}
		}
	}
}

// places says of each sample whose place after c is known whether it is in old space.
func (x *surviving) places(c *heap.Collection) map[uint64]bool {
	old := map[uint64]bool{}
	if !c.Known {
		return old
	}
	v := x.r.View()
	spaces := v.Spaces(c.Spaces)
	v.EachSample(func(addr uint64, s *heap.Sample) {
		i := sort.Search(len(spaces), func(i int) bool { return spaces[i].End > addr })
		if i < len(spaces) && spaces[i].Start <= addr {
			k := spaces[i].Kind
			old[s.ID] = k == trace.SpaceOld || k == trace.SpaceHumongous || k == trace.SpaceHumongousCont
		}
	})
	return old
}

func (x *surviving) report(most int) *SurvivalReport {
	rep := &SurvivalReport{Schema: "heapcam.survival/1", Types: []Curve{}, Sites: []Curve{}, Advice: []Pretenure{},
		Uncounted: x.uncounted}
	for t, h := range x.types {
		if x.born[t] > 0 {
			rep.Types = append(rep.Types, Curve{Class: x.r.TypeName(t), Objects: x.born[t], Survive: h.curve()})
		}
	}
	for k, l := range x.bySite {
		if l.n < leastSamples {
			continue
		}
		site := sites.Stack(x.r.Symbols, k.frame, sites.MaxFrames)
		class, objects := x.r.TypeName(uint32(k.typ)), uint64(math.Round(l.objects))
		rep.Sites = append(rep.Sites,
			Curve{Class: class, Site: site, Objects: objects, Samples: l.n, Survive: l.curve()})
		if l.known > 0 && l.tenured/l.known >= nearlyAll {
			rep.Advice = append(rep.Advice, Pretenure{Class: class, Site: site, Samples: l.n, Objects: objects,
				Bytes: uint64(math.Round(l.bytes)), Tenured: l.tenured / l.known, Copied: uint64(math.Round(l.copied))})
		}
	}
	less := func(a, b Curve) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(a.Class, b.Class),
			cmp.Compare(len(a.Site), len(b.Site)), cmp.Compare(sites.JoinStack(a.Site), sites.JoinStack(b.Site)))
	}
	slices.SortFunc(rep.Types, less)
	slices.SortFunc(rep.Sites, less)
	slices.SortFunc(rep.Advice, func(a, b Pretenure) int {
		return cmp.Or(cmp.Compare(b.Copied, a.Copied), cmp.Compare(a.Class, b.Class),
			cmp.Compare(sites.JoinStack(a.Site), sites.JoinStack(b.Site)))
	})
	if most > 0 {
		rep.Types = rep.Types[:min(most, len(rep.Types))]
		rep.Sites = rep.Sites[:min(most, len(rep.Sites))]
		rep.Advice = rep.Advice[:min(most, len(rep.Advice))]
	}
	return rep
}
