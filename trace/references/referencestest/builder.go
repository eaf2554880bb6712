// Package referencestest builds reference listings for tests, object by object.
package referencestest

import (
	"strings"

	"github.com/heapcam/heapcam/trace/references"
)

// Builder builds a listing. Objects are numbered as they are made, and lie behind each other.
type Builder struct {
	shapes  []references.Shape
	byName  map[string]uint32
	code    []uint32
	slots   [][]int // targets, -1: null
	roots   []root
	types   map[string]uint32 // ids by name
	classes map[string]uint32 // numbers by name
	sites   []site
}

// words is the size of each object that is no array; its fields are not all of it.
const words = 4

type root struct {
	target int
	references.Root
}

// New makes a Builder.
func New() *Builder {
	return &Builder{byName: map[string]uint32{}, types: map[string]uint32{},
		classes: map[string]uint32{}}
}

// Class defines a class of instances with fields of its own: "name", "name strength" or "name strength descriptor". One
// with a field that is not strong is a subclass of Reference.
func (b *Builder) Class(name string, fields ...string) {
	s := references.Shape{Name: name}
	switch {
	case strings.HasPrefix(name, "[L") || strings.HasPrefix(name, "[["):
		s.Kind, s.Rest = references.ObjectArray, "[]"
	case strings.HasPrefix(name, "["):
		s.Kind = references.PrimitiveArray
	case strings.HasPrefix(name, "jdk/internal/vm/Filler"):
		s.Kind = references.Filler
	case strings.HasSuffix(name, "ClassLoader"):
		s.Kind, s.Rest = references.Loader, "(class)"
	}
	for _, f := range fields {
		part := append(strings.Fields(f), "strong", "")
		x := references.Field{Name: part[0], Class: name}
		for k, n := range references.StrengthNames {
			if part[1] == n {
				x.Strength = references.Strength(k)
			}
		}
		if part[2] != "strong" {
			x.Declared = part[2]
		}
		if x.Strength != references.Strong {
			s.Kind = references.Reference
		}
		s.Fields = append(s.Fields, x)
	}
	b.define(name, s)
}

func (b *Builder) define(key string, s references.Shape) {
	if b.types[s.Name] == 0 {
		b.types[s.Name] = uint32(len(b.types) + 1)
	}
	s.Type = b.types[s.Name]
	of := s.Name
	if s.Kind == references.Mirror {
		of = s.Of
	}
	if b.classes[of] == 0 {
		b.classes[of] = uint32(len(b.classes) + 1)
	}
	s.Class = b.classes[of]
	b.byName[key] = uint32(len(b.shapes))
	b.shapes = append(b.shapes, s)
}

// Mirror makes the mirror of a class, with its statics.
func (b *Builder) Mirror(class string, statics ...string) int {
	s := references.Shape{Name: "java/lang/Class", Kind: references.Mirror, Of: class, Fields: []references.Field{
		{Name: "classLoader", Class: "java/lang/Class"}}}
	for _, f := range statics {
		s.Fields = append(s.Fields, references.Field{Name: f, Class: class})
	}
	key := "mirror of " + class
	b.define(key, s)
	return b.New(key)
}

// New makes an object of a class, with null in its fields. A class that has not been defined has none.
func (b *Builder) New(class string) int {
	if _, ok := b.byName[class]; !ok {
		b.Class(class)
	}
	code := b.byName[class]
	var slots []int
	for range b.shapes[code].Fields {
		slots = append(slots, -1)
	}
	b.code, b.slots = append(b.code, code), append(b.slots, slots)
	return len(b.code) - 1
}

// Set sets a field. The class must have it.
func (b *Builder) Set(object int, field string, target int) {
	for k, f := range b.shapes[b.code[object]].Fields {
		if f.Name == field {
			b.slots[object][k] = target
			return
		}
	}
	panic("no field " + field)
}

// Add appends elements to an array, or what else is behind the fields.
func (b *Builder) Add(object int, targets ...int) {
	b.slots[object] = append(b.slots[object], targets...)
}

// Root adds a root.
func (b *Builder) Root(target int, r references.Root) { b.roots = append(b.roots, root{target, r}) }

// Listing gives the listing.
func (b *Builder) Listing() *references.Listing {
	l := &references.Listing{Collection: 1, Base: base, Shapes: b.shapes, Code: b.code, First: []uint64{0}}
	at := uint32(16)
	for i, s := range b.slots {
		l.Addr, l.Words = append(l.Addr, at), append(l.Words, b.size(i))
		l.First = append(l.First, l.First[i]+uint64(len(s)))
		at += b.size(i)
	}
	slot := func(target int) uint32 {
		if target < 0 {
			return 0
		}
		return l.Addr[target] + 1
	}
	for _, s := range b.slots {
		for _, t := range s {
			l.Slots = append(l.Slots, slot(t))
		}
	}
	for _, r := range b.roots {
		r.Root.Target = slot(r.target)
		l.Roots = append(l.Roots, r.Root)
	}
	return l
}

// size gives the words of an object.
func (b *Builder) size(object int) uint32 {
	if b.shapes[b.code[object]].Kind == references.ObjectArray {
		return 2 + uint32(len(b.slots[object])+1)/2
	}
	return words
}
