package export

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// Further tags of HPROF.
const (
	hprofRootJNI, hprofRootClass, hprofRootMonitor = 0x01, 0x05, 0x07
	hprofObject                                    = 2
)

// HprofReferences is a heap dump of a reference listing: all objects with their references, and the roots. Primitive
// values are zeros, and a primitive array may be up to 7 bytes longer than it was. What class loaders refer to is left
// out, but for their fields: readers connect classes and loaders themselves.
type HprofReferences struct {
	h       *retention.Heap
	w       *bufio.Writer
	oop     uint64 // bytes of a reference in the JVM
	header  uint64 // bytes of an object's, as readers reckon
	strings map[string]uint64
	mirrors map[string]int // class by name: its mirror
	classes map[string]*refsClass
	order   []*refsClass
	seg     []byte
}

// refsClass is a class of the dump.
type refsClass struct {
	id          uint64
	name        string
	shape       *references.Shape // nil: no objects
	super       *refsClass
	own         []int  // the fields of shape that the class has itself; those of super have the others
	fill        uint64 // bytes of an instance that are no references
	elem, bytes uint64 // of a primitive array
	mirror      int    // graph.None: not known
}

// NewHprofReferences plans the dump.
func NewHprofReferences(h *retention.Heap) *HprofReferences {
	x := &HprofReferences{h: h, oop: 8, header: 16, strings: map[string]uint64{}, mirrors: map[string]int{},
		classes: map[string]*refsClass{}}
	if h.Names.JVM.Flags&trace.JVMCompressedOops != 0 {
		x.oop, x.header = 4, 12
	}
	l := h.Graph.L
	for i := range l.Addr {
		if s := l.Shape(i); s.Kind == references.Mirror && s.Of != "" {
			if _, had := x.mirrors[s.Of]; !had {
				x.mirrors[s.Of] = i
			}
		}
	}
	x.class("java/lang/Object")
	x.class("java/lang/Class")
	seen := make([]bool, len(l.Shapes))
	for i, code := range l.Code {
		if s := &l.Shapes[code]; !seen[code] {
			seen[code] = true
			x.describe(x.class(s.Name), s, uint64(l.Words[i])*8)
		}
	}
	for of := range x.mirrors {
		x.class(of)
	}
	return x
}

// class gives a class by its name.
func (x *HprofReferences) class(name string) *refsClass {
	c := x.classes[name]
	if c == nil {
		c = &refsClass{id: uint64(len(x.order)+1) * 8, name: name, mirror: graph.None}
		if m, ok := x.mirrors[name]; ok {
			c.id, c.mirror = x.id(m), m
		}
		x.classes[name] = c
		x.order = append(x.order, c)
	}
	return c
}

const referenceClass = "java/lang/ref/Reference"

// inherit puts the fields of java.lang.ref.Reference into a class of that name, which readers look for. Of all other
// classes their own fields and the inherited ones are together.
func (x *HprofReferences) inherit(c *refsClass) {
	s := c.shape
	var super []int
	for k := range s.Fields {
		switch {
		case s.Fields[k] == references.ClassField: // readers know it
		case s.Kind == references.Reference && s.Fields[k].Class == referenceClass:
			super = append(super, k)
		default:
			c.own = append(c.own, k)
		}
	}
	if len(super) == 0 || c.name == referenceClass {
		c.own = append(super, c.own...)
		return
	}
	c.super = x.class(referenceClass)
	if c.super.shape == nil { // it is abstract
		c.super.shape, c.super.own = s, super
	}
}

// describe says how the objects of a class are written, by its first one, of so many bytes.
func (x *HprofReferences) describe(c *refsClass, s *references.Shape, size uint64) {
	if c.shape != nil || s.Kind == references.Mirror {
		return
	}
	c.shape = s
	x.inherit(c)
	if e := hprofElements[s.Name]; e[0] != 0 {
		c.elem, c.bytes = e[0], e[1]
	}
	if c.elem == 0 && s.Kind != references.ObjectArray && c.name != "java/lang/Object" { // its fields all would have
		used := x.header + uint64(len(c.own)+c.inherited())*x.oop
		c.fill = size - min(size, used)
		c.fill = min(c.fill&^3, 1<<18)
	}
}

// inherited is how many fields of references the class that it extends has.
func (c *refsClass) inherited() int {
	if c.super == nil {
		return 0
	}
	return len(c.super.own)
}

func (x *HprofReferences) id(object int) uint64 {
	return x.h.Graph.L.Base + uint64(x.h.Graph.L.Addr[object])*8
}

func (x *HprofReferences) record(tag byte, body []byte) {
	x.w.Write(hprofU4([]byte{tag}, 0, uint64(len(body))))
	x.w.Write(body)
}

func hprofID(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// text gives the id of a string, whose record it writes if it is new.
func (x *HprofReferences) text(s string) uint64 {
	id, ok := x.strings[s]
	if !ok {
		id = uint64(len(x.strings)) + 1
		x.strings[s] = id
		x.record(hprofString, append(hprofID(nil, id), s...))
	}
	return id
}

// slot appends what a slot leads to.
func (x *HprofReferences) slot(b []byte, slot uint32) []byte {
	if to, ok := x.h.Graph.Target(slot); ok {
		return hprofID(b, x.id(to))
	}
	return hprofID(b, 0)
}

// Write writes the dump. Its errors are those of w and ctx.
func (x *HprofReferences) Write(ctx context.Context, w io.Writer) error {
	x.w = bufio.NewWriterSize(w, 1<<20)
	b := hprofU4([]byte("JAVA PROFILE 1.0.2\x00"), 8)
	x.w.Write(binary.BigEndian.AppendUint64(b, uint64(x.h.About.Time/1e6)+x.h.Names.JVM.T0WallMS))
	x.writeNames()
	for _, c := range x.order {
		x.writeClass(c)
	}
	l := x.h.Graph.L
	for _, r := range l.Roots {
		if i := l.Find(r.Target); i >= 0 && r.Kind != references.JNIWeak {
			x.writeRoot(r.Kind, x.id(i))
		}
	}
	for i := range l.Addr {
		if i%65536 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		x.writeObject(i)
	}
	x.flush(0)
	x.record(hprofEnd, nil)
	return x.w.Flush()
}

// sizesClass has two static fields by whose difference VisualVM knows how large references are.
const sizesClass, sizesFrom, sizesTo = "java/lang/Class$Atomic", "annotationDataOffset", "annotationTypeOffset"

// writeNames writes strings, classes and the empty stack.
func (x *HprofReferences) writeNames() {
	x.class(sizesClass)
	x.text(sizesFrom)
	x.text(sizesTo)
	x.text("(not recorded)")
	for _, c := range x.order {
		if c.shape != nil {
			for _, f := range c.shape.Fields {
				x.text(f.Name)
			}
		}
		if c.mirror != graph.None {
			for k := range x.h.Graph.L.Of(c.mirror) {
				x.text(x.staticName(c, k))
			}
		}
	}
	for i, c := range x.order {
		x.record(hprofLoadClass, hprofID(hprofU4(hprofID(hprofU4(nil, uint64(i+1)), c.id), 1), x.text(c.name)))
	}
	x.record(hprofStackTrace, hprofU4(nil, 1, 0, 0))
}

// staticName names slot k of a class mirror: fields of the mirror itself in angle brackets.
func (x *HprofReferences) staticName(c *refsClass, k int) string {
	f := x.h.Graph.L.Shape(c.mirror).Slot(k)
	if f.Class == c.name {
		return f.Name
	}
	return "<" + f.Name + ">"
}

// writeClass writes a class, whose object is its mirror.
func (x *HprofReferences) writeClass(c *refsClass) {
	d := hprofU4(hprofID(append(x.seg, hprofClass), c.id), 1)
	super := uint64(0)
	if c.super != nil {
		super = c.super.id
	} else if c.name != "java/lang/Object" {
		super = x.classes["java/lang/Object"].id
	}
	d = hprofID(d, super)
	var statics []uint32
	loader := uint32(0)
	if c.mirror != graph.None {
		statics = x.h.Graph.L.Of(c.mirror)
		for k, t := range statics {
			if x.staticName(c, k) == "<classLoader>" {
				loader = t
			}
		}
	}
	d = x.slot(d, loader)
	for range 4 { // signers, domain, two reserved
		d = hprofID(d, 0)
	}
	fields := len(c.own)
	d = append(hprofU4(d, uint64(fields)*8+c.fill), 0, 0) // no constants
	statics = statics[:min(len(statics), 1<<16-3)]
	if c.name == sizesClass {
		d = binary.BigEndian.AppendUint16(d, uint16(len(statics)+2))
		d = binary.BigEndian.AppendUint64(append(hprofID(d, x.strings[sizesFrom]), hprofLong), 16)
		d = binary.BigEndian.AppendUint64(append(hprofID(d, x.strings[sizesTo]), hprofLong), 16+x.oop)
	} else {
		d = binary.BigEndian.AppendUint16(d, uint16(len(statics)))
	}
	for k, t := range statics {
		d = x.slot(append(hprofID(d, x.strings[x.staticName(c, k)]), hprofObject), t)
	}
	longs, ints := c.fill/8, c.fill%8/4
	d = binary.BigEndian.AppendUint16(d, uint16(min(uint64(fields)+longs+ints, 1<<16-1)))
	for _, k := range c.own {
		d = append(hprofID(d, x.strings[c.shape.Fields[k].Name]), hprofObject)
	}
	for k := range longs + ints {
		d = append(hprofID(d, x.strings["(not recorded)"]), byte(hprofLong-b2i(k >= longs)))
	}
	x.seg = d
	x.flush(hprofSegmentBytes)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// flush writes the segment in hand if it has at least so many bytes.
func (x *HprofReferences) flush(least int) {
	if len(x.seg) > 0 && len(x.seg) >= least {
		x.record(hprofSegment, x.seg)
		x.seg = x.seg[:0]
	}
}

// writeRoot writes a root. Those of stacks have no thread here, so they are of no kind.
func (x *HprofReferences) writeRoot(k references.RootKind, id uint64) {
	switch k {
	case references.JNIGlobal:
		x.seg = hprofID(hprofID(append(x.seg, hprofRootJNI), id), id)
	case references.SystemClass, references.LoaderRoot:
		x.seg = hprofID(append(x.seg, hprofRootClass), id)
	case references.Monitor:
		x.seg = hprofID(append(x.seg, hprofRootMonitor), id)
	default:
		x.seg = hprofID(append(x.seg, hprofRoot), id)
	}
	x.flush(hprofSegmentBytes)
}

// writeObject writes an object. A mirror whose class is in the dump is there already.
func (x *HprofReferences) writeObject(i int) {
	l := x.h.Graph.L
	s := l.Shape(i)
	if s.Kind == references.Mirror && s.Of != "" && x.mirrors[s.Of] == i {
		return
	}
	c, id, slots := x.classes[s.Name], x.id(i), l.Of(i)
	b := x.seg
	switch {
	case c.elem != 0:
		n := min((uint64(l.Words[i])*8-16)/c.bytes, hprofArrayBytes/c.bytes)
		b = append(hprofU4(hprofID(append(b, hprofPrimitives), id), 1, n), byte(c.elem))
		if n*c.bytes > hprofSegmentBytes {
			x.seg = b
			x.writeLarge(n * c.bytes)
			return
		}
		b = append(b, make([]byte, n*c.bytes)...)
	case s.Kind == references.ObjectArray:
		slots = slots[len(s.Fields):]
		b = hprofID(hprofU4(hprofID(append(b, hprofObjects), id), 1, uint64(len(slots))), c.id)
		for _, t := range slots {
			b = x.slot(b, t)
		}
	default:
		b = hprofID(hprofU4(hprofID(append(b, hprofInstance), id), 1), c.id)
		at := len(b)
		b = hprofU4(b, 0)
		put := func(fields []int) {
			for _, k := range fields {
				if k < len(slots) {
					b = x.slot(b, slots[k])
				} else {
					b = hprofID(b, 0)
				}
			}
		}
		put(c.own)
		b = append(b, make([]byte, c.fill)...) // of the class's own fields
		if c.super != nil {
			put(c.super.own)
		}
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	x.seg = b
	x.flush(hprofSegmentBytes)
}

// writeLarge writes the segment in hand with so many zeros behind it.
func (x *HprofReferences) writeLarge(zeros uint64) {
	x.w.Write(hprofU4([]byte{hprofSegment}, 0, uint64(len(x.seg))+zeros))
	x.w.Write(x.seg)
	x.seg = x.seg[:0]
	var none [1 << 16]byte
	for zeros > 0 {
		n, _ := x.w.Write(none[:min(zeros, uint64(len(none)))])
		if n == 0 {
			return // Flush gives the error
		}
		zeros -= uint64(n)
	}
}
