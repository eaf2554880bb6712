// Package sites attributes what lives to allocation sites: rows by class and site with 95 % intervals, and how much of
// the heap they cover.
//
// Terms: a *site* is an allocation stack of one class; *exact* objects are samples, *inferred* ones have no sample and
// are attributed to the sites of samples, each of which stands for as many as its weight says (stats.Total.Fit, the
// estimator of all verbs); *before the recording* are objects that may be older than the recording; *coverage* is the
// share of live bytes whose site is exact or inferred.
//
// Invariants: the rows of a class add up to what the class has, which is exact; a row's figure lies within its bounds;
// at sampling interval 0 figure and bounds are equal. It prints tables through package ui and never touches files.
package sites

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// Row is what lives of one class from one allocation stack, or from none that is known: each class that is split has
// the children SiteUnknown and BeforeRecording too (in Child, with no site), and its children add up to what the class
// has, which is exact. Of a site's objects some are exact (samples), and these stand for the others.
// Low and High are 95 % intervals; at interval 0 every object is a sample and the three are equal. What may be older
// than the recording (at most so much) belongs to no site. A proven row has the one bytecode that has made its objects
// as its site; of what has few candidates (SiteFew) they are listed.
type Row struct {
	Class       string       `json:"class"`
	Loader      string       `json:"loader,omitempty"` // where two classes share a name
	Child       string       `json:"child,omitempty"`
	Site        []StackFrame `json:"site"`
	SiteID      string       `json:"site_id,omitempty"` // the same in other runs and builds (ID); absent with child
	Samples     uint64       `json:"samples"`           // exact objects
	Objects     uint64       `json:"objects"`
	ObjectsLow  uint64       `json:"objects_low"`
	ObjectsHigh uint64       `json:"objects_high"`
	ExactBytes  uint64       `json:"exact_bytes"`
	Bytes       uint64       `json:"bytes"`
	BytesLow    uint64       `json:"bytes_low"`
	BytesHigh   uint64       `json:"bytes_high"`
	Proven      bool         `json:"proven,omitempty"`     // the site has one frame, and its callers are not known
	Candidates  []StackFrame `json:"candidates,omitempty"` // each object is from one of these
	// Of the samples: objects whose innermost frame is exact (--sites exact). Their callers are drawn among the
	// live samples that have this innermost frame. The bounds allow any other of these callers.
	Drawn uint64 `json:"callers_drawn,omitempty"`
}

// Names of the children that a split by site has besides the sites.
const (
	SiteUnknown     = "(site unknown)"
	BeforeRecording = "(before the recording)"
	SiteFew         = "(one of few sites)" // of a type with two to four candidates
)

// Key is a site as samples name it.
type Key struct {
	Frame uint64
	Class Class
}

// Compare orders keys: by class, loader and frame.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Class.Name, o.Class.Name), cmp.Compare(k.Class.VM, o.Class.VM),
		cmp.Compare(k.Class.Loader, o.Class.Loader), cmp.Compare(k.Frame, o.Frame))
}

// Tally sums samples with their weights: each stands for w = 1/p objects, p being the probability that it was drawn.
type Tally struct {
	n       uint64
	objects stats.Total
	bytes   stats.Total
	sampled uint64     // bytes of the samples themselves
	drawn   heap.Count // of n and sampled: objects whose callers were drawn (Callers)
	// What they count: themselves, and what they stand for besides as far as there is room for it (stats.Total.Fit).
	figure, figureBytes float64
	// The figure of objects if the samples of small ones, of which each stands for very many, are not representative.
	figureMost float64
}

func (t *Tally) add(s *heap.Sample, f room, widest heap.Widest) {
	t.n++
	weight, interval := s.Stands()
	missed := widest.Missed(s.Size, interval)
	t.objects.Draw(1, weight, missed)
	t.bytes.Draw(float64(s.Size), weight, missed)
	t.sampled += s.Size
	t.figure += 1 + f.objects*(weight-1)
	t.figureMost += 1 + max(f.objects, f.bytes)*(weight-1)
	t.figureBytes += float64(s.Size) * (1 + f.bytes*(weight-1))
}

// merge adds all samples of o.
func (t *Tally) merge(o *Tally) {
	t.n += o.n
	t.drawn.Objects += o.drawn.Objects
	t.drawn.Bytes += o.drawn.Bytes
	t.sampled += o.sampled
	t.objects.Plus(o.objects, 1)
	t.bytes.Plus(o.bytes, 1)
	t.figure += o.figure
	t.figureMost += o.figureMost
	t.figureBytes += o.figureBytes
}

// objectBounds gives the interval of the figure of objects, of which there are at most so many.
func (t *Tally) objectBounds(most uint64) (low, high uint64) {
	low, high = t.objects.Bounds(t.figure, t.n, most)
	if t.figureMost > t.figure {
		_, high = t.objects.Bounds(t.figureMost, t.n, most)
	}
	return low, high
}

// room is stats.Total.Fit of a type.
type room struct{ objects, bytes float64 }

// ByID gives samples in the order in which they were taken: sums of their weights come out the same, to the last bit,
// each time.
func ByID(samples iter.Seq[*heap.Sample]) iter.Seq[*heap.Sample] {
	return slices.Values(slices.SortedFunc(samples, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) }))
}

// LostMany says whether so many samples were lost that intervals do not hold without them: one of a hundred, or any
// where each allocation is a sample.
func LostMany(r *heap.Cursor) bool {
	lost := uint64(0)
	for _, g := range r.Gaps {
		lost += g.Samples
	}
	return lost > 0 && (lost >= r.Taken/100 || r.JVM.Interval == 0)
}

// Live gives the rows of the state of r.
func Live(r *heap.View, known *CoverageFollower) []Row {
	s := State{Symbols: r.Symbols, Samples: slices.Collect(r.Live.Values()), Types: r.Totals.PerType()}
	if known != nil {
		s.Before, s.Lost = known.Before, known.Lost
		s.Callers = known.CallersAmong(r.Symbols, s.Samples)
		s.FromFew = func(typ uint32) FromFew { return known.FromFew(r.Symbols, typ) }
	}
	return s.Rows()
}

// Bytes gives what a tally counts, and what its samples stand for before it is known how much there is of their types.
func (t *Tally) Bytes() (figure, stood float64) { return t.figureBytes, t.bytes.Sum }

// Stood gives what the samples of a tally stand for.
func (t *Tally) Stood() (objects, bytes float64) { return t.objects.Sum, t.bytes.Sum }

// ByClass adds up counts by type id.
func ByClass(r *heap.Symbols, perType []heap.Count) map[Class]heap.Count {
	have := map[Class]heap.Count{}
	for id, n := range perType {
		if n.Objects > 0 {
			c := ClassOf(r, uint32(id)).Folded()
			h := have[c]
			have[c] = heap.Count{Objects: h.Objects + n.Objects, Bytes: h.Bytes + n.Bytes}
		}
	}
	return have
}

// keyed is a tally with its key.
type keyed struct {
	k Key
	t *Tally
}

// rows renders tallies; have is the exact count of each class, which bounds the estimates and is what the children of a
// class add up to.
func rows(r *heap.Symbols, by map[Key]*Tally, have, before map[Class]heap.Count, few map[Class][]FromFew) []Row {
	by = joined(by, alike(r, by))
	out, all := make([]Row, 0, len(by)), make([]keyed, 0, len(by))
	var classes []Class
	for k, t := range by {
		all = append(all, keyed{k, t})
		classes = append(classes, k.Class)
	}
	slices.SortFunc(all, func(a, b keyed) int {
		if a.t.figureBytes != b.t.figureBytes { // names take longer to compare
			return cmp.Compare(b.t.figureBytes, a.t.figureBytes)
		}
		return cmp.Or(cmp.Compare(a.k.Class.Name, b.k.Class.Name),
			cmp.Compare(a.k.Class.Loader, b.k.Class.Loader), cmp.Compare(a.k.Frame, b.k.Frame))
	})
	for c := range have {
		classes = append(classes, c)
	}
	shared := Loaders(r, classes)
	left := maps.Clone(have)
	// the lower bounds of the rows to come: an estimate that is too high leaves them so much
	reserved := map[Class]heap.Count{}
	for _, x := range all {
		k, t, n := x.k, x.t, have[x.k.Class]
		row := Row{Class: k.Class.Name, Loader: shared[k.Class], Site: Stack(r, k.Frame, MaxFrames),
			Samples: t.n, ExactBytes: t.sampled, Drawn: t.drawn.Objects}
		row.SiteID = ID(row.Class, row.Site)
		row.ObjectsLow, row.ObjectsHigh = t.objectBounds(n.Objects)
		row.BytesLow, row.BytesHigh = t.bytes.Bounds(t.figureBytes, t.sampled, n.Bytes)
		c := reserved[k.Class]
		reserved[k.Class] = heap.Count{Objects: c.Objects + row.ObjectsLow, Bytes: c.Bytes + row.BytesLow}
		out = append(out, row)
	}
	over := map[Class]*remainder{}
	for i, x := range all {
		k, t, row, rest := x.k, x.t, &out[i], left[x.k.Class]
		c := reserved[k.Class]
		c = heap.Count{Objects: c.Objects - row.ObjectsLow, Bytes: c.Bytes - row.BytesLow}
		reserved[k.Class] = c
		if over[k.Class] == nil {
			over[k.Class] = &remainder{}
		}
		o := over[k.Class]
		row.Objects = apportion(t.figure, &o.objects, &row.ObjectsLow, row.ObjectsHigh, rest.Objects, c.Objects)
		row.Bytes = apportion(t.figureBytes, &o.bytes, &row.BytesLow, row.BytesHigh, rest.Bytes, c.Bytes)
		left[k.Class] = heap.Count{Objects: rest.Objects - row.Objects, Bytes: rest.Bytes - row.Bytes}
	}
	otherCallers(r, all, out, have)
	sampled := map[Class]*Tally{}
	for _, x := range all {
		sum := sampled[x.k.Class]
		if sum == nil {
			sum = &Tally{}
			sampled[x.k.Class] = sum
		}
		sum.merge(x.t)
	}
	proven, none := splitAll(noSite(left, have, before, sampled, shared), few)
	slices.SortFunc(proven, func(a, b Row) int { // they come from a map
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Loader, b.Loader),
			cmp.Compare(JoinStack(a.Site), JoinStack(b.Site)))
	})
	out = append(out, proven...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	slices.SortFunc(none, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Loader, b.Loader),
			cmp.Compare(b.Child, a.Child), cmp.Compare(JoinStack(a.Candidates), JoinStack(b.Candidates)))
	})
	return append(out, none...)
}

// remainder is what rounding has left over of the rows of a class so far. The next row gets it: else rows of many sites
// would leave objects without bytes, or bytes without objects, for the row without a site.
type remainder struct{ objects, bytes float64 }

// apportion gives an estimate as a whole number within its bounds that leaves of rest what is reserved for others.
// over is what rounding has left over. Where a class has less than the lower bounds of all its sites, low is less too.
func apportion(estimate float64, over *float64, low *uint64, high, rest, reserved uint64) uint64 {
	estimate = min(estimate+*over, 1<<62)
	v := min(max(uint64(math.Round(max(estimate, 0))), *low), high)
	v = min(v, max(*low, rest-min(rest, reserved)), rest)
	*low = min(*low, v)
	*over = min(max(estimate-float64(v), -0.5), 0.5)
	return v
}

// noSite gives the children of each class that are no sites: what is left of it. Their bounds are those of all that the
// class has (have) without what all its samples together stand for (sampled), as in a grouping.
func noSite(
	left, have, before map[Class]heap.Count,
	sampled map[Class]*Tally,
	shared map[Class]string,
) (rows []restRow) {
	for c, l := range left {
		all, b := have[c], before[c]
		b = heap.Count{Objects: min(b.Objects, l.Objects), Bytes: min(b.Bytes, l.Bytes)}
		row := Row{Class: c.Name, Loader: shared[c], Child: SiteUnknown, Site: []StackFrame{},
			Objects: l.Objects - b.Objects, ObjectsLow: all.Objects - b.Objects, ObjectsHigh: all.Objects,
			Bytes: l.Bytes - b.Bytes, BytesLow: all.Bytes - b.Bytes, BytesHigh: all.Bytes}
		if t := sampled[c]; t != nil {
			low, high := t.objectBounds(all.Objects)
			row.ObjectsLow, row.ObjectsHigh = rest(all.Objects, low, high, b.Objects, row.Objects)
			low, high = t.bytes.Bounds(t.figureBytes, t.sampled, all.Bytes)
			row.BytesLow, row.BytesHigh = rest(all.Bytes, low, high, b.Bytes, row.Bytes)
		}
		known := uint64(0)
		knownBytes := uint64(0)
		if t := sampled[c]; t != nil {
			known, knownBytes = t.n, t.sampled
		}
		rows = append(rows, restRow{row, c, heap.Count{Objects: all.Objects - min(all.Objects, known+b.Objects),
			Bytes: all.Bytes - min(all.Bytes, knownBytes+b.Bytes)}})
		row.Child = BeforeRecording
		row.Objects, row.ObjectsLow, row.ObjectsHigh = b.Objects, 0, b.Objects
		row.Bytes, row.BytesLow, row.BytesHigh = b.Bytes, 0, b.Bytes
		rows = append(rows, restRow{Row: row, class: c})
	}
	return rows
}

// rest gives the bounds of what remains of all when low to high have a site, and up to before may be older than the
// recording. The remainder that is shown is within them.
func rest(all, low, high, before, shown uint64) (least, most uint64) {
	least = all - min(all, high)
	return min(shown, least-min(least, before)), max(shown, all-min(all, low))
}

// grown is by how much a site, or a class, has more than before.
type grown struct {
	k                       Key
	samples, objects, bytes float64
}

// growthOf gives by how much each class has more objects and bytes in a state by type than in another.
func growthOf(r *heap.Symbols, before, after []heap.Count) map[Class]*grown {
	by := map[Class]*grown{}
	add := func(all []heap.Count, sign float64) {
		for id, n := range all {
			if n.Objects == 0 {
				continue
			}
			c := ClassOf(r, uint32(id)).Folded()
			if by[c] == nil {
				by[c] = &grown{}
			}
			by[c].objects += sign * float64(n.Objects)
			by[c].bytes += sign * float64(n.Bytes)
		}
	}
	add(before, -1)
	add(after, 1)
	return by
}

// within lets the sites of a class grow by no more than the class did and other sites of it shrank: samples know only
// what was allocated in the recording, and some of that has taken the place of what stood there before.
func within(all []grown, classes map[Class]*grown) {
	var up, down = map[Class]grown{}, map[Class]grown{}
	for _, g := range all {
		to := up
		if g.bytes < 0 {
			to = down
		}
		sum := to[g.k.Class]
		sum.objects, sum.bytes = sum.objects+g.objects, sum.bytes+g.bytes
		to[g.k.Class] = sum
	}
	for i := range all {
		g := &all[i]
		c, sum, less := classes[g.k.Class], up[g.k.Class], down[g.k.Class]
		if c == nil || g.bytes <= 0 {
			continue
		}
		if most := max(0, c.bytes-less.bytes); sum.bytes > most {
			g.bytes *= most / sum.bytes
		}
		if most := max(0, c.objects-less.objects); sum.objects > most {
			g.objects *= most / sum.objects
		}
	}
}

// GrownSites gives the sites whose live bytes grew, by growth; the first most of them. before and after are the states
// by type.
func GrownSites(r *heap.Symbols, first, last map[Key]*Tally, before, after []heap.Count, most int) []GrownRow {
	var all []grown
	var classes []Class
	same := alike(r, first, last)
	first, last = joined(first, same), joined(last, same)
	for k, f := range first {
		if last[k] == nil {
			all = append(all, grown{k, -float64(f.n), -f.figure, -f.figureBytes})
		}
	}
	for k, l := range last {
		g := grown{k, float64(l.n), l.figure, l.figureBytes}
		if f := first[k]; f != nil {
			g = grown{k, g.samples - float64(f.n), g.objects - f.figure, g.bytes - f.figureBytes}
		}
		all = append(all, g)
	}
	// In one order, so that sums are the same each time: of maps they come in any.
	slices.SortFunc(all, func(a, b grown) int { return a.k.Compare(b.k) })
	within(all, growthOf(r, before, after))
	all = slices.DeleteFunc(all, func(g grown) bool { return g.bytes < 1 })
	for _, g := range all {
		classes = append(classes, g.k.Class)
	}
	slices.SortFunc(all, func(a, b grown) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), a.k.Compare(b.k))
	})
	shared := Loaders(r, classes)
	out := []GrownRow{}
	for _, g := range all[:min(len(all), most)] {
		row := GrownRow{Class: g.k.Class.Name, Loader: shared[g.k.Class], Site: Stack(r, g.k.Frame, MaxFrames),
			Samples: int64(g.samples), Objects: int64(math.Round(g.objects)), Bytes: int64(math.Round(g.bytes))}
		row.SiteID = ID(row.Class, row.Site)
		out = append(out, row)
	}
	return out
}

// GrownRow is a site that grew between the first and the last known collection, estimated from samples. Samples is how
// many more live.
type GrownRow struct {
	Class   string       `json:"class"`
	Loader  string       `json:"loader,omitempty"`
	Site    []StackFrame `json:"site"`
	SiteID  string       `json:"site_id"` // the same in other runs and builds (ID)
	Samples int64        `json:"samples"`
	Objects int64        `json:"objects"`
	Bytes   int64        `json:"bytes"`
}
