package export

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/site"
)

// Rows of the tables for fleets.
type (
	SiteRow       = tables.SiteRow
	StackRow      = tables.StackRow
	LeakRow       = tables.LeakRow
	CollectionRow = tables.CollectionRow
)

// whose gives whose the rows of a recording are.
func whose(r *heap.Symbols) tables.Whose { return tables.Of(r.Resource, r.JVM.Session) }

// Sites writes each class at each site: what lives after the collection of p, and what was allocated up to it.
func (p *Profile) Sites(ctx context.Context, w io.Writer, format string) error {
	t, err := newTable[SiteRow](w, format, "heapcam.export.sites/1")
	if err != nil {
		return err
	}
	row := SiteRow{Whose: whose(p.r.Symbols), GC: p.c.GC, TimeMS: collection.Wall(p.r.Symbols, p.c.End()).UnixMilli()}
	for i := range p.values {
		v := &p.values[i]
		row.Class, row.SiteID, row.StackID = p.r.TypeName(v.typ), "", ""
		if v.note == "" {
			frames := sites.Stack(p.r.Symbols, v.frame, sites.MaxFrames)
			row.SiteID, row.StackID = sites.ID(row.Class, frames), site.StackID(sites.JoinStack(frames))
		}
		row.AllocObjects, row.AllocBytes = uint64(round(v.alloc[0])), uint64(round(v.alloc[1]))
		row.Objects, row.Bytes = uint64(round(v.live[0])), uint64(round(v.live[1]))
		row.Drawn = uint64(round(v.drawn[0]))
		if err := cmp.Or(t.put(row), ctx.Err()); err != nil {
			return err
		}
	}
	return t.end()
}

// Stacks writes each stack of p once.
func (p *Profile) Stacks(ctx context.Context, w io.Writer, format string) error {
	all := map[string]string{}
	for i := range p.values {
		if v := &p.values[i]; v.note == "" {
			s := sites.JoinStack(sites.Stack(p.r.Symbols, v.frame, sites.MaxFrames))
			all[site.StackID(s)] = s
		}
	}
	t, err := newTable[StackRow](w, format, "heapcam.export.stacks/1")
	if err != nil {
		return err
	}
	rows := make([]StackRow, 0, len(all))
	for id, s := range all {
		rows = append(rows, StackRow{StackID: id, Stack: s})
	}
	slices.SortFunc(rows, func(a, b StackRow) int { return strings.Compare(a.StackID, b.StackID) })
	for _, r := range rows {
		if err := cmp.Or(t.put(r), ctx.Err()); err != nil {
			return err
		}
	}
	return t.end()
}

// Leaks writes the verdicts of l on a recording that r has read.
func Leaks(w io.Writer, format string, l *leak.Report, r *heap.Cursor) error {
	t, err := newTable[LeakRow](w, format, "heapcam.export.leaks/1")
	if err != nil {
		return err
	}
	who, last := whose(r.Symbols), uint64(0)
	for _, end := range r.Ends {
		last = max(last, end)
	}
	to := collection.Wall(r.Symbols, last).UnixMilli()
	for i := range l.Verdicts {
		v := &l.Verdicts[i]
		siteID, stack, share := v.SiteID, v.Site, 0.0
		if c := v.Callers; c != nil { // as in the table "sites"
			siteID, stack, share = sites.ID(v.Class, c.Stack), c.Stack, c.Share
		}
		if err := t.put(LeakRow{Whose: who, TimeMS: to, OnsetFromMS: v.OnsetFrom.UnixMilli(),
			OnsetToMS: v.OnsetTo.UnixMilli(), Kind: v.Kind, Class: v.Class, SiteID: siteID,
			StackID: site.StackID(sites.JoinStack(stack)), CallersShare: share, Confidence: v.Confidence,
			BytesPerSecond: v.BytesPerSecond, GrownBytes: v.GrownBytes, Sentence: string(v.Sentence)}); err != nil {
			return err
		}
	}
	return t.end()
}

// Collections replays r and writes each collection.
func Collections(ctx context.Context, w io.Writer, format string, r heap.Reader) error {
	t, err := newTable[CollectionRow](w, format, "heapcam.export.collections/1")
	if err != nil {
		return err
	}
	if rerr := collection.Each(r, func(c *heap.Collection) bool {
		at := r.Position().Symbols
		row := CollectionRow{Whose: whose(at), TimeMS: collection.Wall(at, c.End()).UnixMilli(), GC: c.GC,
			JVMGC: c.JVMGC, Kind: trace.PauseKindNames.String(c.Kind), Cause: c.Cause, PauseNS: c.Dur,
			ProbeNS: c.Probe + c.SyncProbe, UsedBytes: c.Used, Known: c.Known}
		if c.Known {
			row.Objects, row.Bytes = c.Objects, c.Bytes
		}
		err = cmp.Or(t.put(row), ctx.Err())
		return err == nil
	}); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	return t.end()
}
