package coverage

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// defined are definitions that a test makes up.
type defined struct {
	types      map[uint64]trace.Type
	candidates map[uint64][]trace.Candidate
	rounds     []trace.Scanned
}

func (d *defined) Type(id uint64) (t trace.Type, ok bool) { t, ok = d.types[id]; return t, ok }
func (d *defined) Method(id uint64) (trace.Method, bool) {
	return trace.Method{ID: id, Class: "LMaker;", Name: string(rune('a' + id))}, id > 0
}
func (d *defined) Frame(id uint64) (trace.Frame, bool) {
	return trace.Frame{ID: id, Method: id, BCI: 3}, id > 0
}
func (d *defined) CandidatesOf(typ uint64) []trace.Candidate {
	return d.candidates[typ]
}
func (d *defined) Rounds() []trace.Scanned { return d.rounds }

const (
	plum  = 1 // made at one place
	apple = 2 // made at two
	pear  = 3 // made at five
	fig   = 4 // Throwable
)

func orchard() *defined {
	d := &defined{types: map[uint64]trace.Type{}, candidates: map[uint64][]trace.Candidate{}}
	for typ, n := range map[uint64]uint64{plum: 1, apple: 2, pear: 5, fig: 1} {
		d.types[typ] = trace.Type{ID: typ, Name: "Fruit"}
		for i := range n {
			c := trace.Candidate{Type: typ, Method: 10*typ + i, BCI: 3}
			if typ == fig {
				c.Flags = trace.MadeThrowable
			}
			d.candidates[typ] = append(d.candidates[typ], c)
		}
	}
	return d
}

// collect has a proof see a collection in which 10 objects of each type are born.
func collect(p *Proofs, live *Totals, gc uint64) {
	e := &trace.Epoch{Pause: trace.Pause{GC: gc}}
	for _, typ := range []uint32{plum, apple, pear, fig} {
		c := trace.CensusRow{Type: uint64(typ)}
		c.Cells[trace.CensusBornYoung] = trace.CensusCell{Objects: 10, Bytes: 240}
		e.Census = append(e.Census, c)
		live.Add(typ, Count{10, 240})
	}
	p.Epoch(e, true)
	p.State(gc, live)
}

// TestProofs follows a recording that began with its JVM: what a round covers is proven or has few candidates, also
// where so many collections pass that their births are merged; what is older than a hole is not; and one sample that
// ends elsewhere takes a proof away.
func TestProofs(t *testing.T) {
	d := orchard()
	p := NewProofs(d)
	p.JVM(true)
	p.Checks = true
	var live Totals
	expect := func(what string, plums, apples uint64) {
		t.Helper()
		for typ, want := range map[uint32]uint64{plum: plums, apple: apples, pear: 0, fig: 0} {
			n, from := p.Of(typ, live.at(typ), Count{}, Count{})
			if n != (Count{want, 24 * want}) || want > 0 && len(from) != len(d.candidates[uint64(typ)]) {
				t.Errorf("%s: of type %d %+v from %d places, not %d", what, typ, n, len(from), want)
			}
		}
	}
	collect(p, &live, 1)
	collect(p, &live, 2)
	expect("before a round", 0, 0)
	d.rounds = trace.AddScan(d.rounds, trace.Scanned{GC: 2})
	collect(p, &live, 3)
	expect("born up to 2", 20, 20)
	for gc := uint64(4); gc <= 1000; gc++ {
		collect(p, &live, gc)
	}
	expect("a thousand collections", 20, 20)
	d.rounds = trace.AddScan(d.rounds, trace.Scanned{GC: 1000})
	p.State(1000, &live)
	expect("all of them", 10000, 10000)
	collect(p, &live, 1001)
	collect(p, &live, 1002)
	d.rounds = trace.AddScan(d.rounds, trace.Scanned{GC: 1002, Blind: 1001})
	p.State(1002, &live)
	expect("but what is older than the hole", 10010, 10010)
	p.Sample(plum, 10*plum, 1002)
	p.Sample(apple, 10*apple+1, 1002)
	p.Sample(apple, 77, 1003) // not covered yet
	expect("a sample elsewhere", 10010, 0)
	collect(p, &live, 1003)
	d.rounds = trace.AddScan(d.rounds, trace.Scanned{GC: 1003, Blind: 1001})
	p.State(1003, &live)
	if one, few := p.Check(); one != (Checked{1, 0}) || few != (Checked{2, 1}) {
		t.Errorf("checked %+v, %+v", one, few)
	}
	collect(p, &live, 1004)
	p.gc = 1002 // as if epochs were lost
	p.State(1004, &live)
	expect("collections are missing", 0, 0)
	d.candidates[apple] = nil
	d.rounds = trace.AddScan(nil, trace.Scanned{GC: 1004})
	p.State(1004, &live)
	expect("a round after them", 10040-10, 0) // those of collection 1001 are in the hole of a round
}

// TestFigureOfCandidates splits a heap by what is known: what has few candidates counts as such if no sample says more.
func TestFigureOfCandidates(t *testing.T) {
	d := orchard()
	p := NewProofs(d)
	p.JVM(true)
	r := Recording{AtStart: true, Proofs: p}
	var live, exact Totals
	var sites Sites
	collect(p, &live, 1)
	d.rounds = trace.AddScan(d.rounds, trace.Scanned{GC: 1})
	p.State(1, &live)
	q := r.After(&live, &exact, &sites)
	if q.Proven.Objects != 10 || q.Candidates.Objects != 10 || q.Unknown.Objects != 20 || q.Live().Objects != 40 {
		t.Errorf("%+v", q)
	}
	exact.Add(apple, Count{1, 24})
	sites.Add(apple, 10*apple)
	q = r.After(&live, &exact, &sites)
	if q.Exact.Objects != 1 || q.Inferred.Objects == 0 || q.Candidates.Objects == 0 || q.Unknown.Objects != 20 ||
		q.Live().Objects != 40 {
		t.Errorf("with a sample: %+v", q)
	}
	if n, from := r.FromFew(plum); n.Objects != 10 || len(from) != 1 {
		t.Errorf("%+v %+v", n, from)
	}
}
