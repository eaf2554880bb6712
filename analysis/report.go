package analysis

import (
	"sort"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/whatif"
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
	CycleNS uint64    `json:"cycle_ns,omitempty"` // of a concurrent cycle, from its first pause to its end
	Pauses  uint64    `json:"pauses,omitempty"`   // of a concurrent cycle; PauseNS is their sum
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
	Schema      string          `json:"schema"`
	JVM         string          `json:"jvm"`
	PID         uint64          `json:"pid"`                // of the JVM where it ran
	Resource    trace.Resource  `json:"resource,omitempty"` // attributes of OpenTelemetry: whose recording it is
	Collector   string          `json:"collector"`
	From        time.Time       `json:"from"`
	To          time.Time       `json:"to"`
	Collections []CollectionRow `json:"collections"`
	PauseNS     uint64          `json:"pause_ns"`
	ProbeNS     uint64          `json:"probe_ns"`
	WindowNS    uint64          `json:"window_ns"`
	Cost        cost.Minute     `json:"cost"` // of the whole recording, as `heapcam cost` says it
	// null: what sampling cost is known to the end
	SamplingUntil *uint64      `json:"sampling_known_until_ns"`
	MaxHeap       uint64       `json:"max_heap_bytes,omitempty"` // 0: not known
	Grown         []GrownClass `json:"grown"`
	// what int[] and java.lang.Object gained without a sample, where G1 fills gaps with them: it is no growth
	Fillers    *Fillers         `json:"fillers,omitempty"`
	GrownSites []sites.GrownRow `json:"grown_sites"`
	Sites      []sites.Row      `json:"sites"`               // what lives after the last known collection
	Verdicts   []leak.Verdict   `json:"verdicts"`            // those of `heapcam leaks`
	Misses     []leak.Miss      `json:"near_misses"`         // what grew and is not named, and why
	Full       *leak.Full       `json:"heap_full,omitempty"` // the heap was full
	// OldCollections are those of the window that collected old space: full and mixed ones, and major cycles.
	OldCollections int            `json:"old_collections"`
	Quality        sites.Coverage `json:"coverage"`
	Samples        uint64         `json:"samples"`
	collection.Sampling
	Uncompacted bool   `json:"may_count_dead,omitempty"` // of regions that G1 did not compact
	SitesCut    string `json:"sites_cut,omitempty"`      // samples that only their callers identify
	LostEpochs  uint64 `json:"lost_epochs"`
	Missed      uint64 `json:"missed_collections"` // they posted no events: their pauses are unknown
	LostSamples uint64 `json:"lost_samples"`
	UnknownGCs  int    `json:"collections_of_unknown_state"`
	// PartialGCs are collections after which a part of the state is known: that which has been listed so far.
	PartialGCs int `json:"collections_of_partial_state,omitempty"`
	// CompleteAfter is the collection whose slice completed the first listing that was spread over several; 0: none.
	CompleteAfter uint64 `json:"complete_after,omitempty"`
	// LeftOut are collections that a storm left without a listing: between two, only pauses and totals are known.
	LeftOut int      `json:"listings_left_out,omitempty"`
	Damage  []string `json:"damage"`
	// Ending is none (no end marker), jvm (the JVM ended), detached, or stopped (by the probe).
	Ending Ending `json:"ending"`
	// Over: there is no end marker, but on this machine the JVM surely runs no more.
	Over bool `json:"-"`
	// ByRun: `heapcam run` records it now.
	ByRun bool   `json:"-"`
	End   string `json:"end"` // how the recording ends, for people
	// what the kernel killed for want of memory shortly before the JVM was found ended; absent: nothing that is known
	Killed    *Killed `json:"killed,omitempty"`
	FirstLook ui.Flow `json:"look_first"` // the headline of `heapcam leaks`
	// what limits that headline where nothing leaks, as `heapcam leaks` says it
	Limits  ui.Flow  `json:"leaks_note,omitempty"`
	Watched *Watched `json:"watched,omitempty"` // of ZGC, Shenandoah and Epsilon
	// memory of the JVM's process; null: not recorded
	Process *Process `json:"process,omitempty"`

	// the recording has a reference listing, at least
	Referenced bool `json:"reference_listing"`
	// collection before the oldest whole reference listing, absent: there is none
	ListedFirst uint64 `json:"first_reference_listing,omitempty"`
	// the same of the newest
	ListedLast uint64 `json:"last_reference_listing,omitempty"`
	// of old space, when references were listed last; null: they were not
	Garbage *leak.Garbage `json:"garbage,omitempty"`
	// a heap that would halve the time in collections; null: none is known
	Advice *whatif.Advice `json:"heap_advice,omitempty"`

	// Open says that Verdicts is not known: a replay that follows objects finds it (Settle).
	Open bool `json:"-"`
	// Likely are the verdicts if Open turns out to confirm them.
	Likely []leak.Verdict `json:"-"`

	full trace.FullHeap
	over uint64 // when the newest collection was over, ns since the probe began
}

// Killed says that the kernel killed a process for want of memory, before the JVM was found without an end marker.
type Killed struct {
	Time time.Time `json:"time"` // when the JVM was found ended
	// whose counter of kills rose: cgroup (of the JVM's process), above (its cgroup is gone), or machine
	Scope string `json:"scope"`
	Limit uint64 `json:"limit_bytes,omitempty"` // limit of a memory cgroup that was reached; 0: not known
}

// ReportSchema is the schema that a Report's JSON has.
const ReportSchema = "heapcam.report/2"

var collectors = map[uint64]string{trace.CollectorSerial: "Serial", trace.CollectorParallel: "Parallel",
	trace.CollectorG1: "G1", trace.CollectorZGC: "ZGC", trace.CollectorShenandoah: "Shenandoah",
	trace.CollectorEpsilon: "Epsilon"}

// CollectorName names a garbage collector; "" if it is not known.
func CollectorName(collector uint64) string { return collectors[collector] }

// MakeReport reads all of from. If from is a *heap.Census, the report is the same, but that errors in tokens are not
// reported, and that Open may be set. o is what the leak detector gets.
func MakeReport(from heap.Reader, o leak.Options) (*Report, error) {
	r := NewReporter(from, o)
	if err := r.Read(); err != nil {
		return nil, err
	}
	return r.Report(), nil
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
	}
	row.Usage = usageOf(c, before)
	if y := c.Cycle; y != nil {
		row.CycleNS, row.Pauses = c.End()-y.Begin, y.Pauses
	}
	rep.PauseNS += c.Dur
	rep.ProbeNS += c.Probe + c.SyncProbe
	rep.full.Pause(&c.Pause, row.Before, c.Used)
	rep.over = max(rep.over, c.End())
	if c.Flags&trace.PauseLeftOut != 0 {
		rep.LeftOut++
	}
	rep.LostEpochs += c.EpochsLost
	rep.Missed += row.Missed
	rep.Sampling.Follow(r.JVM.Interval, c)
	rep.To = row.Time
	return row
}

// ending takes in what r, at its end, says of the recording and of how complete it is.
func (rep *Report) ending(r *heap.Cursor) {
	rep.JVM, rep.Collector, rep.Samples = r.JVM.VM, collectors[r.JVM.Collector], r.Taken
	rep.Resource, rep.PID = r.Resource, r.JVM.PID
	if r.SitesCut != nil {
		rep.SitesCut = r.SitesCut.String()
	}
	rep.Uncompacted, rep.MaxHeap, rep.Referenced = r.Uncompacted, r.JVM.MaxHeap, r.Referenced
	rep.LostEpochs += r.LostSince()
	for _, g := range r.Gaps {
		rep.LostSamples += g.Samples
	}
	for _, d := range r.Damage {
		rep.Damage = append(rep.Damage, d.Error())
	}
	rep.Damage = append(rep.Damage, r.Faults...)
	rep.Ending = EndingNone
	rep.End = noEnd + ": the JVM was killed, crashed, or is still running, or the file was cut off"
	last := trace.LastKnown{Time: max(rep.over, r.Noted), MaxHeap: r.JVM.MaxHeap, Killed: r.Killed}
	if n := len(r.Process); n > 0 {
		last.Process = r.Process[n-1]
	}
	if r.Killed != nil {
		last.Time = r.Killed.Time
		rep.Killed = &Killed{Time: collection.Wall(r.Symbols, r.Killed.Time),
			Scope: trace.KilledScopeNames.String(r.Killed.Scope), Limit: r.Killed.Limit}
	}
	switch why := rep.full.End(last); {
	case why == "":
	case r.Killed != nil, rep.full.Cause(r.JVM.MaxHeap) != "":
		rep.End = noEnd + "; " + why
	default:
		rep.End += "; if it ended, it was " + why
	}
	if r.End != nil {
		switch r.End.Reason {
		case trace.EndDeath:
			rep.Ending, rep.End = EndingJVM, "the JVM ended"
		case trace.EndDetached:
			rep.Ending, rep.End = EndingDetached, "heapcam was detached"
		default:
			rep.Ending, rep.End = EndingStopped, "the probe stopped recording: "+r.End.Text
		}
	}
}

// noEnd begins what a report says of a recording without an end marker.
const noEnd = "no end marker"

// Ending is how a recording ends.
type Ending string

// The endings of recordings.
const (
	EndingNone     Ending = "none"     // no end marker: killed, crashed, cut off, frozen, or still recorded
	EndingJVM      Ending = "jvm"      // the JVM ended
	EndingDetached Ending = "detached" // heapcam was detached
	EndingStopped  Ending = "stopped"  // the probe stopped recording; End has the probe's reason
)

// Account gives the report what recording cost.
func (rep *Report) Account(c *cost.Cost) { rep.Cost, rep.SamplingUntil = c.Total, c.Until }

// Settle gives the report its verdicts.
func (rep *Report) Settle(found *leak.Report) {
	rep.Verdicts, rep.Misses, rep.Full = found.Verdicts, found.Misses, found.Full
	rep.FirstLook = found.Headline
	if len(found.Verdicts) == 0 && found.CannotTell == "" {
		rep.Limits = found.Limits()
	}
}

// grown fills the classes that grew. sampled is by how much, as far as samples show.
func (rep *Report) grown(r *heap.Symbols, first, last []heap.Count, sampled map[sites.Class]grownSamples) {
	by := map[sites.Class]*GrownClass{}
	var classes []sites.Class
	for id, l := range last {
		var f heap.Count
		if id < len(first) {
			f = first[id]
		}
		if l == f || r.Filler(uint32(id)) { // a filler is a gap, no object of the program
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
		if mayFill(r, k) {
			rep.fillers(g, sampled[k])
		}
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
