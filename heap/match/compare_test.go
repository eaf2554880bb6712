package match

import (
	"maps"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/state/statetest"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/trace"
)

// Types of the objects that are compared.
const ints, object, text, pad, padArray = 1, 2, 3, 4, 5

var compareTypes = []trace.Type{
	{ID: ints, Name: "[I", Flags: trace.TypeArray, Size: 16, Log2: 2},
	{ID: object, Name: "java/lang/Object", Size: 16},
	{ID: text, Name: "java/lang/String", Size: 24},
	{ID: pad, Name: "jdk/internal/vm/FillerObject", Size: 16, Flags: trace.TypeFiller},
	{ID: padArray, Name: "jdk/internal/vm/FillerArray", Size: 16, Log2: 2,
		Flags: trace.TypeFiller | trace.TypeArray},
}

// Regions: 0 eden, 1 old, 2 free, 3 old. Contiguous: eden [0, region), old from there.
const region = 1 << 10

// comparison is a state, a listing, and what Compare says of them.
type comparison struct {
	name          string
	major         uint64
	collector     uint64
	known, listed []state.Object
	edenIn, eden  bool // the state may hold eden; eden is listed
	swept         bool
	late          bool   // the pause left something in eden
	why           string // explanation, "" if it is a mismatch
	n             uint64 // so many explained, or
	missing       uint64
	extra, other  uint64
}

// comparisons are for each rule that explains a difference the case that it is made for and the cases next to it.
func comparisons(t *testing.T) []comparison {
	table := trace.NewTypeTable(8)
	if err := table.DefineAll(compareTypes); err != nil {
		t.Fatal(err)
	}
	at := func(addr uint64, typ uint32, length uint64) state.Object {
		w, _ := table.Words(uint64(typ), length)
		return state.Object{Addr: addr, Type: typ, Length: length, Words: w, Birth: 3}
	}
	str := func(addr uint64) state.Object { return at(addr, text, 0) }
	sampled := func(o state.Object) state.Object { o.Sample = 9; return o }
	old := func(o state.Object) state.Object { o.AtLeast = true; return o }
	return []comparison{
		{name: "nothing", known: []state.Object{str(1100), str(1103)}, listed: []state.Object{str(1100), str(1103)}},
		{name: "missing", known: []state.Object{str(1100), str(1103)}, listed: []state.Object{str(1103)}, missing: 1},
		{name: "extra", known: []state.Object{str(1100)}, listed: []state.Object{str(1100), str(1103)}, extra: 1},
		{name: "other class", known: []state.Object{str(1100)}, listed: []state.Object{at(1100, ints, 2)}, major: 25,
			other: 1},
		{name: "other length", known: []state.Object{at(1100, ints, 2)}, listed: []state.Object{at(1100, ints, 3)},
			major: 25,
			other: 1},

		{name: "eden is not listed again", known: []state.Object{str(8), str(11)}, edenIn: true, why: ByEden, n: 2},
		{name: "eden was never part of the state", known: []state.Object{str(8)}, missing: 1},
		{name: "eden is listed", known: []state.Object{str(8)}, edenIn: true, eden: true, missing: 1},
		{name: "a walk lists eden", listed: []state.Object{str(8)}, eden: true, why: ByEden, n: 1},
		{name: "eden in a listing without", listed: []state.Object{str(8)}, extra: 1},
		{name: "old beside eden", known: []state.Object{str(1100)}, edenIn: true, missing: 1},

		{name: "scrubbed", major: 25, known: []state.Object{str(1100), str(1103), str(1106)},
			listed: []state.Object{at(1100, padArray, 8), str(1106)}, why: ByFiller, n: 2},
		{name: "scrubbed on serial, too", major: 25, collector: trace.CollectorSerial, known: []state.Object{str(1100)},
			listed: []state.Object{at(1100, pad, 0)}, why: ByFiller, n: 1},
		{name: "two fillers over three", major: 25, known: []state.Object{str(1100), str(1103), str(1106)},
			listed: []state.Object{at(1100, padArray, 4), at(1104, padArray, 6)}, why: ByFiller, n: 3},
		{name: "a filler over nothing", major: 25, known: []state.Object{str(1100)},
			listed: []state.Object{str(1100), at(1103, pad, 0)}, extra: 1},
		{name: "a filler that went", major: 25, known: []state.Object{at(1100, pad, 0)}, missing: 1},

		{name: "17 fills", major: 17, known: []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1100, ints, 8)},
			why:    ByPlainFiller, n: 2},
		{name: "17 fills what a full collection left", major: 17, known: []state.Object{old(str(1100)), old(str(1103))},
			listed: []state.Object{at(1100, ints, 8)}, why: ByDeadWood, n: 2},
		{name: "an array over a sample", major: 17, known: []state.Object{str(1100), sampled(str(1103))},
			listed: []state.Object{at(1100, ints, 8)}, other: 1, missing: 1},
		{name: "an array that ends within", major: 17, known: []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1100, ints, 6)}, other: 1, missing: 1},
		{name: "an array that goes beyond", major: 17, known: []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1100, ints, 12)}, other: 1, missing: 1},
		{name: "an array that begins within", major: 17, known: []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1101, ints, 6)}, missing: 2, extra: 1},
		{name: "an array on 25", major: 25, known: []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1100, ints, 8)},
			other:  1, missing: 1},
		{name: "an array in eden", major: 17, known: []state.Object{str(8), str(11)},
			listed: []state.Object{at(8, ints, 8)},
			other:  1, missing: 1},
		{name: "an array on serial", major: 17, collector: trace.CollectorSerial,
			known:  []state.Object{str(1100), str(1103)},
			listed: []state.Object{at(1100, ints, 8)}, other: 1, missing: 1},
		{name: "an array that is new", major: 17, known: []state.Object{str(1100)},
			listed: []state.Object{str(1100), at(1103, ints, 8)}, extra: 1},

		{name: "freed", swept: true, known: []state.Object{str(2*region + 8)}, why: ByFreed, n: 1},
		{name: "freed by no one", known: []state.Object{str(2*region + 8)}, missing: 1},
		{name: "beside what was freed", swept: true, known: []state.Object{str(3*region + 8)}, missing: 1},

		{name: "granted", collector: trace.CollectorSerial, known: []state.Object{str(2000), str(2003)},
			listed: []state.Object{str(2000)}, why: ByGrant, n: 1},
		{name: "granted on parallel", collector: trace.CollectorParallel, known: []state.Object{str(2000), str(2003)},
			listed: []state.Object{str(2000)}, missing: 1},
		{name: "allocated late", collector: trace.CollectorSerial, late: true, known: []state.Object{str(510)},
			listed: []state.Object{str(510), str(513), at(516, ints, 2)}, why: ByLate, n: 2},
		{name: "allocated in an empty space", collector: trace.CollectorSerial, late: true,
			listed: []state.Object{str(513)}, why: ByLate, n: 1},
		{name: "below what is known there", collector: trace.CollectorSerial, late: true,
			known: []state.Object{str(520)}, listed: []state.Object{str(510), str(520)}, extra: 1},
		{name: "above it, eden empty", collector: trace.CollectorSerial, known: []state.Object{str(510)},
			listed: []state.Object{str(510), str(513)}, extra: 1},
		{name: "above it on parallel", collector: trace.CollectorParallel, late: true, known: []state.Object{str(510)},
			listed: []state.Object{str(510), str(513)}, extra: 1},
		{name: "old beside it", collector: trace.CollectorSerial, late: true, known: []state.Object{str(1100)},
			listed: []state.Object{str(1100), str(1103)}, extra: 1},
		{name: "below the grant", collector: trace.CollectorSerial, known: []state.Object{str(1997), str(2000)},
			listed: []state.Object{str(2000)}, missing: 1},
	}
}

// TestDifferences tries each rule that explains a difference on the case that it is made for, and on similar cases,
// which must stay mismatches.
func TestDifferences(t *testing.T) {
	for _, c := range comparisons(t) {
		t.Run(c.name, func(t *testing.T) {
			m, old := &Matcher{Symbols: symbols.New(), Eden: c.edenIn, Swept: c.swept}, state.New()
			for _, ty := range compareTypes {
				m.Symbols.Types[ty.ID] = ty
			}
			jvm := &m.Symbols.JVM
			s := &trace.Sync{GC: 7}
			*jvm = trace.JVM{Major: max(c.major, 17), Collector: c.collector}
			if c.collector == 0 {
				jvm.Collector, jvm.RegionWords = trace.CollectorG1, region
				s.Regions = []trace.RegionRun{{Kind: trace.SpaceEden, Run: 1}, {Kind: trace.SpaceOld, Run: 1},
					{Kind: trace.SpaceFree, Run: 1}, {Kind: trace.SpaceOld, Run: 1}}
			} else {
				spaces := []trace.Space{{Kind: trace.SpaceEden, End: region / 2},
					{Kind: trace.SpaceSurvivor, Bottom: region / 2, Top: 600, End: region},
					{Kind: trace.SpaceOld, Bottom: region, Top: 2003, End: 4 * region}}
				s.Spaces = slices.Clone(spaces)
				spaces[2].Top = 2010
				if c.late {
					spaces[0].Top = 100
				}
				m.Spaces = spaces
			}
			if c.eden {
				s.Flags = trace.SyncEdenListed
			}
			for _, o := range c.known {
				statetest.Put(old, o)
			}
			next := state.New()
			next.Codes = old.Codes
			for _, o := range c.listed {
				statetest.Put(next, o)
			}
			got := m.Compare(s, old, next)
			want := map[string]uint64{}
			if c.why != "" {
				want[c.why] = c.n
			}
			if !maps.Equal(got.Explained, want) || got.Missing != c.missing || got.Extra != c.extra ||
				got.Different != c.other {
				t.Errorf("%+v, want %v, %d missing, %d extra, %d different", got, want, c.missing, c.extra, c.other)
			}
			byAddr := func(a, b Difference) int { return int(a.Addr) - int(b.Addr) }
			if uint64(len(got.First)) != got.Mismatches() || !slices.IsSortedFunc(got.First, byAddr) {
				t.Errorf("listed are %+v of %d", got.First, got.Mismatches())
			}
		})
	}
}
