// Package heap rebuilds the heap after each collection from a stream of blocks, from any sync point on
// (docs/format/stream.md, "How a reader applies an EPOCH").
//
// A reader is a pipe: a BlockSource gives blocks, a Cursor walks over them, collection by collection, and on its way
// fills Symbols (names) and Samples. A Replay follows every object in a State; a Census counts objects by type and is
// quicker. A View is the heap after one collection, for queries; a Snapshot keeps a View of many collections side by
// side. docs/design/0007-reading.md draws this.
//
// Terms: the state is *known* from a sync point on, until an epoch that is not exact. Invariants: what a stream says is
// decoded within limits; a moved object must be of the type that was known at its place; a move of something unknown
// counts as a birth. A sync point replaces the state, and if the state was known it is compared with it first. Through
// a pause without object data, which full collections are, the identity of objects is kept where it is proven; all
// others are "this or another object of the same type", and their age is a lower bound (Object.AtLeast). This package
// does not read files and does not judge.
//
// Memory: a State takes 6 to 10 bytes an object, and as much again while a sync point is compared; a dictionary of
// pairs of type and length and the live samples are added to that.
package heap

import (
	"iter"

	"github.com/heapcam/heapcam/heap/match"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/heap/view"
)

// Types of the packages below that callers of this one meet.
type (
	Symbols = symbols.Table

	Samples = samples.Tracker
	Sample  = samples.Sample
	Live    = samples.Live
	Lives   = samples.Lives
	Widest  = samples.Widest
	Thinned = samples.Thinned

	State      = state.State
	Object     = state.Object
	Count      = state.Count
	Comparison = match.Comparison

	View     = view.View
	Totals   = view.Totals
	Want     = view.Want
	Folded   = view.Folded
	SpaceAt  = view.SpaceAt
	Names    = view.Names
	Places   = view.Places
	Sampling = view.Sampling
	Labels   = view.Labels
)

// WidestOf is samples.WidestOf.
func WidestOf(live iter.Seq[*Sample]) Widest { return samples.WidestOf(live) }

// Thin is samples.Thin.
func Thin(interval uint64) *Thinned { return samples.Thin(interval) }

// What View.Fold keeps apart, and MaxMarked, which numbers of collections must be below for View.MarkSpaces.
const (
	WantLength  = view.WantLength
	WantBirth   = view.WantBirth
	WantSpace   = view.WantSpace
	WantAddr    = view.WantAddr
	WantSamples = view.WantSamples
	WantLabel   = view.WantLabel
	MaxMarked   = state.MaxMarked
)

// Kinds of mismatches of a Comparison.
const (
	Missing = match.Missing
	Extra   = match.Extra
)

// Era is view.Era.
func Era(birth uint32, eras []uint32) uint32 { return view.Era(birth, eras) }

// NewPlaces is view.NewPlaces.
func NewPlaces(l *Lives) *Places { return view.NewPlaces(l) }
