package leak

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// NoSamples is why a recording without samples shows no leak: none has a site.
const NoSamples ui.Flow = "no allocation was sampled, so no allocation site is known"

// NoCollection is why a recording without a collection shows none.
const NoCollection ui.Flow = "there is no collection in this recording"

// FreesNothing is why a recording of Epsilon shows none.
const FreesNothing ui.Flow = "Epsilon frees nothing, so all that the program allocates stays"

// lostDoubt is the share of samples lost from which a window does not show that nothing leaks: the phases lack their
// ends, so that a leak seems to stop or to slow down.
const lostDoubt = 0.25

// manyLost ends the reason that samples were lost.
const manyLost = "of the samples were lost"

// lostTooMany says so if it is true of a recording that has taken some samples and lost others; else "".
func lostTooMany(taken, lost uint64) ui.Flow {
	share := float64(lost) / float64(max(taken+lost, 1))
	if share < lostDoubt {
		return ""
	}
	return ui.Flowf("%s "+manyLost, ui.Flow(ui.Share(share)))
}

// lostOf gives how many of the samples that were lost would be samples of a detector: those that are lost are mostly of
// the time when each object was a sample.
func (h *detector) lostOf(lost uint64) uint64 {
	if !h.thin || h.samples == nil {
		return lost
	}
	return uint64(float64(lost) * h.samples.Share())
}

// Advice says what to do where nobody can say whether the program leaks: why is Doubt, NoSamples or NoCollection.
func Advice(why ui.Flow) ui.Flow {
	switch {
	case why == "":
		return ""
	case why == NoSamples:
		return "Record again, and see `heapcam cost` for what stopped the sampling."
	case strings.HasPrefix(string(why), "no objects"):
		return "`heapcam cost` shows which limit lowered it. Record again with a larger one, or without."
	case strings.HasSuffix(string(why), manyLost):
		return "Record again, and sample less, such as with `--sampling 64KiB`."
	case strings.HasPrefix(string(why), stateUnknown):
		return "Record for longer: the first listing of a large heap is spread over collections. `heapcam verify` " +
			"shows what is missing or damaged, and `heapcam cost` whether the depth was lowered."
	}
	return "Record for longer: at least one minute, with at least ten collections."
}

// limit is how many sampling intervals a leak must leave in a window to be named in 95 of 100 recordings; see
// TestDetectionLimit.
const limit = 24

// stateUnknown begins the reason that data is missing.
const stateUnknown = "the heap state is unknown"

// Doubt says why the window cannot show whether there is a leak, as the end of a sentence; "" if it can.
func (h *detector) Doubt() ui.Flow {
	n := len(h.Times)
	switch {
	case n == 0:
		return ""
	case 2*h.bySamples > n && h.resolved == 0:
		return ui.Flowf("no objects were recorded in %d of %s: the depth was samples", h.bySamples,
			ui.Flow(ui.Plural(uint64(n), "collection")))
	case 2*(h.unknown-h.bySamples) > n:
		return ui.Flowf(stateUnknown+" after %d of %s", h.unknown, ui.Flow(ui.Plural(uint64(n), "collection")))
	case h.shows():
		return ""
	}
	are := ui.Flow("are")
	if n == 1 {
		are = "is"
	}
	return ui.Flowf("%s in %s %s too few to tell growth from chance", ui.Flow(ui.Plural(uint64(n), "collection")),
		ui.Flow(ui.Seconds(max(h.until, h.Times[n-1])-h.From)), are)
}

// note says what limits the verdicts; "" if nothing does.
func (h *detector) note() ui.Flow {
	n := len(h.Times)
	switch {
	case n == 0:
		return "There is no collection in this recording."
	case h.Doubt() != "":
		return h.Doubt() + "."
	case 4*h.bySamples > n:
		return ui.Flowf("The depth was samples in %d of %s, so `leaks` may miss leaks above that limit, too. "+
			"`heapcam cost` shows what lowered it.", h.bySamples,
			ui.Flow(ui.Plural(uint64(n), "collection")))
	case h.listings > 0:
		return ""
	case len(h.Floors) == 0 && h.Missed > 0:
		return "Old space was not collected, unless in a pause without events: it is not known which objects " +
			"died there."
	case len(h.Floors) == 0:
		return "Old space was not collected in this recording: it is not known which objects died there."
	}
	return ""
}

// usual is the sampling interval of a window: the mean, by time, where it changed. The weights of samples vary by that
// much on average, so a leak needs as many bytes as with such an interval throughout.
func (h *detector) usual(window float64) float64 {
	if window <= 0 || h.sampled <= 0 {
		return float64(h.interval)
	}
	return min(float64(h.interval), h.sampled/window)
}

// Smallest says which leaks would not have been found in 95 of 100 recordings of such a window: in bytes a second, 0 if
// that is not known; then as a sentence, if anything is known.
func (h *detector) Smallest() (rate float64, sentence ui.Flow) {
	if h.watched { // which sites are watched how much changes all the time
		return 0, ""
	}
	window := 0.0
	if n := len(h.Times); n > 0 {
		window = h.Times[n-1] - h.From
	}
	switch {
	case h.interval == 0 && window > 0:
		return 0, ui.Flowf("A leak of fewer than %d objects in %s may go unnoticed: record for longer to see it.",
			limit, ui.Flow(ui.Seconds(window)))
	case h.interval == 0:
		return 0, ui.Flowf("A leak of fewer than %d objects may go unnoticed.", limit)
	case window <= 0:
		return 0, ui.Flowf("A leak of less than %s may go unnoticed.", ui.Flow(ui.Bytes(limit*h.interval)))
	}
	return limit * h.usual(window) / window, ""
}

// place is the application's innermost frame as a part of a sentence.
func place(site []sites.StackFrame) ui.Flow {
	if len(site) == 0 {
		return "from an unknown site"
	}
	return ui.Flowf("from %s", site[sites.Own(site)])
}

// names lists the classes of a data structure, most bytes first.
func (v *Verdict) names() (s ui.Flow) {
	var names []ui.Flow
	for _, m := range v.Members {
		if m.Class[:min(len(m.Class), 1)] == "(" && len(v.Members) > 1 { // no name is known
			continue
		}
		if n := sites.ClassName(m.Class, m.Loader); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	const most = 3
	n := len(names)
	for i, name := range names[:min(n, most)] {
		switch {
		case i == 0:
		case i == n-1:
			s += " and "
		default:
			s += ", "
		}
		s += name
	}
	if n > most {
		s += " and others"
	}
	return s
}

// liveSamples is the number of live samples of all members. samples is another number where the interval changed: that
// of samples of one weight.
func (s *structure) liveSamples() int {
	n := 0.0
	for _, m := range s.members {
		n += m.samples
	}
	return int(n)
}

// verdict renders a structure. live is what lives at the end of the window, grown what all grew by.
func (h *detector) verdict(r *heap.Cursor, s *structure, loaders map[sites.Class]string, grown, live float64) Verdict {
	slices.SortStableFunc(s.members, func(a, b *part) int {
		return cmp.Or(cmp.Compare(b.grown, a.grown), cmp.Compare(a.class.Name, b.class.Name))
	})
	slices.SortStableFunc(s.members[1:], func(a, b *part) int { return cmp.Compare(b.slope, a.slope) }) // as printed
	v := Verdict{Kind: KindSuspect, Members: []Member{}, Confidence: min(1-s.p, maxConfidence), BytesPerSecond: s.slope,
		BytesPerSecondLow: s.low, BytesPerSecondHigh: s.high, GrownBytes: min(uint64(max(0, s.grown)), h.mostLive()),
		LiveSamples: s.liveSamples(), PValue: s.p, Test: s.test, Against: "time", Floors: s.floors,
		Reached: s.settled && h.listings > 0, queued: s.queued, seeps: s.seeps, stayed: s.stayed, older: s.older,
		once: s.once && !s.queued, Rates: h.rates(s),
		seen:      h.proven(r.Symbols, &s.growth),
		OnsetFrom: collection.Wall(r.Symbols, uint64(max(0, s.onset[0])*1e9)),
		OnsetTo:   collection.Wall(r.Symbols, uint64(max(0, s.onset[1])*1e9)), Thread: threadOf(r, h, s.keys)}
	for _, m := range s.members[:min(len(s.members), most)] {
		site := sites.Stack(r.Symbols, m.key.Frame, sites.MaxFrames)
		id := sites.ID(m.class.Name, site)
		v.Members = append(v.Members, Member{Class: m.class.Name, Loader: loaders[m.class],
			Site: s.shared(r.Symbols, m, site), SiteID: id, BytesPerSecond: m.slope,
			GrownBytes: min(uint64(max(0, m.grown)), h.mostLive()), LiveSamples: int(m.samples)})
	}
	first := v.Members[0]
	v.Class, v.Loader, v.Site, v.SiteID = first.Class, first.Loader, first.Site, first.SiteID
	if len(v.Site) > 0 {
		v.Place = v.Site[sites.Own(v.Site)]
	}
	if stack, share, n := h.bySite(r).callers.Likeliest(r.Symbols, s.members[0].key.Frame); n > 0 {
		v.Callers = &Callers{sites.Stack(r.Symbols, stack, sites.MaxFrames), share, n}
	}
	if s.allocation {
		v.Against = "allocation"
	}
	if s.alone != "" {
		v.ClassObjects, v.counts = s.counts[:], s.alone
	}
	if grown > 0 {
		v.Share = min(1, s.grown/grown)
	}
	v.HeapShare = s.heapShare
	if !s.fills && live > 0 {
		v.HeapShare = min(1, h.has(r.Symbols, s.keys)/live)
	}
	switch {
	case s.fills:
		v.Kind = KindFills
	case s.settled:
		v.Kind = KindLeak
		if h.Evicts != nil && !s.queued && !s.seeps {
			if v.evicts = h.Evicts(s.keys); v.evicts != "" {
				v.Kind, v.Confidence = KindSuspect, min(v.Confidence, maxUnproven)
			}
		}
	default:
		v.Confidence = min(v.Confidence, maxUnproven)
	}
	rate := s.slope
	if s.counts[2] > 0 { // the class alone says too little
		rate = max(rate, h.heapRate())
	}
	if limit := float64(r.JVM.MaxHeap); limit > live && live > 0 && rate > 0 && (h.full == nil || h.full.Large) {
		x := (limit - live) / rate
		v.FullIn = &x
	}
	if h.Holder != nil {
		v.Holder = v.outside(h.holderOf(s))
	}
	v.What = ui.Flowf("%s %s", v.names(), place(v.Site))
	if s.wide && len(v.Site) > 0 {
		v.What = ui.Flowf("%s from several lines of %s.%s", v.names(), ui.Flow(v.Place.Class), ui.Flow(v.Place.Method))
	}
	if v.Holder != "" {
		v.What += ui.Flowf(", held by %s", v.Holder)
	}
	v.Sentence = h.sentence(r, s, &v)
	return v
}

// outside shortens what holds the objects of several classes to what is outside of them: it ends before the first field
// of one of the classes, which would hold only the others.
func (v *Verdict) outside(holder ui.Flow) ui.Flow {
	begin, path, ok := strings.Cut(string(holder), ", then ")
	if !ok || len(v.Members) < 2 {
		return holder
	}
	steps := strings.Split(path, " → ")
	for i, step := range steps {
		class, _, ok := strings.Cut(step, ".")
		if ok && slices.ContainsFunc(v.Members, func(m Member) bool { return lastName(m.Class) == class }) {
			path = strings.Join(steps[:i], " → ")
			if path == "" || path == "[]" {
				return ui.Flow(begin)
			}
			return ui.Flow(begin + ", then " + path)
		}
	}
	return holder
}

// lastName is the name of a class without its package and the classes around it.
func lastName(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// has is what sites have at the end of the window, in bytes that samples stand for, as far as their classes have so
// much.
func (h *detector) has(r *heap.Symbols, keys []sites.Key) (n float64) {
	if h.figures != nil {
		for _, k := range keys {
			if t := h.figures[k]; t != nil {
				figure, _ := t.Bytes()
				n += figure
			}
		}
		return n
	}
	of := map[*history.Series]bool{}
	for _, k := range keys {
		of[h.Sites[k]] = true
		n += max(0, h.Sites[k].LiveBytes)
	}
	h.YoungLive(r, func(s *history.Series, y *heap.Sample) {
		if of[s] {
			n += float64(y.Size) * y.Weight
		}
	})
	return n
}

// sentence says it in words.
func (h *detector) sentence(r *heap.Cursor, s *structure, v *Verdict) ui.Flow {
	grow := ui.Flow("grows")
	if len(v.Members) > 1 {
		grow = "grow"
	}
	if s.fills {
		fill := ui.Flow("fills it")
		if len(v.Members) > 1 {
			fill = "fill it"
		}
		if h.full.Large {
			return ui.Flowf("The heap had no room at %s: %s. %s %s: %s of the live heap, +%s since the start.",
				ui.Flow(ui.Clock(h.full.Time)), h.full.Evidence, v.What, fill, ui.Flow(ui.Share(v.HeapShare)),
				ui.Flow(ui.Bytes(v.GrownBytes)))
		}
		return ui.Flowf("The heap was full from %s on: %s. %s %s: %s of the live heap, +%s since the start, %s before "+
			"it was full. This is a leak, or a cache or queue that is too large for this heap.",
			ui.Flow(ui.Clock(h.full.Time)), h.full.Evidence, v.What, fill, ui.Flow(ui.Share(v.HeapShare)),
			ui.Flow(ui.Bytes(v.GrownBytes)), v.Rate())
	}
	since := ui.Flowf("since %s or earlier", ui.Flow(ui.Clock(v.OnsetTo)))
	if s.onset[0] > h.From+1 {
		since = ui.Flowf("since %s", ui.Flow(ui.Clock(v.OnsetTo)))
	} else if !h.late && h.From < 5 && s.onset[1]-h.From < (h.To-h.From)/4 {
		since = "since the JVM started"
	}
	by := ui.Flowf("estimated from %s", ui.Flow(ui.Plural(uint64(v.LiveSamples), "live sample")))
	if s.alone != "" && len(v.Members) == 1 {
		by = "counted exactly"
	}
	text := ui.Flowf("%s: %s %s by %s, %s (%s). %s", ui.Flow(kinds[v.Kind]), v.What, grow, v.Rate(), since, by,
		v.Proof())
	if v.FullIn == nil {
		return text
	}
	begin, at := ui.Flow("At this rate"), ui.Flow(" after the end of this recording")
	if s.counts[2] > 0 {
		begin = "As fast as all of it grows"
	}
	if h.over(r) {
		begin += " the heap would have been full "
	} else if begin += " the heap is full "; *v.FullIn < 24*3600 {
		end := v.end(r, h).Add(seconds(*v.FullIn)).Round(time.Minute)
		at += ui.Flowf(", at %s", ui.Flow(end.Local().Format("15:04 MST")))
	}
	return text + " " + v.Exhaustion(begin, at)
}

// end is when the window ends.
func (v *Verdict) end(r *heap.Cursor, h *detector) time.Time {
	return collection.Wall(r.Symbols, uint64(h.Times[len(h.Times)-1]*1e9))
}

// kinds begin the sentences of verdicts.
var kinds = map[string]string{KindLeak: "Leak", KindSuspect: "Suspected leak", KindFills: "Full heap"}

// Ended says whether a recording's end says that the JVM ended.
func Ended(end *trace.End) bool { return end != nil && end.Reason == trace.EndDeath }

// over says whether the JVM has ended.
func (h *detector) over(r *heap.Cursor) bool {
	return Ended(r.End) || r.End == nil && h.Over != nil && h.Over(r.JVM.PID)
}

// proven says what share of a suspect's growth the newest floor showed to live; "" if there was none.
func (h *detector) proven(r *heap.Symbols, g *growth) ui.Flow {
	if g.seen <= 0 || g.settled || g.queued && !g.once {
		return ""
	}
	what, seenAt := ui.Flow("collection of old space"), g.seenAt
	if h.listings > 0 && h.listedAt >= seenAt { // a listing is taken after the collection that it settles
		what, seenAt = "reference listing", h.listedAt
	}
	if g.once && g.queued {
		return "The later of two collections of old space left more of them; the older ones are dead. More come than " +
			"leave, as in a queue or a registry that empties too slowly, or in a cache whose contents vary."
	}
	at := ui.Flow(ui.Clock(collection.Wall(r, uint64(seenAt*1e9))))
	if g.once {
		later := ui.Flow("")
		if g.seen < 0.995 {
			later = ", without what came later"
		}
		share := ui.Flow(ui.Share(g.seen))
		if g.seen >= 0.9995 {
			share = "all"
		}
		return ui.Flowf("The last %s, at %s, found %s of the growth alive%s. That alone does not tell a leak from a "+
			"cache that fills up.", what, at, share, later)
	}
	return ui.Flowf("The last %s, at %s, found only %s of the growth alive, and less than half proves no leak: what "+
		"came later may be garbage, or a cache that fills up.", what, at, ui.Flow(ui.Share(g.seen)))
}

// Proof says what shows that the objects stay.
func (v *Verdict) Proof() ui.Flow {
	switch {
	case v.ClassObjects != nil && v.evicts == "":
		return v.counted()
	case v.queued && v.Kind == KindSuspect && v.seen != "":
		return v.seen
	case v.queued && v.Kind == KindSuspect:
		return "The older objects are dead, and the array that holds the others grows: more come than leave, as in a " +
			"queue or a list that empties too slowly."
	case v.queued:
		return ui.Flowf("Each of %d collections of old space left more of them; the older ones are dead. More come "+
			"than leave, as in a queue or a registry that empties too slowly.", v.Floors)
	case v.stayed > 0:
		return ui.Flowf("Most of these objects die, but a reference listing found %s alive that are older than %s, "+
			"old ones as often as younger ones, as of sessions that are not always closed.",
			ui.Flow(ui.Count(v.stayed)), ui.Flow(ui.Seconds(v.older)))
	case v.seeps:
		return ui.Flowf("Most of these objects die, but over %d collections of old space ever more stayed, old ones "+
			"as often as younger ones, as of sessions that are not always closed.", v.Floors)
	case v.evicts != "":
		return ui.Flowf("The objects live, but what holds them may be a cache that is not full yet. It has %s. "+
			"Record until it stops to grow, or look up its limit: a leak goes on.", v.evicts)
	case v.Kind == KindSuspect && v.seen != "":
		return v.seen
	case v.Kind == KindSuspect:
		return "No collection of old space shows that these objects live: they may be garbage, or a cache that fills " +
			"up."
	case v.Reached:
		return "A reference listing shows that the objects live."
	case v.Floors == 1:
		return "The objects were still there after a collection of old space."
	}
	return ui.Flowf("The objects were still there after %d collections of old space.", v.Floors)
}

// longest is the time to exhaustion, in seconds, beyond which growth does not matter.
const longest = 365 * 86400

// Exhaustion says when the heap is full: begin, the time, end.
func (v *Verdict) Exhaustion(begin, end ui.Flow) ui.Flow {
	switch {
	case v.FullIn == nil:
		return "It is not known when the heap is full."
	case *v.FullIn >= longest:
		return "At this rate the heap is not full within a year."
	}
	return begin + "about " + ui.Flow(ui.About(seconds(*v.FullIn))) + end + "."
}

// Rate is the growth as text.
func (v *Verdict) Rate() ui.Flow { return rate(v.BytesPerSecond) }

func rate(bytes float64) ui.Flow { return ui.Flow(ui.Bytes(uint64(max(bytes, 0))) + "/s") }

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }
