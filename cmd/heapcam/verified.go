package main

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// verified is what verify says of one recording or of one file opened alone.
type verified struct {
	File        string `json:"file"`
	Alone       bool   `json:"alone"` // a single ring file, opened without those before it
	Collections uint64 `json:"collections"`
	Known       uint64 `json:"known"` // collections after which the state is known
	SyncPoints  uint64 `json:"sync_points"`
	Compared    uint64 `json:"compared"`         // sync points that met a known state
	Objects     uint64 `json:"objects_compared"` // objects that those list
	// the sum of the next three, of objects, and of rows of summaries and counted collections that differ
	Mismatches uint64            `json:"mismatches"`
	Missing    uint64            `json:"missing"`             // known and not listed
	Extra      uint64            `json:"extra"`               // listed and not known
	Different  uint64            `json:"different"`           // known as something else
	Explained  map[string]uint64 `json:"explained,omitempty"` // differences that the facts explain, objects by name
	First      string            `json:"first_mismatch,omitempty"`
	// the first mismatches of each sync point, at most maxListed
	Differences []mismatch `json:"differences,omitempty"`
	// pauses without object data (full collections) after which the state was listed
	Untold uint64 `json:"untold_pauses"`
	Listed uint64 `json:"untold_listed"` // objects listed after those
	// of them, objects whose identity is proven without a sample
	Proven uint64 `json:"untold_proven"`
	// summary records that were compared with the replay
	Summaries   uint64 `json:"summaries"`
	SummaryRows uint64 `json:"summary_rows"` // rows of them that were compared
	// of these, collections after a Remark of G1, of which what lives was not compared
	SummarySwept uint64 `json:"summary_rows_swept"`
	// collections of which a replay that only counts was compared with this one
	Counted uint64 `json:"counted"`
	// of these, after a Remark of G1, of which what lives was not compared
	CountedSwept uint64   `json:"counted_swept"`
	Faults       []string `json:"faults,omitempty"` // contradictions in the stream
	Damage       []string `json:"damage,omitempty"`
	Lost         uint64   `json:"epochs_lost,omitempty"`
	NoEvents     uint64   `json:"missed_collections,omitempty"`
	Seconds      float64  `json:"seconds"` // from the first collection to the last
	LastGC       uint64   `json:"last_collection"`
	// of the heap state: collections after which it is unknown, the first and the last of them, and how long that is
	Unknown        uint64  `json:"unknown_collections,omitempty"`
	UnknownFrom    uint64  `json:"unknown_from,omitempty"`
	UnknownTo      uint64  `json:"unknown_to,omitempty"`
	UnknownSeconds float64 `json:"unknown_seconds,omitempty"`
	// of Unknown, those after which a part is known: what a listing that is spread over pauses has had so far
	PartlyKnown uint64 `json:"partly_known_collections,omitempty"`

	bySamples  uint64 // of Unknown, those at depth samples, which records no heap state
	unreadable int    // Damage that is no torn end
}

// collection takes in c, which ended at second end; the one before ended at last.
func (v *verified) collection(c *heap.Collection, last, end float64) {
	span := max(0, end-last)
	if v.Collections++; v.Collections == 1 {
		span = 0
	}
	v.Seconds += span
	v.LastGC = c.GC
	switch {
	case c.Known:
		v.Known++
	default:
		if v.Unknown++; v.Unknown == 1 {
			v.UnknownFrom = c.GC
		}
		if c.Depth == trace.DepthSamples && c.Flags&trace.PauseLeftOut == 0 {
			v.bySamples++
		}
		if c.Partial {
			v.PartlyKnown++
		}
		v.UnknownTo = c.GC
		v.UnknownSeconds += span
	}
	if c.Synced {
		v.SyncPoints++
	}
	v.Lost += c.EpochsLost
	v.NoEvents += c.Missed()
	if c.Listed > 0 {
		v.Untold++
		v.Listed += c.Listed
		v.Proven += c.Proven
	}
}

// stateless says whether the recording has no heap state because its depth records none: nothing is missing.
func (v *verified) stateless() bool { return v.Collections > 0 && v.bySamples == v.Collections }

// lost says what a damaged recording lacks; "" if it is nothing that is known of.
func (v *verified) lost() ui.Flow {
	s := ui.Flow("")
	if v.Lost > 0 {
		s = ui.Flowf(" %s lost.", ui.Flow(ui.Plural(v.Lost, "collection"))+ui.Flow(map[bool]string{true: " is",
			false: " are"}[v.Lost == 1]))
	}
	if v.Unknown > 0 && !v.stateless() {
		part := ui.Flow("")
		if v.PartlyKnown > 0 {
			part = ui.Flowf(" (a part of it is known after %d of these)", v.PartlyKnown)
		}
		s += ui.Flowf(" The heap state is unknown after %d of %s%s, from collection %d to %d: %s of %s.", v.Unknown,
			ui.Flow(ui.Plural(v.Collections, "collection")), part, v.UnknownFrom, v.UnknownTo,
			ui.Flow(ui.Seconds(v.UnknownSeconds)), ui.Flow(ui.Seconds(v.Seconds)))
	}
	return s
}
