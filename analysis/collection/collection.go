// Package collection finds the collection that a user names (a number, first, last, peak, or a time) and replays a
// recording up to it.
package collection

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// ErrNotThere is below errors that say that a recording does not hold what was asked for.
var ErrNotThere = errors.New("not in the recording")

// RefError says that a reference to a collection means nothing.
type RefError struct{ Ref string }

func (e *RefError) Error() string {
	return fmt.Sprintf("%s: it must be a number, first, last, peak, or a time like 15:04:05", e.Ref)
}

type NotThere string

func (e NotThere) Error() string { return string(e) }
func (e NotThere) Unwrap() error { return ErrNotThere }

// Each calls f after each collection of r until it returns false.
func Each(r heap.Reader, f func(*heap.Collection) bool) error {
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || !f(c) {
			return err
		}
	}
}

// Point is one collection after which the state is known. Bytes are those of the state, At is the end of its pause.
type Point struct {
	GC, Bytes uint64
	At        time.Time
}

// PointOf describes c, after which the state of r is known.
func PointOf(r *heap.Symbols, c *heap.Collection) Point {
	return Point{c.GC, c.Bytes, Wall(r, c.End())}
}

// Points replays all of r and gives the collections after which the state is known.
func Points(r heap.Reader) ([]Point, error) {
	var out []Point
	err := Each(r, func(c *heap.Collection) bool {
		if c.Known {
			out = append(out, PointOf(r.Position().Symbols, c))
		}
		return true
	})
	return out, err
}

// Find gives the collection number that ref means: a number, first, last, peak, or a time (15:04:05 local or RFC 3339:
// the last collection not after it). count gives the recording from its start for a replay that need only count, open
// for one that follows objects; of one of them, unless ref is a number, all is replayed. Errors: *RefError,
// ErrNotThere, and those of the replay.
func Find[R heap.Reader](ref string, count func() R, open func() *heap.Replay) (uint64, error) {
	n, _, err := FindTwo(ref, ref, count, open)
	return n, err
}

// FindTwo is Find for two references.
func FindTwo[R heap.Reader](a, b string, count func() R, open func() *heap.Replay) (uint64, uint64, error) {
	var points []Point
	var out [2]uint64
	for i, ref := range []string{a, b} {
		n, err := strconv.ParseUint(ref, 10, 64)
		if err != nil {
			if points == nil {
				if points, err = countPoints(a == "peak" || b == "peak", count, open); err != nil {
					return 0, 0, err
				}
			}
			if n, err = FindAmong(ref, points); err != nil {
				return 0, 0, err
			}
		}
		out[i] = n
	}
	return out[0], out[1], nil
}

// Locate calls use with the collections that two references mean, for who needs to know the objects there and not only
// how many there are. A listing in slices has counted all with its first slice, so counting may find a collection of
// which use says that its state is not there (ErrNotThere). Then use is called again with one of which all is listed.
func Locate[R heap.Reader](a, b string, count func() R, open func() *heap.Replay, use func(a, b uint64) error) error {
	x, y, err := FindTwo(a, b, count, open)
	if err != nil {
		return err
	}
	if err = use(x, y); !errors.Is(err, ErrNotThere) {
		return err
	}
	if p, q, failed := FindTwo(a, b, open, open); failed == nil && (p != x || q != y) {
		return use(p, q)
	}
	return err
}

// countPoints is Points by counting, if that gives the same; bytes says that the bytes matter.
func countPoints[R heap.Reader](bytes bool, count func() R, open func() *heap.Replay) (out []Point, err error) {
	r := count()
	var since SinceSweep
	swept := false
	if err = Each(r, func(c *heap.Collection) bool {
		since.Of(r)(c)
		swept = swept || since.Swept
		if c.Known {
			out = append(out, PointOf(r.Position().Symbols, c))
		}
		return true
	}); err == nil && Counts(r) && (heap.Unsure(r) || bytes && swept) {
		return Points(open())
	}
	return out, err
}

// Counts says whether r does not follow objects.
func Counts(r heap.Reader) bool {
	_, yes := r.(*heap.Census)
	return yes
}

// noState also says why it may be so.
const noState = "the state is known after no collection; at depth samples, as with ZGC, Shenandoah and Epsilon, it " +
	"never is: see heapcam report"

// FindAmong is Find for who has all points of the recording.
func FindAmong(ref string, points []Point) (uint64, error) {
	if n, err := strconv.ParseUint(ref, 10, 64); err == nil {
		return n, nil
	}
	if len(points) == 0 {
		return 0, NotThere(noState)
	}
	switch ref {
	case "first":
		return points[0].GC, nil
	case "last":
		return points[len(points)-1].GC, nil
	case "peak":
		best := points[0]
		for _, p := range points {
			if p.Bytes > best.Bytes {
				best = p
			}
		}
		return best.GC, nil
	}
	first, last := points[0].At, points[len(points)-1].At
	t, ok := ui.ParseTime(ref, last.Truncate(time.Second).Add(time.Second))
	if !ok {
		return 0, &RefError{ref}
	}
	if t.Before(first.Truncate(time.Second)) || t.After(last.Add(time.Second)) {
		return 0, NotThere(
			fmt.Sprintf("%s: the recording goes from %s to %s", ref, ui.Time(first), ui.Time(last)),
		)
	}
	i := sort.Search(len(points), func(i int) bool { return points[i].At.After(t) })
	return points[max(i-1, 0)].GC, nil
}

// Open gives the recording replayed up to the collection that ref means, and that collection. count and open are as for
// Find. Errors are those of Find and At.
func Open[R heap.Reader](
	ref string,
	count func() R,
	open func() *heap.Replay,
) (*heap.View, *heap.Collection, error) {
	return OpenWatched(ref, count, open, func(*heap.Cursor) func(*heap.Collection) { return func(*heap.Collection) {} })
}

// OpenWatched is Open for who follows the replay: watch is asked at the beginning of each, and what it gave for the one
// that Open's result is of has then seen each collection up to that.
func OpenWatched[R heap.Reader](
	ref string,
	count func() R,
	open func() *heap.Replay,
	watch func(*heap.Cursor) func(*heap.Collection),
) (*heap.View, *heap.Collection, error) {
	if ref == "last" {
		r := open()
		at, known, err := toEnd(r, watch(&r.Cursor))
		if at != nil || err != nil {
			return r.View(), at, err
		}
		if known != 0 {
			ref = strconv.FormatUint(known, 10)
		}
	}
	var v *heap.View
	var c *heap.Collection
	err := Locate(ref, ref, count, open, func(gc, _ uint64) (err error) {
		r := open()
		c, err = AtWatched(r, gc, watch(&r.Cursor))
		v = r.View()
		return err
	})
	return v, c, err
}

// toEnd replays all of r: mostly the state at the end is known, and one pass does. Else it gives the number of the last
// collection after which it is, 0 if there is none.
func toEnd(r heap.Reader, each func(*heap.Collection)) (at *heap.Collection, known uint64, err error) {
	err = Each(r, func(c *heap.Collection) bool {
		each(c)
		if at = c; c.Known {
			known = c.GC
		}
		return true
	})
	if err == nil && (at == nil || !at.Known || !r.Position().Known) {
		at = nil
	}
	return at, known, err
}

// OpenTypes is Open for who asks no more of the state than what there is of each type: it counts, if that gives the
// same.
func OpenTypes[R heap.Reader](
	ref string,
	count func() R,
	open func() *heap.Replay,
) (*heap.View, *heap.Collection, error) {
	if ref == "last" {
		r := count()
		var since SinceSweep
		at, known, err := toEnd(r, since.Of(r))
		switch {
		case err != nil:
			return nil, nil, err
		case Counts(r) && (heap.Unsure(r) || since.Swept):
			return Open(ref, count, open)
		case at != nil:
			return r.View(), at, nil
		case known != 0:
			ref = strconv.FormatUint(known, 10)
		}
	}
	gc, err := Find(ref, count, open)
	if err != nil {
		return nil, nil, err
	}
	r := count()
	var since SinceSweep
	c, err := AtWatched(r, gc, since.Of(r))
	if Counts(r) && (heap.Unsure(r) || since.Swept) {
		r := open()
		c, err = At(r, gc)
		return r.View(), c, err
	}
	return r.View(), c, err
}

// At replays r up to and with collection gc. Its error is ErrNotThere if the recording does not hold it or its state is
// not known.
func At(r heap.Reader, gc uint64) (*heap.Collection, error) {
	return AtWatched(r, gc, func(*heap.Collection) {})
}

// AtWatched is At that calls each for every collection up to gc.
func AtWatched(r heap.Reader, gc uint64, each func(*heap.Collection)) (*heap.Collection, error) {
	var complete uint64
	var at *heap.Collection
	if err := Each(r, func(c *heap.Collection) bool {
		if at != nil { // a part of its state is known: when is all of it?
			if c.Known {
				complete = c.GC
			}
			return complete == 0
		}
		each(c)
		if c.GC == gc {
			at = c
		}
		return at == nil || at.Partial
	}); err != nil {
		return nil, err
	}
	switch {
	case at == nil:
		return nil, NotThere(notAmong(gc, slices.Sorted(maps.Keys(r.Position().Ends))))
	case at.Partial:
		return nil, NotThere(partly(at, complete))
	case !at.Known:
		return nil, NotThere(
			fmt.Sprintf("the state after collection %d is not known (`heapcam report` shows where it is)", gc),
		)
	}
	return at, nil
}

// notAmong says that gc is none of the collections of a recording, which are in order.
func notAmong(gc uint64, all []uint64) string {
	if len(all) == 0 {
		return fmt.Sprintf("collection %d is not in the recording, which has none", gc)
	}
	return fmt.Sprintf("collection %d is not in the recording, which has collections %d to %d", gc, all[0],
		all[len(all)-1])
}

// partly says what is known of a state while its listing is spread over collections.
func partly(c *heap.Collection, complete uint64) string {
	when := "no later collection of the recording completes it"
	if complete > 0 {
		when = fmt.Sprintf("it is complete after collection %d", complete)
	}
	left := ""
	if c.Unlisted > 0 { // else the next slice tells
		left = fmt.Sprintf("; %d bytes are not listed yet", c.Unlisted)
	}
	return fmt.Sprintf("the state after collection %d is known in part (%d objects%s); %s",
		c.GC, c.Objects, left, when)
}

// Wall is the time of day, UTC, of a stream time.
func Wall(r *heap.Symbols, ns uint64) time.Time {
	// A hostile anchor must not give a year that JSON refuses.
	return time.UnixMilli(int64(min(r.JVM.T0WallMS, 1<<47))).Add(time.Duration(ns)).UTC()
}
