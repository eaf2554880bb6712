// Package reflisting reads the reference listings of a recording: it finds them, and puts one together of the parts
// that the probe sent (trace.RefPart), with the names of classes, threads and methods.
//
// A listing belongs to the newest collection before the JVM was stopped for it: until then no object has moved. It has
// the objects of eden as well. One of which a part was lost, or that the ring has evicted in part, cannot be read.
package reflisting

import (
	"errors"
	"fmt"
	"io"

	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// Source gives the blocks of a recording: heap.BlockSource.
type Source interface {
	Next() (trace.Block, error)
}

// Sources gives the blocks of a recording from its start, as often as needed. Heads is for Find: it may give a block of
// kind REFS without payload for each part of a listing but the first and the last. Parts is for Read. Defs is for
// Names, and needs no listings.
type Sources struct{ Heads, Parts, Defs func() Source }

// All is for a recording of which all get all blocks.
func All(open func() Source) Sources { return Sources{open, open, open} }

// About says what a listing of a recording is.
type About struct {
	trace.References
	Number uint64 // of the listing in its session
	Whole  bool   // all its parts are there
}

// ErrNone says that a recording has no reference listing that can be read.
var ErrNone = errors.New("the recording has no reference listing")

// maxDamage bounds the damaged blocks of a source, after which nothing more is expected of it.
const maxDamage = 10000

// each calls f with each block of kinds META, DEFS and REFS. It ends with f's error, and leaves out what is damaged.
func each(src Source, f func(b trace.Block) error) error {
	for damage := 0; damage < maxDamage; {
		b, err := src.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			damage++
			continue
		}
		switch b.Kind {
		case trace.KindMeta, trace.KindDefs, trace.KindRefs:
			if err := f(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find gives the reference listings of a recording, the oldest first, those that were refused or are not whole
// included. It takes a block without payload for a part that was left out: what is in it, Read will say.
func Find(src Source) ([]About, error) {
	var out []About
	next := uint64(0)
	err := each(src, func(b trace.Block) error {
		if b.Kind != trace.KindRefs {
			return nil
		}
		if len(b.Payload) == 0 {
			if next > 0 {
				next++
			}
			return nil
		}
		p, err := trace.DecodeRefs(b)
		if newer := (*trace.TooNewError)(nil); errors.As(err, &newer) {
			return err
		}
		if err != nil {
			next = 0
			return nil
		}
		if p.HasAbout {
			out = append(out, About{References: p.About, Number: p.Listing})
			next = 1
		}
		if next == 0 || len(out) == 0 || p.Listing != out[len(out)-1].Number || p.N != next {
			next = 0
			return nil
		}
		next++
		if p.Flags&trace.RefLast != 0 && p.N > 0 {
			out[len(out)-1].Whole = true
			next = 0
		}
		return nil
	})
	return out, err
}

// Choose gives the newest whole listing that is not newer than collection gc. Its error wraps ErrNone and says which
// ones there are.
func Choose(all []About, gc uint64) (About, error) {
	var refused string
	for i := len(all) - 1; i >= 0; i-- {
		switch a := &all[i]; {
		case a.Refused != "":
			refused = a.Refused
		case a.Whole && a.GC <= gc:
			return *a, nil
		}
	}
	switch {
	case refused != "":
		return About{}, fmt.Errorf("%w: the probe refused it: %s", ErrNone, refused)
	case len(all) > 0 && gc < all[0].GC:
		return About{}, fmt.Errorf("%w that is not newer than collection %d; the first one is of collection %d",
			ErrNone, gc, all[0].GC)
	case len(all) > 0:
		return About{}, fmt.Errorf("%w: parts of it are missing", ErrNone)
	}
	return About{}, ErrNone
}

// Read puts a listing together. names has what the recording defines up to its end. Errors: references.ErrIncomplete,
// references.ErrCorrupt, and those of decoding.
func Read(src Source, number uint64) (l *references.Listing, names *symbols.Table, err error) {
	return ReadIn(nil, src, number)
}

// ReadIn is Read with the columns in r, which must not be closed as long as they are used. nil: in memory.
func ReadIn(r *room.Room, src Source, number uint64) (l *references.Listing, names *symbols.Table, err error) {
	names = symbols.New()
	a := newAssembler(r, names)
	done := errors.New("done")
	err = each(src, func(b trace.Block) error {
		switch b.Kind {
		case trace.KindMeta:
			return names.Meta(b)
		case trace.KindDefs:
			return names.Define(b)
		}
		p, err := trace.DecodeRefs(b)
		if err != nil || p.Listing != number {
			return nil // it is another one, or a part will be missing
		}
		if err := a.add(p); err != nil {
			return err
		}
		if p.Flags&trace.RefLast != 0 {
			return done
		}
		return nil
	})
	switch {
	case err == nil:
		return nil, names, references.ErrIncomplete
	case err != done:
		return nil, names, err
	}
	l, err = a.finish()
	return l, names, err
}

// Names gives what a recording defines. Errors: those of decoding.
func Names(src Source) (*symbols.Table, error) {
	names := symbols.New()
	return names, each(src, func(b trace.Block) error {
		switch b.Kind {
		case trace.KindMeta:
			return names.Meta(b)
		case trace.KindDefs:
			return names.Define(b)
		}
		return nil
	})
}
