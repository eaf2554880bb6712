package export

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Tags of HPROF 1.0.2: records, what is in segments of the heap dump, types of fields and elements.
const (
	hprofString, hprofLoadClass, hprofStackFrame, hprofStackTrace       = 0x01, 0x02, 0x04, 0x05
	hprofSegment, hprofEnd                                              = 0x1c, 0x2c
	hprofRoot, hprofClass, hprofInstance, hprofObjects, hprofPrimitives = 0xff, 0x20, 0x21, 0x22, 0x23
	hprofInt, hprofLong                                                 = 10, 11
)

// hprofElements are type and size of elements by the name of the array's class.
var hprofElements = map[string][2]uint64{
	"[Z": {4, 1},
	"[C": {5, 2},
	"[F": {6, 4},
	"[D": {7, 8},
	"[B": {8, 1},
	"[S": {9, 2},
	"[I": {hprofInt, 4},
	"[J": {hprofLong, 8},
}

const (
	hprofSegmentBytes = 1 << 20 // as large as segments of small objects get, as HotSpot's
	// elements of one array: the length of a segment has 32 bits (HotSpot cuts larger ones, too)
	hprofArrayBytes = 1<<32 - 1<<10
	hprofFields     = 1 << 24 // of all classes; honest ones have a few hundred thousand
	hprofBase       = 1 << 40 // of a heap that begins where ids of classes are: no honest one does
)

// hprofKey is a type; of types whose instances differ in size, which mirrors do, with the size in words.
type hprofKey struct {
	typ   uint32
	words uint64
}

// hprofStack names a stack by its innermost frame. HPROF has no place to say that callers are drawn: such a stack ends
// in the frame drawnFrame.
type hprofStack struct {
	frame uint64
	drawn bool
}

const drawnFrame = "(callers drawn among samples)"

type hprofType struct {
	name       string
	serial     uint64 // from 1
	array      bool
	elem, size uint64 // of the elements of an array: type if primitive, and bytes in the file
	longs      uint64 // fields of 8 bytes of others
	ints       uint64 // and of 4
}

// Hprof is a heap dump of a state so far as a recording holds one: each object with its address, class and size, arrays
// with their length, sampled objects with their stack. Values are zeros. There are no references, so each object is a
// root. HPROF gives the size of an instance by the fields of its class: a class has as many that mean nothing as its
// instances are large.
type Hprof struct {
	r       *heap.View
	ids     int    // bytes of an id
	base    uint64 // id of the object at word 0
	step    uint64 // from one word to the next: 8, or 1
	header  uint64 // bytes of an instance without fields, as readers reckon
	types   []*hprofType
	of      map[hprofKey]*hprofType
	serials map[hprofStack]uint64
	callers *sites.Callers // of objects whose innermost frame alone is known
	strings map[string]uint64
	head    []byte

	Objects uint64 // in the dump
	Bytes   uint64 // of the file, to within one in a hundred
}

// NewHprof plans the dump of the state of r. from is as of analysis.DrawCallers. Its error is heap.ErrFold, or says
// that classes are larger than those of any JVM.
//
// Readers know objects with a header of 12 bytes (if references take 4) or 16, with ids of 8 bytes, which here are the
// addresses; and with one of 8, with ids of 4 bytes. The latter is how compact headers look: there ids count words, as
// far as 32 bits reach.
func NewHprof(r *heap.View, from *sites.Callers) (*Hprof, error) {
	fs, err := r.Fold(heap.WantLength, nil, 1)
	if err != nil {
		return nil, err
	}
	h := &Hprof{r: r, ids: 8, step: 8, base: r.JVM.HeapBase, header: 16,
		of: map[hprofKey]*hprofType{}, serials: map[hprofStack]uint64{}, strings: map[string]uint64{},
		callers: from.Among(r.Symbols, r.Live.Values())}
	// Ids of classes are below those of objects: there are no more classes than types and methods.
	low := uint64(len(r.Types)+len(r.Methods)+len(fs)) + 16
	switch oops, compact := r.JVM.Flags&trace.JVMCompressedOops != 0, r.JVM.Flags&trace.JVMCompactHeaders != 0; {
	case oops && compact && low+r.JVM.HeapWords < 1<<32:
		h.ids, h.step, h.base, h.header = 4, 1, low, 8
	case oops:
		h.header = 12
	}
	if h.ids == 8 && h.base < 8*low || h.base > 1<<62 {
		h.base = hprofBase
	}
	object := h.add("java/lang/Object")
	h.add("java/lang/Class")
	for _, f := range fs {
		t := h.typeOf(f.Type, f.Words)
		if t == nil {
			ty := r.Types[uint64(f.Type)]
			key := hprofKey{typ: f.Type}
			name := ty.Name
			switch {
			case ty.Flags&trace.TypeVariable != 0:
				key.words = f.Words
				// readers count each class of a dump as an instance of java.lang.Class: these are apart
				name += " (mirrors)"
			case name == "":
				name = r.TypeName(f.Type)
			}
			if name == object.name {
				t = object
			} else {
				t = h.add(name)
			}
			h.of[key] = t
			if t.array = ty.Flags&trace.TypeArray != 0 && key.words == 0; t.array {
				e := hprofElements[name]
				if t.elem, t.size = e[0], e[1]; t.elem == 0 {
					t.size = uint64(h.ids)
				}
			} else if t != object { // whose fields all classes would have; readers round its header up
				fill := f.Words*8 - min(f.Words*8, h.header)
				// as many as the format can have; Java has no larger ones
				t.longs, t.ints = min(fill/8, 1<<16-2), fill%8/4
			}
		}
		h.Objects += f.Objects
		h.Bytes += f.Objects * (1 + uint64(h.ids) + h.recordBytes(t, f.Length))
	}
	fields := uint64(0)
	for _, t := range h.types {
		if fields += t.longs + t.ints; fields > hprofFields {
			return nil, fmt.Errorf("classes have more than %d fields: no JVM has such", hprofFields)
		}
	}
	h.begin()
	h.Bytes += uint64(len(h.head))
	h.Bytes += h.Bytes >> 20 * 9
	return h, nil
}

func (h *Hprof) add(name string) *hprofType {
	t := &hprofType{name: name, serial: uint64(len(h.types)) + 1}
	h.types = append(h.types, t)
	return t
}

func (h *Hprof) typeOf(typ uint32, words uint64) *hprofType {
	if t := h.of[hprofKey{typ: typ}]; t != nil {
		return t
	}
	return h.of[hprofKey{typ, words}]
}

// elements is how many elements of an array the dump holds.
func (t *hprofType) elements(length uint64) uint64 {
	return min(length, 1<<31-1, hprofArrayBytes/t.size)
}

// payload is the size of the zeros behind the head of an object's record.
func (t *hprofType) payload(length uint64) uint64 {
	if t.array {
		return t.elements(length) * t.size
	}
	return t.longs*8 + t.ints*4
}

func (h *Hprof) recordBytes(t *hprofType, length uint64) uint64 {
	n := 1 + uint64(h.ids) + 4 + 4 + t.payload(length)
	if t.elem != 0 {
		return n + 1
	}
	return n + uint64(h.ids)
}

func (h *Hprof) id(b []byte, v uint64) []byte {
	if h.ids == 4 {
		return binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return binary.BigEndian.AppendUint64(b, v)
}

func hprofU4(b []byte, v ...uint64) []byte {
	for _, x := range v {
		b = binary.BigEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// record adds a record to the head.
func (h *Hprof) record(tag byte, body []byte) {
	h.head = append(hprofU4(append(h.head, tag), 0, uint64(len(body))), body...)
}

// text gives the id of a string, whose record it adds if it is new.
func (h *Hprof) text(s string) uint64 {
	id, ok := h.strings[s]
	if !ok {
		id = uint64(len(h.strings)) + 1
		h.strings[s] = id
		h.record(hprofString, append(h.id(nil, id), s...))
	}
	return id
}

// begin makes the head: all that is before the objects.
func (h *Hprof) begin() {
	h.head = hprofU4([]byte("JAVA PROFILE 1.0.2\x00"), uint64(h.ids))
	h.head = binary.BigEndian.AppendUint64(h.head, h.r.JVM.T0WallMS)
	stacks := h.frames()
	filler := h.text("(not recorded)")
	// By what these two static fields of the JDK differ VisualVM knows how large references are where ids have 8 bytes.
	// (MAT finds it out by what follows arrays.)
	const atomic, from, to = "java/lang/Class$Atomic", "annotationDataOffset", "annotationTypeOffset"
	h.text(from)
	h.text(to)
	sizes := h.add(atomic)
	for _, t := range h.types {
		h.record(hprofLoadClass, h.id(hprofU4(h.id(hprofU4(nil, t.serial), t.serial*h.step), 1), h.text(t.name)))
	}
	h.head = append(h.head, stacks...)
	var dumps []byte
	for i, t := range h.types {
		d := hprofU4(h.id(append(dumps, hprofClass), t.serial*h.step), 1)
		super, size := h.step, t.longs*8+t.ints*4 // of java.lang.Object, the first
		if i == 0 {
			super = 0
		}
		if h.ids == 4 { // then VisualVM takes what is not 0 for whole sizes
			size += h.header
		}
		d = h.id(d, super)
		for range 5 { // loader, signers, domain, two reserved
			d = h.id(d, 0)
		}
		d = append(hprofU4(d, size), 0, 0) // no constants
		if t == sizes {
			d = append(d, 0, 2)
			d = binary.BigEndian.AppendUint64(append(h.id(d, h.strings[from]), hprofLong), 16)
			d = binary.BigEndian.AppendUint64(append(h.id(d, h.strings[to]), hprofLong), 16+min(8, h.header-8))
		} else {
			d = append(d, 0, 0)
		}
		d = binary.BigEndian.AppendUint16(d, uint16(t.longs+t.ints))
		for range t.longs {
			d = append(h.id(d, filler), hprofLong)
		}
		for range t.ints {
			d = append(h.id(d, filler), hprofInt)
		}
		if dumps = d; len(dumps) > hprofSegmentBytes {
			h.record(hprofSegment, dumps)
			dumps = dumps[:0]
		}
	}
	h.record(hprofSegment, dumps)
}

// frames adds the frames of the stacks of living samples, and their classes, and gives the records of the stacks.
func (h *Hprof) frames() []byte {
	classes := map[string]*hprofType{}
	for _, t := range h.types {
		classes[t.name] = t
	}
	stack := func(out []byte, serial, n uint64, ids []byte) []byte {
		return append(hprofU4(append(out, hprofStackTrace), 0, 12+uint64(len(ids)), serial, 0, n), ids...)
	}
	out := stack(nil, 1, 0, nil) // of what is not sampled
	frames := map[uint64]uint64{}
	add := func(at uint64, class, method, sig, file string, line uint64) {
		frames[at] = uint64(len(frames)) + 1
		if classes[class] == nil {
			classes[class] = h.add(class)
		}
		body := h.id(h.id(nil, frames[at]), h.text(method))
		body = h.id(h.id(body, h.text(sig)), h.text(file))
		h.record(hprofStackFrame, hprofU4(body, classes[class].serial, line))
	}
	const unknown = uint64(1<<32 - 1) // line
	for _, s := range h.r.Live.All() {
		key := h.stackOf(s)
		if s.Frame == 0 || h.serials[key] != 0 {
			continue
		}
		h.serials[key] = uint64(len(h.serials)) + 2
		var ids []byte
		n := uint64(0)
		for at := key.frame; at != 0 && n < sites.MaxFrames; n++ {
			f, ok := h.r.Frames[at]
			if !ok {
				break
			}
			if frames[at] == 0 {
				m := h.r.Methods[f.Method]
				name, line := strings.TrimSuffix(strings.TrimPrefix(m.Class, "L"), ";"), unknown
				if l := m.Line(f.BCI); l > 0 {
					line = uint64(l)
				} else if m.Flags&trace.MethodNative != 0 {
					line = 1<<32 - 3
				}
				add(at, name, m.Name, m.Sig, m.File, line)
			}
			ids = h.id(ids, frames[at])
			at = f.Parent
		}
		if key.drawn {
			if frames[0] == 0 {
				add(0, "heapcam", drawnFrame, "()V", "", unknown)
			}
			ids, n = h.id(ids, frames[0]), n+1
		}
		out = stack(out, h.serials[key], n, ids)
	}
	return out
}

// stackOf gives the stack of a sample.
func (h *Hprof) stackOf(s *heap.Sample) hprofStack {
	frame := h.callers.Of(h.r.Symbols, s.Frame, s.ID)
	return hprofStack{frame, frame != s.Frame}
}

// Write writes the dump. Its errors are those of w and ctx.
func (h *Hprof) Write(ctx context.Context, w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	b.Write(h.head)
	var seg []byte
	flush := func(more uint64) {
		if len(seg) > 0 || more > 0 {
			b.Write(hprofU4([]byte{hprofSegment}, 0, uint64(len(seg))+more))
			b.Write(seg)
			seg = seg[:0]
		}
	}
	var zeros [1 << 16]byte
	var err error
	n := 0
	h.r.State.Each(func(o heap.Object) bool {
		if n++; n%65536 == 0 && ctx.Err() != nil {
			err = ctx.Err()
			return false
		}
		t := h.typeOf(o.Type, o.Words)
		id, stack := h.base+o.Addr*h.step, uint64(1)
		if s := h.r.Live.Get(o.Sample); s != nil && s.Frame != 0 {
			stack = h.serials[h.stackOf(s)]
		}
		seg = h.id(append(seg, hprofRoot), id)
		fill := t.payload(o.Length)
		switch {
		case t.elem != 0:
			seg = append(hprofU4(h.id(append(seg, hprofPrimitives), id), stack, t.elements(o.Length)), byte(t.elem))
		case t.array:
			seg = h.id(hprofU4(h.id(append(seg, hprofObjects), id), stack, t.elements(o.Length)), t.serial*h.step)
		default:
			seg = hprofU4(h.id(hprofU4(h.id(append(seg, hprofInstance), id), stack), t.serial*h.step), fill)
		}
		if fill <= uint64(len(zeros)) {
			if seg = append(seg, zeros[:fill]...); len(seg) >= hprofSegmentBytes {
				flush(0)
			}
			return true
		}
		for flush(fill); fill > 0 && err == nil; fill -= min(fill, uint64(len(zeros))) {
			_, err = b.Write(zeros[:min(fill, uint64(len(zeros)))])
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	flush(0)
	b.Write(hprofU4([]byte{hprofEnd}, 0, 0))
	return b.Flush()
}
