package ramp

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/trace"
)

// TestRanges compares a set of ranges with one flag a word.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const words = 60
		var g Ranges
		var want [words]bool
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			r := trace.Range{Start: rapid.Uint64Range(0, words-1).Draw(rt, "start")}
			r.Words = rapid.Uint64Range(0, words-r.Start).Draw(rt, "words")
			add := rapid.Bool().Draw(rt, "add")
			meets := false
			for i := r.Start; i < r.Start+r.Words; i++ {
				meets = meets || want[i]
			}
			if g.Meets(r) != meets {
				rt.Fatalf("%v meets %v: %v", g, r, !meets)
			}
			split(rt, g, r, &want)
			if add {
				g.Add(r)
			} else {
				g.Remove(r)
			}
			for i := r.Start; i < r.Start+r.Words; i++ {
				want[i] = add
			}
			n := uint64(0)
			for i, w := range want {
				if w {
					n++
				}
				if g.Has(uint64(i)) != w {
					rt.Fatalf("%v has %d: %v", g, i, !w)
				}
			}
			if g.Words() != n {
				rt.Fatalf("%v has %d words, not %d", g, n, g.Words())
			}
			for i := 1; i < len(g); i++ {
				if g[i-1].Start+g[i-1].Words >= g[i].Start {
					rt.Fatalf("%v: stretches touch", g)
				}
			}
		}
	})
}

// split checks the parts of r.
func split(rt *rapid.T, g Ranges, r trace.Range, want *[60]bool) {
	at := r.Start
	g.Split(r, func(part trace.Range, has bool) {
		if part.Start != at || part.Words == 0 {
			rt.Fatalf("%v split by %v: part %v, want one from %d on", r, g, part, at)
		}
		for at < part.Start+part.Words {
			if want[at] != has {
				rt.Fatalf("%v split by %v: %d is said to be in it: %v", r, g, at, has)
			}
			at++
		}
	})
	if at != r.Start+r.Words {
		rt.Fatalf("%v split by %v ends at %d", r, g, at)
	}
}

// TestReaderChecks: a slice that says of the rest what is not so is found out. What came before a ramp is not judged by
// it.
func TestReaderChecks(t *testing.T) {
	pending := []trace.Range{{Start: 10, Words: 50}}
	slice := func(flags, left uint64, listed ...trace.Range) *trace.Slice {
		return &trace.Slice{Ramp: 3, Flags: flags, Pending: pending, Listed: listed, Left: left}
	}
	var r Reader
	if fresh, agrees := r.Slice(slice(0, 40)); fresh || !agrees || r.Follows() {
		t.Error("a slice in the middle gives a state")
	}
	if fresh, agrees := r.Slice(slice(trace.SliceFirst, 30, trace.Range{Start: 10, Words: 20})); !fresh || !agrees {
		t.Error("a first slice gives no state")
	}
	if r.Complete() || !r.Follows() {
		t.Error("complete before the last slice")
	}
	r.Evacuated(trace.Range{Start: 30, Words: 5})
	if _, agrees := r.Slice(slice(0, 30)); agrees {
		t.Error("30 words are said to be left of 25")
	}
	if _, agrees := r.Slice(slice(trace.SliceLast, 0)); agrees {
		t.Error("the last slice leaves 25 words unlisted")
	}
	r.Forget()
	r.Know()
	if fresh, agrees := r.Slice(slice(trace.SliceFirst, 30)); fresh || !agrees || !r.Complete() {
		t.Error("who knew all before the ramp knows less by it")
	}
	r.Lost(&trace.Lost{Unknown: []trace.Range{{Start: 70, Words: 2}}})
	if r.Complete() || !r.Follows() {
		t.Error("complete, although epochs were lost")
	}
	r.Evacuated(trace.Range{Start: 64, Words: 16})
	if !r.Complete() {
		t.Error("not complete, although what was lost has been evacuated")
	}
}
