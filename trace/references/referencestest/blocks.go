package referencestest

import (
	"strings"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// base is the address of word 0 of the heap.
const base = 1 << 32

// site is a sampled object and where it was allocated.
type site struct {
	object        int
	class, method string
}

// Sample says that an object was sampled at its allocation, in a method. Every sample stands for one object.
func (b *Builder) Sample(object int, class, method string) {
	b.sites = append(b.sites, site{object, class, method})
}

// Blocks gives a recording of one collection, with a sync point and a reference listing as a probe sends it.
func (b *Builder) Blocks() []trace.Block {
	l := b.Listing()
	e := encoder{b: b, l: l, methods: map[string]uint64{}, threads: map[string]uint64{}}
	e.jvm = trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorSerial, PID: 1, StartMS: 1e12, T0WallMS: 1e12,
		HeapBase: base, HeapWords: 1 << 20, Align: 8, Flags: trace.JVMCompressedOops | trace.JVMAtStart,
		Depth: trace.DepthSurvivors, MaxHeap: 8 << 20, Session: strings.Repeat("0", 32), VM: "test 17", Probe: "test"}
	e.sizes = trace.NewTypeTable(8)
	e.define()
	parts := e.parts()
	sync := e.sync()
	blocks := []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: e.jvm}), trace.EncodeDefs(e.defs),
		trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 1, Kind: trace.PauseFull, Flags: trace.PauseSyncFollows,
			Depth: trace.DepthSurvivors, Start: 1e9, Dur: 1e6, JVMGC: 1, Cause: "test"}, Spaces: e.spaces()}),
		trace.EncodeSync(sync)}
	for i := range parts {
		blocks = append(blocks, trace.EncodeRefs(parts[i]))
	}
	for i := range blocks {
		blocks[i].Seq = uint64(i + 1)
	}
	return blocks
}

type encoder struct {
	b                *Builder
	l                *references.Listing
	jvm              trace.JVM
	defs             trace.Defs
	sizes            *trace.TypeTable
	methods, threads map[string]uint64
	class            map[string]uint32 // ids of classes of the listing
}

func (e *encoder) spaces() []trace.Space {
	return []trace.Space{{Kind: trace.SpaceOld, Top: e.end(), End: 1 << 20, UsedAfter: e.end() * 8}}
}

func (e *encoder) end() uint64 {
	n := len(e.l.Addr)
	return uint64(e.l.Addr[n-1]) + uint64(e.l.Words[n-1])
}

// define makes the types.
func (e *encoder) define() {
	e.defs.Loaders = []trace.Loader{{ID: 1, Name: "(boot)"}}
	done := map[uint32]bool{}
	for i := range e.l.Shapes {
		s := &e.l.Shapes[i]
		if done[s.Type] {
			continue
		}
		done[s.Type] = true
		t := trace.Type{ID: uint64(s.Type), Name: s.Name, Size: words * 8, Loader: 1}
		switch s.Kind {
		case references.ObjectArray:
			t.Flags, t.Size, t.Log2 = trace.TypeArray|trace.TypeObjArray, 16, 2
		case references.PrimitiveArray:
			t.Flags, t.Size = trace.TypeArray, 16
		case references.Mirror:
			t.Flags = trace.TypeVariable
		case references.Filler:
			t.Flags = trace.TypeFiller
		}
		e.defs.Types = append(e.defs.Types, t)
		if err := e.sizes.Define(t); err != nil {
			panic(err)
		}
	}
}

// method gives the id of a method.
func (e *encoder) method(class, name string, line int) uint64 {
	id := e.methods[class+name]
	if id == 0 {
		id = uint64(len(e.methods) + 1)
		e.methods[class+name] = id
		e.defs.Methods = append(e.defs.Methods, trace.Method{ID: id, Class: "L" + class + ";", Name: name,
			File: "Test.java", Lines: []trace.LineEntry{{BCI: 0, Line: max(line, 1)}}})
		e.defs.Frames = append(e.defs.Frames, trace.Frame{ID: id, Method: id})
	}
	return id
}

// length gives what a token says of an object beside its type.
func (e *encoder) length(i int) uint64 {
	switch e.l.Shape(i).Kind {
	case references.ObjectArray:
		return uint64(len(e.l.Of(i)))
	case references.PrimitiveArray:
		return 16
	case references.Mirror:
		return words
	}
	return 0
}

// list gives list tokens of objects.
func (e *encoder) list(from, to int) []byte {
	enc := trace.NewListEncoder(e.sizes)
	for i := from; i < to; i++ {
		enc.Object(uint64(e.l.Addr[i]), e.l.Shape(i).Type, e.length(i))
	}
	b := enc.Bytes()
	if enc.Err() != nil {
		panic(enc.Err())
	}
	return b
}

// sync makes the sync point.
func (e *encoder) sync() *trace.Sync {
	s := &trace.Sync{GC: 1, Reason: trace.SyncFull, Time: 1e9, Spaces: e.spaces(), Objects: uint64(len(e.l.Addr)),
		Lists: [][]byte{e.list(0, len(e.l.Addr))}}
	for _, w := range e.l.Words {
		s.Bytes += uint64(w) * 8
	}
	for i, x := range e.b.sites {
		s.Samples = append(s.Samples, trace.LiveSample{ID: uint64(i + 1), Addr: uint64(e.l.Addr[x.object]),
			Frame: e.method(x.class, x.method, 1), Birth: 1, Size: uint64(e.l.Words[x.object]) * 8})
	}
	return s
}

// own is how many slots of an object's fields are its class's instance fields.
func own(s *references.Shape) (n int) {
	for _, f := range s.Fields {
		if s.Kind != references.Mirror || f.Class != s.Of {
			n++
		}
	}
	return n
}

// parts makes the reference listing, with few objects a part.
func (e *encoder) parts() (parts []*trace.RefPart) {
	perPart := max(7, len(e.l.Addr)/1000) // few in small listings: to try what is in two parts
	l := e.l
	head := &trace.RefPart{HasAbout: true, About: trace.References{Ticket: 1, GC: 1, Time: 2e9, Dur: 5e6, Probe: 4e6,
		Objects: uint64(len(l.Addr)), Slots: uint64(len(l.Slots)), NumRoots: uint64(len(l.Roots)),
		Missing: strings.Join(l.Missing, "\n")}}
	parts = append(parts, head)
	e.classes(head)
	for i := range l.Roots {
		r := &l.Roots[i]
		x := trace.RefRoot{Target: uint64(r.Target), Kind: uint64(r.Kind)}
		if r.Thread != "" {
			if e.threads[r.Thread] == 0 {
				e.threads[r.Thread] = uint64(len(e.threads) + 1)
				e.defs.Threads = append(e.defs.Threads, trace.Thread{ID: e.threads[r.Thread], Name: r.Thread})
			}
			x.Thread = e.threads[r.Thread]
		}
		if r.Method != "" {
			x.Method, x.BCI = e.method(r.Class, r.Method, r.Line), 1
		}
		head.Roots = append(head.Roots, x)
	}
	for from := 0; from < len(l.Addr); from += perPart {
		to := min(from+perPart, len(l.Addr))
		var slots []byte
		for i := from; i < to; i++ {
			slots = append(slots, e.slots(i, head)...)
		}
		half := len(slots) / 8 * 4
		parts = append(parts, &trace.RefPart{Lists: [][]byte{e.list(from, to)}, Slots: [][]byte{slots[:half]}},
			&trace.RefPart{Slots: [][]byte{slots[half:]}})
	}
	for i, p := range parts {
		p.Listing, p.N = 1, uint64(i+1)
	}
	parts[0].Flags, parts[len(parts)-1].Flags = trace.RefFirst, trace.RefLast
	return parts
}

// classes puts classes and fields into the head.
func (e *encoder) classes(head *trace.RefPart) {
	e.class = map[string]uint32{}
	id := func(name string) uint32 {
		if e.class[name] == 0 {
			e.class[name] = uint32(len(e.class) + 1)
		}
		return e.class[name]
	}
	done := map[string]bool{}
	field := func(class uint32, slot int, flags uint64, f references.Field) {
		x := trace.RefField{Class: uint64(class), Slot: uint64(slot), Flags: flags, Strength: uint64(f.Strength),
			Name: f.Name, Sig: f.Declared}
		if f.Class != "" {
			x.Declared = uint64(id(f.Class))
		}
		head.Fields = append(head.Fields, x)
	}
	for i := range e.l.Shapes {
		s := &e.l.Shapes[i]
		n := own(s)
		if s.Of != "" {
			id(s.Of)
		}
		if !done[s.Name] {
			done[s.Name] = true
			kind := s.Kind
			if kind == references.Loader {
				kind = references.Instance
			}
			head.Classes = append(head.Classes, trace.RefClass{ID: uint64(id(s.Name)), Type: uint64(s.Type),
				Kind: uint64(kind), Slots: uint64(n)})
			for k, f := range s.Fields[:n] {
				field(id(s.Name), k, 0, f)
			}
		}
		for k, f := range s.Fields[n:] {
			field(id(s.Of), k, trace.RefStatic, f)
		}
	}
	for name, c := range e.class {
		if !done[name] {
			head.Classes = append(head.Classes, trace.RefClass{ID: uint64(c), Name: name})
		}
	}
}

// slots gives the slots of an object as the probe copies them; what has no slot goes into the head.
func (e *encoder) slots(i int, head *trace.RefPart) (out []byte) {
	put := func(v uint32) { out = append(out, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }
	s, of := e.l.Shape(i), e.l.Of(i)
	if s.Kind == references.Mirror {
		put(e.class[s.Of])
		put(uint32(len(s.Fields) - own(s)))
	}
	for k, t := range of {
		if k >= len(s.Fields) && s.Kind == references.Loader {
			head.Extra = append(head.Extra, trace.RefExtra{From: uint64(e.l.Addr[i]), To: uint64(t) - 1,
				Kind: trace.RefDefines})
			continue
		}
		put(t)
	}
	return out
}
