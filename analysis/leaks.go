package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Verdict is a leak: a site whose objects survive collections, are not let go, and grow all through the window. Confidence is 1 − p of the test
// for growth, corrected for what a series remembers of itself and for the number of sites that were tested; where old space was not
// collected in the window it is no more than unprovenMost.
type Verdict struct {
	Class              string       `json:"class"`
	Loader             string       `json:"loader,omitempty"` // where two classes share a name
	Site               []StackFrame `json:"site"`
	Confidence         float64      `json:"confidence"`
	BytesPerSecond     float64      `json:"bytes_per_second"`      // median of the slopes between all pairs of points
	BytesPerSecondLow  float64      `json:"bytes_per_second_low"`  // 95 % interval of the trend (Sen) and of sampling
	BytesPerSecondHigh float64      `json:"bytes_per_second_high"` //
	Sentence           ui.Text      `json:"sentence"`
	GrownBytes         uint64       `json:"grown_bytes"` // estimate over the window
	LiveSamples        int          `json:"live_samples"`
	Share              float64      `json:"share_of_growth"` // of the heap's
	PValue             float64      `json:"p_value"`
	Test               string       `json:"test"`
	FullIn             *float64     `json:"seconds_to_exhaustion"` // at this rate, until the heap's maximum is live; null: not known
	Floors             int          `json:"floors"`                // collections of old space that the growth outlived
}

// LeakReport is the whole of `heapcam leaks`.
type LeakReport struct {
	Schema   string    `json:"schema"`
	Verdicts []Verdict `json:"verdicts"`
	Window   float64   `json:"window_seconds"`
	// Collections of the window, and those of them that collected old space: after full collections and remarks no dead object counts.
	Collections int    `json:"collections"`
	Floors      int    `json:"floors"`
	Missed      uint64 `json:"missed_collections"` // full collections of which the JVM posted no events: no floors
	Note        string `json:"note"`               // what limits the verdicts
}

const (
	points       = 120   // of a series that are tested
	minPoints    = 8     // fewer: ranks show little, and the number of samples decides
	leastPoints  = 4     // fewer show nothing
	minSamples   = 3     // a site with fewer at any time is no candidate: no test could find it
	speaks       = 20    // a site with more samples speaks for itself
	significance = 0.01  // of all verdicts of a window together
	surest       = 0.999 // what one window can say at most, whatever the tests assume
	unprovenMost = 0.95  // the same if old space was not collected

	slices6    = 6   // parts of the window in which growth is looked for
	keptMost   = 0.7 // share of growth that outlived collections of old space: from here on what is there counts, below only what they left
	keptYoung  = 0.9 // without any such collection: share of the survivors that have not died since
	share      = 0.2 // and of all that was allocated there, share that has survived
	lateRate   = 0.4 // the last third grows at this share of the mean rate, or growth has stopped
	oneStep    = 0.6 // share of the growth in one part of the window, beyond which it is a step
	floorsLess = 5   // so many are needed to judge by floors alone
)

// ErrOpen says that a replay that only counts does not do: the verdicts rest on what holds the objects.
var ErrOpen = errors.New("the verdicts need a replay that follows objects")

// Leaks replays all of r and gives its verdicts; ErrOpen if r only counts and that does not do.
func Leaks(from heap.Reader) (*LeakReport, error) {
	r := from.Position()
	h := newHistories(survived)
	for {
		c, err := r.Next()
		if err == io.EOF {
			l := h.leaks(r)
			if h.open || heap.Unsure(from) {
				return nil, ErrOpen
			}
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		h.collection(r, c)
	}
}

func (h *histories) leaks(r *heap.Cursor) *LeakReport {
	l := &LeakReport{Schema: "heapcam.leaks/1", Verdicts: h.verdicts(r), Collections: len(h.times), Floors: len(h.floors), Missed: h.missed}
	if n := len(h.times); n > 0 {
		l.Window = h.times[n-1] - h.from
	}
	switch {
	case !h.shows():
		l.Note = fmt.Sprintf("%d collections, the newest %.0f s after the window's start: too few, or too early, to tell growth from chance", len(h.times), l.Window)
	case len(h.floors) == 0 && h.missed > 0:
		l.Note = "old space was collected in this window only where the JVM reports no events, so what has died there is not known exactly"
	case len(h.floors) == 0:
		l.Note = "old space was not collected in this window, so what has died there is not known"
	}
	return l
}

// candidate is a site, or several that share their innermost frames, under test.
type candidate struct {
	key     siteKey
	members []siteKey // of several
	wide    bool      // they share the program's own method, not the line
	s       *series
	growth
}

// growth is what a series shows.
type growth struct {
	slope, low, high float64 // bytes a second
	grown            float64 // bytes
	p                float64
	test             string
	floors           int
	samples          float64 // at the end
	open             bool    // whether its holders grow is not known
	refuted          bool    // its objects are known to be let go, whatever its shape
}

// verdicts ranks the sites that leak by how fast they do.
func (h *histories) verdicts(r *heap.Cursor) []Verdict {
	out := []Verdict{}
	if !h.shows() {
		return out
	}
	h.fates(r)
	h.open = false
	all := h.candidates(r.Symbols)
	refuted := map[siteKey]bool{}
	for i := range all {
		if all[i].wide && slices.ContainsFunc(all[i].members, func(k siteKey) bool { return refuted[k] }) {
			all[i].p = 1
			continue
		}
		if all[i].growth = h.judge(all[i].s); h.late && h.replaces(r.Symbols, &all[i]) {
			all[i].p = 1
		}
		if all[i].refuted {
			refuted[all[i].key] = true
		}
		if g := &all[i].growth; g.open && g.p <= significance && g.slope > 0 {
			h.open = true
		}
	}
	// Some of a thousand sites rise by chance: Holm's correction, for those whose shape is one of growth.
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.p >= 1 })
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.p, b.p) })
	least := 0.0
	for i := range all {
		least = max(least, min(1, all[i].p*float64(len(all)-i)))
		all[i].p = least
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.p > significance || c.slope <= 0 })
	all = single(all)
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.slope*b.s.weight(), a.slope*a.s.weight()), cmp.Compare(a.key.frame, b.key.frame), cmp.Compare(a.key.class.Name, b.key.class.Name))
	})
	heapGrown, live := h.heapGrowth()
	var classes []Class
	for _, c := range all {
		classes = append(classes, c.key.class)
		heapGrown = max(heapGrown, c.grown)
	}
	shared := loaders(r.Symbols, classes)
	for _, c := range all[:min(len(all), 20)] {
		v := Verdict{Class: c.key.class.Name, Loader: shared[c.key.class], Site: Stack(r.Symbols, c.key.frame, maxFrames), BytesPerSecond: c.slope,
			BytesPerSecondLow: c.low, BytesPerSecondHigh: c.high, GrownBytes: uint64(c.grown), LiveSamples: int(c.samples), Share: c.grown / heapGrown,
			Confidence: min(1-c.p, surest), PValue: c.p, Test: c.test, Floors: c.floors}
		if len(c.members) > 0 && !c.wide {
			v.Site = c.shared(r.Symbols, v.Site)
		}
		if c.floors == 0 {
			v.Confidence = min(v.Confidence, unprovenMost)
		}
		if limit := float64(r.JVM.MaxHeap); limit > live && live > 0 {
			s := (limit - live) / c.slope
			v.FullIn = &s
		}
		v.Sentence = v.sentence(c.wide)
		out = append(out, v)
	}
	return out
}

// sentence says it in words; wide says that the verdict is of all that a method allocates, and names most of it.
func (v *Verdict) sentence(wide bool) ui.Text {
	at := ui.Text("an unknown site")
	if len(v.Site) > 0 {
		at = ui.Sprintf("%s", v.Site[0])
		for _, f := range v.Site[1:] { // the line that a reader can change
			if libraryFrame(v.Site[0]) && !libraryFrame(f) {
				at += ui.Sprintf(", called from %s,", f)
				break
			}
		}
	}
	if wide {
		at = ui.Text(strings.TrimSuffix(string(at), ",")) + ", with what else that method allocates,"
	}
	stays := "is never let go"
	switch {
	case v.Floors == 1:
		stays = "outlived the collection of old space in this window"
	case v.Floors > 1:
		stays = fmt.Sprintf("outlived %d collections of old space", v.Floors)
	default:
		stays = "stays; old space was not collected in this window, so some of it may be dead"
	}
	full := ""
	if v.FullIn != nil && *v.FullIn < 365*86400 {
		full = fmt.Sprintf("; at this rate it fills the heap in %s", roughly(*v.FullIn))
	}
	return ui.Sprintf("%s from %s grows by about %s a second and %s (estimated from %d live samples)%s.", withLoader(v.Class, v.Loader), at,
		Bytes(uint64(v.BytesPerSecond)), stays, v.LiveSamples, full)
}

func roughly(seconds float64) string {
	switch {
	case seconds < 120:
		return fmt.Sprintf("%.0f seconds", seconds)
	case seconds < 7200:
		return fmt.Sprintf("%.0f minutes", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f hours", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", (time.Duration(seconds)*time.Second).Hours()/24)
}

// candidates are the sites that have had some samples, those that share the program's own innermost line (a leak in a helper that is called from
// everywhere is one leak), and those that share its method: of a slow leak each of its objects alone may have too few samples.
func (h *histories) candidates(r *heap.Symbols) []candidate {
	var all []candidate
	heads := map[line][]siteKey{}
	for k, s := range h.sites {
		if s.lasts() >= minSamples {
			all = append(all, candidate{key: k, s: s})
		}
		hk := own(r, k.frame)
		heads[hk] = append(heads[hk], k)
	}
	methods, lines := map[line][]siteKey{}, map[line]int{}
	group := func(ks []siteKey, wide bool) {
		if len(ks) < 2 {
			return
		}
		slices.SortFunc(ks, func(a, b siteKey) int {
			return cmp.Or(cmp.Compare(h.sites[b].liveBytes, h.sites[a].liveBytes), cmp.Compare(a.frame, b.frame), cmp.Compare(a.class.Name, b.class.Name), cmp.Compare(a.class.Loader, b.class.Loader))
		})
		if wide && slices.ContainsFunc(ks, func(k siteKey) bool { return h.sites[k].lasts() > speaks }) {
			return
		}
		if s := h.sum(ks); s.lasts() >= minSamples {
			all = append(all, candidate{key: ks[0], members: ks, wide: wide, s: s})
		}
	}
	for l, ks := range heads {
		group(ks, false)
		if l.method != "" {
			l.bci = 0
			methods[l] = append(methods[l], ks...)
			lines[l]++
		}
	}
	for m, ks := range methods {
		if lines[m] > 1 {
			group(ks, true)
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { // methods last
		if a.wide != b.wide {
			return map[bool]int{true: 1, false: -1}[a.wide]
		}
		return cmp.Or(cmp.Compare(a.key.frame, b.key.frame), cmp.Compare(a.key.class.Name, b.key.class.Name), cmp.Compare(a.key.class.Loader, b.key.class.Loader),
			cmp.Compare(len(a.members), len(b.members)))
	})
	return all
}

// single leaves of a group of sites and its members those that say more: the members if they explain the group, else the group; of a method
// nothing but what it is named for, if that is so.
func single(all []candidate) []candidate {
	at, named := map[siteKey]int{}, map[siteKey]bool{}
	for i, c := range all {
		if c.members == nil {
			at[c.key] = i
			named[c.key] = true
		}
		for _, k := range c.members {
			named[k] = named[k] || !c.wide
		}
	}
	drop := make([]bool, len(all))
	for i, c := range all {
		if c.wide {
			drop[i] = slices.ContainsFunc(c.members, func(k siteKey) bool { return named[k] })
		}
		if c.members == nil || c.wide {
			continue
		}
		grown, best := 0.0, 0.0
		for _, k := range c.members {
			if j, ok := at[k]; ok {
				grown += all[j].grown
				best = max(best, all[j].grown)
			}
		}
		if best >= keptMost*c.grown {
			drop[i] = true
			continue
		}
		for _, k := range c.members {
			if j, ok := at[k]; ok {
				drop[j] = true
			}
		}
	}
	out := all[:0]
	for i, c := range all {
		if !drop[i] {
			out = append(out, c)
		}
	}
	return out
}

// sum adds up the series of sites.
func (h *histories) sum(ks []siteKey) *series {
	total := &series{}
	for _, k := range ks {
		s := h.sites[k]
		total.at, total.bytes, total.samples = append(total.at, s.at...), append(total.bytes, s.bytes...), append(total.samples, s.samples...)
		total.events, total.births = append(total.events, s.events...), append(total.births, s.births...)
		total.last, total.pause = max(total.last, s.last), max(total.pause, s.pause)
		total.taken += s.taken
		total.objects += s.objects
		total.allocated += s.allocated
		total.came += s.came
		total.went += s.went
		total.liveSamples += s.liveSamples
		total.liveBytes += s.liveBytes
	}
	n := make([]float64, len(h.times))
	total.spread(make([]float64, len(h.times)), n)
	total.most = int32(slices.Max(n))
	return total
}

// weight is the share of what was allocated at a site that has survived: where most dies, what is left is rather forgotten than leaked.
func (s *series) weight() float64 {
	if s.taken == 0 {
		return 1
	}
	return min(1, s.came/s.taken)
}

// judge says how a series grows: with p 1 if it does not, or not all the time.
func (h *histories) judge(s *series) growth {
	no, refuted := growth{p: 1}, growth{p: 1, refuted: true}
	c := h.course(s)
	t, v, samples, floors, n := c.t, c.v, c.samples, c.floors, len(c.t)
	kept := keptByFloors(v, floors)
	g := growth{floors: len(floors), samples: samples[n-1]}
	var low []float64
	switch {
	case len(floors) == 0:
		low = envelope(v)
		if c.lateWent > (1-keptYoung)*c.lateCame || c.came < share*c.taken || h.let(s) {
			return refuted
		}
		var grows bool
		if grows, g.open = h.holderGrows(s, t, low); !grows {
			return refuted
		}
	case kept >= keptMost:
		low = append([]float64{}, v...)
		for last, i := floors[len(floors)-1], floors[len(floors)-1]+1; i < n; i++ {
			low[i] = v[last] + (v[i]-v[last])*kept
		}
		low = envelope(low)
	case len(floors) >= floorsLess: // what is between two floors is mostly garbage
		at := floors
		ft, fv, fs := make([]float64, len(at)), make([]float64, len(at)), make([]float64, len(at))
		for i, f := range at {
			ft[i], fv[i], fs[i] = t[f], v[f], samples[f]
		}
		if ft[len(ft)-1]-ft[0] < (t[n-1]-t[0])/2 {
			return no
		}
		t, v, samples = ft, fv, fs
		low = envelope(v)
	default:
		return no
	}
	if !sustained(t, low) || stopped(t, samples) || h.silent(s) {
		return no
	}
	// Soft references are let go before the heap is full: what came with as many of them is a cache.
	if grown, _ := h.held(s, t, low); h.like(softReferences, grown, t[len(t)-1]-t[0], float64(s.liveSamples)) {
		return refuted
	}
	pt, pv, ps := pick(t, v, samples)
	var p float64
	g.slope, g.low, g.high, p = trend(pt, pv)
	if len(pv) >= minPoints {
		g.test = "Mann-Kendall, drift"
		births := c.came - ps[len(ps)/slices6] // what was there early is no growth
		immortals := p <= significance && c.went <= (1-keptYoung)*births
		if p = max(p, drift(pv)); immortals {
			p = min(p, 2*immortal(births, c.went))
		}
	} else {
		g.test = "Mann-Kendall, number of samples"
		if p > 0.1 {
			return no
		}
		p = gained(ps)
	}
	w := t[len(t)-1] - t[0]
	g.p, g.grown = p, low[len(low)-1]-low[0]
	if rate := g.grown / w; g.slope > rate { // what collections of old space took away again is no growth
		g.slope, g.low, g.high = rate, min(g.low, rate), max(g.high, rate)
	}
	// Sampling: the growth is a sum over so many samples.
	if k := max(1, ps[len(ps)-1]-ps[0]); k > 0 {
		g.low = min(g.low, g.slope*chi2(0, k)/k)
		g.high = max(g.high, g.slope*chi2(1, k+1)/k)
	}
	return g
}

// factor is how many times as much lives at the end of a series as early in it; where samples began after their JVM, which leaves out what was
// there before, at most what the heap did.
func (h *histories) factor(t, low []float64, early float64) float64 {
	i, _ := slices.BinarySearch(t, early)
	f := low[len(low)-1] / max(low[min(i, len(low)-1)], 1)
	if h.late {
		var known []float64
		for _, b := range h.live {
			if b >= 0 {
				known = append(known, b)
			}
		}
		if len(known) > 0 {
			f = min(f, known[len(known)-1]/max(known[0], 1))
		}
	}
	return f
}

// keptByFloors is the share of what a series gained between collections of old space that it has not lost in them; 1 if nothing can be said.
func keptByFloors(v []float64, floors []int) float64 {
	gained, was := 0.0, v[0]
	for _, f := range floors {
		if f == 0 {
			was = v[0]
			continue
		}
		gained += max(0, max(v[f-1], v[f])-was)
		was = v[f]
	}
	if gained <= 0 {
		return 1
	}
	return min(1, max(0, was-v[0])/gained)
}

// envelope is what a series never falls below again.
func envelope(v []float64) []float64 {
	out := slices.Clone(v)
	for i := len(out) - 2; i >= 0; i-- {
		out[i] = min(out[i], out[i+1])
	}
	return out
}

// sustained says whether a series that never falls grows all through the window: not in one step, not only at its start or its end.
func sustained(t, low []float64) bool {
	from, to := t[0], t[len(t)-1]
	grown := low[len(low)-1] - low[0]
	if grown <= 0 || to <= from {
		return false
	}
	at := func(x float64) float64 {
		i, _ := slices.BinarySearch(t, x)
		switch {
		case i == 0:
			return low[0]
		case i >= len(t):
			return low[len(low)-1]
		case t[i] == t[i-1]:
			return low[i]
		}
		return low[i-1] + (low[i]-low[i-1])*(x-t[i-1])/(t[i]-t[i-1])
	}
	growing, before := 0, low[0]
	var last [slices6]float64
	for i := range slices6 {
		x := at(from + (to-from)*float64(i+1)/slices6)
		last[i] = (x - before) / grown
		if last[i] >= 0.2/slices6 {
			growing++
		}
		before = x
	}
	return growing >= slices6*2/3 && slices.Max(last[:]) <= oneStep && last[slices6-1]+last[slices6-2] >= lateRate/3
}

// stopped says whether a series of samples has less growth in the last sixth of the time than chance gives one that goes on at lateRate of its
// mean rate: in one of a hundred such.
func stopped(t, samples []float64) bool {
	n := len(t)
	i, _ := slices.BinarySearch(t, t[n-1]-(t[n-1]-t[0])/slices6)
	grown := samples[n-1] - samples[0]
	return atMost(lateRate*grown*(t[n-1]-t[i])/(t[n-1]-t[0]), max(0, samples[n-1]-samples[i])) < 0.01
}

// atMost is the probability that a Poisson count of a mean is k or less.
func atMost(mean, k float64) float64 {
	term := math.Exp(-mean)
	sum := term
	for i := 1.0; i <= k && i < 10000; i++ {
		term *= mean / i
		sum += term
	}
	return sum
}

// pick takes at most points of a series, with both ends, evenly but for those that lie close together.
func pick(t, v, samples []float64) (pt, pv, ps []float64) {
	n, last := min(points, len(t)), len(t)-1
	apart := (t[last] - t[0]) / points / 2 // a storm of collections is one point
	for i := range n {
		k := i * len(t) / n
		if m := len(pt); i < n-1 && m > 0 && (t[k]-pt[m-1] < apart || t[last]-t[k] < apart) {
			continue
		}
		if i == n-1 {
			k = last
		}
		pt, pv, ps = append(pt, t[k]), append(pv, v[k]), append(ps, samples[k])
	}
	return pt, pv, ps
}

// gained gives the probability that a number of samples that only varies around its mean is as much larger at the end: the difference of two
// Poisson counts, by the normal approximation.
func gained(samples []float64) float64 {
	a, b := samples[0], samples[len(samples)-1]
	if b <= a {
		return 1
	}
	return math.Erfc((b-a-1)/math.Sqrt(2*(a+b))) / 2
}

// immortal gives the probability that of so many births and deaths so few are deaths if each is as likely: the exact sign test.
func immortal(came, went float64) float64 {
	if came <= went {
		return 1
	}
	return atMostOf(came+went, went, 0.5)
}

// heapGrowth gives the growth of all that is known to live over the window, without what was let go again, and what lives at its end, 0 if it
// is never known.
func (h *histories) heapGrowth() (grown, live float64) {
	var v []float64
	for _, b := range h.live {
		if b >= 0 {
			v = append(v, b)
		}
	}
	if len(v) == 0 {
		return 0, 0
	}
	low := envelope(v)
	return low[len(low)-1] - low[0], low[len(low)-1]
}

// line names a place in the code; classes of one name from several loaders are the same code.
type line struct {
	class, method, sig string
	bci                int64
	stack              uint64 // the whole of a stack that has nothing of the program's own
}

// own gives the program's own innermost line in a stack.
func own(r *heap.Symbols, frame uint64) line {
	f := frame
	for range maxFrames {
		x, ok := r.Frames[f]
		if !ok {
			break
		}
		if m := r.Methods[x.Method]; !library(trace.PrettySignature(m.Class)) {
			return line{class: trace.PrettySignature(m.Class), method: m.Name, sig: m.Sig, bci: int64(x.BCI)}
		}
		f = x.Parent
	}
	return line{stack: frame}
}

// shared is how many innermost frames of site all members have in common, those above the program's own line aside if they differ.
func (c *candidate) shared(r *heap.Symbols, site []StackFrame) []StackFrame {
	first := 0
	for first < len(site) && libraryFrame(site[first]) {
		first++
	}
	n := len(site)
	for _, k := range c.members {
		o := Stack(r, k.frame, maxFrames)
		i := 0
		for i < len(o) && libraryFrame(o[i]) {
			i++
		}
		j := 0
		for first+j < n && i+j < len(o) && o[i+j].String() == site[first+j].String() {
			j++
		}
		n = first + j
	}
	return site[:n]
}

// WriteText prints verdicts for people.
func (l *LeakReport) WriteText(w io.Writer) {
	ui.Fprintf(w, "window  %s, %d collections, %d of which tell what is dead in old space\n", time.Duration(l.Window*1e9).Round(time.Second/10), l.Collections, l.Floors)
	if l.Note != "" {
		ui.Fprintf(w, "note    %s\n", ui.Prose(l.Note))
	}
	WriteMissed(w, "        ", l.Missed)
	if len(l.Verdicts) == 0 {
		ui.Fprintf(w, "no leak found\n")
		return
	}
	for i, v := range l.Verdicts {
		ui.Fprintf(w, "%2d. %s\n", i+1, v.Sentence)
		ui.Fprintf(w, "    %s to %s a second, %.0f %% of the heap's growth, confidence %.3f\n", Bytes(uint64(max(v.BytesPerSecondLow, 0))), Bytes(uint64(v.BytesPerSecondHigh)),
			100*v.Share, v.Confidence)
		printStack(w, v.Site, 6)
	}
}

// libraryFrame says whether a frame belongs to the JDK.
func libraryFrame(f StackFrame) bool {
	return library(f.Class)
}

// library says the same of a class, as a pretty name.
func library(class string) bool {
	for _, p := range [...]string{"java.", "javax.", "jdk.", "sun.", "com.sun."} {
		if strings.HasPrefix(class, p) {
			return true
		}
	}
	return false
}
