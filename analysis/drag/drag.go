// Package drag reads from a recording how long objects live after their last use (`heapcam run --drag`).
//
// Terms: the *drag* of an object is its size times the time from its last use to its death. A *use* is what code of the
// application does with an object: it reads or writes a field or an element, locks it or calls a method of it. The
// probe sees uses of *followed* objects, which are sampled ones that survived a collection. Sizes and times of a sample
// count for all objects that it stands for. Both ends are known between two times: an object died after the last
// collection that could have freed it and did not, and before the one that did. If no use was seen, the last one was
// between birth and the first collection. Figures are those of the middle; intervals include both.
//
// This package does not know why an object was held.
package drag

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// ErrNoUses says that nothing was recorded of uses.
var ErrNoUses = errors.New("the recording does not know when objects were used: record with heapcam run --drag app, " +
	"on JDK 17 or 25 with the Serial, Parallel or G1 collector")

// life is what is known of a followed sample.
type life struct {
	sample *heap.Sample
	// Times in ns. born is that of the sample, resolved the first collection it survived, since the one from which it
	// was followed, used the last use that was seen (0: none), blind the last pause before which uses may be missing.
	born, resolved, since, used, blind uint64
}

// span is a time or an amount of which only bounds are known.
type span struct{ low, mid, high float64 }

// dragOf is how the life of a sample ended, or that it had not.
type dragOf struct {
	*life
	seconds, bytes span // from the last use to the end
	lived          float64
	dead           bool
}

// Lives is what a recording says of the followed samples.
type Lives struct {
	drags   []dragOf
	symbols *heap.Symbols
	scope   []string // beginnings of classes; nil: the application
	all     bool     // all classes, the JDK's too
	end     uint64   // ns, of the last collection
	begin   uint64
	// Estimates of bytes: of all samples, and of those that survived and were not followed.
	sampled, unfollowed float64
	blind               int // drags that a blind pause has shortened
}

type reader struct {
	out    *Lives
	clock  clock
	live   map[uint64]*life
	uses   []trace.Use
	pauses pauses
}

// Read reads all of r, which has read nothing yet.
func Read(r heap.Reader) (*Lives, error) {
	c := r.Position()
	b := &reader{out: &Lives{symbols: c.Symbols}, live: map[uint64]*life{}}
	seen := false
	c.OnEpoch = func(e *trace.Epoch, _ bool) {
		b.clock.epoch(e)
		b.uses = append(b.uses[:0], e.Uses...)
		b.pauses.at = append(b.pauses.at, pause{e.Pause.Start, e.Pause.Kind})
		seen = seen || len(e.Uses) > 0 || e.UseScope != ""
		b.out.all = b.out.all || e.UseScope == "all"
		if e.UseScope != "" && e.UseScope != "app" {
			b.out.scope = strings.Split(e.UseScope, "+")
		}
	}
	defer func() { c.OnEpoch = nil }()
	for {
		x, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		b.collection(c, x)
	}
	if !seen {
		return nil, ErrNoUses
	}
	b.finish()
	return b.out, nil
}

const ms = 1_000_000

// collection takes in what a collection has changed, and what it says of uses.
func (b *reader) collection(c *heap.Cursor, x *heap.Collection) {
	b.out.end, b.pauses.g1 = x.Start, c.JVM.Collector == trace.CollectorG1
	if b.out.begin == 0 {
		b.out.begin = x.Start
	}
	for _, s := range c.Sampled {
		b.out.sampled += s.Weight * float64(s.Size)
	}
	for _, s := range c.Resolved {
		if b.live[s.ID] == nil {
			b.live[s.ID] = &life{sample: s, born: s.Time, resolved: x.Start}
		}
	}
	for _, u := range b.uses {
		l := b.live[u.ID]
		if l == nil {
			continue
		}
		l.since = u.Since * ms
		if u.Used > 0 {
			l.used = (u.Since + u.Used - 1) * ms
		}
		if u.Flags&trace.UseBlind != 0 {
			l.blind = x.Start
		}
	}
	b.uses = b.uses[:0]
	if len(c.Died) > 0 {
		b.die(c.Died, x)
	}
}

// die ends the lives that a collection has found ended.
func (b *reader) die(died []*heap.Sample, x *heap.Collection) {
	low, likely := b.pauses.before(x.Kind)
	for _, s := range died {
		if l := b.live[s.ID]; l != nil {
			delete(b.live, s.ID)
			b.end(l, ended{max(low, l.resolved), max(likely, l.resolved), x.Start}, true)
		}
	}
}

// ended says when an object died: not before low, most likely not before likely, and before high.
type ended struct{ low, likely, high uint64 }

// end ends a life, or says that it had not ended at that time.
func (b *reader) end(l *life, e ended, dead bool) {
	low, high := e.low, e.high
	if l.since == 0 {
		b.out.unfollowed += l.sample.Weight * float64(l.sample.Size)
		return
	}
	first, last := l.born, l.since // of the last use
	if l.used > 0 {
		first, last = l.used, l.used
	}
	if l.blind > last {
		last = l.blind
		b.out.blind++
	}
	last = min(last, high)
	first = min(max(first, min(l.born, high)), last)
	low = min(max(low, last), high)
	use, death := (first+last)/2, (min(max(e.likely, low), high)+high)/2
	if l.blind == last {
		use = last
	}
	between := func(from, to uint64) (seconds, bytes float64) {
		return float64(to-min(from, to)) / 1e9, b.clock.between(from, to)
	}
	f := dragOf{life: l, dead: dead}
	f.seconds.low, f.bytes.low = between(last, low)
	f.seconds.mid, f.bytes.mid = between(use, death)
	f.seconds.high, f.bytes.high = between(first, high)
	f.lived, _ = between(min(l.born, death), death)
	b.out.drags = append(b.out.drags, f)
}

func (b *reader) finish() {
	left := make([]*life, 0, len(b.live))
	for _, l := range b.live {
		left = append(left, l)
	}
	slices.SortFunc(left, func(a, b *life) int { return cmp.Compare(a.sample.ID, b.sample.ID) })
	for _, l := range left {
		b.end(l, ended{b.out.end, b.out.end, b.out.end}, false)
	}
}

// inside says whether uses of what was allocated at a frame are seen: its innermost method is of a package whose code
// notes them.
func (t *Lives) inside(frame uint64) bool {
	stack := sites.Stack(t.symbols, frame, 1)
	if len(stack) == 0 || t.all {
		return t.all
	}
	for _, p := range t.scope {
		if rest, ok := strings.CutPrefix(stack[0].Class, p); ok &&
			(rest == "" || strings.HasSuffix(p, ".") || rest[0] == '.' || rest[0] == '$') {
			return true
		}
	}
	return len(t.scope) == 0 && !sites.JDK(stack[0].Class)
}

// total sums something over samples, between bounds.
type total struct{ low, mid, high stats.Total }

func (t *total) add(x span, size, weight float64) {
	t.low.Add(x.low*size, weight)
	t.mid.Add(x.mid*size, weight)
	t.high.Add(x.high*size, weight)
}

// figure gives the sum and its interval: that of the samples, widened by what is not known of each.
func (t *total) figure() Figure {
	low, _ := t.low.Interval()
	_, high := t.high.Interval()
	return Figure{t.mid.Sum, min(low, t.mid.Sum), max(high, t.mid.Sum)}
}
