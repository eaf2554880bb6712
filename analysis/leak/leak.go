// Package leak is the leak detector: it names the allocation sites whose objects survive collections, are not
// dropped by the program, and grow throughout a window, and those that fill a heap that was full.
//
// A site is named if its series grows by a test of significance (Mann–Kendall, and Student's on the increments),
// throughout the window and not in one step, against time or against the bytes that the program allocated, and if
// nothing shows that its objects are dropped. That is judged by the floors of old space (package history) where there
// are any, else by the arrays and nodes that must hold the objects. Sites of one data structure are one verdict. A
// verdict whose objects' deaths could not be seen is a suspect. All verdicts of a window together are wrong with a
// probability of 1 % at most, if the assumptions of the tests hold. docs/design/0009-leak-detection.md says why it
// works like this.
//
// Files: leak.go (verdicts and report), judging.go (from sites to verdicts), candidates.go (what is tested), judge.go
// (tests of a series), full.go (who fills a full heap), structure.go (which sites are one data structure), detector.go
// (what it follows), deaths.go (what dies at once), holders.go and tables.go (what holds objects), sparse.go (windows
// of few collections), seeps.go and born.go (what mostly dies), misses.go (what was not named, and why), text.go
// (words).
package leak

import (
	"errors"
	"io"
	"time"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Kinds of verdicts.
const (
	// KindLeak: the growth outlived collections of old space.
	KindLeak = "leak"
	// KindSuspect: it grows like a leak, but no collection of old space shows that its objects live.
	KindSuspect = "suspect"
	// KindFills: the heap was full, and this made it full.
	KindFills = "fills-heap"
)

// Verdict is a data structure that leaks: sites whose objects survive collections, are not dropped, and grow throughout
// the window, or fill a heap that is full. Class and Site are those of its largest site. Confidence is 1 − p of the
// test for growth, corrected for autocorrelation and for the number of sites that were tested; of a suspect it is no
// more than maxUnproven.
type Verdict struct {
	Kind   string             `json:"kind"`
	Class  string             `json:"class"`
	Loader string             `json:"loader,omitempty"` // where two classes share a name
	Site   []sites.StackFrame `json:"site"`
	SiteID string             `json:"site_id"` // the same in other runs and builds: a hash of class and methods
	// innermost frame of the application: the line that can be changed
	Place   sites.StackFrame `json:"place"`
	Members []Member         `json:"members"` // all sites of the data structure, most bytes first
	// of a site that is one frame, as `--sites exact` gives it: who calls it most, by live samples that end there
	Callers    *Callers `json:"callers,omitempty"`
	Confidence float64  `json:"confidence"`
	// median of the slopes between all pairs of points
	BytesPerSecond float64 `json:"bytes_per_second"`
	// 95 % interval of the trend (Sen) and of sampling
	BytesPerSecondLow  float64 `json:"bytes_per_second_low"`
	BytesPerSecondHigh float64 `json:"bytes_per_second_high"`
	Sentence           ui.Flow `json:"sentence"`
	GrownBytes         uint64  `json:"grown_bytes"` // estimate over the window
	LiveSamples        int     `json:"live_samples"`
	Share              float64 `json:"share_of_growth"` // of the heap's
	HeapShare          float64 `json:"share_of_heap"`   // of the live heap at the end, or when it was full
	PValue             float64 `json:"p_value"`
	Test               string  `json:"test"`
	// what the growth was tested against: "time", or "allocation" where it follows the bytes allocated
	Against string `json:"against"`
	// at this rate, from the end of the window until the heap's maximum is live; null: not known, or full already
	FullIn *float64 `json:"seconds_to_exhaustion"`
	// the growth began between these two times; the first is the window's start if it may be older
	OnsetFrom time.Time `json:"onset_from"`
	// then the growth had begun
	OnsetTo time.Time `json:"onset_to"`
	// how fast it grew in each sixth of the window, bytes a second; absent of what filled a heap, and where exact
	// counts alone show the growth
	Rates []float64 `json:"rates,omitempty"`
	// name of the thread that allocated most of it, if there is one
	Thread string `json:"thread,omitempty"`
	// what holds the objects, where the window has a listing of references
	Holder ui.Flow `json:"held_by,omitempty"`
	// collections of old space, and reference listings, that the growth outlived
	Floors int `json:"floors"`
	// a reference listing showed that the objects live
	Reached bool `json:"reached"`
	// objects of the class that an early, a middle and the last collection of old space, or reference listing, left.
	// Only where these exact counts show the growth: the rate is without what the objects hold, unless there are more
	// members
	ClassObjects []uint64 `json:"class_objects,omitempty"`

	What ui.Flow `json:"-"` // classes and place, as a part of a sentence

	counts string  // the class that ClassObjects are of
	queued bool    // the older objects are dead
	seeps  bool    // most of them are
	stayed uint64  // all the same, so many stayed that are older than
	older  float64 // so many seconds
	once   bool    // it lives, but nothing shows that it grows further
	evicts ui.Flow // by what means its collection may drop objects
	seen   ui.Flow // what share of a suspect's growth is known to have lived, and since when
}

// Callers is what samples say of the callers of a frame.
type Callers struct {
	Stack   []sites.StackFrame `json:"stack"` // the stack that most of them have, with the frame itself
	Share   float64            `json:"share"` // of the samples that end in this frame, from 0 to 1
	Samples uint64             `json:"samples"`
}

// Member is a part of a data structure: the objects of one class from one line of the application.
type Member struct {
	Class          string             `json:"class"`
	Loader         string             `json:"loader,omitempty"` // where two classes share a name
	Site           []sites.StackFrame `json:"site"`             // of its largest site
	SiteID         string             `json:"site_id"`          // as in a verdict
	BytesPerSecond float64            `json:"bytes_per_second"`
	GrownBytes     uint64             `json:"grown_bytes"`
	LiveSamples    int                `json:"live_samples"`
}

// Full says that the heap was full in the window, or had no room for a large object.
type Full struct {
	Time      time.Time `json:"time"`       // of the first collection that found it full, or when the allocation failed
	GC        uint64    `json:"gc"`         // number of that collection, or of the one before
	UsedBytes uint64    `json:"used_bytes"` // after that collection
	MaxBytes  uint64    `json:"max_bytes"`  // that the heap may have
	Evidence  ui.Flow   `json:"evidence"`   // what shows it
	UntilEnd  bool      `json:"until_end"`  // it still was at the end of the window
	// an allocation failed while much of the heap was free, so it was for one large object
	Large bool `json:"large_object,omitempty"`

	at int
}

// Report is the whole of `heapcam leaks`.
type Report struct {
	Schema string `json:"schema"`
	// the first verdict, or what it means that there is none: the same in `report`, `incidents show` and the viewer
	Headline ui.Flow   `json:"headline"`
	Verdicts []Verdict `json:"verdicts"` // leaks, suspects and what fills the heap, by how much they matter
	// what grows, but too slowly to matter
	Small  []Verdict `json:"small_growth"`
	Misses []Miss    `json:"near_misses"`         // what grew and is not named, and why
	Full   *Full     `json:"heap_full,omitempty"` // the heap was full
	Window float64   `json:"window_seconds"`
	// Collections of the window, and those of them that collected old space: after full collections and remarks no dead
	// object counts.
	Collections int    `json:"collections"`
	Floors      int    `json:"floors"`
	Listings    int    `json:"reference_listings"` // of the floors: they show which objects lived
	Missed      uint64 `json:"missed_collections"` // full collections of which the JVM posted no events: no floors
	Note        string `json:"note"`               // what limits the verdicts
	// a leak that grows as fast is named in 95 of 100 such windows; 0: not known
	Smallest float64 `json:"smallest_bytes_per_second"`
	// why it is not known whether the program leaks; "" if it is. Then there are no verdicts.
	CannotTell  string `json:"cannot_tell,omitempty"`
	LostSamples uint64 `json:"lost_samples,omitempty"`
	// of old space, when references were listed last; null: they were not
	Garbage *Garbage `json:"garbage,omitempty"`

	doubt    ui.Flow // why no leak can be found
	smallest ui.Flow // leak that would have been found; "": not known
	watched  bool    // a random part of the samples was followed
	note     ui.Flow
	lostMany bool
	ended    bool   // the JVM has
	byRun    bool   // `heapcam run` records it now
	interval uint64 // of sampling: the mean, or that at the end if it is smaller
}

// Garbage is what of old space nothing kept alive when references were listed, bytes: it was not collected yet.
type Garbage struct {
	GC        uint64    `json:"gc"`              // the collection before
	Time      time.Time `json:"time"`            // when references were listed, UTC
	Old       uint64    `json:"old_bytes"`       // objects in old space, humongous ones too
	Unreached uint64    `json:"unreached_bytes"` // of these, what no root reaches
	Weak      uint64    `json:"weak_bytes"`      // of these, what weak and phantom references alone lead to
}

// Schema is the schema of a Report's JSON.
const Schema = "heapcam.leaks/2"

// Leaks says how many of the verdicts are no suspects.
func (l *Report) Leaks() (n int) {
	for i := range l.Verdicts {
		if l.Verdicts[i].Kind != KindSuspect {
			n++
		}
	}
	return n
}

// Limits is the Note for people: what limits the verdicts.
func (l *Report) Limits() ui.Flow { return l.note }

// Options set what a detector asks for.
type Options struct {
	// MinGrowth is the share of the maximum heap a day below which growth is no verdict; DefaultMinGrowth by default.
	MinGrowth float64
	// Holder names what holds the objects of these sites that were born after collection since, or, where it knows few
	// of those, all of them, from a listing of references; "" if it is not known. nil: there is no listing.
	Holder func(keys []sites.Key, since uint64) ui.Flow
	// Object identifies the object that the text of Holder names; 0 if it names none, or several. It may be nil.
	Object func(keys []sites.Key, since uint64) uint64
	// Retained gives how many bytes the object that Object identifies retained, and how many bytes of these the samples
	// of some sites stand for; 0 if it does not hold most of them. It may be nil.
	Retained func(keys []sites.Key, object uint64) (retained, sampled float64)
	// Soft says of sites whether a listing of references shows that soft ones alone hold most of their objects. It may
	// be nil.
	Soft func([]sites.Key) bool
	// Evicts says by what means the collection that holds the objects of these sites may drop some, as the end of "It
	// has"; "" if a listing of references shows none. It may be nil.
	Evicts func([]sites.Key) ui.Flow
	// Ages gives the ages of all objects at the listing of references after a collection; nil if they are not known.
	// The function may be nil, too.
	Ages func(gc uint64) *Ages
	// Alive gives what the reference listing after a collection found alive, by type id; nil if there is none that says
	// it. The function may be nil, too.
	Alive func(gc uint64) []heap.Count
	// Over says of a JVM, by its pid, whether it surely runs no more, although the recording has no end. It may be nil.
	Over func(pid uint64) bool
	// ByRun says whether `heapcam run` records it now. It may be nil.
	ByRun func() bool
	// Unreached gives the ids of the samples that the reference listing after a collection did not reach: those are
	// dead. nil: there is none that says it. at is when it was taken, in seconds of the stream. The function may be
	// nil, too.
	Unreached func(gc uint64) (dead map[uint64]bool, at float64)
}

// DefaultMinGrowth is 0.1 % of the maximum heap a day.
const DefaultMinGrowth = 0.001

// ErrOpen says that a census is not enough, because the verdicts depend on the arrays that hold the objects. A Replay
// is needed.
var ErrOpen = errors.New("the verdicts need a replay that follows objects")

// Find reads all of r and returns its verdicts. It returns ErrOpen if r is a census and a Replay is needed.
func Find(from heap.Reader, o Options) (*Report, error) {
	r := from.Position()
	h := NewDetector()
	h.Options = o
	for {
		c, err := r.Next()
		if err == io.EOF {
			l := h.Report(r)
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

// Report judges what the detector has seen.
func (h *detector) Report(r *heap.Cursor) *Report {
	if h.thinned != nil && h.interval >= trace.MinInterval {
		h.thinned.samples = h.samples
		l := h.thinned.Report(h.thinly(r))
		h.Open = h.thinned.Open
		return l
	}
	l := &Report{Schema: Schema, Verdicts: []Verdict{}, Small: []Verdict{}, Misses: []Miss{},
		Collections: len(h.Times), Floors: len(h.Floors), Listings: h.listings, Missed: h.Missed}
	if n := len(h.Times); n > 0 {
		l.Window = h.Times[n-1] - h.From
	}
	l.byRun = h.ByRun != nil && h.ByRun()
	if l.ended = h.over(r); r.End != nil {
		h.until = float64(r.End.Time) / 1e9
	}
	h.judgeAll(r, l)
	l.doubt, l.note, l.watched, l.interval = h.Doubt(), h.note(), h.watched, min(uint64(h.usual(l.Window)), h.newest)
	l.Smallest, l.smallest = h.Smallest()
	if l.Collections > 0 && r.Taken == 0 {
		l.doubt = NoSamples
	} else if r.JVM.Collector == trace.CollectorEpsilon {
		l.doubt = FreesNothing
	}
	l.Note = string(l.note)
	for _, g := range r.Gaps {
		l.LostSamples += g.Samples
	}
	l.lostMany = sites.LostMany(r)
	if l.Collections == 0 {
		l.doubt = NoCollection
	} else if l.doubt == "" {
		l.doubt = lostTooMany(r.Taken, h.lostOf(l.LostSamples))
	}
	if len(l.Verdicts) == 0 {
		l.CannotTell = string(l.doubt)
	}
	if l.watched && l.smallest == "" {
		l.smallest = ui.Flowf("The result rests on %s.",
			ui.Flow(ui.Plural(r.WatchedTaken, "watched sample")))
	}
	l.Headline = l.headline()
	return l
}
