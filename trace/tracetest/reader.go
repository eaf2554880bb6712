package tracetest

import (
	"fmt"

	"github.com/heapcam/heapcam/trace"
)

// Seen is what a reader of the stream can know of an object.
type Seen struct {
	Type   uint32
	Length uint64
	Words  uint64
	Sample uint64 // id of its sample, 0 if none
	Age    uint64 // collections survived while it was followed
	Serial uint64 // identity within this reader; kept while the object is followed
}

// Reader applies a stream to a map, rule by rule as the format page has them: the plainest reader there can be. It is
// the second opinion on the model, and an oracle for faster readers.
type Reader struct {
	Types    *trace.TypeTable
	State    map[uint64]Seen
	Known    bool
	Live     map[uint64]int64 // objects by type, from totals and census; valid while Known
	LastSync *trace.Sync
	// Mismatch says how the newest SYNC differed from what was known, "" if it did not or nothing was known.
	Mismatch string

	serial uint64
}

// NewReader makes a reader that has seen nothing.
func NewReader() *Reader { return &Reader{Types: trace.NewTypeTable(8), State: map[uint64]Seen{}} }

// Apply takes in one block.
func (r *Reader) Apply(b trace.Block) error {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err == nil && m.HasJVM {
			r.Types.SetAlign(m.JVM.Align)
		}
		return err
	case trace.KindDefs:
		d, err := trace.DecodeDefs(b)
		if err != nil {
			return err
		}
		return r.Types.DefineAll(d.Types)
	case trace.KindSamples:
		_, err := trace.DecodeSamples(b)
		return err
	case trace.KindGap:
		r.Known = false
		_, err := trace.DecodeGap(b)
		return err
	case trace.KindEnd:
		_, err := trace.DecodeEnd(b)
		return err
	case trace.KindEpoch:
		return r.epoch(b)
	case trace.KindSync:
		return r.sync(b)
	}
	return nil
}

func (r *Reader) epoch(b trace.Block) error {
	e, err := trace.DecodeEpoch(b)
	if err != nil {
		return err
	}
	if e.Pause.Flags&trace.PauseExact == 0 {
		r.Known = false
	}
	if !r.Known {
		return nil
	}
	type move struct {
		dest uint64
		o    Seen
	}
	var moved []move
	for i, blob := range append(append([][]byte{}, e.Moves...), e.Allocs...) {
		w := trace.NewWalkTokens(blob, r.Types)
		kept := map[uint64]Seen{} // what was known in the range
		for w.Next() {
			switch w.Kind {
			case trace.WalkSegment:
				kept = map[uint64]Seen{}
				for a, o := range r.State {
					if a >= w.Addr && a < w.Addr+w.Words {
						kept[a] = o
						delete(r.State, a)
					}
				}
			case trace.WalkMove:
				o, ok := kept[w.Addr]
				switch {
				case ok && (o.Type != w.Type || o.Length != w.Length):
					return fmt.Errorf("move of another object than is known at %d", w.Addr)
				case !ok && i < len(e.Moves):
					return fmt.Errorf("move of an unknown object at %d", w.Addr)
				case !ok:
					o = r.born(w.Type, w.Length, w.Words)
				}
				o.Age++
				moved = append(moved, move{w.Dest, o})
			}
		}
		if err := w.Err(); err != nil {
			return err
		}
	}
	for _, f := range e.Freed {
		for a := range r.State {
			if a >= f.Start && a < f.Start+f.Words {
				delete(r.State, a)
			}
		}
	}
	for _, m := range moved {
		if _, ok := r.State[m.dest]; ok {
			return fmt.Errorf("move onto an object at %d", m.dest)
		}
		r.State[m.dest] = m.o
	}
	for _, blob := range e.Births {
		if err := r.list(blob); err != nil {
			return err
		}
	}
	for _, s := range e.Resolved {
		o, ok := r.State[s.Addr]
		if !ok {
			return fmt.Errorf("sample %d resolved to nothing at %d", s.ID, s.Addr)
		}
		o.Sample = s.ID
		r.State[s.Addr] = o
	}
	for _, c := range e.Census {
		n := func(i int) int64 { return int64(c.Cells[i].Objects) }
		r.Live[c.Type] += n(trace.CensusBornYoung) +
			n(trace.CensusBornOld) - n(trace.CensusDiedYoung) - n(trace.CensusDiedOld)
	}
	return nil
}

func (r *Reader) list(blob []byte) error {
	l := trace.NewListTokens(blob, r.Types)
	for l.Next() {
		if l.Kind != trace.ListObject {
			continue
		}
		if _, ok := r.State[l.Addr]; ok {
			return fmt.Errorf("birth onto an object at %d", l.Addr)
		}
		r.State[l.Addr] = r.born(l.Type, l.Length, l.Words)
	}
	return l.Err()
}

func (r *Reader) sync(b trace.Block) error {
	s, err := trace.DecodeSync(b)
	if err != nil {
		return err
	}
	old, known := r.State, r.Known
	r.State = map[uint64]Seen{}
	for _, blob := range s.Lists {
		if err := r.list(blob); err != nil {
			return err
		}
	}
	r.Mismatch = ""
	r.Live = map[uint64]int64{}
	bytes := uint64(0)
	for a, o := range r.State {
		r.Live[uint64(o.Type)]++
		bytes += o.Words * 8
		was, ok := old[a]
		if ok && was.Type == o.Type && was.Length == o.Length && known {
			o.Age, o.Serial = was.Age, was.Serial
			r.State[a] = o
		} else if known && s.Flags&trace.SyncEdenListed == 0 {
			r.Mismatch = fmt.Sprintf("listed and not known: %d", a)
		}
	}
	for a := range old {
		if _, ok := r.State[a]; known && !ok {
			r.Mismatch = fmt.Sprintf("known and not listed: %d", a)
		}
	}
	if s.Objects != uint64(len(r.State)) || s.Bytes != bytes {
		return fmt.Errorf("total says %d objects, %d bytes; listed are %d, %d", s.Objects, s.Bytes, len(r.State), bytes)
	}
	for _, l := range s.Samples {
		if o, ok := r.State[l.Addr]; ok { // samples in eden have no object in the list of a walk
			o.Sample = l.ID
			r.State[l.Addr] = o
		}
	}
	r.Known, r.LastSync = true, s
	return nil
}

func (r *Reader) born(typ uint32, length, words uint64) Seen {
	r.serial++
	return Seen{Type: typ, Length: length, Words: words, Serial: r.serial}
}

// Compare says how the reader's state differs from the truth after an epoch, "" if it does not or if it is not known to
// either. Identity is compared as a bijection that ids keeps from call to call: the reader's serials against the
// model's.
func (r *Reader) Compare(ep *Epoch, ids map[uint64]uint64) string {
	if r.Known != ep.Known {
		return fmt.Sprintf("known: reader %v, model %v", r.Known, ep.Known)
	}
	if !ep.Known {
		return ""
	}
	if len(r.State) != len(ep.State) {
		return fmt.Sprintf("reader knows %d objects, model %d", len(r.State), len(ep.State))
	}
	live := map[uint64]int64{}
	for a, want := range ep.State {
		got, ok := r.State[a]
		if !ok || got.Type != want.Type || got.Length != want.Length || got.Words != want.Words ||
			got.Sample != want.Sample {
			return fmt.Sprintf("at %d: reader %+v, model %+v", a, got, want)
		}
		if id, ok := ids[got.Serial]; ok && id != want.ID {
			return fmt.Sprintf("at %d: object %d has become %d", a, id, want.ID)
		}
		ids[got.Serial] = want.ID
		live[uint64(want.Type)]++
	}
	for t, n := range r.Live {
		if live[t] != n {
			return fmt.Sprintf("type %d: census says %d live, state has %d", t, n, live[t])
		}
	}
	return ""
}
