package leak

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// structure is a data structure: sites that belong together, because the application's innermost frame of all is in
// one method (that which calls the constructor, if it is one) and as many objects of each come in a second.
type structure struct {
	head    string
	members []*part
	growth
	fills     bool
	heapShare float64
	wide      bool
	late      float64 // bytes it gained while the heap filled up: of those that fill it
	large     float64 // bytes of its objects that are samples by themselves: the same
	begun     float64 // growth of the largest part whose onset counts; 0: of the first
	keys      []sites.Key
}

// part is a member of a structure under construction.
type part struct {
	class   sites.Class
	line    line
	key     sites.Key // its largest site
	bytes   float64   // live ones of that
	slope   float64
	grown   float64
	samples float64
}

// weight ranks structures: the fastest first, but what mostly survives before what mostly dies.
func (s *structure) weight() float64 { return s.slope * s.survives }

// heads finds the method that structures are known by.
type heads struct {
	r  *heap.Symbols
	by map[uint64]string
}

func newHeads(r *heap.Symbols) *heads { return &heads{r, map[uint64]string{}} }

// of gives class and method of the application's innermost frame in a stack, those of its caller if it is a
// constructor. A stack that has nothing of the application's is a structure of its own.
func (x *heads) of(frame uint64) string {
	head, ok := x.by[frame]
	if ok {
		return head
	}
	site := sites.Stack(x.r, frame, sites.MaxFrames)
	switch {
	case len(site) == 0:
		head = "?" + string(rune('0'+frame%10))
	default:
		i := sites.Own(site)
		for i+1 < len(site) && (site[i].Method == "<init>" || site[i].Method == "<clinit>") &&
			!sites.Library(site[i+1].Class) {
			i++
		}
		if i == 0 && sites.Library(site[0].Class) {
			head = sites.ID("", site)
		} else {
			head = site[i].Class + "." + outer(site[i].Method)
		}
	}
	x.by[frame] = head
	return head
}

// outer gives the method that the body of a lambda is in: javac names it lambda$METHOD$NUMBER.
func outer(method string) string {
	if rest, ok := strings.CutPrefix(method, "lambda$"); ok {
		if i := strings.LastIndexByte(rest, '$'); i > 0 {
			return rest[:i]
		}
	}
	return method
}

// structures joins what is named, and what else grows at the same place with it but could not be named alone.
func (h *detector) structures(x *heads, named, others []candidate) (all []*structure) {
	slices.SortStableFunc(named, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.slope, a.slope), cmp.Compare(a.key.Frame, b.key.Frame),
			cmp.Compare(a.key.Class.Name, b.key.Class.Name))
	})
	taken := map[sites.Key]bool{}
	for i := range named {
		c := &named[i]
		head := x.of(c.key.Frame)
		j := slices.IndexFunc(all, func(s *structure) bool { return s.head == head && s.belongs(h, x.r, c) })
		if j < 0 {
			all = append(all, &structure{head: head, growth: c.growth, wide: c.wide})
			j = len(all) - 1
		} else {
			all[j].join(&c.growth)
		}
		all[j].add(h, x.r, c, taken)
	}
	for i := range others {
		c := &others[i]
		// What seems to fill up is of the same structure: that has room for more, as long as the rest of it grows.
		// So is what is in a queue that grows: of that the older objects are dead, too.
		part := c.why == whyChance || c.why == whyFills
		queued := c.why == whyTurnover || c.why == whyStopped
		if c.members != nil || c.refuted && !queued || !part && !queued || taken[c.key] || c.slope <= 0 ||
			h.ended(c.s) {
			continue
		}
		head := x.of(c.key.Frame)
		for _, s := range all {
			if s.head == head && (!queued || s.queued && s.alone != "") && s.belongs(h, x.r, c) {
				s.join(&c.growth)
				s.add(h, x.r, c, taken)
				break
			}
		}
	}
	return all
}

// belongs says whether a candidate is of a structure at the same head: its line is one of the structure's, or it is in
// the constructor of the same class, or as many of its objects come in a second, within a factor of two and a half.
func (s *structure) belongs(h *detector, r *heap.Symbols, c *candidate) bool {
	at, rate := own(r, c.key.Frame), h.objects(c.key)
	for _, m := range s.members {
		if m.line.same(at) || m.line.method == "<init>" && at.method == "<init>" && m.line.class == at.class {
			return true
		}
		if x := h.objects(m.key); rate > 0 && x > 0 && max(rate, x) <= asFast*min(rate, x) {
			return true
		}
	}
	return false
}

// asFast is how many times as many objects one site of a structure may have as another.
const asFast = 2.5

// objects estimates how many objects of a site survived.
func (h *detector) objects(k sites.Key) float64 {
	s := h.Sites[k]
	if s == nil || s.Taken == 0 {
		return 0
	}
	return max(float64(s.LiveSamples), s.Born) * s.Objects / s.Taken
}

// alike is how many times as many objects two sites have at most that are of one data structure.
const alike = 1.5

// beside refutes suspects that belong to objects that the program drops: as many of another site's objects, allocated
// in the same method, have survived and live, and those are known to be dropped. A cache drops a key, a value and an
// entry at a time, and chance shows it of one of them first. Of the same class and line, the other site may have more.
func (h *detector) beside(x *heads, all []candidate) {
	known := map[string][]*candidate{}
	for i := range all {
		if c := &all[i]; c.refuted && c.members == nil && c.s.LiveSamples >= minSamples {
			head := x.of(c.key.Frame)
			known[head] = append(known[head], c)
		}
	}
	for i := range all {
		c := &all[i]
		if c.p > significance || len(known) == 0 || c.queued && c.alone != "" { // exact counts of a queue that grows
			continue
		}
		for _, o := range known[x.of(c.key.Frame)] {
			if c.settled && o.why != whySoft { // the soft references themselves, and what they are in, live
				continue
			}
			as, more := alike, math.Inf(1)
			if o.why == whySoft { // entries and soft references of the cache, of which few samples tell
				as *= 1 + 2/math.Sqrt(max(1, float64(c.s.LiveSamples)))
			}
			if o.key.Class != c.key.Class || !own(x.r, o.key.Frame).same(own(x.r, c.key.Frame)) {
				more = as
			}
			if near(lived(c.s, c.s.Born), lived(o.s, o.s.Born), as, more) &&
				near(lived(c.s, float64(c.s.LiveSamples)), lived(o.s, float64(o.s.LiveSamples)), as, more) {
				c.p, c.why, c.refuted = 1, whyBeside, true
				break
			}
		}
	}
}

// inside refutes suspects that the same object holds as others that are known to be dropped, such as the entries of a
// full map of whose values there are more samples. Of what a structure drops, few samples may show the one and not the
// other. Where other objects in it are known to leak, these may, too.
func (h *detector) inside(all []candidate) {
	if h.Object == nil {
		return
	}
	var dropped []*candidate
	for i := range all {
		c := &all[i]
		if c.refuted && (c.why == whyTurnover || c.why == whyDropped) && c.s.LiveSamples >= insideLeast {
			dropped = append(dropped, c)
		}
	}
	slices.SortStableFunc(dropped, func(a, b *candidate) int { return cmp.Compare(b.s.LiveSamples, a.s.LiveSamples) })
	dropped = dropped[:min(len(dropped), insideMost)]
	for i := range all {
		c := &all[i]
		if c.p > significance || c.settled || c.queued || len(dropped) == 0 {
			continue
		}
		object := h.Object(c.keys(), 0)
		if object == 0 || slices.ContainsFunc(all, func(o candidate) bool {
			return o.p <= significance && o.settled && o.slope > 0 &&
				h.objectOf(&structure{growth: o.growth, keys: o.keys()}) == object
		}) {
			continue // it leaks all the same, as a map of what is pending, of which most ends
		}
		if slices.ContainsFunc(dropped, func(o *candidate) bool {
			return o.s.LiveSamples >= c.s.LiveSamples && h.Object(o.keys(), 0) == object
		}) {
			c.p, c.why, c.refuted = 1, whyBeside, true
		}
	}
}

// insideLeast is how many live samples say of what else its holder holds, and insideMost how many sites are asked.
const (
	insideLeast = 8
	insideMost  = 16
)

// ownedMost bounds by how much what a holder retains raises a rate, and ownedGrown is the share of a structure that
// came in the window, at least: what was there before is no growth.
const (
	ownedMost  = 1.5
	ownedGrown = 0.8
)

// owned raises the rate of a leak by what its objects hold, of which there are too few samples: the object that holds
// it retains so many bytes, and samples of the structure stand for some of them.
func (h *detector) owned(r *heap.Symbols, s *structure) {
	if h.Retained == nil || !s.settled || s.exact || s.counts != [3]uint64{} {
		return
	}
	has := h.has(r, s.keys)
	if s.grown < ownedGrown*has || has <= 0 {
		return
	}
	retained, sampled := h.Retained(s.keys, h.objectOf(s))
	stood := 0.0
	for _, k := range s.keys {
		if t := h.figures[k]; t != nil {
			_, x := t.Bytes()
			stood += x
		}
	}
	if sampled <= 0 || stood <= 0 {
		return
	}
	// The listing has what came since its collection, too, which no sample is of.
	f := retained / (sampled * has / stood)
	i, _ := slices.BinarySearch(h.Times, h.listedAt)
	if from, at := s.onset[0], h.Times[max(0, i-1)]; h.listedAt > at && at > from {
		f *= (at - from) / (h.listedAt - from)
	}
	if all, _ := h.heapGrowth(); all > 0 { // it is a part of that
		f = min(f, all/s.grown)
	}
	if f > 1 && f <= ownedMost {
		s.slope, s.low, s.high, s.grown = f*s.slope, f*s.low, f*s.high, min(f*s.grown, float64(h.mostLive()))
	}
}

// near says whether a is at most so many times as much as b, and b as a.
func near(a, b, as, more float64) bool { return a > 0 && b > 0 && a <= as*b && b <= more*a }

// lived estimates how many objects so many samples of a series stand for.
func lived(s *history.Series, samples float64) float64 {
	if s.Taken == 0 {
		return 0
	}
	return samples * s.Objects / s.Taken
}

// join adds what another part of the structure grows by.
func (s *structure) join(g *growth) {
	s.slope, s.low, s.high = s.slope+g.slope, s.low+g.low, s.high+g.high
	s.grown, s.samples, s.p = s.grown+g.grown, s.samples+g.samples, min(s.p, g.p)
	s.floors = max(s.floors, g.floors)
	s.growth.settled = s.growth.settled || g.settled
	// Of a part that others share a little may have come long before: the onset is that of parts with much growth.
	most := max(s.begun, s.grown-g.grown)
	switch {
	case g.grown > 2*most:
		s.onset, s.begun = g.onset, g.grown
	case 2*g.grown > most:
		if from, to := max(s.onset[0], g.onset[0]), min(s.onset[1], g.onset[1]); from <= to { // they began together
			s.onset = [2]float64{from, to}
		} else {
			s.onset[0], s.onset[1] = min(s.onset[0], g.onset[0]), to
		}
		s.begun = max(most, g.grown)
	default:
		s.begun = most
	}
}

// add makes the sites of a candidate members: those of one class and one line of the application are one.
func (s *structure) add(h *detector, r *heap.Symbols, c *candidate, taken map[sites.Key]bool) {
	live := 0.0
	for _, k := range c.keys() {
		live += max(0, h.Sites[k].LiveBytes)
	}
	for _, k := range c.keys() {
		if taken[k] {
			continue
		}
		taken[k] = true
		x := h.Sites[k]
		share := 1 / float64(len(c.keys()))
		if live > 0 {
			share = max(0, x.LiveBytes) / live
		}
		if share == 0 { // of the same line, but nothing of it is left
			continue
		}
		s.put(r, k, x, share*c.slope, share*c.grown)
	}
}

// put adds a site to the member that it belongs to.
func (s *structure) put(r *heap.Symbols, k sites.Key, x *history.Series, slope, grown float64) {
	at := own(r, k.Frame)
	i := slices.IndexFunc(s.members, func(m *part) bool { return m.class == k.Class && m.line.same(at) })
	if i < 0 {
		s.members = append(s.members, &part{class: k.Class, line: at, key: k, bytes: -1})
		i = len(s.members) - 1
	}
	m := s.members[i]
	if x.LiveBytes > m.bytes {
		m.bytes, m.key = x.LiveBytes, k
	}
	m.slope, m.grown, m.samples = m.slope+slope, m.grown+grown, m.samples+float64(x.LiveSamples)
	s.keys = append(s.keys, k)
}

// dominates is the share of a structure's samples that one thread must have taken to be named.
const dominates = 0.8

// threadOf names the thread that allocated most live samples of the sites.
func threadOf(r *heap.Cursor, h *detector, keys []sites.Key) string {
	taken, by, sum := map[uint64]float64{}, map[string]float64{}, 0.0
	for _, k := range slices.Compact(slices.SortedFunc(slices.Values(keys), sites.Key.Compare)) {
		h.bySite(r).of(k, func(s *heap.Sample) {
			taken[s.Thread] += float64(s.Size) * s.Weight
			sum += float64(s.Size) * s.Weight
		})
	}
	for _, t := range slices.Sorted(maps.Keys(taken)) {
		by[r.Threads[t].Name] += taken[t]
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if name != "" && by[name] >= dominates*sum {
			return name
		}
	}
	return ""
}

// shared is how many innermost frames all sites of a member have in common with its largest one, those above the
// application's line aside.
func (s *structure) shared(r *heap.Symbols, m *part, site []sites.StackFrame) []sites.StackFrame {
	first, n := sites.Own(site), len(site)
	for _, k := range s.keys {
		if k.Class != m.class || !m.line.same(own(r, k.Frame)) {
			continue
		}
		o := sites.Stack(r, k.Frame, sites.MaxFrames)
		i, j := sites.Own(o), 0
		for first+j < n && i+j < len(o) && sameFrame(o[i+j], site[first+j]) {
			j++
		}
		n = first + j
	}
	return site[:n]
}

// sameFrame says whether two frames are one for who reads a stack: which line of a library's method it is says nothing.
func sameFrame(a, b sites.StackFrame) bool {
	return a.String() == b.String() || a.Class == b.Class && a.Method == b.Method && sites.Library(a.Class)
}

// line names a place in the code; classes of one name from several loaders are the same code.
type line struct {
	class, method, sig string
	bci                int64
	number             int    // in the source, 0 if it is not known
	stack              uint64 // the whole of a stack that has nothing of the program's own
}

// same says whether two places are in one line of the source.
func (l line) same(o line) bool {
	if l.number > 0 && o.number > 0 {
		l.bci, o.bci = 0, 0
	}
	return l == o
}

// own gives the program's own innermost line in a stack.
func own(r *heap.Symbols, frame uint64) line {
	x, ok := ownFrame(r, frame)
	if !ok {
		return line{stack: frame}
	}
	m := r.Methods[x.Method]
	return line{class: trace.PrettySignature(m.Class), method: m.Name, sig: m.Sig, bci: x.BCI, number: m.Line(x.BCI)}
}

// ownFrame gives the program's own innermost frame in a stack, if it has one.
func ownFrame(r *heap.Symbols, f uint64) (x trace.Frame, ok bool) {
	for range sites.MaxFrames {
		if x, ok = r.Frames[f]; !ok {
			break
		}
		if m := r.Methods[x.Method]; !sites.Library(trace.PrettySignature(m.Class)) {
			return x, true
		}
		f = x.Parent
	}
	return trace.Frame{}, false
}
