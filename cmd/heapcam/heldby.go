package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace/references"
)

// mostHeld is the share of what is reached of a data structure that one holder has if a verdict names it, leastHeld the
// share of all of it, mostOfClass the share of all objects of its classes where it is not known which of them its site
// allocated.
const (
	mostHeld    = 0.5
	leastHeld   = 0.1
	mostOfClass = 0.8
)

// holding is what a reference listing of a recording says of the holders of sites' objects.
type holding struct {
	text   func([]sites.Key, uint64) ui.Flow
	object func([]sites.Key, uint64) uint64
	// bytes that an object retains, and those of them that samples of sites stand for
	retained func(keys []sites.Key, object uint64) (bytes, sampled float64)
	soft     func([]sites.Key) bool
	evicts   func([]sites.Key) ui.Flow
}

// heldBy gives functions of sites. The first names what holds most of what they allocated after a collection, by
// a reference listing of a recording: the newest one after a collection whose state is known. In a storm there may be
// none: then the newest one tells who holds all objects of the classes. It gives "" if there is no listing, if it
// cannot be read, or if neither one holder has most of it nor holders that are alike. The second identifies that
// holder. The others are as in leak.Options. The listing is read when the first verdict asks.
func heldBy(rec *ringstore.Recording, settled func() settlement) (out holding) {
	load := sync.OnceValues(func() (*retention.Heap, []retention.Placed) { return heldIn(rec, settled()) })
	var found sampledBy // asked for each site of a recording
	type answer struct {
		text   ui.Flow
		object uint64
	}
	known := map[string]answer{}
	answered := func(keys []sites.Key, since uint64) answer {
		h, placed := load()
		if h == nil {
			return answer{}
		}
		of := fmt.Sprint(since, keys)
		x, ok := known[of]
		if ok {
			return x
		}
		if placed == nil {
			classes := map[string]bool{}
			for _, k := range keys {
				classes[k.Class.Name] = true
			}
			x.text = holderOfClasses(h, slices.Sorted(maps.Keys(classes)))
		} else {
			x.text, x.object = holderOfMost(h.Graph.Holders(found.after(h, placed, keys, since)))
		}
		known[of] = x
		return x
	}
	out.text = func(keys []sites.Key, since uint64) ui.Flow { return answered(keys, since).text }
	out.object = func(keys []sites.Key, since uint64) uint64 { return answered(keys, since).object }
	out.retained = func(keys []sites.Key, object uint64) (bytes, sampled float64) {
		h, placed := load()
		if h == nil || placed == nil || object == 0 {
			return 0, 0
		}
		held := h.Graph.Holders(found.at(h, placed, keys))
		for i := range held.Holders {
			if x := &held.Holders[i]; x.Object != graph.None && uint64(x.Object)+1 == object {
				return float64(x.Retained), x.Share * held.Weight
			}
		}
		return 0, 0
	}
	out.soft = func(keys []sites.Key) bool {
		h, placed := load()
		return h != nil && placed != nil && softly(h.Graph, found.at(h, placed, keys))
	}
	out.evicts = func(keys []sites.Key) ui.Flow {
		h, placed := load()
		if h == nil || placed == nil {
			return ""
		}
		what, where := h.Graph.Evicts(found.at(h, placed, keys))
		if what == "" {
			return ""
		}
		return ui.Flow(what) + " (" + holderFlow(where) + ")"
	}
	return out
}

// heldIn reads the newest reference listing of a recording that can be read, and where the sampled objects are in it;
// nil: not known.
func heldIn(rec *ringstore.Recording, s settlement) (*retention.Heap, []retention.Placed) {
	if s.placed != nil {
		if h, err := (&retaining{at: strconv.FormatUint(s.gc, 10)}).load(rec); err == nil {
			return h, s.placed
		}
	}
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return nil, nil
	}
	gcs := reaches.GCs()
	for i := len(gcs) - 1; i >= max(0, len(gcs)-mostSettled); i-- {
		o := retaining{at: strconv.FormatUint(gcs[i], 10)}
		v, _, _, err := stateAt(rec, o.at, false)
		if err != nil || v.State == nil {
			continue
		}
		if h, err := o.load(rec); err == nil {
			return h, retention.PlacedIn(v)
		}
	}
	o := retaining{at: "last"}
	if h, err := o.load(rec); err == nil {
		return h, nil
	}
	return nil, nil
}

// holderOfMost names what holds most of what is reached of a set, and identifies it, if it is one object: garbage that
// has not been collected has no holder.
func holderOfMost(held *graph.Held) (text ui.Flow, object uint64) {
	most := mostHeld * (1 - held.Weak - held.Unreached)
	if most < leastHeld {
		return "", 0
	}
	if len(held.Holders) > 0 && held.Holders[0].Share >= most {
		// below what holds unrelated things, as a thread, there are no ways
		if x := &held.Holders[0]; x.Object != graph.None && len(x.Below) > 0 {
			object = uint64(x.Object) + 1
		}
		return holderFlow(held.Holders[0].Text()), object
	}
	if n, share, each := held.Alike(); n > 1 && share >= most {
		return ui.Flowf("%d objects, each reached by %s", n, holderFlow(each)), 0
	}
	return "", 0
}

// sampledBy has the samples of a state that are in a reference listing, by frame.
type sampledBy map[uint64][]retention.SampledMember

// at gives those of sites, in the order of the listing.
func (x *sampledBy) at(h *retention.Heap, placed []retention.Placed, keys []sites.Key) []graph.Member {
	return members(x.of(h, placed, keys))
}

// fewGrown is how many samples that came after a collection say more about what grows than all samples do, freshGone
// how many collections before the listing the last of them came: what is in use at the moment is held in other ways.
const (
	fewGrown  = 5
	freshGone = 2
)

// after gives those of sites that came after collection since, if there are enough.
func (x *sampledBy) after(h *retention.Heap, placed []retention.Placed, keys []sites.Key, since uint64) []graph.Member {
	all := x.of(h, placed, keys)
	for _, until := range [...]uint64{h.About.GC - min(freshGone, h.About.GC), h.About.GC} {
		some := slices.DeleteFunc(slices.Clone(all), func(m retention.SampledMember) bool {
			return m.Birth <= since || m.Birth > until
		})
		if len(some) >= fewGrown {
			return members(some)
		}
	}
	return members(all)
}

func (x *sampledBy) of(h *retention.Heap, placed []retention.Placed, keys []sites.Key) (out []retention.SampledMember) {
	if *x == nil {
		*x = h.SampledBy(placed)
	}
	seen := map[uint64]bool{}
	for _, k := range keys {
		if !seen[k.Frame] {
			seen[k.Frame] = true
			out = append(out, (*x)[k.Frame]...)
		}
	}
	slices.SortFunc(out, func(a, b retention.SampledMember) int { return cmp.Compare(a.Object, b.Object) })
	return out
}

func members(all []retention.SampledMember) []graph.Member {
	out := make([]graph.Member, len(all))
	for i, m := range all {
		out[i] = m.Member
	}
	return out
}

// softly says whether soft references alone hold more than half of what is alive of a set.
func softly(g *graph.Graph, set []graph.Member) bool {
	soft, all := 0.0, 0.0
	for _, m := range set {
		switch s, ok := g.Strength(m.Object); {
		case !ok || !g.Live(m.Object):
			continue
		case s == references.Soft:
			soft += m.Weight
		}
		all += m.Weight
	}
	return 2*soft > all
}

// holderOfClasses names what holds nearly all objects of these classes, whichever site allocated them.
func holderOfClasses(h *retention.Heap, classes []string) ui.Flow {
	var set []graph.Member
	for _, c := range classes {
		set = append(set, h.OfClass(c)...)
	}
	held := h.Graph.Holders(set)
	if len(held.Holders) == 0 || held.Holders[0].Share < mostOfClass {
		return ""
	}
	return ui.Flowf("%s (%s of these classes)", holderFlow(held.Holders[0].Text()),
		ui.Flow(ui.Share(held.Holders[0].Share)))
}

// ourWords are the parts of a holder's text that are not names from the recording: only their blanks break lines.
var ourWords = regexp.MustCompile(`^static | → static | → … \d+ more references … → | → |, then | ×\d+|` +
	`^class |, in other ways, each below \d+ %$| \((?:` + joined(references.StrengthNames[:]) + `)\)|` +
	`^\(a word on a stack, perhaps a reference\)(?: |$)(?:→ )?|` +
	`^\((?:` + joined(references.RootKindNames[:]) + `)(?: of thread)?\)?(?: |$)(?:→ )?|[^\\ ]"\) (?:→ )?`)

// joined makes an alternative of names.
func joined(names []string) string { return strings.Join(names, "|") }

// holderFlow lets a holder be broken into lines, but not at a blank in a name: it could begin a line.
func holderFlow(t ui.Text) ui.Flow {
	var f ui.Flow
	last := 0
	for _, at := range ourWords.FindAllStringIndex(string(t), -1) {
		f += ui.Flowf("%s", t[last:at[0]]) + ui.Flow(t[at[0]:at[1]])
		last = at[1]
	}
	return f + ui.Flowf("%s", t[last:])
}
