// Package leak is the leak detector: it names the allocation sites whose objects survive collections, are not
// dropped by the program, and grow throughout a window.
//
// A site is named if its series grows by a test of significance (Mann–Kendall, and Student's on the increments),
// throughout the window and not in one step, and if nothing shows that its objects are dropped. That is judged by the
// floors of old space (package history) where there are any, else by the arrays and nodes that must hold the objects.
// All verdicts of a window together are wrong with a probability of 1 % at most, if the assumptions of the tests hold.
// docs/design/0009-leak-detection.md says why it works like this.
//
// Files: leak.go (verdicts and tests of a series), detector.go (what it follows), deaths.go (what dies at once),
// holders.go and tables.go (what holds objects), sparse.go (windows of few collections).
package leak

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Verdict is a leak: a site whose objects survive collections, are not dropped, and grow throughout the window.
// Confidence is 1 − p of the test for growth, corrected for autocorrelation and for the number of sites that were
// tested; where old space was not collected in the window it is no more than maxUnproven.
type Verdict struct {
	Class      string             `json:"class"`
	Loader     string             `json:"loader,omitempty"` // where two classes share a name
	Site       []sites.StackFrame `json:"site"`
	Confidence float64            `json:"confidence"`
	// median of the slopes between all pairs of points
	BytesPerSecond float64 `json:"bytes_per_second"`
	// 95 % interval of the trend (Sen) and of sampling
	BytesPerSecondLow  float64 `json:"bytes_per_second_low"`
	BytesPerSecondHigh float64 `json:"bytes_per_second_high"`
	Sentence           ui.Flow `json:"sentence"`
	GrownBytes         uint64  `json:"grown_bytes"` // estimate over the window
	LiveSamples        int     `json:"live_samples"`
	Share              float64 `json:"share_of_growth"` // of the heap's
	PValue             float64 `json:"p_value"`
	Test               string  `json:"test"`
	// at this rate, until the heap's maximum is live; null: not known
	FullIn *float64 `json:"seconds_to_exhaustion"`
	// collections of old space that the growth outlived
	Floors int `json:"floors"`

	// objects of other classes of the same place count, too
	Others bool `json:"and_other_classes,omitempty"`

	What ui.Flow `json:"-"` // class and allocation site, as a part of a sentence
}

// Report is the whole of `heapcam leaks`.
type Report struct {
	Schema   string    `json:"schema"`
	Verdicts []Verdict `json:"verdicts"`
	Window   float64   `json:"window_seconds"`
	// Collections of the window, and those of them that collected old space: after full collections and remarks no dead
	// object counts.
	Collections int    `json:"collections"`
	Floors      int    `json:"floors"`
	Missed      uint64 `json:"missed_collections"` // full collections of which the JVM posted no events: no floors
	Note        string `json:"note"`               // what limits the verdicts
	// why it is not known whether the program leaks; "" if it is. Then there are no verdicts.
	CannotTell  string `json:"cannot_tell,omitempty"`
	LostSamples uint64 `json:"lost_samples,omitempty"`

	doubt    ui.Flow // why no leak can be found
	smallest ui.Flow // leak that would have been found; "": not known
	watched  bool    // a random part of the samples was followed
	note     ui.Flow
	interval uint64 // of sampling, the largest one
	lostMany bool
}

const (
	points        = 120   // of a series that are tested
	minPoints     = 8     // fewer: ranks show little, and the number of samples decides
	fewestPoints  = 4     // fewer show nothing
	minSamples    = 3     // a site with fewer at any time is no candidate: no test could find it
	ownSamples    = 20    // a site with more samples is tested alone, not together with others
	significance  = 0.01  // of all verdicts of a window together
	maxConfidence = 0.999 // upper bound of a confidence, since the tests rest on assumptions
	maxUnproven   = 0.95  // the same if old space was not collected

	growthParts = 6 // parts of the window in which growth is looked for
	// share of growth that outlived collections of old space: from here on what is there counts, below only what they
	// left
	keptMost     = 0.7
	keptYoung    = 0.9 // without any such collection: share of the survivors that have not died since
	share        = 0.2 // and of all that was allocated there, share that has survived
	lateRate     = 0.4 // the last third grows at this share of the mean rate, or growth has stopped
	maxStepShare = 0.6 // share of the growth in one part of the window, beyond which it is a step
	floorsLess   = 5   // so many are needed to judge by floors alone
)

// NoSamples is why a recording without samples shows no leak: none has a site.
const NoSamples ui.Flow = "no allocation was sampled, so no allocation site is known"

// NoCollection is why a recording without a collection shows none.
const NoCollection ui.Flow = "there is no collection in this recording"

// Advice says what to do where nobody can say whether the program leaks: why is Doubt, NoSamples or NoCollection.
func Advice(why ui.Flow) ui.Flow {
	switch {
	case why == "":
		return ""
	case why == NoSamples:
		return "Record again, and see `heapcam cost` for what stopped the sampling."
	case strings.HasPrefix(string(why), stateUnknown):
		return "`heapcam verify` shows what is missing or damaged. Record again, at depth survivors."
	}
	return "Record for longer: at least one minute, with at least ten collections."
}

// ErrOpen says that a census is not enough, because the verdicts depend on the arrays that hold the objects. A Replay
// is needed.
var ErrOpen = errors.New("the verdicts need a replay that follows objects")

// Find reads all of r and returns its verdicts. It returns ErrOpen if r is a census and a Replay is needed.
func Find(from heap.Reader) (*Report, error) {
	r := from.Position()
	h := NewDetector()
	for {
		c, err := r.Next()
		if err == io.EOF {
			l := h.leaks(r)
			if h.Open || heap.Unsure(from) {
				return nil, ErrOpen
			}
			return l, nil
		}
		if err != nil {
			return nil, err
		}
		h.Collection(r, c)
	}
}

func (h *detector) leaks(r *heap.Cursor) *Report {
	l := &Report{Schema: "heapcam.leaks/1", Verdicts: h.Verdicts(r), Collections: len(h.Times),
		Floors: len(h.Floors), Missed: h.Missed}
	if n := len(h.Times); n > 0 {
		l.Window = h.Times[n-1] - h.From
	}
	l.doubt, l.note, l.smallest, l.watched = h.Doubt(), h.note(), h.Smallest(), h.watched
	if l.Collections > 0 && r.Taken == 0 {
		l.doubt = NoSamples
	}
	l.Note = string(l.note)
	for _, g := range r.Gaps {
		l.LostSamples += g.Samples
	}
	l.lostMany = sites.LostMany(r)
	if l.Collections == 0 {
		l.doubt = NoCollection
	}
	if len(l.Verdicts) == 0 {
		l.CannotTell = string(l.doubt)
	}
	return l
}

// candidate is a site, or several that share their innermost frames, under test.
type candidate struct {
	key     sites.Key
	members []sites.Key // of several
	wide    bool        // they share the program's own method, not the line
	s       *history.Series
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
	refuted          bool    // its objects are known to be dropped, whatever its shape
}

// Verdicts ranks the sites that leak by how fast they do.
func (h *detector) Verdicts(r *heap.Cursor) []Verdict {
	out := []Verdict{}
	if !h.shows() {
		return out
	}
	h.countAlive(r)
	h.Open = false
	all := h.candidates(r.Symbols)
	refuted := map[sites.Key]bool{}
	for i := range all {
		if all[i].wide && slices.ContainsFunc(all[i].members, func(k sites.Key) bool { return refuted[k] }) {
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
			h.Open = true
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
	h.scale(r, all)
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.slope*b.s.Weight(), a.slope*a.s.Weight()), cmp.Compare(a.key.Frame, b.key.Frame),
			cmp.Compare(a.key.Class.Name, b.key.Class.Name))
	})
	heapGrown, live := h.heapGrowth()
	var classes []sites.Class
	leaked := 0.0
	for _, c := range all {
		classes = append(classes, c.key.Class)
		leaked += c.grown
	}
	heapGrown = max(heapGrown, leaked) // what else there was has shrunk
	shared := sites.Loaders(r.Symbols, classes)
	for _, c := range all[:min(len(all), 20)] {
		v := Verdict{Class: c.key.Class.Name, Loader: shared[c.key.Class],
			Site: sites.Stack(r.Symbols, c.key.Frame, sites.MaxFrames), BytesPerSecond: c.slope,
			BytesPerSecondLow: c.low, BytesPerSecondHigh: c.high, GrownBytes: uint64(c.grown),
			LiveSamples: int(c.samples), Share: c.grown / heapGrown, Confidence: min(1-c.p, maxConfidence),
			PValue: c.p, Test: c.test, Floors: c.floors}
		if len(c.members) > 0 && !c.wide {
			v.Site = c.shared(r.Symbols, v.Site)
		}
		if c.floors == 0 {
			v.Confidence = min(v.Confidence, maxUnproven)
		}
		if limit := float64(r.JVM.MaxHeap); limit > live && live > 0 {
			s := (limit - live) / c.slope
			v.FullIn = &s
		}
		v.Others = c.others()
		v.What = v.what(c.wide)
		v.Sentence = v.sentence()
		out = append(out, v)
	}
	return out
}

// candidates are the sites that have had some samples, those that share the program's own innermost line (a leak in a
// helper that is called from everywhere is one leak), and those that share its method: of a slow leak each of its
// objects alone may have too few samples.
func (h *detector) candidates(r *heap.Symbols) []candidate {
	var all []candidate
	heads := map[line][]sites.Key{}
	for k, s := range h.Sites {
		if s.Lasts() >= minSamples {
			all = append(all, candidate{key: k, s: s})
		}
		hk := own(r, k.Frame)
		heads[hk] = append(heads[hk], k)
	}
	methods, lines := map[line][]sites.Key{}, map[line]int{}
	group := func(ks []sites.Key, wide bool) {
		if len(ks) < 2 {
			return
		}
		slices.SortFunc(ks, func(a, b sites.Key) int {
			return cmp.Or(cmp.Compare(h.Sites[b].LiveBytes, h.Sites[a].LiveBytes), cmp.Compare(a.Frame, b.Frame),
				cmp.Compare(a.Class.Name, b.Class.Name), cmp.Compare(a.Class.Loader, b.Class.Loader))
		})
		if wide && slices.ContainsFunc(ks, func(k sites.Key) bool { return h.Sites[k].Lasts() > ownSamples }) {
			return
		}
		if s := h.Sum(ks); s.Lasts() >= minSamples {
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
		return cmp.Or(cmp.Compare(a.key.Frame, b.key.Frame), cmp.Compare(a.key.Class.Name, b.key.Class.Name),
			cmp.Compare(a.key.Class.Loader, b.key.Class.Loader), cmp.Compare(len(a.members), len(b.members)))
	})
	return all
}

// single leaves of a group of sites and its members those that say more: the members if they explain the group, else
// the group; of a method nothing but what it is named for, if that is so.
func single(all []candidate) []candidate {
	at, named := map[sites.Key]int{}, map[sites.Key]bool{}
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
			drop[i] = slices.ContainsFunc(c.members, func(k sites.Key) bool { return named[k] })
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

// others says whether a candidate has objects of more than one class.
func (c *candidate) others() bool {
	return slices.ContainsFunc(c.members, func(k sites.Key) bool { return k.Class != c.key.Class })
}

// scale lets no site grow by more than it has: the series are what samples stand for, and the figures of a state are
// less where that is more than there is of a class (sites.State).
func (h *detector) scale(r *heap.Cursor, all []candidate) {
	if len(all) == 0 || len(h.last) == 0 {
		return
	}
	live := (&sites.State{Symbols: r.Symbols, Samples: slices.Collect(maps.Values(r.Live)), Types: h.last}).Tallies()
	for i := range all {
		c := &all[i]
		keys := c.members
		if keys == nil {
			keys = []sites.Key{c.key}
		}
		has, stood := 0.0, 0.0
		for _, k := range keys {
			if t := live[k]; t != nil {
				figure, s := t.Bytes()
				has, stood = has+figure, stood+s
			}
		}
		if stood <= 0 {
			continue
		}
		f := min(1, has/stood)
		c.slope, c.low, c.high, c.grown = f*c.slope, f*c.low, f*c.high, min(f*c.grown, has)
	}
}

// heapGrowth gives the growth of all that is known to live over the window, without what was dropped again, and what
// lives at its end, 0 if it is never known.
func (h *detector) heapGrowth() (grown, live float64) {
	var v []float64
	for _, b := range h.Live {
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
	for range sites.MaxFrames {
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

// shared is how many innermost frames of site all members have in common, those above the program's own line aside if
// they differ.
func (c *candidate) shared(r *heap.Symbols, site []sites.StackFrame) []sites.StackFrame {
	first := 0
	for first < len(site) && libraryFrame(site[first]) {
		first++
	}
	n := len(site)
	for _, k := range c.members {
		o := sites.Stack(r, k.Frame, sites.MaxFrames)
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

// libraryFrame says whether a frame belongs to the JDK.
func libraryFrame(f sites.StackFrame) bool {
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
