package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// SiteRow is a class at an allocation site, of the table "sites". Stacks are in a table of their own.
type SiteRow struct {
	Service      string `json:"service" parquet:"service,dict"`
	Version      string `json:"version" parquet:"version,dict"`
	Namespace    string `json:"namespace" parquet:"namespace,dict"`
	Instance     string `json:"instance" parquet:"instance,dict"`
	Host         string `json:"host" parquet:"host,dict"`
	TimeMS       int64  `json:"time_ms" parquet:"time_ms,timestamp(millisecond)"` // end of the collection
	GC           uint64 `json:"gc" parquet:"gc"`
	Class        string `json:"class" parquet:"class,dict"`
	SiteID       string `json:"site_id" parquet:"site_id,dict"`   // empty: the site is not known
	StackID      string `json:"stack_id" parquet:"stack_id,dict"` // in the table "stacks"
	Objects      uint64 `json:"objects" parquet:"objects"`        // live after the collection
	Bytes        uint64 `json:"bytes" parquet:"bytes"`
	AllocObjects uint64 `json:"alloc_objects" parquet:"alloc_objects"` // in the window up to it
	AllocBytes   uint64 `json:"alloc_bytes" parquet:"alloc_bytes"`
}

// StackRow is a stack, of the table "stacks".
type StackRow struct {
	StackID string `json:"stack_id" parquet:"stack_id"`
	Stack   string `json:"stack" parquet:"stack"` // innermost first, "; " between
}

// LeakRow is a verdict, of the table "leaks".
type LeakRow struct {
	Service        string  `json:"service" parquet:"service,dict"`
	Version        string  `json:"version" parquet:"version,dict"`
	Namespace      string  `json:"namespace" parquet:"namespace,dict"`
	Instance       string  `json:"instance" parquet:"instance,dict"`
	Host           string  `json:"host" parquet:"host,dict"`
	OnsetFromMS    int64   `json:"onset_from_ms" parquet:"onset_from_ms,timestamp(millisecond)"`
	OnsetToMS      int64   `json:"onset_to_ms" parquet:"onset_to_ms,timestamp(millisecond)"`
	Kind           string  `json:"kind" parquet:"kind,dict"`
	Class          string  `json:"class" parquet:"class,dict"`
	SiteID         string  `json:"site_id" parquet:"site_id,dict"`
	StackID        string  `json:"stack_id" parquet:"stack_id,dict"`
	Confidence     float64 `json:"confidence" parquet:"confidence"`
	BytesPerSecond float64 `json:"bytes_per_second" parquet:"bytes_per_second"`
	GrownBytes     uint64  `json:"grown_bytes" parquet:"grown_bytes"`
	Sentence       string  `json:"sentence" parquet:"sentence"`
}

// stackID names a stack with its lines: the same in every recording.
func stackID(stack string) string {
	h := sha256.Sum256([]byte(stack))
	return hex.EncodeToString(h[:8])
}

// Sites writes each class at each site: what lives after the collection of p, and what was allocated up to it.
func (p *Profile) Sites(ctx context.Context, w io.Writer, format string) error {
	t, err := newTable[SiteRow](w, format, "heapcam.export.sites/1")
	if err != nil {
		return err
	}
	who := p.r.Resource
	row := SiteRow{Service: who[trace.AttrService], Version: who[trace.AttrVersion], Namespace: who.Namespace(),
		Instance: who.Instance(), Host: who[trace.AttrHost], GC: p.c.GC,
		TimeMS: collection.Wall(p.r.Symbols, p.c.End()).UnixMilli()}
	for i := range p.values {
		v := &p.values[i]
		row.Class, row.SiteID, row.StackID = p.r.TypeName(v.typ), "", ""
		if v.note == "" {
			frames := sites.Stack(p.r.Symbols, v.frame, sites.MaxFrames)
			row.SiteID, row.StackID = sites.ID(row.Class, frames), stackID(sites.JoinStack(frames))
		}
		row.AllocObjects, row.AllocBytes = uint64(round(v.alloc[0])), uint64(round(v.alloc[1]))
		row.Objects, row.Bytes = uint64(round(v.live[0])), uint64(round(v.live[1]))
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
			all[stackID(s)] = s
		}
	}
	t, err := newTable[StackRow](w, format, "heapcam.export.stacks/1")
	if err != nil {
		return err
	}
	rows := make([]StackRow, 0, len(all))
	for id, s := range all {
		rows = append(rows, StackRow{id, s})
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
func Leaks(w io.Writer, format string, l *leak.Report, r *heap.Symbols) error {
	t, err := newTable[LeakRow](w, format, "heapcam.export.leaks/1")
	if err != nil {
		return err
	}
	who := r.Resource
	for i := range l.Verdicts {
		v := &l.Verdicts[i]
		if err := t.put(LeakRow{Service: who[trace.AttrService], Version: who[trace.AttrVersion],
			Namespace: who.Namespace(), Instance: who.Instance(), Host: who[trace.AttrHost],
			OnsetFromMS: v.OnsetFrom.UnixMilli(), OnsetToMS: v.OnsetTo.UnixMilli(), Kind: v.Kind, Class: v.Class,
			SiteID: v.SiteID, StackID: stackID(sites.JoinStack(v.Site)), Confidence: v.Confidence,
			BytesPerSecond: v.BytesPerSecond, GrownBytes: v.GrownBytes, Sentence: string(v.Sentence)}); err != nil {
			return err
		}
	}
	return t.end()
}
