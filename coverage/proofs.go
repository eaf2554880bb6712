package coverage

import (
	"slices"
	"strings"

	"github.com/heapcam/heapcam/trace"
)

// Names is what proofs need of the definitions of a recording.
type Names interface {
	Type(id uint64) (trace.Type, bool)
	Method(id uint64) (trace.Method, bool)
	Frame(id uint64) (trace.Frame, bool)
	// CandidatesOf are the bytecodes that make objects of a type; Rounds says which births they account for.
	CandidatesOf(typ uint64) []trace.Candidate
	Rounds() []trace.Scanned
}

// Proofs follows how many objects of each type were made by one of few bytecodes: the type has 1 to MostCandidates
// candidates, bytecode alone makes its objects, no sample of it ends elsewhere, and a round of reading that began
// after the object's birth still found no other. With one candidate the innermost frame is proven.
//
// Which objects are older than a round is known by type only. So the figure is a lower bound: what lives, without what
// was born since, and without what may be older than the recording.
type Proofs struct {
	names   Names
	atStart bool
	begun   bool
	gc      uint64 // of the newest epoch
	since   uint64 // collection from which on all was born that is not older; 0: no state was known
	// older is what may live of what no round covers for ever; births is what was born since, in order.
	older  map[uint32]Count
	births []births
	ends   map[uint32]*ends
	places int
	newest uint64 // round that was seen

	// Checks has Check count what rounds cover. It is set before all else.
	Checks  bool
	waiting map[born]uint64 // samples that no round covers yet
}

// born are samples of an innermost frame that were taken before a collection.
type born struct {
	at *end
	gc uint64
}

// MostCandidates is how many candidates are a list that says something.
const MostCandidates = trace.MaxCandidates - 1

// births is what was born in collections from to to.
type births struct {
	from, to uint64
	n        map[uint32]Count
}

// ends are the innermost frames of the samples of a type. more: there are frames beyond maxPlaces.
type ends struct {
	at   map[Place]*end
	more bool
}

// end counts the samples of an innermost frame that were born before a round that covers them.
type end struct{ covered uint64 }

// Bounds of what is remembered: of times, and of innermost frames of samples.
const (
	maxBirths = 64
	maxPlaces = 1 << 16
)

// Place is a bytecode. Methods may have more than one id, so it has their names.
type Place struct {
	Class, Name, Sig string
	BCI              int64
}

// NewProofs begins with nothing known.
func NewProofs(names Names) *Proofs {
	return &Proofs{names: names, older: map[uint32]Count{}, ends: map[uint32]*ends{},
		waiting: map[born]uint64{}}
}

// JVM says whether the recording is as old as the JVM.
func (p *Proofs) JVM(atStart bool) { p.atStart = atStart }

func (p *Proofs) place(method uint64, bci int64) (Place, bool) {
	m, ok := p.names.Method(method)
	// JVMTI writes a hidden class with a dot, its metadata with a plus.
	return Place{strings.Replace(m.Class, "+0x", ".0x", 1), m.Name, m.Sig, bci}, ok
}

// Candidates gives the bytecodes of which one has made each object of a type, as far as it is known: none, or 1 to
// MostCandidates.
func (p *Proofs) candidates(typ uint32) []trace.Candidate {
	all := p.names.CandidatesOf(uint64(typ))
	if len(all) == 0 || len(all) > MostCandidates || !p.madeByBytecode(typ) {
		return nil
	}
	for _, c := range all {
		m, ok := p.names.Method(c.Method)
		// A constructor that reflection has called often has such a bytecode; before, the JVM made the objects itself.
		if c.Method == 0 || c.Flags != 0 || !ok || strings.HasPrefix(m.Class, "Ljdk/internal/reflect/") {
			return nil
		}
	}
	return all
}

// madeByBytecode says whether objects of a type are made by bytecode alone, as far as its name tells: the JVM makes
// arrays and objects of many classes of java.lang and jdk.internal itself, and those of hidden classes (lambdas)
// without a constructor's bytecode.
func (p *Proofs) madeByBytecode(typ uint32) bool {
	t, ok := p.names.Type(uint64(typ))
	if !ok || t.Flags&(trace.TypeArray|trace.TypeObjArray|trace.TypeHidden|trace.TypeVariable|trace.TypeFiller) != 0 {
		return false
	}
	for _, x := range [...]string{"java/lang/", "jdk/internal/", "sun/reflect/", "sun/management/",
		"java/security/AccessControlContext", "java/nio/Direct"} {
		if strings.HasPrefix(t.Name, x) {
			return false
		}
	}
	return true
}

// Epoch takes in what a collection saw born, before State. known: the state is, or a part of it.
func (p *Proofs) Epoch(e *trace.Epoch, known bool) {
	from := p.gc + 1 // what was lost in between counts with this one
	p.gc = e.Pause.GC
	if !known || len(e.Uncounted) > 0 { // a listing in slices is under way
		p.begun = false
	}
	if !p.begun {
		return // begin counts all that lives
	}
	m := map[uint32]Count{}
	for _, c := range e.Census {
		y, o := c.Cells[trace.CensusBornYoung], c.Cells[trace.CensusBornOld]
		if n := y.Objects + o.Objects; n > 0 {
			was := m[uint32(c.Type)]
			was.add(Count{n, y.Bytes + o.Bytes})
			m[uint32(c.Type)] = was
		}
	}
	if len(m) > 0 {
		p.births = append(p.births, births{from, p.gc, m})
	}
	if len(p.births) > maxBirths {
		p.merge()
	}
}

// merge makes one entry of the two neighbours that span the fewest collections, so that all stay about as long.
func (p *Proofs) merge() {
	at := 0
	for i := range p.births[1:] {
		if p.births[i+1].to-p.births[i].from < p.births[at+1].to-p.births[at].from {
			at = i
		}
	}
	x, y := &p.births[at], p.births[at+1]
	for typ, n := range y.n {
		was := x.n[typ]
		was.add(n)
		x.n[typ] = was
	}
	x.to = y.to
	p.births = slices.Delete(p.births, at+1, at+2)
}

// Sample takes in a sample of a type, whose first collection is birth.
func (p *Proofs) Sample(typ uint32, frame, birth uint64) {
	f, ok := p.names.Frame(frame)
	if !ok || typ == 0 {
		return
	}
	at, ok := p.place(f.Method, f.BCI)
	if !ok {
		return
	}
	x := p.ends[typ]
	if x == nil {
		if len(p.ends) >= maxPlaces {
			return
		}
		x = &ends{at: map[Place]*end{}}
		p.ends[typ] = x
	}
	n := x.at[at]
	if n == nil {
		if p.places >= maxPlaces {
			x.more = true
			return
		}
		p.places++
		n = &end{}
		x.at[at] = n
	}
	if p.Checks {
		p.waiting[born{n, birth}]++
	}
}

// check counts the samples that a round covers by now.
func (p *Proofs) check(rounds []trace.Scanned, newest uint64) {
	for b, n := range p.waiting {
		if trace.ScansCover(rounds, b.gc, b.gc) {
			b.at.covered += n
		} else if b.gc > newest {
			continue
		}
		delete(p.waiting, b)
	}
}

// begin takes in a state that is known, after one that was not. At the first one, older is all that lives, or, if the
// recording is as old as the JVM, what the JVM may have taken from its archive of classes. Of what is older there is
// never more later, so all else was born since.
func (p *Proofs) begin(gc uint64, live *Totals) {
	first := p.since == 0
	if first {
		if p.since = 1; !p.atStart {
			p.since = gc + 1
		}
	}
	p.begun, p.gc, p.births = true, gc, p.births[:0]
	born := map[uint32]Count{}
	live.each(func(typ uint32, n Count) {
		if t, _ := p.names.Type(uint64(typ)); first && (!p.atStart || archived(t.Name)) {
			p.older[typ] = n
		} else if n = n.less(p.older[typ]); n.Objects > 0 {
			born[typ] = n
		}
	})
	if len(born) > 0 {
		p.births = append(p.births, births{p.since, gc, born})
	}
}

// archived says whether the JVM's archive may hold objects of a class of this name.
func archived(name string) bool {
	return strings.HasPrefix(name, "java/") || strings.HasPrefix(name, "jdk/") || strings.HasPrefix(name, "sun/")
}

// State takes in what lives after the newest collection, of a known state.
func (p *Proofs) State(gc uint64, live *Totals) {
	if !p.begun || gc != p.gc { // else collections are missing
		p.begin(gc, live)
	}
	rounds := p.names.Rounds()
	newest := uint64(0)
	for _, s := range rounds {
		newest = max(newest, s.GC)
	}
	if newest > p.newest {
		p.newest = newest
		p.check(rounds, newest)
	}
	p.births = slices.DeleteFunc(p.births, func(b births) bool {
		if trace.ScansCover(rounds, b.from, b.to) {
			return true
		}
		if b.to > newest {
			return false
		}
		for typ, n := range b.n {
			was := p.older[typ]
			was.add(n)
			p.older[typ] = was
		}
		return true
	})
	for typ, n := range p.older {
		l := live.at(typ)
		if n = (Count{min(n.Objects, l.Objects), min(n.Bytes, l.Bytes)}); n.Objects == 0 {
			delete(p.older, typ)
		} else {
			p.older[typ] = n
		}
	}
}

// Of gives how many objects of a type are from one of the candidates, and these: of l that live, e are exact and b may
// be older than the recording.
func (p *Proofs) Of(typ uint32, l, e, b Count) (n Count, from []trace.Candidate) {
	if from = p.candidates(typ); from == nil || !p.upheld(typ, from) {
		return Count{}, nil
	}
	older := p.older[typ]
	not := Count{max(b.Objects, older.Objects), max(b.Bytes, older.Bytes)}
	not.add(e)
	for _, x := range p.births {
		not.add(x.n[typ])
	}
	return l.less(not), from
}

// held gives how many entries are remembered.
func (p *Proofs) held() int {
	n := p.places + len(p.older)
	for _, x := range p.births {
		n += len(x.n)
	}
	return n
}

// upheld says whether no sample of a type ends elsewhere than at one of from.
func (p *Proofs) upheld(typ uint32, from []trace.Candidate) bool {
	x := p.ends[typ]
	if x == nil {
		return true
	}
	for at := range x.at {
		if !p.among(at, from) {
			return false
		}
	}
	return !x.more
}

func (p *Proofs) among(at Place, from []trace.Candidate) bool {
	return slices.ContainsFunc(from, func(c trace.Candidate) bool {
		x, ok := p.place(c.Method, int64(c.BCI))
		return ok && x == at
	})
}

// Checked counts samples that a round covers and whose type has candidates, and those of them that end elsewhere.
type Checked struct{ Samples, Wrong uint64 }

// Check compares samples with candidates: of types with one, and of types with more.
func (p *Proofs) Check() (one, few Checked) {
	for typ, x := range p.ends {
		from := p.candidates(typ)
		if from == nil {
			continue
		}
		c := &one
		if len(from) > 1 {
			c = &few
		}
		for at, n := range x.at {
			c.Samples += n.covered
			if !p.among(at, from) {
				c.Wrong += n.covered
			}
		}
	}
	return one, few
}
