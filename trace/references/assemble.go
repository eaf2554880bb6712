package references

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/trace"
)

// Definitions are what a recording has defined so far. A listing that is assembled from its parts refers to them.
type Definitions struct {
	Base   uint64           // byte address of word 0
	Types  *trace.TypeTable // sizes
	Type   func(id uint64) (trace.Type, bool)
	Method func(id uint64) (trace.Method, bool)
	Thread func(id uint64) (trace.Thread, bool)
}

// Assembler makes listings of the parts that a probe has sent (trace.RefPart), in the order of the recording. It takes
// memory for what has come alone, whatever a part promises.
type Assembler struct {
	defs   Definitions
	unpack *Unpacker
	l      *Listing // in the making; nil: none
	next   uint64   // number of the next part
	of     uint64   // number of the listing

	about   trace.References
	classes map[uint64]*rawClass // by id
	byType  map[uint64]*rawClass
	extra   map[uint32][]uint32 // what no slot of an object has, by its word
	loaders map[uint32]bool     // words of class loaders

	waiting []rawObject // objects whose slots have not come
	at      int         // the first of them
	slots   uint64      // that have come, without numbers

	// Torn counts listings of which parts are missing, Refused those that the probe did not take; Why is the newest
	// reason of those.
	Torn, Refused int
	Why           string
}

// rawClass is a class with the names of its slots.
type rawClass struct {
	trace.RefClass
	name            string
	fields, statics []Field
	shape           uint32 // of its objects, + 1; 0: none yet
}

// rawObject is an object whose slots have not come. A mirror's slots follow two numbers.
type rawObject struct {
	class   *rawClass
	need    uint64 // slots that have not come
	numbers int    // that have not come
	mirrors uint64 // the first number: id of the class that it stands for
}

// NewAssembler begins without a listing. defs may go on to fill.
func NewAssembler(defs Definitions) *Assembler { return &Assembler{defs: defs} }

// Forget drops the listing in the making: what follows is not of the same session, or something was lost.
func (a *Assembler) Forget() {
	if a.l != nil {
		a.Torn++
	}
	a.l = nil
}

// Add takes in a part. It returns the listing that the part completes, else nil. A listing with missing parts is
// counted and dropped, as is one whose parts contradict each other; then the error is ErrCorrupt.
func (a *Assembler) Add(p *trace.RefPart) (*Listing, error) {
	if p.Flags&trace.RefFirst != 0 {
		a.Forget()
		a.begin(p)
	} else if a.l == nil || p.Listing != a.of || p.N != a.next {
		a.Forget()
		return nil, nil
	}
	a.next = p.N + 1
	if a.about.Refused != "" {
		a.l = nil
		a.Refused++
		a.Why = a.about.Refused
		return nil, nil
	}
	if err := a.take(p); err != nil {
		a.Forget()
		return nil, err
	}
	if p.Flags&trace.RefLast == 0 {
		return nil, nil
	}
	l := a.l
	if a.at != len(a.waiting) || uint64(len(l.Addr)) != a.about.Objects || a.slots != a.about.Slots {
		a.Forget()
		return nil, fmt.Errorf("%w: it has not what it promises", ErrCorrupt)
	}
	a.l = nil
	if err := l.Check(); err != nil {
		a.Torn++
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return l, nil
}

func (a *Assembler) begin(p *trace.RefPart) {
	a.of, a.about = p.Listing, p.About
	a.l = &Listing{Collection: p.About.GC, Base: a.defs.Base, First: []uint64{0}}
	if p.About.Missing != "" {
		a.l.Missing = strings.Split(p.About.Missing, "\n")
	}
	a.classes, a.byType = map[uint64]*rawClass{}, map[uint64]*rawClass{}
	a.extra, a.loaders = map[uint32][]uint32{}, map[uint32]bool{}
	a.waiting, a.at, a.slots = nil, 0, 0
	a.unpack = NewUnpacker(a.defs.Types)
}

func (a *Assembler) take(p *trace.RefPart) error {
	for _, c := range p.Classes {
		r := &rawClass{RefClass: c, name: c.Name}
		if t, ok := a.defs.Type(c.Type); ok && c.Type != 0 {
			r.name = t.Name
		}
		a.classes[c.ID] = r
		if c.Type != 0 {
			a.byType[c.Type] = r
		}
	}
	for _, f := range p.Fields {
		if err := a.field(f); err != nil {
			return err
		}
	}
	for _, x := range p.Extra {
		a.extra[uint32(x.From)] = append(a.extra[uint32(x.From)], uint32(x.To)+1)
		if x.Kind == trace.RefDefines {
			a.loaders[uint32(x.From)] = true
		}
	}
	for _, r := range p.Roots {
		if len(a.l.Roots) == MaxRoots {
			return fmt.Errorf("%w: too many roots", ErrCorrupt)
		}
		a.l.Roots = append(a.l.Roots, a.root(r))
	}
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
		if err := a.fill(s); err != nil {
			return err
		}
	}
	return nil
}

// field names a slot. Slots in between that have no name yet are named later, or stay without.
func (a *Assembler) field(f trace.RefField) error {
	c := a.classes[f.Class]
	to, most := (*[]Field)(nil), uint64(0)
	if c != nil {
		to, most = &c.fields, c.Slots
		if f.Flags&trace.RefStatic != 0 {
			to, most = &c.statics, c.Statics
		}
	}
	if c == nil || f.Slot >= min(most, MaxFields) {
		return fmt.Errorf("%w: a field of no class", ErrCorrupt)
	}
	for uint64(len(*to)) <= f.Slot {
		*to = append(*to, Field{})
	}
	x := Field{Name: f.Name, Declared: f.Sig, Strength: strengthOf[f.Strength]}
	if d := a.classes[f.Declared]; d != nil {
		x.Class = d.name
	}
	(*to)[f.Slot] = x
	return nil
}

var (
	strengthOf = [...]Strength{trace.RefStrong: Strong, trace.RefSoft: Soft, trace.RefFinal: Final, trace.RefWeak: Weak,
		trace.RefPhantom: Phantom}
	kindOf = [...]Kind{trace.RefInstance: Instance, trace.RefObjArray: ObjectArray, trace.RefArray: PrimitiveArray,
		trace.RefMirror: Mirror, trace.RefReference: Reference, trace.RefChunk: StackChunk, trace.RefFiller: Filler}
	rootKindOf = map[uint64]RootKind{trace.RootJNIGlobal: JNIGlobal, trace.RootJNILocal: JNILocal,
		trace.RootStack: StackLocal, trace.RootSystemClass: SystemClass, trace.RootMonitor: Monitor,
		trace.RootThread: ThreadRoot, trace.RootLoader: LoaderRoot}
)

func (a *Assembler) root(r trace.RefRoot) Root {
	out := Root{Target: uint32(r.Target), Kind: rootKindOf[r.Kind]}
	if t, ok := a.defs.Thread(r.Thread); ok {
		out.Thread = t.Name
	}
	m, ok := a.defs.Method(r.Method)
	if !ok {
		return out
	}
	out.Class, out.Method = strings.TrimSuffix(strings.TrimPrefix(m.Class, "L"), ";"), m.Name
	if i, found := slices.BinarySearchFunc(m.Lines, int(r.BCI)-1,
		func(e trace.LineEntry, bci int) int { return e.BCI - bci }); r.BCI > 0 && (found || i > 0) {
		if !found {
			i--
		}
		out.Line = m.Lines[i].Line
	}
	return out
}

// list takes in objects. Their slots follow.
func (a *Assembler) list(blob []byte) error {
	if a.at == len(a.waiting) {
		a.waiting, a.at = a.waiting[:0], 0
	}
	t := trace.NewListTokens(blob, a.defs.Types)
	for t.Next() {
		if t.Kind != trace.ListObject {
			continue
		}
		c := a.byType[uint64(t.Type)]
		if c == nil || t.Addr > MaxWord || t.Words > MaxWord {
			return fmt.Errorf("%w: an object of a class that the listing does not have", ErrCorrupt)
		}
		o := rawObject{class: c, need: c.Slots}
		switch c.Kind {
		case trace.RefMirror, trace.RefChunk:
			o.numbers = 2
		case trace.RefObjArray:
			o.need = t.Length
		case trace.RefArray:
			o.need = 0
		}
		a.l.Addr = append(a.l.Addr, uint32(t.Addr))
		a.l.Words = append(a.l.Words, uint32(t.Words))
		a.waiting = append(a.waiting, o)
	}
	if err := t.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return a.fill(nil) // what has no slots is complete
}

// fill gives the objects that wait the slots of a blob.
func (a *Assembler) fill(blob []byte) error {
	l, at, n := a.l, 0, len(blob)/4
	for a.at < len(a.waiting) {
		o := &a.waiting[a.at]
		for ; o.numbers > 0 && at < n; at++ {
			v := uint64(trace.RefSlot(blob, at))
			if o.numbers == 2 {
				o.mirrors = v
			} else {
				o.need += v
			}
			o.numbers--
		}
		for ; o.numbers == 0 && o.need > 0 && at < n; at++ {
			l.Slots = append(l.Slots, trace.RefSlot(blob, at))
			o.need--
			a.slots++
		}
		if o.numbers > 0 || o.need > 0 {
			break
		}
		if err := a.complete(o); err != nil {
			return err
		}
		a.at++
	}
	if at < n {
		return fmt.Errorf("%w: slots of no object", ErrCorrupt)
	}
	return nil
}

// complete ends an object whose slots are all there.
func (a *Assembler) complete(o *rawObject) error {
	l := a.l
	word := l.Addr[len(l.First)-1]
	extra := a.extra[word]
	l.Slots = append(l.Slots, extra...)
	l.First = append(l.First, uint64(len(l.Slots)))
	shape, err := a.shape(o, len(extra) > 0 && a.loaders[word])
	l.Code = append(l.Code, shape)
	return err
}

// shape gives the shape of an object. Mirrors and loaders have one each.
func (a *Assembler) shape(o *rawObject, loader bool) (uint32, error) {
	c := o.class
	if c.shape != 0 && !loader && c.Kind != trace.RefMirror {
		return c.shape - 1, nil
	}
	if len(a.l.Shapes) == MaxShapes {
		return 0, fmt.Errorf("%w: too many classes", ErrCorrupt)
	}
	s := Shape{Type: uint32(c.Type), Name: c.name, Kind: kindOf[c.Kind], Fields: named(c.fields, c.Slots)}
	switch {
	case loader:
		s.Kind, s.Rest = Loader, "(classes)"
	case c.Kind == trace.RefMirror:
		s.Rest = "(resolved constants)"
		if of := a.classes[o.mirrors]; of != nil {
			s.Of = of.name
			s.Fields = append(slices.Clip(s.Fields), named(of.statics, of.Statics)...)
		}
	case c.Kind == trace.RefObjArray:
		s.Rest = "[]"
	case c.Kind == trace.RefChunk:
		s.Rest = "(frames)"
	}
	a.l.Shapes = append(a.l.Shapes, s)
	n := uint32(len(a.l.Shapes))
	if !loader && c.Kind != trace.RefMirror {
		c.shape = n
	}
	return n - 1, nil
}

// named gives n fields, those without a name too.
func named(fields []Field, n uint64) []Field {
	n = min(n, MaxFields)
	if uint64(len(fields)) == n {
		return fields
	}
	out := make([]Field, n)
	copy(out, fields)
	return out
}
