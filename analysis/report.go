package analysis

import (
	"io"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// CollectionRow is a collection of the window in the report. Times are ns.
type CollectionRow struct {
	GC      uint64    `json:"gc"`
	JVMGC   uint64    `json:"jvm_gc"`
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Cause   string    `json:"cause"`
	PauseNS uint64    `json:"pause_ns"`
	ProbeNS uint64    `json:"probe_ns"`
	SyncNS  uint64    `json:"sync_ns,omitempty"`
	Used    uint64    `json:"used_bytes"`
	Known   bool      `json:"known"`
	Partial bool      `json:"partial,omitempty"` // objects and bytes are those that have been listed so far
	Objects uint64    `json:"objects"`
	Bytes   uint64    `json:"bytes"`
	// Unlisted is how many bytes are not listed yet, if partial: the rest of the state is in them.
	Unlisted uint64         `json:"unlisted_bytes,omitempty"`
	Synced   bool           `json:"sync_point"`
	Quality  sites.Coverage `json:"coverage"`
	Usage
}

// GrownClass is a class that grew between the first and the last known collection.
type GrownClass struct {
	Class   string `json:"class"`
	Loader  string `json:"loader,omitempty"` // where two classes share a name
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
}

// Report is the whole of `heapcam report`.
type Report struct {
	Schema      string           `json:"schema"`
	JVM         string           `json:"jvm"`
	Collector   string           `json:"collector"`
	From        time.Time        `json:"from"`
	To          time.Time        `json:"to"`
	Collections []CollectionRow  `json:"collections"`
	PauseNS     uint64           `json:"pause_ns"`
	ProbeNS     uint64           `json:"probe_ns"`
	WindowNS    uint64           `json:"window_ns"`
	Grown       []GrownClass     `json:"grown"`
	GrownSites  []sites.GrownRow `json:"grown_sites"`
	Sites       []sites.Row      `json:"sites"`    // what lives after the last known collection, the most bytes first
	Suspects    []leak.Verdict   `json:"suspects"` // those of `heapcam leaks`
	// OldCollections are those of the window that collected old space: full and mixed ones.
	OldCollections int            `json:"old_collections"`
	Quality        sites.Coverage `json:"coverage"`
	Samples        uint64         `json:"samples"`
	Uncompacted    bool           `json:"may_count_dead,omitempty"` // of regions that G1 did not compact
	SitesCut       string         `json:"sites_cut,omitempty"`      // samples that only their callers identify
	LostEpochs     uint64         `json:"lost_epochs"`
	Missed         uint64         `json:"missed_collections"` // they posted no events: their pauses are unknown
	LostSamples    uint64         `json:"lost_samples"`
	UnknownGCs     int            `json:"collections_of_unknown_state"`
	// PartialGCs are collections after which a part of the state is known: that which has been listed so far.
	PartialGCs int `json:"collections_of_partial_state,omitempty"`
	// CompleteAfter is the collection whose slice completed the first listing that was spread over several; 0: none.
	CompleteAfter uint64   `json:"complete_after,omitempty"`
	Damage        []string `json:"damage"`
	End           string   `json:"end"`
	FirstLook     ui.Flow  `json:"look_first"`

	// Open says that Suspects is not known: a replay that follows objects finds it (Settle).
	Open bool `json:"-"`

	atStart  bool    // the recording began with its JVM
	doubt    ui.Flow // why it cannot show a leak
	smallest ui.Flow // leak that it would show
}

// ReportSchema is the schema that a Report's JSON has.
const ReportSchema = "heapcam.report/1"

var collectors = map[uint64]string{1: "Serial", 2: "Parallel", 3: "G1"}

// MakeReport reads all of from. If from is a *heap.Census, the report is the same, but that what sites have (Sites) is
// inferred by type alone, that errors in tokens are not reported, and that Open may be set.
func MakeReport(from heap.Reader) (*Report, error) {
	r := from.Position()
	rep := &Report{Schema: ReportSchema, Collections: []CollectionRow{}, Grown: []GrownClass{},
		GrownSites: []sites.GrownRow{}, Sites: []sites.Row{}, Damage: []string{}}
	h := leak.NewDetector()
	var first, last []heap.Count
	var firstSites map[sites.Key]*sites.Tally
	var alive []*heap.Sample // after the last known collection
	var known sites.CoverageFollower
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		row := rep.collection(r.Symbols, c)
		h.Collection(r, c)
		known.Follow(r)
		if c.Known {
			last = append(last[:0], r.Totals.PerType()...)
			if first == nil {
				first = append([]heap.Count{}, last...)
				firstSites = sites.Tallies(r.Symbols, maps.Values(r.Live))
			}
			alive = slices.AppendSeq(alive[:0], maps.Values(r.Live))
			q := known.Quality(r)
			row.Quality, rep.Quality = q, q
			if rep.CompleteAfter == 0 && rep.PartialGCs > 0 {
				rep.CompleteAfter = c.GC
			}
		} else if c.Partial {
			rep.PartialGCs++
		} else {
			rep.UnknownGCs++
		}
		rep.Collections = append(rep.Collections, row)
	}
	rep.ending(r)
	rep.grown(r.Symbols, first, last)
	lastSites := sites.Tallies(r.Symbols, slices.Values(alive))
	rep.GrownSites = sites.GrownSites(r.Symbols, firstSites, lastSites, 20)
	e := rep.estimate(from, &known)
	rep.Sites = sites.Rows(r.Symbols, lastSites, sites.ByClass(r.Symbols, last), e)
	if e == nil && r.JVM.Flags&trace.JVMAtStart == 0 { // what has no site may be older than the recording, or not
		rep.Sites = slices.DeleteFunc(rep.Sites, func(s sites.Row) bool { return s.Child != "" })
	}
	rep.Sites = rep.Sites[:min(len(rep.Sites), 50)]
	rep.OldCollections = h.Full + h.Mixed
	rep.doubt, rep.smallest = h.Doubt(), h.Smallest()
	rep.atStart = r.JVM.Flags&trace.JVMAtStart != 0
	suspects := h.Verdicts(r)
	if rep.Open = h.Open; rep.Open {
		suspects = []leak.Verdict{}
	}
	rep.Settle(suspects)
	return rep, nil
}

// collection adds c to the sums, and gives its row, but for what is known of the sites.
func (rep *Report) collection(r *heap.Symbols, c *heap.Collection) CollectionRow {
	row := CollectionRow{GC: c.GC, JVMGC: c.JVMGC, Time: collection.Wall(r, c.Start),
		Kind: trace.PauseKindNames.String(c.Kind), Cause: c.Cause, PauseNS: c.Dur, ProbeNS: c.Probe,
		SyncNS: c.SyncProbe, Used: c.Used, Known: c.Known, Objects: c.Objects, Bytes: c.Bytes, Synced: c.Synced,
		Partial: c.Partial, Unlisted: c.Unlisted}
	var before *CollectionRow
	if n := len(rep.Collections); n > 0 {
		before = &rep.Collections[n-1]
	} else {
		rep.From = row.Time
	}
	row.Usage = usageOf(c, before)
	rep.PauseNS += c.Dur
	rep.ProbeNS += c.Probe + c.SyncProbe
	rep.LostEpochs += c.EpochsLost
	rep.Missed += row.Missed
	rep.To = row.Time
	return row
}

// ending takes in what r, at its end, says of the recording and of how complete it is.
func (rep *Report) ending(r *heap.Cursor) {
	rep.JVM, rep.Collector, rep.Samples = r.JVM.VM, collectors[r.JVM.Collector], r.Taken
	if r.SitesCut != nil {
		rep.SitesCut = r.SitesCut.String()
	}
	rep.Uncompacted = r.Uncompacted
	if n := len(rep.Collections); n > 0 {
		rep.WindowNS = uint64(max(rep.To.Sub(rep.From), 0)) + rep.Collections[n-1].PauseNS
	}
	for _, g := range r.Gaps {
		rep.LostSamples += g.Samples
	}
	for _, d := range r.Damage {
		rep.Damage = append(rep.Damage, d.Error())
	}
	rep.Damage = append(rep.Damage, r.Faults...)
	rep.End = "no end marker: the JVM was killed, crashed, or is still running"
	if r.End != nil {
		rep.End = [...]string{"", "the JVM ended", "heapcam was detached",
			"the probe stopped recording: " + r.End.Text}[min(r.End.Reason, 3)]
	}
}

// estimate infers the sites of the last state; nil if that is not known.
func (rep *Report) estimate(from heap.Reader, known *sites.CoverageFollower) *sites.Estimate {
	n := len(rep.Collections)
	if !from.Position().Known || n == 0 || !rep.Collections[n-1].Known {
		return nil
	}
	if collection.Counts(from) {
		before := func(typ uint32) heap.Count { return heap.Count(known.Recording.Before(typ)) }
		return sites.StratifyTypes(from.View(), before).Estimate()
	}
	return sites.Stratify(from.View(), rep.Collections[n-1].GC, nil).Estimate()
}

// Settle gives the report its verdicts.
func (rep *Report) Settle(suspects []leak.Verdict) {
	rep.Suspects = suspects
	rep.FirstLook = rep.headline()
}

func (rep *Report) grown(r *heap.Symbols, first, last []heap.Count) {
	by := map[sites.Class]*GrownClass{}
	var classes []sites.Class
	for id, l := range last {
		var f heap.Count
		if id < len(first) {
			f = first[id]
		}
		if l == f {
			continue
		}
		k := sites.ClassOf(r, uint32(id)).Folded()
		g := by[k]
		if g == nil {
			g = &GrownClass{Class: k.Name}
			by[k] = g
			classes = append(classes, k)
		}
		g.Objects += int64(l.Objects - f.Objects)
		g.Bytes += int64(l.Bytes - f.Bytes)
	}
	shared := sites.Loaders(r, classes)
	for k, g := range by {
		g.Loader = shared[k]
		if g.Bytes > 0 {
			rep.Grown = append(rep.Grown, *g)
		}
	}
	sort.Slice(rep.Grown, func(i, j int) bool {
		a, b := rep.Grown[i], rep.Grown[j]
		return a.Bytes > b.Bytes || a.Bytes == b.Bytes && a.Class+a.Loader < b.Class+b.Loader
	})
	if len(rep.Grown) > 20 {
		rep.Grown = rep.Grown[:20]
	}
}
