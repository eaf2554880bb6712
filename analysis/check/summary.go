package check

import (
	"fmt"
	"maps"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

// SummaryCheck compares the summaries of a recording with its replay. Make one with Summaries before the first Next.
type SummaryCheck struct {
	Summaries, Collections, Types, Sites uint64 // compared
	Swept                                uint64 // of Collections: since a Remark or Cleanup; live objects not compared
	Different                            uint64 // rows that say something else than the replay
	First                                string // the first of them

	r          *heap.Replay
	at         *trace.Summary                 // whose sums are still to be compared
	summarized map[uint64]trace.CollectionRow // of collections whose replay is still to come
	seen       map[uint64]replayed            // until a summary has them

	since collection.SinceSweep
}

type replayed struct {
	trace.CollectionRow
	swept bool
}

// Summaries has r hand its summaries to the check it gives, which wants each collection too.
func Summaries(r *heap.Replay) *SummaryCheck {
	k := &SummaryCheck{r: r, summarized: map[uint64]trace.CollectionRow{}, seen: map[uint64]replayed{}}
	r.OnSummary = func(s *trace.Summary) { k.summary(s) }
	return k
}

// Collection compares c with what a summary says of it. It must get each collection that r gives.
func (k *SummaryCheck) Collection(c *heap.Collection) {
	k.since.Of(k.r)(c)
	if s := k.at; s != nil && c.GC >= s.At {
		// A listing in one piece is exact whatever was swept before.
		if k.at = nil; c.GC == s.At && c.Synced && c.Known && (c.Slice == 0 || !k.since.Swept) {
			k.sums(s)
		}
	}
	row := replayed{collectionRow(c), k.since.Swept}
	if t, ok := k.summarized[c.GC]; ok {
		delete(k.summarized, c.GC)
		k.compareRow(&row, &t)
		return
	}
	k.seen[c.GC] = row
	if len(k.seen) > 2*trace.MaxCollectionRows { // a summary has MaxCollectionRows at most, and they come in order
		maps.DeleteFunc(k.seen, func(gc uint64, _ replayed) bool { return gc+trace.MaxCollectionRows < c.GC })
	}
}

// collectionRow is c as the row of a summary should be.
func collectionRow(c *heap.Collection) trace.CollectionRow {
	before, eden, survivor, humongous, old := trace.InUse(c.Spaces)
	row := trace.CollectionRow{GC: c.GC, Kind: c.Kind, Start: c.Start, Dur: c.Dur, Probe: c.Probe,
		Sync: c.SyncProbe, Cause: c.Cause, Before: before, Eden: eden, Survivor: survivor, Old: old,
		Humongous: humongous}
	if c.Known {
		row.Flags, row.Objects, row.Bytes = trace.RowKnown, c.Objects, c.Bytes
	}
	if c.Synced {
		row.Flags |= trace.RowSynced
	}
	return row
}

func (k *SummaryCheck) differs(format string, args ...any) {
	if k.Different++; k.Different == 1 {
		k.First = fmt.Sprintf(format, args...)
	}
}

// compareRow compares a row of a summary with what replaying gives. A file alone, or one behind a loss, knows less or
// more of the state than the recorder did; and what a listing does not list is explained where it is compared (package
// heap). For what was swept see sinceSweep.
func (k *SummaryCheck) compareRow(want *replayed, t *trace.CollectionRow) {
	k.Collections++
	got := *t
	if want.Flags&trace.RowSynced == 0 { // a slice may be in the next file
		got.Sync = want.Sync
	}
	switch {
	case want.Flags != t.Flags || want.Flags&trace.RowKnown == 0:
		got.Flags, got.Sync, got.Objects, got.Bytes = want.Flags, want.Sync, want.Objects, want.Bytes
	case want.swept:
		k.Swept++
		got.Objects, got.Bytes = want.Objects, want.Bytes
	}
	if got != want.CollectionRow {
		k.differs("the summary of collection %d says %+v, its replay %+v", want.GC, *t, want.CollectionRow)
	}
}

func (k *SummaryCheck) summary(s *trace.Summary) {
	k.Summaries++
	for _, t := range s.Collections {
		if row, ok := k.seen[t.GC]; ok {
			delete(k.seen, t.GC)
			k.compareRow(&row, &t)
		} else if len(k.summarized) < 2*trace.MaxCollectionRows {
			k.summarized[t.GC] = t
		}
	}
	k.at = s
}

// sums compares types and sites with the state after s.At, its listing read: at a rotation that is in the next
// file.
func (k *SummaryCheck) sums(s *trace.Summary) {
	r := k.r
	per := r.State.PerType()
	for _, t := range s.Types {
		k.Types++
		var n heap.Count
		if t.Type < uint64(len(per)) {
			n = per[t.Type]
		}
		if n.Objects != t.Objects || n.Bytes != t.Bytes {
			k.differs("the summary at collection %d says %d objects and %d bytes of %s, its replay %d and %d", s.At,
				t.Objects, t.Bytes, r.TypeName(uint32(t.Type)), n.Objects, n.Bytes)
		}
	}
	type site struct{ typ, frame uint64 }
	by := map[site][3]float64{}
	for id, l := range r.Live.All() {
		if samples.Sited(id) { // sums have samples only
			continue
		}
		n := by[site{l.Type, l.Frame}]
		by[site{l.Type, l.Frame}] = [3]float64{n[0] + 1, n[1] + l.Weight, n[2] + l.Weight*float64(l.Size)}
	}
	// A stack may have several ids, and rows: together they are its site; of them some may have found no room or have
	// no type.
	rows := map[site]trace.SiteSum{}
	for _, t := range s.Sites {
		k.Sites++
		at := site{t.Type, r.Site(t.Frame)}
		n := rows[at]
		rows[at] = trace.SiteSum{Samples: n.Samples + t.Samples, Objects: n.Objects + t.Objects,
			Bytes: n.Bytes + t.Bytes, Frame: n.Frame + 1}
	}
	for at, t := range rows {
		n, off := by[at], float64(t.Frame) // sums of floats, in any order, each row rounded
		less := s.OtherSites > 0
		near := func(a uint64, b float64) bool {
			d := float64(a) - b
			return d <= off+b/1e9 && (less || -d <= off+b/1e9)
		}
		if !less && float64(t.Samples) != n[0] || float64(t.Samples) > n[0] || !near(t.Objects, n[1]) ||
			!near(t.Bytes, n[2]) {
			k.differs("the summary at collection %d says %d samples, %d objects and %d bytes of %s from frame %d, "+
				"its replay %.0f, %.0f and %.0f",
				s.At, t.Samples, t.Objects, t.Bytes, r.TypeName(uint32(at.typ)), at.frame, n[0], n[1], n[2])
		}
	}
}
