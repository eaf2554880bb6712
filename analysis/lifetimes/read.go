package lifetimes

import (
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace"
)

// Errors of Read: what a recording lacks. Their texts say what would do.
var (
	ErrNoObjects = errors.New("the recording has no objects (depth samples); record with --depth full, or with " +
		"--depth survivors")
	ErrNoCollections = errors.New("the recording has no collection with object data after which the heap state is " +
		"known: record for longer, or with a smaller young generation; heapcam report says if sync points are missing")
)

// ErrMemory says that the lifetimes of so many objects do not fit into memory.
var ErrMemory = errors.New("the recording has more objects than the memory that is left can hold; cut a part of it " +
	"with `heapcam pull NAME --last 5m -o FILE`, and read that")

// ErrNoAddresses is the ErrNoObjects of collectors with which no depth has objects.
var ErrNoAddresses error = noAddresses{}

type noAddresses struct{}

func (noAddresses) Error() string {
	return "the recording has no objects: with ZGC, Shenandoah and Epsilon heapcam records only samples, at any " +
		"depth. Run the program with G1, Parallel or Serial to learn how long its objects live"
}

func (noAddresses) Unwrap() error { return ErrNoObjects }

// ErrMany says that a recording has more objects than ReadMost was to read.
var ErrMany = errors.New("the recording has too many objects: to predict from it takes more memory than the viewer " +
	"may have; use `heapcam whatif`, or cut a part of it with `heapcam pull NAME --last 5m -o FILE`")

// Read replays all of r, which has read nothing yet, and gives the lifetimes. Its errors are those of the replay,
// ErrNoObjects, ErrNoCollections and ErrMemory.
func Read(r *heap.Replay) (*Tape, error) { return ReadMost(r, math.MaxInt) }

// ReadMost is Read of a recording with at most so many objects, of which each takes up to 200 bytes. Else its error is
// ErrMany.
func ReadMost(r *heap.Replay, most int) (*Tape, error) {
	b := newReader(r)
	defer func() { r.OnEpoch = nil }()
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		b.collection(c)
		if len(b.t.Type) > most {
			return nil, ErrMany
		}
		if !b.fits() {
			return nil, ErrMemory
		}
	}
	b.tail()
	b.leaveOut()
	b.t.JVM = r.JVM
	b.t.Names = r.Symbols.TypeName
	objects := slices.ContainsFunc(b.t.Epochs, func(e Epoch) bool { return e.Depth >= trace.DepthSurvivors })
	switch {
	case trace.Concurrent(r.JVM.Collector):
		return nil, ErrNoAddresses
	case len(b.t.Epochs) > 0 && !objects:
		return nil, ErrNoObjects
	case !b.applied:
		return nil, ErrNoCollections
	}
	b.t.dropFillers(r.Symbols.Filler)
	b.t.count()
	return b.t, nil
}

// reader makes a Tape.
type reader struct {
	r    *heap.Replay
	t    *Tape
	at   *places
	live uint64 // objects that are in places

	known    bool   // places hold the state after the newest collection
	applied  bool   // they held that of one collection at least
	now, end uint64 // virtual time, and ns, of the newest collection
	last     Epoch  // the newest one, for what was used after it
	samples  map[uint64]int
	waiting  []heap.Sample // of the next epoch
	open     []openSample  // of which it is not known yet whether they live
	left     float64       // words of samples that are left out
	moved    []arrival
	old      trace.Range
	looked   int // objects at the newest look at memory
}

// arrival is an object that has left its place and waits for the new one.
type arrival struct {
	addr   uint64
	object uint32
}

const word = 8

func newReader(r *heap.Replay) *reader {
	b := &reader{r: r, t: &Tape{By: map[uint32]*Group{}}, at: newPlaces(), samples: map[uint64]int{}}
	r.OnEpoch = b.epoch
	return b
}

// describe takes in what an epoch says of times and spaces.
func (b *reader) describe(e *trace.Epoch) *Epoch {
	x := Epoch{GC: e.Pause.GC, JVMGC: e.Pause.JVMGC, Kind: e.Pause.Kind, Cause: e.Pause.Cause, Depth: e.Pause.Depth,
		Begin: b.now, Start: e.Pause.Start, Exact: e.Pause.Flags&trace.PauseExact != 0}
	x.Pause = e.Pause.Dur - min(e.Pause.Dur, e.Pause.Probe)
	x.Mutator = e.Pause.Start - min(e.Pause.Start, b.end)
	b.end = max(b.end, e.Pause.Start+e.Pause.Dur)
	b.old = trace.Range{}
	for _, s := range e.Spaces {
		size, before, after := s.End-min(s.End, s.Bottom), s.UsedBefore/word, s.UsedAfter/word
		switch s.Kind {
		case trace.SpaceEden:
			x.Eden, x.EdenBefore, x.EdenAfter = x.Eden+size, x.EdenBefore+before, x.EdenAfter+after
		case trace.SpaceSurvivor:
			x.Survivor = max(x.Survivor, size)
			x.SurvivorBefore, x.SurvivorAfter = x.SurvivorBefore+before, x.SurvivorAfter+after
		default:
			x.Old, x.OldBefore, x.OldAfter = x.Old+size, x.OldBefore+before, x.OldAfter+after
			if s.Kind == trace.SpaceOld {
				b.old = trace.Range{Start: s.Bottom, Words: size}
			}
		}
	}
	x.LargeDirect = x.OldBefore - min(x.OldBefore, b.last.OldAfter)
	b.now += x.EdenBefore - min(x.EdenBefore, b.last.EdenAfter) + x.LargeDirect
	x.At = b.now
	return &x
}

// epoch takes in an epoch.
func (b *reader) epoch(e *trace.Epoch, applied bool) {
	if e.HasCycle {
		return
	}
	x := b.describe(e)
	if !applied || !x.Exact {
		b.known = false
	} else {
		b.known, b.applied = true, true // the state begins after a listing that no collection belongs to
		eden := uint64(0)
		for _, s := range e.Spaces {
			if s.Kind == trace.SpaceEden && s.End > s.Bottom {
				eden = s.Bottom + x.EdenBefore
			}
		}
		if x.Depth == trace.DepthFull && eden > 0 { // G1's eden has no order of time
			x.Unseen = make([]uint32, Bins)
		}
		b.walk(e.Moves, x, 0)
		b.walk(e.Allocs, x, eden)
		for _, f := range e.Freed {
			b.at.empty(f.Start, f.Start+f.Words, b.die)
		}
		for _, m := range b.moved {
			b.put(m.addr, m.object)
		}
		b.moved = b.moved[:0]
		b.births(e, x)
	}
	if b.known {
		for _, s := range e.Resolved {
			b.resolve(s)
		}
	}
	if x.Unseen == nil {
		x.UnseenWords = (x.At - x.Begin) - min(x.At-x.Begin, x.FromEden)
	}
	b.last = *x
	b.t.Epochs = append(b.t.Epochs, *x)
}

func (b *reader) put(addr uint64, object uint32) {
	if before, was := b.at.put(addr, object); was {
		b.lose(before)
		return
	}
	b.live++
}

// die says that an object was found dead in the newest collection.
func (b *reader) die(_ uint64, object uint32) {
	b.t.Dead[object] = b.now
	b.live--
}

// lose says that nothing more will be known of an object.
func (b *reader) lose(uint32) { b.t.Lost++ }

// walk applies lists of segments: eden is the end of what was used of it, 0 if the lists are not of eden.
func (b *reader) walk(blobs [][]byte, x *Epoch, eden uint64) {
	for _, blob := range blobs {
		w := trace.NewWalkTokens(blob, b.r.Sizes())
		w.Alive = x.Unseen == nil
		var start, words uint64
		end := func() { b.at.empty(start, start+words, b.die) }
		for w.Next() {
			switch w.Kind {
			case trace.WalkSegment:
				end()
				start, words = w.Addr, w.Words
			case trace.WalkDead:
				b.unseen(&w, x, eden)
			case trace.WalkMove:
				b.move(&w, x, eden)
			}
		}
		end()
	}
}

// birth gives the virtual time at which what is at addr of eden was allocated.
func (x *Epoch) birth(addr, eden uint64) (lo, hi uint64) {
	if eden == 0 || addr >= eden {
		return x.Begin, x.At
	}
	at := x.At - min(x.At-x.Begin, eden-addr)
	return at, at
}

// unseen counts an object of eden that died before any collection saw it.
func (b *reader) unseen(w *trace.WalkTokens, x *Epoch, eden uint64) {
	if _, known := b.at.find(w.Addr); known || eden == 0 {
		return
	}
	lo, hi := x.birth(w.Addr, eden)
	if w.Words >= Large {
		i := b.add(w.Type, w.Words, lo, hi)
		b.t.Seen[i], b.t.Dead[i] = hi, x.At
		return
	}
	x.UnseenObjects++
	x.UnseenWords += w.Words
	age := x.At - lo
	x.Unseen[Bin(age)] += uint32(w.Words)
	b.group(w.Type).early[Bin(age)] += float64(w.Words)
	b.t.Size[sizeClass(w.Words)].early[Bin(age)] += float64(w.Words)
	b.t.All.early[Bin(age)] += float64(w.Words)
}

func (b *reader) group(typ uint32) *Group {
	g := b.t.By[typ]
	if g == nil {
		g = &Group{}
		b.t.By[typ] = g
	}
	return g
}

const (
	// firstLook is at how many objects Read looks for the first time how much memory is left; after that, when they are
	// twice as many.
	firstLook = 1 << 20
	// perObject is what one takes, bytes, while the table of all grows.
	perObject = 200
)

// fits says whether there is memory for as many objects again.
func (b *reader) fits() bool {
	n := len(b.t.Type)
	if n < max(b.looked*2, firstLook) {
		return true
	}
	b.looked = n
	left := room.Left()
	return left < 0 || left >= int64(n)*perObject
}

// add adds an object.
func (b *reader) add(typ uint32, words, lo, hi uint64) uint32 {
	t := b.t
	t.Type, t.Words = append(t.Type, typ), append(t.Words, uint32(min(words, 1<<32-1)))
	t.BornLo, t.Born = append(t.BornLo, lo), append(t.Born, hi)
	t.Seen, t.Dead = append(t.Seen, hi), append(t.Dead, Never)
	t.Unknown, t.Age = append(t.Unknown, false), append(t.Age, 0)
	return uint32(len(t.Type) - 1)
}

// move takes an object from its place, or adds one that is born, and keeps it aside for its new place.
func (b *reader) move(w *trace.WalkTokens, x *Epoch, eden uint64) {
	o, known := b.at.take(w.Addr)
	switch {
	case known:
		b.live--
	default:
		lo, hi := x.birth(w.Addr, eden)
		o = b.add(w.Type, w.Words, lo, hi)
		x.FromEden += w.Words
		if eden == 0 && !b.r.Known {
			b.t.Unknown[o], b.t.BornLo[o] = true, 0
		}
	}
	b.t.Seen[o] = x.At
	b.arrive(w.Dest, o, x)
	b.moved = append(b.moved, arrival{w.Dest, o})
}

// arrive counts what a collection copied to addr.
func (b *reader) arrive(addr uint64, object uint32, x *Epoch) {
	words, age := uint64(b.t.Words[object]), &b.t.Age[object]
	x.Survivors++
	if addr >= b.old.Start && addr-b.old.Start < b.old.Words {
		x.Promoted += words
		b.t.Tenured[*age] += words
		return
	}
	x.Copied += words
	b.t.Kept[*age] += words
	*age = min(*age+1, maxAge)
}

// births adds the objects of which only the place after the collection is recorded.
func (b *reader) births(e *trace.Epoch, x *Epoch) {
	for _, blob := range e.Births {
		l := trace.NewListTokens(blob, b.r.Sizes())
		for l.Next() {
			if l.Kind != trace.ListObject {
				continue
			}
			o := b.add(l.Type, l.Words, x.Begin, x.At)
			x.FromEden += l.Words
			b.t.Seen[o] = x.At
			b.arrive(l.Addr, o, x)
			b.put(l.Addr, o)
		}
	}
}

// collection completes the newest epoch: samples, and what a listing says.
func (b *reader) collection(c *heap.Collection) {
	if len(b.t.Epochs) == 0 {
		return
	}
	followed := b.known // else what survived is in a listing, without its samples
	if c.Known && (!b.known || b.live != c.Objects) {
		b.listing(&b.t.Epochs[len(b.t.Epochs)-1])
	}
	b.known = c.Known || c.Partial
	b.sampled(followed)
	if c.Known {
		b.settle()
	}
}

// sampled takes in the samples of the newest epoch: their order says where in it they were allocated. The replay has
// read those of the next epoch, too. followed: the moves of the epoch are known, so those that did not move have died.
func (b *reader) sampled(followed bool) {
	x := &b.t.Epochs[len(b.t.Epochs)-1]
	for _, s := range b.r.Sampled {
		b.waiting = append(b.waiting, *s)
	}
	mine := 0
	sum, at := 0.0, 0.0
	for ; mine < len(b.waiting) && b.waiting[mine].Birth <= x.GC; mine++ {
		sum += b.waiting[mine].Weight * float64(b.waiting[mine].Size)
	}
	for i := range b.waiting[:mine] {
		s := &b.waiting[i]
		w := s.Weight * float64(s.Size)
		born := x.Begin + uint64(float64(x.At-x.Begin)*(at+w/2)/max(sum, 1))
		at += w
		switch {
		case followed:
			b.sample(s, x, born)
		case len(b.open) < maxSamples:
			b.open = append(b.open, openSample{*s, born})
		default:
			b.left += s.Weight * float64(s.Size/word)
		}
	}
	b.waiting = append(b.waiting[:0], b.waiting[mine:]...)
	clear(b.samples)
}

// sample takes in a sample of an epoch.
func (b *reader) sample(s *heap.Sample, x *Epoch, born uint64) {
	l := SampleLife{Type: s.Type, Frame: s.Frame, Weight: s.Weight, Words: s.Size / word, Born: born, Seen: born,
		Dead: x.At, Object: -1}
	i, known := b.samples[s.ID]
	if known { // resolved already
		l.Object = b.t.Samples[i].Object
		b.t.Samples[i] = l
	} else {
		b.keep(l)
	}
	if o := l.Object; o >= 0 && b.t.BornLo[o] < born && born < b.t.Born[o] {
		b.t.BornLo[o], b.t.Born[o] = born, born
	}
}

// maxSamples bounds the samples that are kept.
const maxSamples = 1 << 24

// resolve notes which object a sample is.
func (b *reader) resolve(s trace.SampleAddr) {
	o, ok := b.at.find(s.Addr)
	if !ok || len(b.t.Samples) == maxSamples {
		return
	}
	b.samples[s.ID] = len(b.t.Samples)
	b.t.Samples = append(b.t.Samples, SampleLife{Object: int(o)})
}

// count makes the tallies. At depth full every object is counted; else the samples stand for all.
func (t *Tape) count() {
	full := 0
	for i := range t.Epochs {
		if t.Epochs[i].Unseen != nil {
			full++
		}
	}
	t.Samples = slices.DeleteFunc(t.Samples, func(s SampleLife) bool { return s.Weight == 0 })
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Object >= 0 {
			s.Seen, s.Dead = t.Seen[s.Object], t.Dead[s.Object]
		}
	}
	t.Full = full > 0
	for i := range t.Words {
		g := t.By[t.Type[i]]
		if g == nil {
			g = &Group{}
			t.By[t.Type[i]] = g
		}
		size := &t.Size[sizeClass(uint64(t.Words[i]))]
		for _, g := range []*Group{g, size} {
			g.Objects++
			g.Words += uint64(t.Words[i])
		}
		if t.Full && !t.Unknown[i] && t.BornLo[i] == t.Born[i] {
			w := float64(t.Words[i])
			lo, hi := t.Ages(i)
			t.All.Add(lo, hi, w)
			g.Add(lo, hi, w)
			size.Add(lo, hi, w)
		}
	}
	if t.Full {
		t.LeftOut = t.End() - min(t.End(), uint64(t.All.Weight()))
		return
	}
	for i := range t.Samples {
		s := &t.Samples[i]
		lo, hi := s.Ages()
		w := s.Weight * float64(s.Words)
		t.All.Add(lo, hi, w)
		if g := t.By[uint32(s.Type)]; g != nil {
			g.Add(lo, hi, w)
		}
		t.Size[sizeClass(s.Words)].Add(lo, hi, w)
	}
}

// sizeClass gives the place of a size in Tape.Size.
func sizeClass(words uint64) int { return min(max(bits.Len64(words), 1)-1, 32) }

// Ages gives the bounds of the lifetime of object i, in words; hi is Never if there is none.
func (t *Tape) Ages(i int) (lo, hi uint64) {
	lo, hi = t.Seen[i]-min(t.Seen[i], t.Born[i]), Never
	if t.Dead[i] != Never {
		hi = t.Dead[i] - min(t.Dead[i], t.BornLo[i])
	}
	return lo, hi
}

// Ages is Tape.Ages for a sampled allocation.
func (s *SampleLife) Ages() (lo, hi uint64) {
	lo, hi = s.Seen-min(s.Seen, s.Born), Never
	if s.Dead != Never {
		hi = s.Dead - min(s.Dead, s.Born)
	}
	return lo, hi
}
