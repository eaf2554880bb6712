// Package references holds a reference listing: every object of one sync point with its reference slots, and the roots.
// It also has the form in which a recording stores one. Recorder and readers share it, so it imports only trace.
//
// Terms. A *slot* is a place in an object that can hold a reference: a field, an array element, a static of the class
// that a mirror stands for. A *shape* says what the slots of an object are called. Objects of one class have one shape,
// but each class mirror (an object of java.lang.Class) and each class loader has a shape of its own. A *root* is what
// holds an object from outside the heap. A *word* is 8 bytes; a word index counts words from the heap base.
//
// There are no values here: slots are addresses. Whoever needs to know what a slot points at looks for the target with
// Find, because a slot of a dead object may point anywhere.
package references

import (
	"fmt"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Limits of a listing. What is beyond is refused before it is allocated.
const (
	// MaxWord bounds word indices: heaps above 32 GiB are refused.
	MaxWord = 1<<32 - 2
	// MaxShapes bounds shapes: one a class, and one each for its mirror and its loader.
	MaxShapes = 1 << 22
	// MaxFields bounds the named slots of one shape.
	MaxFields = 1 << 16
	// MaxRoots bounds roots.
	MaxRoots = 1 << 22
)

// Listing is a reference listing. Base is the byte address of word 0.
type Listing struct {
	Collection uint64   // number of the collection whose sync point it belongs to
	Base       uint64   // byte address of word 0
	Addr       []uint32 // word index of each object, ascending
	Code       []uint32 // shape of each object: an index of Shapes
	Words      []uint32 // size of each object, words
	First      []uint64 // slots of object i are Slots[First[i]:First[i+1]]; len(Addr)+1 entries
	Slots      []uint32 // word index of the target + 1; 0: null
	Shapes     []Shape
	Roots      []Root
	// Missing names the kinds of roots and references that were left out, in words for people. If it is empty, what no
	// root reaches is dead.
	Missing []string
	// Samples say where sampled objects are that have survived a collection. An older probe does not say it.
	Samples []trace.RefSample
}

// Shape says what objects are and how their slots are called.
type Shape struct {
	Type uint32 // id of the type in the recording, 0 if unknown
	// Class is a number that the shape of a class's objects and that of its mirror have in common, 0 if unknown.
	Class uint32
	Name  string // class name as in the recording: java/lang/String, [I
	Kind  Kind
	Of    string // of a mirror: the class that it stands for
	// Fields are the first slots, in their order; an object has all of them. Slots behind them are called Rest: of
	// arrays "[]". If Rest is empty, there are none.
	Fields []Field
	Rest   string
}

// Field is a named slot.
type Field struct {
	Name     string
	Class    string // that declares it, as in Shape.Name; empty: not known
	Declared string // descriptor of its type: Ljava/lang/Object;, [I; empty: not known
	Strength Strength
}

// ClassField is the reference from an object to the mirror of its class, where readers add it: it is in no slot.
var ClassField = Field{Name: "(class)", Declared: "Ljava/lang/Class;"}

// Kind says what an object is.
type Kind uint8

// Kinds of objects.
const (
	Instance Kind = iota
	ObjectArray
	PrimitiveArray
	Mirror     // an object of java.lang.Class; its slots are its own fields, then the statics of the class Of
	Reference  // an object of a subclass of java.lang.ref.Reference; the strength is that of its referent's field
	Loader     // a class loader; the slots behind its fields are the mirrors of its classes
	StackChunk // the frames of a virtual thread; all slots are Rest
	Filler     // no object: what the collector filled a hole with
	kinds
)

// KindNames names each Kind.
var KindNames = [kinds]string{"instance", "object array", "primitive array", "class", "reference", "class loader",
	"stack chunk", "filler"}

// String gives the name of a kind.
func (k Kind) String() string {
	if k < kinds {
		return KindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Strength says how firmly a slot holds its target. A smaller one is stronger.
type Strength uint8

// Strengths of references. Soft and final ones keep an object alive, weak and phantom ones do not.
const (
	Strong Strength = iota
	Soft
	Final // the finalizer of the target has not run yet
	Weak
	Phantom
	strengths
)

// Strengths is how many there are.
const Strengths = int(strengths)

// StrengthNames names each Strength.
var StrengthNames = [strengths]string{"strong", "soft", "final", "weak", "phantom"}

// String gives the name of a strength.
func (s Strength) String() string {
	if s < strengths {
		return StrengthNames[s]
	}
	return fmt.Sprintf("strength %d", uint8(s))
}

// Root holds an object from outside the heap. Thread, Class, Method, Line and Field are what is known, else empty or 0.
type Root struct {
	Target uint32 // word index + 1
	Kind   RootKind
	Thread string // name
	Class  string // of the frame of a stack root, as in Shape.Name
	Method string
	Line   int
	Field  string // name of the local, if it is known
}

// RootKind says what kind of root it is.
type RootKind uint8

// Kinds of roots. JNIWeak does not keep its target alive.
const (
	OtherRoot RootKind = iota
	JNIGlobal
	JNILocal
	StackLocal
	SystemClass
	Monitor
	ThreadRoot
	LoaderRoot // the mirrors of a class loader that is never unloaded
	JNIWeak
	rootKinds
)

// RootKindNames names each RootKind.
var RootKindNames = [rootKinds]string{"other root", "JNI global", "JNI local", "stack local", "system class", "monitor",
	"thread", "class loader", "JNI weak"}

// String gives the name of a kind of roots.
func (k RootKind) String() string {
	if k < rootKinds {
		return RootKindNames[k]
	}
	return fmt.Sprintf("root %d", uint8(k))
}

// Objects gives the number of objects.
func (l *Listing) Objects() int { return len(l.Addr) }

// Of gives the slots of object i.
func (l *Listing) Of(i int) []uint32 { return l.Slots[l.First[i]:l.First[i+1]] }

// Shape gives the shape of object i.
func (l *Listing) Shape(i int) *Shape { return &l.Shapes[l.Code[i]] }

// Slot gives the field of slot k of an object of this shape.
func (s *Shape) Slot(k int) Field {
	if k < len(s.Fields) {
		return s.Fields[k]
	}
	return Field{Name: s.Rest}
}

// Find gives the object that begins at word index slot - 1, as Slots and Root.Target have it, or -1 if there is none.
func (l *Listing) Find(slot uint32) int {
	if slot == 0 {
		return -1
	}
	if i, ok := slices.BinarySearch(l.Addr, slot-1); ok {
		return i
	}
	return -1
}

// Check says what is wrong with a listing, so that nobody who reads it has to check an index: columns of different
// lengths, addresses that do not ascend, objects that overlap, shapes that do not exist.
func (l *Listing) Check() error {
	n := len(l.Addr)
	switch {
	case len(l.Code) != n || len(l.Words) != n || len(l.First) != n+1:
		return fmt.Errorf("reference listing: columns of %d, %d, %d and %d entries for %d objects", len(l.Code),
			len(l.Words), len(l.First), n, n)
	case l.First[0] != 0 || l.First[n] != uint64(len(l.Slots)):
		return fmt.Errorf("reference listing: the objects' slots are not the %d slots", len(l.Slots))
	case len(l.Shapes) > MaxShapes || len(l.Roots) > MaxRoots:
		return fmt.Errorf("reference listing: %d shapes and %d roots", len(l.Shapes), len(l.Roots))
	}
	end := uint64(0)
	for i, a := range l.Addr {
		switch {
		case uint64(a) < end || l.Words[i] == 0 || uint64(a)+uint64(l.Words[i]) > MaxWord:
			return fmt.Errorf("reference listing: object %d at word %d is out of order", i, a)
		case uint64(l.Code[i]) >= uint64(len(l.Shapes)):
			return fmt.Errorf("reference listing: object %d has no shape", i)
		case l.First[i] > l.First[i+1]:
			return fmt.Errorf("reference listing: the slots of object %d are out of order", i)
		}
		x, n := &l.Shapes[l.Code[i]], l.First[i+1]-l.First[i]
		if n < uint64(len(x.Fields)) || n > uint64(len(x.Fields)) && x.Rest == "" {
			return fmt.Errorf("reference listing: object %d of %q has %d slots for %d fields", i, x.Name, n,
				len(x.Fields))
		}
		end = uint64(a) + uint64(l.Words[i])
	}
	for i := range l.Shapes {
		s := &l.Shapes[i]
		if s.Kind >= kinds || len(s.Fields) > MaxFields {
			return fmt.Errorf("reference listing: shape %d is of no kind or has too many fields", i)
		}
		for _, f := range s.Fields {
			if f.Strength >= strengths {
				return fmt.Errorf("reference listing: field %q has no strength", f.Name)
			}
		}
	}
	for i := range l.Roots {
		if l.Roots[i].Kind >= rootKinds {
			return fmt.Errorf("reference listing: root %d is of no kind", i)
		}
	}
	return nil
}
