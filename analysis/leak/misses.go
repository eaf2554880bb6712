package leak

import (
	"cmp"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Miss is a site that grew in the window and is not named, and why.
type Miss struct {
	Class      string             `json:"class"`
	Loader     string             `json:"loader,omitempty"`
	Site       []sites.StackFrame `json:"site"`
	SiteID     string             `json:"site_id"` // as in a verdict
	GrownBytes uint64             `json:"grown_bytes"`
	// code of the reason: dropped, holder, soft, stopped, freed, replaced, turnover, fills, beside, chance, small, part
	Reason   string  `json:"reason"`
	Sentence ui.Flow `json:"sentence"`
	Next     ui.Flow `json:"next"` // what would show more

	reason ui.Flow // as a part of a sentence
	mixed  bool    // most of its objects die, so that others may pile up unseen
}

// Text is a near miss for people.
func (m *Miss) Text() ui.Flow {
	if m.Next == "" {
		return m.Sentence
	}
	return m.Sentence + " " + m.Next
}

// why is a reason why a site that grew is not named.
type why uint8

const (
	whyNot why = iota
	whyDropped
	whyHolder
	whySoft
	whyStopped
	whyFreed
	whyReplaced
	whyTurnover
	whyFills
	whyBeside
	whyChance
	whySmall
	whyPart
)

// What shows more of a site that is not named.
const (
	settles ui.Flow = "`heapcam leaks --settle JVM` shows which of them live."
	settled ui.Flow = "Next time, `heapcam leaks --settle JVM` shows which of them live." // the JVM has ended
	longer  ui.Flow = "Record for longer: a leak goes on."
	finer   ui.Flow = "Record for longer." // or with what finerThan says
)

// reasons are what whys mean: a code, the end of a sentence, and what would show more.
var reasons = [...]struct {
	code       string
	text, next ui.Flow
}{
	whyNot: {},
	whyDropped: {"dropped", "the program drops these objects",
		"If more of them stay in a longer window, it is reported there."},
	whyHolder: {"holder", "what could hold them has not grown as they have, as in a cache or queue that is full",
		settles},
	whySoft: {"soft", "soft references hold them, and the JVM clears these before the heap is full",
		"If the heap gets full all the same, the verdict says who fills it."},
	whyStopped: {"stopped", "the growth came in one step, or it stopped", longer},
	whyFreed: {"freed", "most of it was freed, or a reference listing found it dead",
		"Record until old space has been collected five times: what they leave shows growth."},
	whyReplaced: {"replaced", "the class has not grown: new objects replace older ones",
		"Record from the start of the JVM, or for longer."},
	whyTurnover: {"turnover", "its older objects are dead, as in a cache or queue that is full",
		"Two collections of old space, half a window apart, show whether it grows."},
	whyFills: {"fills", "its growth slows down, as in a cache that fills up",
		longer},
	whyBeside: {"beside", "the program drops other objects of the same data structure", settles},
	whyChance: {"chance", "chance may have caused it: there are too few samples", finer},
	whySmall:  {"small", "it grew by less than the limit, so that steady growth and one step look alike", finer},
	whyPart:   {"part", "it is probably a part of verdict", ""},
}

// unsure says whether the reason why something is not named also fits a leak, in a window of so many collections.
func (m *Miss) unsure(collections int) bool {
	switch m.Reason {
	case reasons[whyHolder].code, reasons[whyTurnover].code, reasons[whyFreed].code, reasons[whyBeside].code,
		reasons[whyChance].code:
		return true
	case reasons[whyFills].code:
		return m.mixed
	case reasons[whyStopped].code: // few points make steps of any growth
		return m.mixed || collections < fewForSteps
	}
	return false
}

// fewForSteps is how many collections show whether growth is one step.
const fewForSteps = 10

// missed is how many near misses are reported, and missedShare what share of the heap's growth they have at least.
const (
	missed      = 5
	missedShare = 0.05
)

// told is a structure that is a verdict, and its number in the list.
type told struct {
	*structure
	number int
	holder ui.Flow
}

// gained says whether about as many objects of a site came as of a member, by what there is of their classes.
func (v *told) gained(h *detector, c *candidate) bool {
	objects := func(k sites.Key, grown float64) float64 {
		if s := h.Sites[k]; s != nil && s.Allocated > 0 {
			return grown * s.Objects / s.Allocated
		}
		return 0
	}
	n := objects(c.key, c.grown)
	return slices.ContainsFunc(v.members, func(m *part) bool {
		k := objects(m.key, m.grown)
		return n > 0 && k > 0 && max(n, k) <= asFast*min(n, k)
	})
}

// partOf gives the number of the verdict that a site which is not named is probably a part of: as many of its objects
// come at the same place, or the same collection holds them. It is 0 if there is none, or if the site's own objects
// show that they are dropped.
func (h *detector) partOf(x *heads, c *candidate, verdicts []told) int {
	if c.why != whyHolder && c.why != whyStopped && c.why != whyChance {
		return 0
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.head == x.of(c.key.Frame) && (v.belongs(h, x.r, c) || v.gained(h, c)) {
			return v.number
		}
	}
	if h.Holder == nil || len(verdicts) == 0 {
		return 0
	}
	own, within := together(h.Holder(c.keys(), 0))
	for _, v := range verdicts {
		if of, ok := together(v.holder); ok && within && of == own {
			return v.number
		}
	}
	return 0
}

// mostLive bounds by how much anything may have grown: by what was ever in use. Few watched samples, each of which
// stands for much, may add up to more than that.
func (h *detector) mostLive() uint64 {
	most := uint64(0)
	for _, s := range h.spaces {
		most = max(most, s.used)
	}
	if !h.watched || most == 0 {
		return math.MaxUint64
	}
	return most
}

// belowLimit says whether something grew by less than what is found in 95 of 100 recordings of such a window. Then its
// few samples make steps of even growth.
func (h *detector) belowLimit(c *candidate) bool {
	rate, _ := h.Smallest()
	return rate > 0 && c.grown < rate*(h.Times[len(h.Times)-1]-h.From)
}

// floorsApart says whether old space was collected twice, half a window apart.
func (h *detector) floorsApart() bool {
	n := len(h.Floors)
	return n > 1 && h.Times[h.Floors[n-1]]-h.Times[h.Floors[0]] >= (h.Times[len(h.Times)-1]-h.From)/2
}

// misses lists what grew most of what is not named.
func (h *detector) misses(r *heap.Cursor, x *heads, others []candidate, named []*structure, verdicts []told) []Miss {
	out := []Miss{}
	of := map[sites.Key]bool{}
	for _, s := range named {
		for _, k := range s.keys {
			of[k] = true
		}
	}
	sum := 0.0
	for _, c := range others {
		if c.members == nil {
			sum += c.grown
		}
	}
	slices.SortStableFunc(others, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.grown, a.grown), cmp.Compare(a.key.Frame, b.key.Frame),
			cmp.Compare(a.key.Class.Name, b.key.Class.Name))
	})
	seen := map[string]bool{}
	for _, c := range others {
		head := x.of(c.key.Frame)
		if c.members != nil || of[c.key] || seen[head] || c.why == whyNot {
			continue
		}
		if len(out) == missed || c.grown < max(1, missedShare*sum) {
			break
		}
		seen[head] = true
		part := h.partOf(x, &c, verdicts)
		switch {
		case part > 0:
			c.why = whyPart
		case c.why == whyStopped && h.belowLimit(&c):
			c.why = whySmall
		}
		m := Miss{Class: c.key.Class.Name, Site: sites.Stack(r.Symbols, c.key.Frame, sites.MaxFrames),
			GrownBytes: min(uint64(c.grown), h.mostLive()), Reason: reasons[c.why].code, Next: reasons[c.why].next,
			reason: reasons[c.why].text, mixed: c.mixed}
		m.SiteID = sites.ID(m.Class, m.Site)
		m.Sentence = ui.Flowf("%s %s: +%s. Not reported: %s.", sites.ClassName(m.Class, ""), place(m.Site),
			ui.Flow(ui.Bytes(m.GrownBytes)), reasons[c.why].text)
		if part > 0 {
			m.Sentence = ui.Flowf("%s %d.", m.Sentence[:len(m.Sentence)-1], part)
		}
		switch s := finerThan(h.newest); {
		case m.Next == settles && h.over(r):
			m.Next = settled
		case m.Next == finer && s != "":
			m.Next = ui.Flowf("Record for longer, or with %s.", s)
		case c.why == whyTurnover && h.floorsApart():
			m.Next = longer
		}
		out = append(out, m)
	}
	return out
}
