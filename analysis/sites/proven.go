package sites

import (
	"strings"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// proofs follows for how many objects of each type the innermost frame of the site is proven: the type has one
// candidate, `new` alone makes its objects, no sample of it ends elsewhere, and a round of reading that began after the
// object's birth still found one candidate.
//
// Which objects are older than a round is known by type only. So the figure is a lower bound: what lives, without what
// was born since, and without what may be older than the recording.
type proofs struct {
	symbols *heap.Symbols
	begun   bool
	// older is what may live of what no round covers for ever; births is what was born in each collection since.
	older  map[uint32]heap.Count
	births map[uint64]map[uint32]heap.Count
	ends   map[uint32]map[place]uint64 // samples by type and innermost frame
}

// place is a bytecode. Methods may have more than one id, so it has their names.
type place struct {
	class, name, sig string
	bci              int64
}

func placeOf(s *heap.Symbols, method uint64, bci int64) place {
	m := s.Methods[method]
	return place{m.Class, m.Name, m.Sig, bci}
}

// only gives the one candidate of a type of which `new` alone makes objects.
func only(s *heap.Symbols, typ uint32) (trace.Candidate, bool) {
	all := s.Candidates[uint64(typ)]
	if len(all) != 1 || all[0].Method == 0 || all[0].Flags != 0 || !madeByNew(s, typ) {
		return trace.Candidate{}, false
	}
	m, ok := s.Methods[all[0].Method]
	// A constructor that reflection has called often has such a bytecode; before, the JVM made the objects itself.
	return all[0], ok && !strings.HasPrefix(m.Class, "Ljdk/internal/reflect/")
}

// madeByNew says whether objects of a type are made by bytecode alone, as far as its name tells: the JVM makes arrays
// and objects of many classes of java.lang and jdk.internal itself, and those of hidden classes (lambdas) without a
// constructor's bytecode.
func madeByNew(s *heap.Symbols, typ uint32) bool {
	t := s.Types[uint64(typ)]
	if t.Flags&(trace.TypeArray|trace.TypeObjArray|trace.TypeHidden|trace.TypeVariable|trace.TypeFiller) != 0 {
		return false
	}
	for _, p := range [...]string{"java/lang/", "jdk/internal/", "sun/reflect/", "sun/management/"} {
		if strings.HasPrefix(t.Name, p) {
			return false
		}
	}
	return true
}

// epoch takes in what a collection saw born, before collection.
func (p *proofs) epoch(e *trace.Epoch, applied bool) {
	if !applied {
		p.begun = false
		return
	}
	if len(e.Uncounted) > 0 { // while a listing in slices is under way
		p.begun = false
	}
	m := map[uint32]heap.Count{}
	for _, c := range e.Census {
		y, o := c.Cells[trace.CensusBornYoung], c.Cells[trace.CensusBornOld]
		if n := y.Objects + o.Objects; n > 0 {
			was := m[uint32(c.Type)]
			m[uint32(c.Type)] = heap.Count{Objects: was.Objects + n, Bytes: was.Bytes + y.Bytes + o.Bytes}
		}
	}
	p.births[e.Pause.GC] = m
}

// samples takes in samples of a collection.
func (p *proofs) samples(all []*heap.Sample) {
	for _, x := range all {
		f, ok := p.symbols.Frames[x.Frame]
		if !ok {
			continue
		}
		t := p.ends[uint32(x.Type)]
		if t == nil {
			t = map[place]uint64{}
			p.ends[uint32(x.Type)] = t
		}
		t[placeOf(p.symbols, f.Method, f.BCI)]++
	}
}

// begin takes in the first state that is known, after collection gc. If the recording is as old as the JVM, all of it
// was born by then, but for objects that the JVM takes from its archive of classes.
func (p *proofs) begin(gc uint64, perType []heap.Count) {
	p.begun = true
	clear(p.older)
	clear(p.births)
	born := map[uint32]heap.Count{}
	for id, n := range perType {
		if n.Objects == 0 {
			continue
		}
		if p.symbols.JVM.Flags&trace.JVMAtStart != 0 && !archived(p.symbols.Types[uint64(id)].Name) {
			born[uint32(id)] = n
		} else {
			p.older[uint32(id)] = n
		}
	}
	p.births[gc] = born
}

// archived says whether the JVM's archive may hold objects of a class of this name.
func archived(name string) bool {
	return strings.HasPrefix(name, "java/") || strings.HasPrefix(name, "jdk/") || strings.HasPrefix(name, "sun/")
}

// state takes in what lives after the newest collection, of a known state.
func (p *proofs) state(gc uint64, perType []heap.Count) {
	if !p.begun {
		p.begin(gc, perType)
	}
	newest := uint64(0)
	for _, s := range p.symbols.Scans {
		newest = max(newest, s.GC)
	}
	for gc, m := range p.births {
		if trace.ScansCover(p.symbols.Scans, gc) {
			delete(p.births, gc)
		} else if gc <= newest {
			for id, n := range m {
				was := p.older[id]
				p.older[id] = heap.Count{Objects: was.Objects + n.Objects, Bytes: was.Bytes + n.Bytes}
			}
			delete(p.births, gc)
		}
	}
	for id, n := range p.older {
		var live heap.Count
		if int(id) < len(perType) {
			live = perType[id]
		}
		if n = (heap.Count{Objects: min(n.Objects, live.Objects), Bytes: min(n.Bytes, live.Bytes)}); n.Objects == 0 {
			delete(p.older, id)
		} else {
			p.older[id] = n
		}
	}
}

// of is coverage.Recording.Proven.
func (p *proofs) of(typ uint32, l, e, b coverage.Count) coverage.Count {
	c, ok := only(p.symbols, typ)
	if !ok {
		return coverage.Count{}
	}
	for at := range p.ends[typ] {
		if at != placeOf(p.symbols, c.Method, int64(c.BCI)) {
			return coverage.Count{}
		}
	}
	older := p.older[typ]
	not := coverage.Count{Objects: e.Objects + max(b.Objects, older.Objects),
		Bytes: e.Bytes + max(b.Bytes, older.Bytes)}
	for _, m := range p.births {
		not.Objects += m[typ].Objects
		not.Bytes += m[typ].Bytes
	}
	return coverage.Count{Objects: l.Objects - min(l.Objects, not.Objects), Bytes: l.Bytes - min(l.Bytes, not.Bytes)}
}

// check counts the samples of types with one candidate, and those of them that end elsewhere.
func (p *proofs) check() (checked, wrong uint64) {
	for typ, ends := range p.ends {
		c, ok := only(p.symbols, typ)
		if !ok {
			continue
		}
		for at, n := range ends {
			checked += n
			if at != placeOf(p.symbols, c.Method, int64(c.BCI)) {
				wrong += n
			}
		}
	}
	return checked, wrong
}
