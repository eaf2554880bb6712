package reflisting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// Names of slots that are no fields.
const (
	restArray    = "[]"
	restClasses  = "(class)"
	restResolved = "(constants)"
	restStack    = "(stack)"
	unnamed      = "(unnamed)"
)

// assembler makes a listing of its parts, which come in order.
type assembler struct {
	names  *symbols.Table
	unpack *references.Unpacker
	l      *references.Listing
	room   *room.Room
	about  trace.References
	next   uint64

	class   map[uint32]*trace.RefClass // by id
	ofType  map[uint32]*trace.RefClass
	fields  map[uint32][]trace.RefField // by class
	extra   map[uint32][]trace.RefExtra // by the object that has them
	roots   []trace.RefRoot
	shapes  map[shapeKey]uint32
	usual   [512]usual      // by the last bits of the type
	extras  [1 << 10]uint64 // a bit for some of the objects in extra, and for others with the same hash
	pending []object        // whose slots have not come yet
	slots   []byte          // that have come, of the first of pending
	objects uint64
}

// shapeKey is a type; of a mirror, with the class that it stands for and the number of its slots.
type shapeKey struct {
	typ, of, slots uint32
	mirror         bool
	kind           references.Kind
}

// usual is what all objects of a type have in common that have no extra references, unless they are mirrors or chunks.
type usual struct {
	typ, code uint32
	slots     int
	known     bool
	array     bool // the slots are the elements
}

type object struct {
	addr, words, typ, length uint32
}

func newAssembler(r *room.Room, names *symbols.Table) *assembler {
	return &assembler{room: r, names: names, unpack: references.NewUnpacker(names.Sizes()), next: 1,
		class: map[uint32]*trace.RefClass{}, ofType: map[uint32]*trace.RefClass{},
		fields: map[uint32][]trace.RefField{}, extra: map[uint32][]trace.RefExtra{}, shapes: map[shapeKey]uint32{},
		l: &references.Listing{First: []uint64{0}}}
}

// add takes in a part. The blobs of the part are not needed afterwards.
func (a *assembler) add(p *trace.RefPart) error {
	if p.N != a.next {
		return fmt.Errorf("%w: part %d follows part %d", references.ErrIncomplete, p.N, a.next-1)
	}
	a.next++
	if p.HasAbout {
		a.about = p.About
		if p.About.Missing != "" {
			a.l.Missing = strings.Split(p.About.Missing, "\n")
		}
		a.l.Collection, a.l.Base = p.About.GC, a.names.JVM.HeapBase
		a.makeRoom()
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		a.class[uint32(c.ID)] = c
		if c.Type != 0 {
			a.ofType[uint32(c.Type)] = c
			a.usual[c.Type%uint64(len(a.usual))].known = false
		}
	}
	for _, f := range p.Fields {
		a.fields[uint32(f.Class)] = append(a.fields[uint32(f.Class)], f)
	}
	for _, e := range p.Extra {
		a.extra[uint32(e.From)] = append(a.extra[uint32(e.From)], e)
		*a.extraBit(uint32(e.From)) |= 1 << (e.From % 64)
	}
	a.roots = append(a.roots, p.Roots...)
	a.l.Samples = append(a.l.Samples, p.Samples...)
	for _, blob := range p.Lists {
		if err := a.list(blob); err != nil {
			return err
		}
	}
	slots, err := a.unpack.Unpack(p)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if err := a.take(s); err != nil {
			return err
		}
	}
	return a.take(nil)
}

// makeRoom makes the columns in the room at once, as far as it has space. Without a room they grow.
func (a *assembler) makeRoom() {
	l, n := a.l, a.about.Objects
	if a.room == nil || len(l.Addr) > 0 || n > references.MaxWord {
		return
	}
	for _, c := range []*[]uint32{&l.Addr, &l.Code, &l.Words} {
		*c = room.TryMake[uint32](a.room, n)[:0]
	}
	l.Slots = room.TryMake[uint32](a.room, a.about.Slots)[:0]
	if first := room.TryMake[uint64](a.room, n+1); first != nil {
		l.First = first[:1]
	}
}

// list takes in list tokens.
func (a *assembler) list(blob []byte) error {
	t := trace.NewListTokens(blob, a.names.Sizes())
	for t.Next() {
		if t.Kind != trace.ListObject {
			continue
		}
		if t.Addr+t.Words > references.MaxWord || t.Length > references.MaxWord {
			return fmt.Errorf("%w: object beyond 32 GiB", references.ErrCorrupt)
		}
		a.pending = append(a.pending, object{uint32(t.Addr), uint32(t.Words), t.Type, uint32(t.Length)})
	}
	return t.Err()
}

// take takes in slots, and makes the objects whose slots are complete.
func (a *assembler) take(more []byte) error {
	s := more
	if len(a.slots) > 0 {
		s = append(a.slots, more...)
	}
	k := 0
	for ; k < len(a.pending); k++ {
		n, ok := a.object(&a.pending[k], s)
		if !ok {
			break
		}
		s = s[n:]
	}
	a.pending = append(a.pending[:0], a.pending[k:]...)
	if len(a.pending) == 0 && len(s) > 0 {
		return fmt.Errorf("%w: %d slots of no object", references.ErrCorrupt, len(s)/4)
	}
	a.slots = append([]byte(nil), s...)
	return nil
}

// extraBit gives the word with the bit of an object, the last bits of whose address say which.
func (a *assembler) extraBit(addr uint32) *uint64 { return &a.extras[addr*2654435761>>22] }

// object makes an object of the slots at the start of s, and gives how many bytes it took; false: some are missing.
func (a *assembler) object(o *object, s []byte) (n int, ok bool) {
	u := &a.usual[o.typ%uint32(len(a.usual))]
	if !u.known || u.typ != o.typ || *a.extraBit(o.addr)>>(o.addr%64)&1 != 0 {
		return a.unusual(o, s, u)
	}
	slots := u.slots
	if u.array {
		slots = int(o.length)
	}
	if n = 4 * slots; len(s) < n {
		return 0, false
	}
	a.put(o, u.code, s[:n], nil)
	return n, true
}

// unusual is object for all objects, and keeps in u what it finds.
func (a *assembler) unusual(o *object, s []byte, u *usual) (n int, ok bool) {
	c := a.ofType[o.typ]
	key := shapeKey{typ: o.typ}
	slots, numbers := 0, 0
	if c != nil {
		key.kind = references.Kind(c.Kind)
		switch slots = int(c.Slots); c.Kind {
		case trace.RefObjArray:
			slots = int(o.length)
		case trace.RefArray:
			slots = 0
		case trace.RefMirror, trace.RefChunk: // the class that it stands for, and how many statics it has
			if numbers = 2; len(s) < 8 {
				return 0, false
			}
			key.of, key.mirror = trace.RefSlot(s, 0), c.Kind == trace.RefMirror
			slots += int(trace.RefSlot(s, 1))
		}
	}
	if n = 4 * (numbers + slots); len(s) < n {
		return 0, false
	}
	if key.mirror {
		key.slots = uint32(slots)
	}
	l, extra := a.l, a.extra[o.addr]
	if len(extra) > 0 && extra[0].Kind == trace.RefDefines && key.kind == references.Instance {
		key.kind = references.Loader
	}
	code, ok := a.shapes[key]
	if !ok {
		code = uint32(len(l.Shapes))
		l.Shapes = append(l.Shapes, a.shape(key, c, slots))
		a.shapes[key] = code
	}
	if numbers == 0 && len(extra) == 0 {
		*u = usual{o.typ, code, slots, true, c != nil && c.Kind == trace.RefObjArray}
	}
	a.put(o, code, s[4*numbers:n], extra)
	return n, true
}

// put appends an object with the slots of s.
func (a *assembler) put(o *object, code uint32, s []byte, extra []trace.RefExtra) {
	l, n := a.l, len(s)/4
	at := len(l.Slots)
	l.Slots = slices.Grow(roomFor(l.Slots, n+len(extra), a.about.Slots), n)[:at+n]
	for k := range n {
		l.Slots[at+k] = trace.RefSlot(s, k)
	}
	for _, e := range extra {
		l.Slots = append(l.Slots, uint32(e.To)+1)
	}
	of := a.about.Objects
	l.Addr, l.Code, l.Words = roomFor(l.Addr, 1, of), roomFor(l.Code, 1, of), roomFor(l.Words, 1, of)
	l.Addr, l.Code, l.Words = append(l.Addr, o.addr), append(l.Code, code), append(l.Words, o.words)
	l.First = append(roomFor(l.First, 1, of+1), uint64(len(l.Slots)))
	a.objects++
}

// atOnce is how many values are made at once for what a recording claims: memory that is not written takes none.
const atOnce = 1 << 22

// roomFor gives s room for n more values. If it has none, and a quarter of what all will be, it gets room for all: to
// grow step by step takes up to twice the memory. Beyond atOnce, nothing else is made for what a recording claims.
func roomFor[T any](s []T, n int, all uint64) []T {
	have := uint64(len(s))
	if len(s)+n <= cap(s) || all < have+uint64(n) || have < all/4 && all > atOnce {
		return s
	}
	return slices.Grow(s, int(all-have))
}

// shape makes the shape of objects with so many slots.
func (a *assembler) shape(key shapeKey, c *trace.RefClass, slots int) references.Shape {
	s := references.Shape{Type: key.typ, Kind: key.kind, Name: a.names.Types[uint64(key.typ)].Name}
	if c == nil {
		return s
	}
	if s.Class = uint32(c.ID); key.mirror {
		s.Class = key.of
	}
	switch key.kind {
	case references.ObjectArray:
		s.Rest = restArray
		return s
	case references.PrimitiveArray:
		return s
	case references.Loader:
		s.Rest = restClasses
	case references.Mirror:
		s.Rest = restResolved
		s.Of = a.className(key.of)
	case references.StackChunk:
		s.Rest = restStack
	}
	own := min(int(c.Slots), slots, references.MaxFields)
	s.Fields = make([]references.Field, own, min(slots, references.MaxFields))
	for i := range s.Fields {
		s.Fields[i].Name = unnamed
	}
	a.setFields(s.Fields, uint32(c.ID), 0)
	if key.mirror {
		for len(s.Fields) < cap(s.Fields) {
			s.Fields = append(s.Fields, references.Field{Name: unnamed, Class: s.Of})
		}
		a.setFields(s.Fields[own:], key.of, trace.RefStatic)
	}
	return s
}

// setFields names the fields of a class.
func (a *assembler) setFields(to []references.Field, class uint32, flags uint64) {
	for _, f := range a.fields[class] {
		if f.Flags == flags && f.Slot < uint64(len(to)) {
			to[f.Slot] = references.Field{Name: cmp.Or(f.Name, unnamed), Class: a.className(uint32(f.Declared)),
				Declared: f.Sig, Strength: references.Strength(f.Strength)}
		}
	}
}

// className gives the name of a class, empty if it is not known.
func (a *assembler) className(id uint32) string {
	c := a.class[id]
	if c == nil {
		return ""
	}
	return cmp.Or(c.Name, a.names.Types[c.Type].Name)
}

// finish gives the listing.
func (a *assembler) finish() (*references.Listing, error) {
	l := a.l
	if len(a.pending) > 0 || a.objects != a.about.Objects {
		return nil, fmt.Errorf("%w: %d of %d objects", references.ErrIncomplete, a.objects, a.about.Objects)
	}
	a.sort()
	for i := range a.roots {
		l.Roots = append(l.Roots, a.root(&a.roots[i]))
	}
	return l, l.Check()
}

// root names a root.
func (a *assembler) root(r *trace.RefRoot) references.Root {
	out := references.Root{Target: uint32(r.Target), Kind: references.RootKind(r.Kind)}
	if r.Kind > trace.RootLoader {
		out.Kind = references.OtherRoot
	}
	if t, ok := a.names.Threads[r.Thread]; ok {
		out.Thread = t.Name
	}
	if m, ok := a.names.Methods[r.Method]; ok {
		out.Class = strings.TrimSuffix(strings.TrimPrefix(m.Class, "L"), ";")
		out.Method = m.Name
		if r.BCI > 0 {
			out.Line = m.Line(int64(r.BCI) - 1)
		}
	}
	return out
}

// sort puts the objects in the order of their addresses: they come in that of the collector's spaces.
func (a *assembler) sort() {
	l := a.l
	type run struct{ from, to int }
	var runs []run
	for i := range l.Addr {
		if i == 0 || l.Addr[i] < l.Addr[i-1] {
			runs = append(runs, run{i, i})
		}
		runs[len(runs)-1].to = i + 1
	}
	if len(runs) < 2 {
		return
	}
	slices.SortFunc(runs, func(x, y run) int { return cmp.Compare(l.Addr[x.from], l.Addr[y.from]) })
	column := func(n int) []uint32 { return room.Make[uint32](a.room, n)[:0] }
	s := references.Listing{Addr: column(len(l.Addr)), Code: column(len(l.Addr)), Words: column(len(l.Addr)),
		First: room.Make[uint64](a.room, len(l.First))[:1], Slots: column(len(l.Slots))}
	for _, r := range runs {
		s.Addr, s.Code = append(s.Addr, l.Addr[r.from:r.to]...), append(s.Code, l.Code[r.from:r.to]...)
		s.Words = append(s.Words, l.Words[r.from:r.to]...)
		shift := uint64(len(s.Slots)) - l.First[r.from]
		for _, f := range l.First[r.from+1 : r.to+1] {
			s.First = append(s.First, f+shift)
		}
		s.Slots = append(s.Slots, l.Slots[l.First[r.from]:l.First[r.to]]...)
	}
	for _, c := range [][]uint32{l.Addr, l.Code, l.Words, l.Slots} {
		room.Free(a.room, c)
	}
	room.Free(a.room, l.First)
	l.Addr, l.Code, l.Words, l.First, l.Slots = s.Addr, s.Code, s.Words, s.First, s.Slots
}
