package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	columns "github.com/heapcam/heapcam/trace/references"
)

// References is what became of a request for a reference listing. Times in ns.
type References struct {
	GC      uint64   `json:"gc"`                // The newest collection when the JVM was stopped.
	Objects uint64   `json:"objects"`           // Objects, garbage not yet collected included.
	Slots   uint64   `json:"slots"`             // Fields and elements that can hold a reference.
	Roots   uint64   `json:"roots"`             // Roots: what holds objects from outside the heap.
	StopNS  uint64   `json:"stop_ns"`           // How long the JVM was stopped.
	WalkNS  uint64   `json:"walk_ns"`           // CPU time in the stop for objects and references, without roots.
	Bytes   int64    `json:"bytes"`             // Size as it came from the probe.
	Missing []string `json:"missing,omitempty"` // What the listing lacks, in words.
}

// Errors of reference listings. RefusedError says that there is none, and why. ErrNoMemory is below those that lacked
// memory.
var (
	ErrNoMemory     = errors.New("not enough memory")
	ErrNoReferences = errors.New("this JVM's probe is older than reference listings: restart the JVM")
	errTorn         = errors.New("some parts of the reference listing were lost")
	errNotRecorded  = errors.New("the JVM is not recorded any more")
)

// RefusedError says why the probe took no reference listing. The JVM keeps running.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return "no reference listing was taken: " + e.Why }

func (e *RefusedError) Unwrap() error {
	if e.Why == lackedRoom || e.Why == lackedMemory || strings.Contains(e.Why, lackedCgroup) {
		return ErrNoMemory
	}
	return nil
}

// answer is the reply to one request; it is sent once.
type answer struct {
	got References
	err error
}

// references follows the parts of a reference listing through the session. All but waiting belongs to the session's
// goroutine.
type references struct {
	listing, next uint64 // of the listing that is being stored, and the number of its next part
	about         trace.References
	bytes         int64
	err           error           // why it is torn
	unasked       unasked         // those that nobody asked for
	packer        *columns.Packer // of the listing that is being stored; nil: its parts stay as they are

	mu      sync.Mutex
	waiting map[uint32]chan answer
	over    bool
}

// lackedRoom is the reason of a probe that had mapped too little memory for a listing: it guesses before the JVM stops,
// and knows more afterwards.
const lackedRoom = "the heap has more references than expected; the next try has more memory"

// lackedMemory is the reason of a probe that got no memory from the system; lackedCgroup is in that of one whose cgroup
// has too little left.
const (
	lackedMemory = "not enough memory for it"
	lackedCgroup = " MiB of memory, and the cgroup of this JVM has "
)

// AskReferences asks the probe for a reference listing, for which it may stop the JVM for that long, 0: the probe's
// default. It returns when the listing is stored. A listing that lacked memory is tried once more. Errors:
// ErrNoReferences, *RefusedError, that some parts were lost, those of ctx and of the ring.
func (s *Session) AskReferences(ctx context.Context, most time.Duration) (References, error) {
	got, err := s.askReferences(ctx, most)
	var refused *RefusedError
	if errors.As(err, &refused) && refused.Why == lackedRoom {
		first := got.StopNS
		got, err = s.askReferences(ctx, most)
		got.StopNS += first
	}
	return got, err
}

func (s *Session) askReferences(ctx context.Context, most time.Duration) (References, error) {
	h, err := s.ring.Status()
	if err != nil {
		return References{}, err
	}
	if h.References == 0 {
		return References{}, ErrNoReferences
	}
	r := &s.refs
	r.mu.Lock() // the answer finds who waits for it
	if r.over {
		r.mu.Unlock()
		return References{}, errNotRecorded
	}
	ms := min(max(most, 0).Milliseconds(), 1<<31)
	if most > 0 {
		ms = max(ms, 1) // 0 is the probe's default
	}
	ticket, err := s.ring.RequestReferences(uint32(ms))
	ch := make(chan answer, 1)
	if err == nil {
		if r.waiting == nil {
			r.waiting = map[uint32]chan answer{}
		}
		r.waiting[ticket] = ch
	}
	r.mu.Unlock()
	if err != nil {
		return References{}, err
	}
	defer func() {
		r.mu.Lock()
		delete(r.waiting, ticket)
		r.mu.Unlock()
	}()
	select {
	case a := <-ch:
		return a.got, a.err
	case <-ctx.Done():
		return References{}, fmt.Errorf("wait for the reference listing: %w", ctx.Err())
	}
}

// answered tells who waits for the ticket or, as the probe takes one request for all before it, for an older one.
func (r *references) answered(ticket uint32, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t, ch := range r.waiting {
		if t <= ticket {
			delete(r.waiting, t)
			ch <- a
		}
	}
}

// end tells everybody that no answer will come.
func (r *references) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.answered(1<<32-1, answer{err: errNotRecorded})
}

// references takes in a part of a reference listing that begins at the position start. Parts are stored in frames of
// their own: one that the store refuses tears the listing, and nothing else. Readers count listings that are torn.
func (s *Session) references(b trace.Block, p *trace.RefPart, start uint64) {
	r := &s.refs
	if p.HasAbout {
		s.stamp(p.About.Time)
		r.listing, r.next, r.about, r.bytes, r.err = p.Listing, 1, p.About, 0, nil
		s.set(func(st *Status) { st.ReferencesNS += p.About.Dur })
	}
	if r.listing == 0 && s.out.skipTo > 0 { // an agent before stored the parts before it
		r.listing, r.next = p.Listing, p.N
	}
	if r.err == nil && (p.Listing != r.listing || p.N != r.next) {
		r.listing, r.err = p.Listing, errTorn
	}
	r.next++
	r.bytes += int64(b.Size())
	if r.err == nil {
		r.err = s.storePart(b, p, start)
	}
	if r.err != nil && r.next > 0 {
		r.next = 0
		s.count(func(d *Drops) { d.References++ })
	}
	if p.Flags&trace.RefLast != 0 {
		a := r.answer()
		s.refs.unasked.answer(uint32(r.about.Ticket), a)
		r.answered(uint32(r.about.Ticket), a)
	}
}

// packed gives a part with its slots by class and slot, in which form they compress to a fraction.
func (r *references) packed(b trace.Block, p *trace.RefPart, types *trace.TypeTable) (trace.Block, bool) {
	if p.N == 1 {
		r.packer = &columns.Packer{}
	}
	if r.packer == nil {
		return b, false
	}
	slots, ok := r.packer.Pack(p, types)
	if p.Flags&trace.RefLast != 0 {
		r.packer = nil // it takes as much memory as a part
	}
	if !ok {
		return b, false
	}
	q := *p
	q.Slots, q.Columns = nil, slots
	out := trace.EncodeRefs(&q)
	out.Flags, out.Seq = b.Flags, b.Seq
	return out, true
}

// storePart stores a part in a frame of its own, behind what it refers to.
func (s *Session) storePart(b trace.Block, p *trace.RefPart, start uint64) error {
	if s.in.known {
		s.out.pushDefs(s.defs.Rooted(p.Roots))
	}
	s.flushTo(start)
	if !s.out.open {
		return errNoFile
	}
	part := s.out.hand
	if packed, ok := s.refs.packed(b, p, s.heap.live.types); ok {
		part = trace.AppendBlock(nil, packed)
	} else if part == nil {
		part = trace.AppendBlock(nil, b)
	}
	t := s.in.time
	info := ringstore.FrameInfo{Source: s.out.pos, T0: t, T1: t, Flags: marked | ringstore.FlagReferences}
	if p.Flags&(trace.RefFirst|trace.RefLast) != 0 {
		info.Flags |= ringstore.FlagListed
	}
	if err := s.out.st.Write([][]byte{part}, info); err != nil {
		return fmt.Errorf("store the reference listing: %w", err)
	}
	s.out.dirty = true
	return nil
}

// answer is the reply to the request of this listing.
func (r *references) answer() answer {
	a := &r.about
	if r.err != nil {
		return answer{err: r.err}
	}
	if a.Refused != "" { // the JVM may have been stopped for it
		return answer{got: References{StopNS: a.Dur}, err: &RefusedError{a.Refused}}
	}
	out := References{GC: a.GC, Objects: a.Objects, Slots: a.Slots, Roots: a.NumRoots, StopNS: a.Dur, WalkNS: a.Probe,
		Bytes: r.bytes}
	if a.Missing != "" {
		out.Missing = strings.Split(a.Missing, "\n")
	}
	return answer{got: out}
}
