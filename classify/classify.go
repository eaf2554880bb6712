// Package classify says to which groups the objects of a heap state belong, by classifiers (ICPE'18): any list of them
// gives a tree (package grouping).
//
// Terms: a *tuple* is the distinct combination of the properties that the classifiers in use look at, with the number
// of objects that have it; a *classifier* gives keys for a tuple; its *cardinality* says what the keys mean: one key,
// several (the object counts once below each and once in their parent), or a path of keys (one-to-hierarchy; an object
// whose path ends at an inner node is that node's own). *Before the recording* are objects that lived when it
// began and were not sampled.
//
// Invariants: classifiers see tuples, never objects, so that their cost does not grow with the heap (ICPE'18 §4,
// mapping).
//
// It imports nothing but the vocabulary and statistics, reads no files except those of features and user-defined
// classifiers, and knows no heap: who calls it folds the objects (heap.View.Fold, analysis).
package classify

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/trace"
)

// Attr are the properties that a classifier or filter looks at; what nobody looks at is folded away.
type Attr uint16

// The properties beyond the type, which is always there.
const (
	AttrLength Attr = 1 << iota // length and size
	AttrBirth
	AttrSpace
	AttrAddr
	AttrSite // stack, thread, confidence: known of sampled objects only

	// Of a reference listing (Tuple.Refs, World.Refs).
	AttrReach
	AttrRoot
	AttrHolder
	AttrRetained
	AttrTo
	AttrFrom
	AttrHealth

	AttrRefs = AttrReach | AttrRoot | AttrHolder | AttrRetained | AttrTo | AttrFrom | AttrHealth
	AttrAll  = AttrHealth<<1 - 1
)

// Tuple is a distinct combination of properties and how many objects have it.
type Tuple struct {
	Type   uint32
	Length uint64 // elements of arrays, with AttrLength
	Size   uint64 // bytes of one object, with AttrLength
	// collection, with AttrBirth; one that stands for others where they are not distinguished (Ages, or AttrSite alone:
	// whether it is after World.First)
	Birth   uint32
	AtLeast bool   // the birth is the newest possible
	Space   int    // index of World.Spaces, -1 if none
	Addr    uint64 // bytes, the start of the range asked for, with AttrAddr
	Refs    uint32 // index of World.Refs, with AttrRefs

	Objects, Bytes uint64 // that have it

	GC   uint64 // the collection at which it was seen, 0: World.GC
	Part uint8  // of two states that are compared: nodes count each part by itself (Node.Parts)

	// Of objects without a sample: index of World.Lists, from 1 on, where Split has taken them out.
	List int32

	// Of sampled objects, with AttrSite.
	Sampled       bool
	Frame, Thread uint64
	WObjects      stats.Total // weighted
	WBytes        stats.Total
	Drawn         bool // only the innermost frame is exact: the callers in Frame were drawn (World.Callers)
}

// Space is a space or a region of a state.
type Space struct {
	Name string
	Kind uint64 // trace.SpaceEden …
}

// Parts of tuples of two states. Those above PartBoth live in the second state only. Estimates are those of each state
// alone: what lives in both counts in Node.Parts as in the second, and in Node.Was as in the first.
const (
	PartFirst = iota
	PartBoth
)

// World is what tuples refer to. It is only read.
type World struct {
	GC    uint64 // the collection after which the state stands
	First uint64 // the first collection of the window whose state is known
	// so many samples were lost that what has no known site may be of any
	LostSamples bool
	AtStart     bool // sampling began with the JVM
	Types       map[uint64]trace.Type
	Loaders     map[uint64]trace.Loader
	Methods     map[uint64]trace.Method
	Frames      map[uint64]trace.Frame
	Threads     map[uint64]trace.Thread
	Spaces      []Space
	Refs        []Refs                            // by Tuple.Refs; the first is of objects of which nothing is known
	Time        func(gc uint64) (time.Time, bool) // of the end of a collection; may be nil
	// FromFew says how many objects of a type, of those that have no sample and are not older than the recording, one
	// of few bytecodes has made, and which; nil: nobody knows.
	FromFew func(typ uint32) (objects, bytes uint64, places []string)
	Lists   []List // by Tuple.List
	// Callers gives the stack of a sampled object of which the innermost frame alone is known (--sites exact): one with
	// callers that were drawn. Of others it gives their own. nil: nobody knows.
	Callers func(frame, sample uint64) uint64

	known *known
}

// List is where objects without a sample come from: the keys of their sites.
type List struct{ Keys []string }

// Cardinality says what the keys of a classifier mean.
type Cardinality uint8

// The cardinalities of ICPE'18 §3.1.
const (
	One       Cardinality = iota // one key
	Many                         // several; none is (others)
	Hierarchy                    // a path from the outermost to the innermost node; none is (others)
)

func (c Cardinality) String() string { return [...]string{"one", "many", "hierarchy"}[c] }

// Keys that classifiers give where there is nothing to name.
const (
	Others          = "(others)"
	SiteUnknown     = "(site unknown)"
	BeforeRecording = "(before the recording)"
	UnknownSpace    = "(no space)"
	// SiteFew is of objects that one of two to four bytecodes has made, CallersUnknown below the one that has.
	SiteFew        = "(one of few sites)"
	CallersUnknown = "(proven, callers unknown)"
)

// Classifier gives the keys of tuples. Keys appends to out, which is empty; it is called once per tuple.
type Classifier struct {
	Name        string // as it is written in --by
	Cardinality Cardinality
	Needs       Attr
	Grain       uint64 // bytes of address ranges, with AttrAddr; a power of two
	// with AttrBirth: the ages from which on its keys may be others, if it tells no more apart; nil: each age
	Ages []uint64
	// the first key, from 1 on, that depends on the callers of the innermost frame; 0: none does
	Callers int
	Keys    func(w *World, t *Tuple, out []string) ([]string, error)
}

// Filter keeps the tuples for which Keep is true.
type Filter struct {
	Name    string
	Needs   Attr
	Grain   uint64
	Ages    []uint64 // as of Classifier
	Callers bool     // it looks at the callers of the innermost frame
	Keep    func(w *World, t *Tuple) (bool, error)
}

// Needs gives what the tuples must have for these classifiers and filters, and the finest grain of addresses.
func Needs(by []Classifier, filters []Filter) (Attr, uint64) {
	var a Attr
	grain := uint64(0)
	see := func(n Attr, g uint64) {
		a |= n
		if n&AttrAddr != 0 && (grain == 0 || g < grain) {
			grain = g
		}
	}
	for _, c := range by {
		see(c.Needs, c.Grain)
	}
	for _, f := range filters {
		see(f.Needs, f.Grain)
	}
	return a, max(grain, 8)
}

// Ages gives the ages, ascending, that are all that these classifiers and filters tell births apart by; nil if each
// birth may count.
func Ages(by []Classifier, filters []Filter) []uint64 {
	out, each := []uint64{}, false
	see := func(n Attr, ages []uint64) {
		if n&AttrBirth != 0 {
			out, each = append(out, ages...), each || ages == nil
		}
	}
	for _, c := range by {
		see(c.Needs, c.Ages)
	}
	for _, f := range filters {
		see(f.Needs, f.Ages)
	}
	if each {
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// known is what was worked out about types and stacks. States of one recording may share it, and use it at a time.
type known struct {
	mu     sync.RWMutex
	names  map[uint32]string
	stacks map[uint64][]string
}

// knows gives what w knows. The first call must have ended before another begins.
func (w *World) knows() *known {
	if w.known == nil {
		w.known = &known{names: map[uint32]string{}, stacks: map[uint64][]string{}}
	}
	return w.known
}

// Share has w and o keep what they work out about types and stacks together, for two states of one recording. Then both
// may be used at a time.
func (w *World) Share(o *World) { w.known = o.knows() }

// TypeName is the type's name as Class.getTypeName gives it.
func (w *World) TypeName(t uint32) string {
	k := w.knows()
	k.mu.RLock()
	n, ok := k.names[t]
	k.mu.RUnlock()
	if ok {
		return n
	}
	n = "(unknown class)"
	if ty, ok := w.Types[uint64(t)]; ok {
		n = ty.Pretty()
	}
	k.mu.Lock()
	k.names[t] = n
	k.mu.Unlock()
	return n
}

// maxFrames bounds the frames of a stack.
const maxFrames = 64

// Stack gives the frames of a trie node, innermost first: method(File:line), or method(native).
func (w *World) Stack(frame uint64) []string {
	k := w.knows()
	k.mu.RLock()
	s, ok := k.stacks[frame]
	k.mu.RUnlock()
	if ok {
		return s
	}
	var out []string
	for at := frame; at != 0 && len(out) < maxFrames; {
		f, ok := w.Frames[at]
		if !ok {
			break
		}
		m, ok := w.Methods[f.Method]
		s := "(unknown method)"
		if ok {
			s = m.Pretty()
			if n := m.Line(f.BCI); n > 0 {
				s = fmt.Sprintf("%s(%s:%d)", s, m.File, n)
			} else if m.Flags&trace.MethodNative != 0 {
				s += "(native)"
			}
		}
		out = append(out, s)
		at = f.Parent
	}
	k.mu.Lock()
	k.stacks[frame] = out
	k.mu.Unlock()
	return out
}

// Before says whether an object without a sample may have been there before anything was sampled, as far as the
// recording tells: it stood when the window began. Of a JVM that was sampled from its start nothing was: sync points
// carry the samples of what their ring file does not have.
func (w *World) Before(t *Tuple) bool {
	return !w.AtStart && uint64(t.Birth) <= w.First
}

// NoSite is the key of what has no sample.
func (w *World) NoSite(t *Tuple) string {
	if w.Before(t) {
		return BeforeRecording
	}
	return SiteUnknown
}

// Age is how many collections have passed since the one at whose end the object was first seen: 0 for what is new.
func (w *World) Age(t *Tuple) uint64 {
	gc := w.GC
	if t.GC != 0 {
		gc = t.GC
	}
	return gc - min(gc, uint64(t.Birth))
}
