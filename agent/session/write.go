package session

import (
	"errors"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// marked says that all other flags of a frame are set where they apply.
const marked = ringstore.FlagMarked | ringstore.FlagApart

// defsChunk bounds how many definitions go into one DEFS block of the agent.
const defsChunk = 1 << 14

// writer gathers whole blocks into the next frame.
type writer struct {
	st      Store
	pending [][]byte // whole blocks that the store has not got yet; those of the batch in hand are not copied
	hand    []byte   // the block in hand, framed, as it lies in the batch; nil: it is not of a batch
	own     []byte   // memory of the agent's blocks in pending

	info     ringstore.FrameInfo // of pending; Source is set when it is written
	epochs   uint64              // in pending
	mixed    bool                // pending has parts of a reference listing that a newer probe sent
	pos      uint64              // position behind the block in hand
	skipTo   uint64              // position up to which the store has everything
	open     bool                // a file is
	gone     uint64              // epochs that the store refused since somebody removed its files
	dirty    bool                // the store took something that was not synced yet
	syncedAt time.Time

	logged    ringstore.Stats // as logged last
	resizedAt time.Time
}

// push appends a block of the agent to what the next frame will hold.
func (w *writer) push(b trace.Block) {
	from := len(w.own)
	w.own = trace.AppendBlock(w.own, b)
	w.add(w.own[from:])
}

// pass appends the block in hand, b, as it lies in the batch: it is not copied, and must be stored before the batch is
// committed.
func (w *writer) pass(b trace.Block) {
	if w.hand == nil {
		w.push(b)
		return
	}
	w.add(w.hand)
}

// add appends whole blocks. What is adjacent in memory stays one part.
func (w *writer) add(b []byte) {
	if len(b) == 0 {
		return
	}
	if n := len(w.pending); n > 0 {
		if p := w.pending[n-1]; cap(p) > len(p) && &p[:len(p)+1][len(p)] == &b[0] {
			w.pending[n-1] = p[:len(p)+len(b)]
			return
		}
	}
	w.pending = append(w.pending, b)
}

// passEpoch is pass for a block of which refusals count.
func (w *writer) passEpoch(b trace.Block) {
	w.pass(b)
	w.epochs++
}

// pushDefs appends definitions.
func (w *writer) pushDefs(d trace.Defs) {
	if !empty(d) {
		w.info.Flags |= ringstore.FlagDefs
	}
	from := len(w.own)
	w.own = appendDefs(w.own, d)
	w.add(w.own[from:])
}

// collection takes note that the next frame holds the collection gc.
func (w *writer) collection(gc uint64) {
	if w.info.FirstGC == 0 {
		w.info.FirstGC = gc
	}
	w.info.LastGC = gc
}

// stamp takes note that the next frame has something of the time t.
func (w *writer) stamp(t uint64) {
	if w.info.T0 == 0 || t < w.info.T0 {
		w.info.T0 = t
	}
	w.info.T1 = max(w.info.T1, t)
}

// frame returns the description of the next frame, whose last block ends at the position source, and begins a new one.
func (w *writer) frame(source uint64, flags uint16) ringstore.FrameInfo {
	f := w.info
	f.Source, f.Flags = source, f.Flags|flags|marked
	if w.mixed {
		f.Flags &^= ringstore.FlagApart
	}
	w.info, w.mixed = ringstore.FrameInfo{}, false
	return f
}

// clear forgets what is pending.
func (w *writer) clear() {
	clear(w.pending)
	w.pending, w.own, w.epochs = w.pending[:0], w.own[:0], 0
	if cap(w.own) > readBatch { // many definitions at once must not hold their memory for ever
		w.own = nil
	}
}

// listing is a sync point or the first slice of one: the block and what it says.
type listing struct {
	block   trace.Block
	samples []trace.LiveSample
	sited   []trace.SitedAddr
	flags   uint16       // of its frame
	slice   *trace.Slice // nil: a whole one
}

var errNoFile = errors.New("no ring file is open: the probe has not described its JVM yet")

// begin starts a new file with META, definitions and, unless nil, the sync point.
func (s *Session) begin(y *listing) {
	s.forget(y)
	s.defs.NewFile()
	head := trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{JVM: s.in.jvm, HasJVM: true, Notes: s.in.notes}))
	if len(s.in.whose) > 0 { // in a block of its own: it is of a newer version
		head = trace.AppendBlock(head, trace.EncodeMeta(trace.Meta{Resource: s.in.whose}))
	}
	head = appendDefs(head, s.defs.All())
	if s.losses.pending() { // before the listing: what is known ends with the old file, and begins anew with it
		head = trace.AppendBlock(head, trace.EncodeGap(s.losses.gap))
	}
	flags := uint16(ringstore.FlagDefs)
	if y != nil {
		head = appendDefs(head, s.defs.Listed(y.samples, y.sited))
		head = trace.AppendBlock(head, y.block)
		flags |= y.flags
	}
	info := s.out.info // again for the file without the listing
	err := s.out.st.Rotate(head, s.out.frame(s.out.pos, flags))
	if err != nil {
		s.defs.NewFile() // whatever file is open, nothing is known of what it has
		if y != nil && s.tooLarge(err) {
			s.out.info = info
			s.begin(nil)
			return
		}
		s.refused(err, 0)
		if y != nil {
			s.syncs.plan.Failed()
		}
		return
	}
	first := !s.out.open
	s.out.open, s.out.dirty, s.out.gone = true, true, 0
	s.losses.stored()
	s.alarms.stale = s.alarms.stale && (y == nil || y.slice != nil && !y.slice.Last())
	s.syncs.began(y != nil)
	if y != nil && y.slice != nil {
		s.syncs.plan.Slice(y.slice, s.out.st.Stats().Active)
	}
	if !first {
		s.set(func(st *Status) { st.Rotations++ })
	}
}

// forget drops the types that have gone, if it is known of which types there are objects or if none are recorded.
func (s *Session) forget(y *listing) {
	if at := s.in.redefinedAt; at != 0 && s.out.pos >= at {
		s.in.redefinedAt = 0
		s.defs.Redefined()
	}
	if !s.defs.AnyUnloaded() {
		return
	}
	listed := map[uint64]struct{}{}
	known := s.heap.live.est.Totals(func(typ uint32, _ coverage.Count) { listed[uint64(typ)] = struct{}{} })
	if !known && (y != nil || s.in.depth != trace.DepthSamples) {
		return
	}
	s.defs.Forget(func(typ uint64) bool { _, ok := listed[typ]; return ok })
	s.heap.live.keep(s.defs, s.in.jvm.Align)
}

// tooLarge says whether err means that no sync point fits into the ring, and takes note of it.
func (s *Session) tooLarge(err error) bool {
	var small tooSmallError
	if !errors.As(err, &small) {
		return false
	}
	if needed := small.TooSmall(); s.syncs.tooSmall.again(needed, time.Now()) {
		logs.Write(&s.log, logs.SyncTooLarge, logs.Err.Of(err), logs.Needed.Of(needed))
	}
	s.syncs.plan.TooLarge()
	s.set(func(st *Status) { st.StoreError = err.Error() })
	return true
}

// flush gives the store what is pending, and says whether it took it. What it refuses is lost and counted; a
// GAP before the next write reports the loss.
func (s *Session) flush() bool { return s.flushTo(s.out.pos) }

// flushTo is flush of what lies before the position source.
func (s *Session) flushTo(source uint64) bool {
	w := &s.out
	if len(w.pending) == 0 {
		return true
	}
	out, flags := w.pending, uint16(0)
	if s.losses.pending() { // what was lost may have held definitions
		flags = ringstore.FlagDefs
		first := appendDefs(trace.AppendBlock(nil, trace.EncodeGap(s.losses.gap)), s.defs.All())
		out = append([][]byte{first}, w.pending...)
	}
	info := w.frame(source, flags)
	err := errNoFile
	if w.open {
		err = w.st.Write(out, info)
	}
	switch {
	case err == nil:
		s.losses.stored()
		w.dirty = true
	case info.Flags&ringstore.FlagListing != 0 && w.epochs == 0 && s.tooLarge(err):
		s.defs.NewFile()
	default:
		s.refused(err, w.epochs)
		s.defs.NewFile()
	}
	w.clear()
	return err == nil
}

// goneMost is how many collections a recording whose files somebody has removed waits for a sync point to begin with:
// in a storm none may come.
const goneMost = 3

// beginAgain begins a file without a sync point if the recording was removed and none has come. The next one is asked
// for.
func (s *Session) beginAgain() {
	if s.out.gone < goneMost || !s.in.known {
		return
	}
	s.out.gone = 0
	s.begin(nil)
	s.syncs.plan.Lost()
}

// refused counts what the store did not take and requests a sync point, at which a reader starts again after the gap.
func (s *Session) refused(err error, epochs uint64) {
	gone := errors.Is(err, ringstore.ErrNoFile) // somebody removed it: the store says what was lost
	if gone {
		s.logStore(s.out.st.Stats())
		s.out.gone += epochs
	}
	if s.losses.refuse(epochs, s.in.time, time.Now()) && !gone {
		if errors.Is(err, errNoFile) {
			logs.Write(&s.log, logs.Undescribed, logs.Path.Of(s.Dir()))
		} else {
			logs.Write(&s.log, logs.WriteRefused, logs.Err.Of(err), logs.Path.Of(s.Dir()))
		}
	}
	s.heap.live.unknown()
	s.syncs.plan.Lost()
	s.count(func(d *Drops) { d.StoreEpochs += epochs })
	if !gone {
		s.set(func(st *Status) { st.StoreError = err.Error() })
	}
}

// recordGaps writes GAPs for what the shared ring lost.
func (s *Session) recordGaps(gaps []trace.Gap) {
	for _, g := range gaps {
		s.out.push(trace.EncodeGap(g))
		s.count(func(d *Drops) { d.RingEpochs += g.Epochs; d.Samples += g.Samples })
		if g.Reason == trace.GapOverflow {
			s.heap.live.unknown()
		}
	}
}

// summarize stores what is pending before the position source, and behind it the summary of what the open file has
// since its last one. A summary that the store refuses is no loss: the file itself has what it says.
func (s *Session) summarize(y *trace.Sync, source uint64) {
	s.flushTo(source)
	sum := s.heap.view.take(y, s.heap.live.est)
	if sum == nil || !s.out.open {
		return
	}
	info := ringstore.FrameInfo{Source: source, FirstGC: sum.First, LastGC: sum.Last, T0: s.in.time, T1: s.in.time}
	info.Flags = ringstore.FlagSummary | marked
	if s.out.st.Write([][]byte{trace.AppendBlock(nil, trace.EncodeSummary(sum))}, info) == nil {
		s.out.dirty = true
	}
}

// syncDue has the store sync when SyncInterval has passed: that bounds what a power failure loses.
func (s *Session) syncDue() {
	now := time.Now()
	if !s.out.dirty || now.Sub(s.out.syncedAt) < s.cfg.SyncInterval {
		return
	}
	s.out.dirty, s.out.syncedAt = false, now
	if s.tally.due(now) {
		s.keepCounters()
	}
	if err := s.out.st.SyncSoon(); err != nil {
		s.out.dirty = true
		logs.Write(&s.log, logs.FsyncFailed, logs.Err.Of(err), logs.Path.Of(s.Dir()))
		s.set(func(st *Status) { st.StoreError = err.Error() })
	}
}

// appendDefs appends d as DEFS blocks of bounded size.
func appendDefs(dst []byte, d trace.Defs) []byte {
	news := trace.Defs{Candidates: d.Candidates, Scanned: d.Scanned}
	d.Candidates, d.Scanned = nil, nil
	for !empty(d) {
		var c trace.Defs
		c.Loaders, d.Loaders = cut(d.Loaders)
		c.Types, d.Types = cut(d.Types)
		c.Methods, d.Methods = cut(d.Methods)
		c.Threads, d.Threads = cut(d.Threads)
		if len(d.Methods) == 0 { // a frame's method stands before it
			c.Frames, d.Frames = cut(d.Frames)
		}
		dst = trace.AppendBlock(dst, trace.EncodeDefs(c))
	}
	for !empty(news) { // in blocks of their own, which are of a newer version; behind types and methods
		var c trace.Defs
		c.Candidates, news.Candidates = cut(news.Candidates)
		if len(news.Candidates) == 0 { // they stand before what is said of them
			c.Scanned, news.Scanned = cut(news.Scanned)
		}
		dst = trace.AppendBlock(dst, trace.EncodeDefs(c))
	}
	return dst
}

func cut[T any](s []T) (head, rest []T) {
	n := min(len(s), defsChunk)
	return s[:n], s[n:]
}

func empty(x trace.Defs) bool {
	return len(x.Types)+len(x.Loaders)+len(x.Methods)+len(x.Frames)+len(x.Threads)+len(x.Candidates)+
		len(x.Scanned) == 0
}
