package tracetest

import (
	"fmt"

	"github.com/heapcam/heapcam/trace"
)

// catalogue holds the classes of the model; its last is the filler, which the program itself does not allocate.
var catalogue = []trace.Type{
	{Name: "java/lang/Object", Size: 16},
	{Name: "java/lang/String", Size: 24},
	{Name: "[B", Flags: trace.TypeArray, Size: 16, Log2: 0},
	{Name: "[I", Flags: trace.TypeArray, Size: 16, Log2: 2},
	{Name: "[J", Flags: trace.TypeArray, Size: 16, Log2: 3},
	{Name: "[Ljava/lang/Object;", Flags: trace.TypeArray | trace.TypeObjArray, Size: 16, Log2: 2},
	{Name: "java/lang/Class", Flags: trace.TypeVariable, Size: 112},
	{Name: "java/util/HashMap$Node", Size: 32},
	{Name: "shop/Cart", Size: 40},
	{Name: "shop/Cart$$Lambda+0x00007f0001000a18", Flags: trace.TypeHidden, Size: 16},
	{Name: "jdk/internal/vm/FillerArray", Flags: trace.TypeArray | trace.TypeFiller, Size: 16, Log2: 2},
}

const (
	longArray = 4
	filler    = 10
)

var methods = []trace.Method{
	{Class: "Lshop/Cart;", Name: "add", Sig: "(Lshop/Item;)V", File: "Cart.java",
		Lines: []trace.LineEntry{{BCI: 0, Line: 30}, {BCI: 7, Line: 31}, {BCI: 12, Line: 29}}},
	{Class: "Lshop/Main;", Name: "main", Sig: "([Ljava/lang/String;)V", File: "Main.java",
		Lines: []trace.LineEntry{{BCI: 0, Line: 5}}},
	{Class: "Ljava/util/HashMap;", Name: "newNode", Sig: "()V", File: "HashMap.java"},
	{Class: "Ljava/lang/Object;", Name: "clone", Sig: "()Ljava/lang/Object;", Flags: trace.MethodNative},
}

// once says whether a definition is new and remembers it.
func (m *Model) once(key string) bool {
	if m.have[key] {
		return false
	}
	m.have[key] = true
	return true
}

// typ gives a class of the catalogue, defined on first use.
func (m *Model) typ(i int) trace.Type {
	t := catalogue[i]
	t.ID, t.Word, t.Loader = uint64(i+1), 0x1000+uint64(i)*64, 1
	if m.once(t.Name) {
		if m.once("boot") {
			m.fresh.Loaders = append(m.fresh.Loaders, trace.Loader{ID: 1, Name: "(boot)"})
		}
		m.fresh.Types = append(m.fresh.Types, t)
		if err := m.types.Define(t); err != nil {
			panic(err)
		}
	}
	return t
}

func (m *Model) thread() uint64 {
	id := 1 + m.r.Uint64N(3)
	if m.once(fmt.Sprint("thread", id)) {
		t := trace.Thread{ID: id, Name: fmt.Sprintf("worker-%d", id)}
		if id == 3 {
			t.Flags, t.Name = trace.ThreadVirtual, "(virtual)"
		}
		m.fresh.Threads = append(m.fresh.Threads, t)
	}
	return id
}

// stack gives a frame of a random stack of up to three frames; sometimes none. Frame ids are made of the path.
func (m *Model) stack() uint64 {
	parent, depth := uint64(0), m.r.IntN(4)
	for range depth {
		i := m.r.IntN(len(methods))
		me := methods[i]
		me.ID = uint64(i + 1)
		if m.once("method" + me.Name) {
			m.fresh.Methods = append(m.fresh.Methods, me)
		}
		f := trace.Frame{ID: parent*uint64(len(methods)) + me.ID, Parent: parent, Method: me.ID}
		if me.Flags&trace.MethodNative != 0 {
			f.BCI = trace.BCINative
		} else {
			f.BCI = int64(me.ID)
		}
		if m.once(fmt.Sprint("frame", f.ID)) {
			m.fresh.Frames = append(m.fresh.Frames, f)
		}
		parent = f.ID
	}
	return parent
}

// flushDefs gives the DEFS block of what is new, if anything.
func (m *Model) flushDefs() []trace.Block {
	f := m.fresh
	if len(f.Types)+len(f.Loaders)+len(f.Methods)+len(f.Frames)+len(f.Threads) == 0 {
		return nil
	}
	m.fresh = trace.Defs{}
	m.defs.Types = append(m.defs.Types, f.Types...)
	m.defs.Loaders = append(m.defs.Loaders, f.Loaders...)
	m.defs.Methods = append(m.defs.Methods, f.Methods...)
	m.defs.Frames = append(m.defs.Frames, f.Frames...)
	m.defs.Threads = append(m.defs.Threads, f.Threads...)
	return []trace.Block{m.seal(trace.EncodeDefs(f))}
}
