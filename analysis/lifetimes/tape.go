// Package lifetimes reads from a recording how long objects live, in virtual time.
//
// Terms. *Virtual time* is the words (of 8 bytes) that the program has allocated since the recording began: eden as it
// was used, and what went directly to old space. An *object* is one that some collection saw alive, or that is large;
// all others, which died before any collection saw them, are *unseen*: they are counted by age (Epoch.Unseen). A death
// is *censored*: it is known to lie between the last collection that proved the object alive and the one that found it
// dead. Of an object that was never found dead only the first is known.
//
// Invariants: BornLo ≤ BornHi ≤ Seen ≤ Dead for each object; the words of all objects born in an epoch and of its
// unseen ones are at most what was allocated in it, but for fillers. This package does not judge and does not predict.
package lifetimes

import "github.com/heapcam/heapcam/trace"

// Never is the Dead of an object that no collection found dead.
const Never = ^uint64(0)

// Large is the size, in words, from which each object is kept, even if no collection saw it alive (depth full).
const Large = 1 << 13

// Tape is the lifetimes of a recording. Read makes one.
type Tape struct {
	JVM    trace.JVM
	Epochs []Epoch
	// Objects, in no order. All columns have the same length; times are virtual.
	Words        []uint32
	Type         []uint32
	BornLo, Born []uint64 // first and last possible birth
	Seen         []uint64 // last time at which it was proven alive
	Dead         []uint64 // the collection that found it dead, or Never
	Age          []uint8  // collections that it has survived in young space
	Unknown      []bool   // it was there before the recording, or before a part that is missing: Born is a bound

	All  Tally             // of all objects and unseen ones, weighed by words
	By   map[uint32]*Group // by type
	Size [33]Group         // by the binary logarithm of the words, rounded down
	Tail uint64            // words allocated after the last collection, estimated from samples
	// LeftOut is the words allocated up to the last collection that are in no tally, because no later state says what
	// became of them. At depth survivors it is estimated from samples.
	LeftOut uint64
	// Samples are the sampled allocations, for lifetimes by site; Weight is in objects.
	Samples []SampleLife
	// Names is what Type is in the recording.
	Names func(typ uint32) string
	Lost  uint64 // objects of which nothing more is known, because data is missing
	// Kept and Tenured are the words that young collections copied within young space, and promoted, by the Age that
	// the objects had before.
	Kept, Tenured [maxAge + 1]uint64
	Full          bool // some epoch was recorded at depth full, so ages of unseen objects are known
}

// Group is the lifetimes of one type.
type Group struct {
	Tally
	Objects, Words uint64
}

// Epoch is a mutator phase and the collection that ends it.
type Epoch struct {
	GC, JVMGC uint64
	Kind      uint64
	Cause     string
	Exact     bool
	Depth     uint64
	// At is the virtual time of the collection, Begin that of the one before. Mutator is how long the program ran
	// between the two, Pause how long the collection took without the probe's part, both in ns.
	At, Begin      uint64
	Mutator, Pause uint64
	Start          uint64 // ns since the probe's start
	// Sizes in words: capacity of eden, of one survivor space and of old space (0: not known), and what was used before
	// and after the collection.
	Eden, Survivor, Old                     uint64
	EdenBefore, SurvivorBefore, OldBefore   uint64
	EdenAfter, SurvivorAfter, OldAfter      uint64
	Copied, Promoted, Survivors, FromEden   uint64 // words, words, objects, words of those born in this epoch
	UnseenObjects, UnseenWords, LargeDirect uint64
	// Unseen is the words of unseen objects by their age at the collection (see Bin), nil if ages are not known.
	Unseen []uint32
}

// maxAge bounds Age: HotSpot counts no further.
const maxAge = 15

// Len is the number of objects.
func (t *Tape) Len() int { return len(t.Words) }

// End is the virtual time of the last collection.
func (t *Tape) End() uint64 {
	if n := len(t.Epochs); n > 0 {
		return t.Epochs[n-1].At
	}
	return 0
}

// SampleLife is a sampled allocation: when it was born, when it was last proven alive and when it was found dead.
type SampleLife struct {
	Type, Frame      uint64
	Weight           float64
	Words            uint64
	Born, Seen, Dead uint64
	Object           int // that it is, -1 if no collection saw it
}
