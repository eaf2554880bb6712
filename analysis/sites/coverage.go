package sites

import (
	"slices"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Coverage is what is known of the sites of the live objects, as package coverage defines it: exact (a sample stands on
// the object), proven (one bytecode alone can have made it), inferred (its type has a likeliest site, and counts with
// its probability), candidates (of the rest, what one of two to four bytecodes has made), before the recording (at
// most) and unknown; they add up to all live objects.
type Coverage struct {
	ExactObjects    uint64 `json:"exact_objects"`
	ExactBytes      uint64 `json:"exact_bytes"`
	ProvenObjects   uint64 `json:"proven_objects"` // the innermost frame alone
	ProvenBytes     uint64 `json:"proven_bytes"`
	InferredObjects uint64 `json:"inferred_objects"`
	InferredBytes   uint64 `json:"inferred_bytes"`
	FewObjects      uint64 `json:"candidates_objects"` // one of two to four bytecodes has made them
	FewBytes        uint64 `json:"candidates_bytes"`
	BeforeObjects   uint64 `json:"before_recording_objects"`
	BeforeBytes     uint64 `json:"before_recording_bytes"`
	UnknownObjects  uint64 `json:"unknown_objects"`
	UnknownBytes    uint64 `json:"unknown_bytes"`
	ResolvedBytes   uint64 `json:"resolved_bytes"` // of types whose largest site has a share known to ±10 %
}

func (q *Coverage) Live() (objects, bytes uint64) {
	objects = q.ExactObjects + q.ProvenObjects + q.InferredObjects + q.FewObjects + q.BeforeObjects +
		q.UnknownObjects
	return objects, q.ExactBytes + q.ProvenBytes + q.InferredBytes + q.FewBytes + q.BeforeBytes + q.UnknownBytes
}

// Known is the share of the live objects and bytes whose site is exact, proven or inferred; 1 of an empty heap.
func (q *Coverage) Known() (objects, bytes float64) {
	o, b := q.Live()
	return float64(
		q.ExactObjects+q.ProvenObjects+q.InferredObjects+1,
	) / float64(o+1), float64(q.ExactBytes+q.ProvenBytes+q.InferredBytes+1) / float64(b+1)
}

// Sentence says for how much of the live bytes the site is known, in the words of all verbs.
func (q *Coverage) Sentence() ui.Flow {
	_, all := q.Live()
	if all == 0 {
		return "the heap state is not known"
	}
	share := func(n uint64) ui.Flow { return ui.Flow(ui.Part(n, all)) }
	proven := ui.Flow("")
	if q.ProvenBytes > 0 {
		proven = ui.Flowf(", %s proven (innermost frame)", share(q.ProvenBytes))
	}
	few := ui.Flow("")
	if q.FewBytes > 0 {
		few = ui.Flowf("For %s it is one of two to four. ", share(q.FewBytes))
	}
	s := ui.Flowf("for %s of the live bytes: %s exactly%s, %s inferred. %sFor %s the site is unknown",
		share(q.ExactBytes+q.ProvenBytes+q.InferredBytes), share(q.ExactBytes), proven, share(q.InferredBytes),
		few, share(q.UnknownBytes))
	if q.BeforeBytes > 0 {
		s += ui.Flowf(", and up to %s may be older than the recording", share(q.BeforeBytes))
	}
	return s + ". Inferred counts only the likeliest site of each class."
}

// CoverageFollower estimates quality along a replay.
type CoverageFollower struct {
	Recording coverage.Recording
	Newest    Coverage // after the newest collection whose state is known
	Lost      bool     // LostMany
	exact     coverage.Totals
	sites     coverage.Sites
	callers   Callers
	proofs    *coverage.Proofs // of the cursor that follow was called with
}

// Collection takes in a collection of a replay, once each.
func (f *CoverageFollower) Collection(r *heap.Cursor, c *heap.Collection) {
	f.Follow(r)
	if c.Known {
		f.Quality(r)
		f.Lost = LostMany(r)
	}
}

// Begin listens to the epochs of r; to be called before the first of them is read, or proofs begin later.
func (f *CoverageFollower) Begin(r *heap.Cursor) {
	if f.proofs != nil {
		return
	}
	p := coverage.NewProofs(names{r.Symbols})
	f.proofs, f.Recording.Proofs = p, p
	r.OnEpoch = p.Epoch
}

// Follow takes in what the newest collection did to the samples; to be called once after each.
func (f *CoverageFollower) Follow(r *heap.Cursor) {
	f.Begin(r)
	for _, s := range r.Sampled {
		f.proofs.Sample(uint32(s.Type), s.Frame, s.Birth)
	}
	f.callers.Follow(r)
	for _, s := range r.Resolved {
		f.exact.Add(uint32(s.Type), coverage.Count{Objects: 1, Bytes: s.Size})
		f.sites.Add(uint32(s.Type), s.Frame)
	}
	for _, s := range r.Died {
		f.exact.Sub(uint32(s.Type), coverage.Count{Objects: 1, Bytes: s.Size})
		f.sites.Sub(uint32(s.Type), s.Frame)
	}
}

// Callers gives those of the samples so far.
func (f *CoverageFollower) Callers() *Callers { return &f.callers }

// CallersAmong gives the callers by the samples that live.
func (f *CoverageFollower) CallersAmong(s *heap.Symbols, live []*heap.Sample) *Callers {
	return f.callers.Among(s, slices.Values(live))
}

// Before says how much of a type may be older than the recording, at most, after the newest call of Quality.
func (f *CoverageFollower) Before(typ uint32) heap.Count { return heap.Count(f.Recording.Before(typ)) }

// Quality gives the figure of the state of r, which must be known.
func (f *CoverageFollower) Quality(r *heap.Cursor) Coverage {
	f.Recording.AtStart = r.JVM.Flags&trace.JVMAtStart != 0
	var live coverage.Totals
	for id, c := range r.Totals.PerType() {
		if c.Objects > 0 {
			live.Add(uint32(id), coverage.Count(c))
		}
	}
	f.Begin(r)
	f.proofs.JVM(f.Recording.AtStart)
	f.proofs.State(r.View().GC, &live)
	q := f.Recording.After(&live, &f.exact, &f.sites)
	f.Newest = Coverage{ExactObjects: q.Exact.Objects, ExactBytes: q.Exact.Bytes, InferredObjects: q.Inferred.Objects,
		InferredBytes: q.Inferred.Bytes, BeforeObjects: q.Before.Objects, BeforeBytes: q.Before.Bytes,
		ProvenObjects: q.Proven.Objects, ProvenBytes: q.Proven.Bytes,
		FewObjects: q.Candidates.Objects, FewBytes: q.Candidates.Bytes,
		UnknownObjects: q.Unknown.Objects, UnknownBytes: q.Unknown.Bytes, ResolvedBytes: q.Resolved.Bytes}
	return f.Newest
}

// CoverageRow is the quality after one collection.
type CoverageRow struct {
	GC      uint64    `json:"gc"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Synced  bool      `json:"sync_point"`
	Known   bool      `json:"known"`
	Quality Coverage  `json:"coverage"`
}

// FromSync compares what is known if reading starts at a sync point with what the whole recording knows: at the sync
// point and after each of the next collections (Figure 18 of ICPE'16). Values are shares of the live objects whose site
// is exact, proven or inferred.
type FromSync struct {
	GC    uint64    `json:"gc"`
	Alone []float64 `json:"alone"`
	Whole []float64 `json:"whole"`
	// The share of the live bytes, if reading starts there.
	AloneBytes []float64 `json:"alone_bytes"`
	// The share of the live bytes for the whole recording.
	WholeBytes []float64 `json:"whole_bytes"`
}

// after18 is how many collections follow in ICPE'16's Figure 18.
const after18 = 9

// CoverageReport is the whole of `heapcam coverage`.
type CoverageReport struct {
	Schema string `json:"schema"`
	collection.Sampling
	// The recording has sites that the bytecode noted (`--sites exact` or `hash`).
	Noted       bool          `json:"exact_sites,omitempty"`
	SeenBytes   uint64        `json:"site_seen_bytes"`  // live bytes of a site that have a sample with 95 % probability
	KnownBytes  uint64        `json:"site_known_bytes"` // live bytes of a site that are known to ±20 %
	Collections []CoverageRow `json:"collections"`
	LostEpochs  uint64        `json:"lost_epochs"`
	Missed      uint64        `json:"missed_collections"` // they posted no events
	LostSamples uint64        `json:"lost_samples"`
	// collections after which the heap state is unknown; 0 with collectors of which no state is ever known
	UnknownGCs uint64 `json:"collections_of_unknown_state"`
	// Samples of classes with one candidate that a round of reading covers, and those of them that end elsewhere.
	ProofsChecked uint64 `json:"proofs_checked"`
	ProofsWrong   uint64 `json:"proofs_wrong"`
	// The same of classes with two to four candidates: wrong are samples that end at none of them.
	ListsChecked uint64 `json:"candidates_checked"`
	ListsWrong   uint64 `json:"candidates_wrong"`
	// Samples of objects whose site the bytecode has noted, too, and those of them whose stack is not below that site;
	// both are 0 if stacks were cut because the probe's table of frames was full.
	NotedChecked uint64     `json:"exact_checked"`
	NotedWrong   uint64     `json:"exact_wrong"`
	SyncPoints   []FromSync `json:"sync_points"`

	at      map[uint64]*Coverage
	damaged uint64 // sections
}

// MakeCoverage replays all of r.
func MakeCoverage(from heap.Reader) (*CoverageReport, error) {
	r := from.Position()
	q := &CoverageReport{Schema: "heapcam.coverage/1", Collections: []CoverageRow{}, SyncPoints: []FromSync{},
		at: map[uint64]*Coverage{}}
	var f CoverageFollower
	f.Begin(r)
	f.proofs.Checks = true
	r.OnTold = func(s *heap.Sample, frame uint64) {
		q.NotedChecked++
		if !below(r.Symbols, s.Frame, frame) {
			q.NotedWrong++
		}
	}
	defer func() { r.OnTold = nil }()
	err := collection.Each(from, func(c *heap.Collection) bool {
		f.Follow(r)
		row := CoverageRow{GC: c.GC, Time: collection.Wall(r.Symbols, c.Start),
			Kind: trace.PauseKindNames.String(c.Kind), Synced: c.Synced, Known: c.Known}
		if c.Known {
			row.Quality = f.Quality(r)
			x := row.Quality
			q.at[c.GC] = &x
		} else if !c.Partial && !trace.Concurrent(r.JVM.Collector) {
			q.UnknownGCs++
		}
		q.LostEpochs += c.EpochsLost
		q.Missed += c.Missed()
		q.Sampling.Follow(r.JVM.Interval, c)
		q.Collections = append(q.Collections, row)
		return true
	})
	if len(q.Collections) == 0 {
		q.Interval = r.JVM.Interval
	}
	q.Noted = r.HasSited()
	if r.Symbols.SitesCut != nil {
		q.NotedChecked, q.NotedWrong = 0, 0
	}
	q.LostEpochs += r.LostSince()
	for _, g := range r.Gaps {
		q.LostSamples += g.Samples
	}
	q.damaged = uint64(len(r.Damage) + len(r.Faults))
	one, few := f.proofs.Check()
	q.ProofsChecked, q.ProofsWrong, q.ListsChecked, q.ListsWrong = one.Samples, one.Wrong, few.Samples, few.Wrong
	q.SeenBytes, q.KnownBytes = coverage.Resolution(q.Interval)
	return q, err
}

// below says whether the stack of a sample has the bytecode that noted the site of the same object: as its innermost
// frame or, where that called a method that allocates without a bytecode, as a caller.
func below(t *heap.Symbols, frame, noted uint64) bool {
	want := t.Frames[noted]
	for n := 0; frame != 0 && n < deepest; n++ {
		f := t.Frames[frame]
		if f.Method == want.Method && f.BCI == want.BCI {
			return true
		}
		frame = f.Parent
	}
	return false
}

// Alone adds what is known from the first sync point of r on, which begins there, for the collections that q knows. It
// adds nothing if the two have none in common.
func (q *CoverageReport) Alone(from heap.Reader) error {
	r := from.Position()
	var f CoverageFollower
	out := FromSync{Alone: []float64{}, Whole: []float64{}, AloneBytes: []float64{}, WholeBytes: []float64{}}
	take := func(gc uint64) {
		whole := q.at[gc]
		if whole == nil || !r.Known {
			return
		}
		x := f.Quality(r)
		if len(out.Alone) == 0 {
			out.GC = gc
		}
		a, ab := x.Known()
		w, wb := whole.Known()
		out.Alone, out.Whole = append(out.Alone, a), append(out.Whole, w)
		out.AloneBytes, out.WholeBytes = append(out.AloneBytes, ab), append(out.WholeBytes, wb)
	}
	r.OnListing = func(gc uint64) {
		if len(out.Alone) == 0 {
			f.Follow(r)
			r.Forget()
			take(gc)
		}
	}
	err := collection.Each(from, func(c *heap.Collection) bool {
		f.Follow(r)
		if c.Known {
			take(c.GC)
		}
		return len(out.Alone) <= after18
	})
	if len(out.Alone) > 0 {
		q.SyncPoints = append(q.SyncPoints, out)
	}
	return err
}
