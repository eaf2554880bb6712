package main

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// mostSettled bounds the reference listings that a verdict reads: the newest of a recording.
const mostSettled = 4

// leakOptions is what the detector gets from a recording's reference listings: who holds what grows, and which sampled
// objects were dead. They are read when it asks.
func leakOptions(rec *ringstore.Recording, least float64) leak.Options {
	load := sync.OnceValue(func() settlement { return settledBy(rec) })
	held := heldBy(rec, load)
	return leak.Options{MinGrowth: least, Holder: held.text, Object: held.object, Retained: held.retained,
		Soft: held.soft, Evicts: held.evicts, Over: func(pid uint64) bool { return over(rec, pid) },
		ByRun: func() bool { return byRun(rec) },
		Alive: func(gc uint64) []heap.Count { return load().alive[gc] },
		Ages:  func(gc uint64) *leak.Ages { return agesOf(load().births[gc]) },
		Unreached: func(gc uint64) (map[uint64]bool, float64) {
			s := load()
			return s.dead[gc], s.at[gc]
		}}
}

// settlement is what the reference listings of a recording settle.
type settlement struct {
	dead map[uint64]map[uint64]bool // samples that a listing did not reach, by its collection
	at   map[uint64]float64         // when that was taken, in seconds of the stream
	gc   uint64                     // the collection of the newest listing, 0: none
	// the sampled objects in that, with their places; nil: not known
	placed []retention.Placed
	births map[uint64]*retention.Births // by collection of a listing: of what it found alive
	alive  map[uint64][]heap.Count      // by collection of a listing and by type
}

// agesOf is what the detector asks of births.
func agesOf(b *retention.Births) *leak.Ages {
	if b == nil {
		return nil
	}
	return &leak.Ages{At: b.At[:], Count: func(types map[uint64]bool, least, most uint64) (objects, bytes []float64) {
		objects, bytes = make([]float64, len(b.At)), make([]float64, len(b.At))
		for k, n := range b.Of {
			if size := 8 * uint64(k.Words); types[uint64(k.Type)] && size >= least && size <= most {
				for i, x := range n {
					objects[i] += float64(x)
					bytes[i] += float64(x) * float64(size)
				}
			}
		}
		return objects, bytes
	}}
}

// settledBy replays a recording up to its newest reference listing, once for all of them. A listing that cannot be
// read, or that lacks roots that may hold an application's objects, says nothing: then it is not among the dead.
func settledBy(rec *ringstore.Recording) (out settlement) {
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return out
	}
	gcs := reaches.GCs()
	if gcs = gcs[max(0, len(gcs)-mostSettled):]; len(gcs) == 0 {
		return out
	}
	out.gc, out.dead = gcs[len(gcs)-1], map[uint64]map[uint64]bool{}
	out.at, out.alive = map[uint64]float64{}, map[uint64][]heap.Count{}
	out.births = map[uint64]*retention.Births{}
	src := newSource(rec.Files...)
	defer src.Close()
	r := heap.NewReplay(src)
	var times retention.Times
	_ = collection.Each(r, func(c *heap.Collection) bool { // what is read up to an error counts
		times.GCs, times.At = append(times.GCs, c.GC), append(times.At, float64(c.End())/1e9)
		if !slices.Contains(gcs, c.GC) {
			return c.GC < out.gc
		}
		l, err := reaches.After(c.GC)
		if err != nil || l == nil {
			return c.GC < out.gc
		}
		var placed []retention.Placed
		if c.Known {
			placed = retention.PlacedIn(r.View())
		} else { // at depth samples the listing says it
			placed = l.Placed(r.Position().Live)
		}
		if (c.Known || len(placed) > 0) && l.Settles() {
			out.dead[c.GC], out.at[c.GC] = unreached(l, placed), float64(l.Time)/1e9
			out.alive[c.GC] = l.Alive()
			if c.Known {
				out.births[c.GC] = l.Births(r.View(), times)
			}
		}
		if c.GC == out.gc {
			out.placed = placed
		}
		return c.GC < out.gc
	})
	return out
}

// unreached gives the samples that a reference listing shows to be dead.
func unreached(l *retention.Liveness, placed []retention.Placed) map[uint64]bool {
	dead := map[uint64]bool{}
	for _, p := range placed {
		if typ := uint32(p.Sample.Type); l.Of(p.Word, typ) != retention.Live || l.Ends(p.Word, typ) {
			dead[p.Sample.ID] = true
		}
	}
	return dead
}

// settledReaches finds the reference listings of a recording. done closes what they read.
func settledReaches(rec *ringstore.Recording) (r *retention.Reaches, done func(), err error) {
	of := &listingSources{rec: rec}
	r, err = retention.NewReaches(of.sources())
	return r, of.close, err
}

// newReferenceHeads gives what reflisting.Find needs, and newReferenceSource what reflisting.Read needs.
func newReferenceHeads(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).ReferenceEnds, most: censusReadAhead}
}

func newReferenceSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).References, most: censusReadAhead}
}

// newDefinitionSource gives what reflisting.Names needs.
func newDefinitionSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).Definitions, most: censusReadAhead}
}

// listingSources opens a recording for its reference listings, as often as needed.
type listingSources struct {
	rec  *ringstore.Recording
	srcs []*source
}

func (l *listingSources) sources() reflisting.Sources {
	opening := func(reader func(...*ringstore.File) *source) func() reflisting.Source {
		return func() reflisting.Source {
			s := reader(l.rec.Files...)
			l.srcs = append(l.srcs, s)
			return s
		}
	}
	return reflisting.Sources{Heads: opening(newReferenceHeads), Parts: opening(newReferenceSource),
		Defs: opening(newDefinitionSource)}
}

// warn says what is damaged in the recording, if they have met damage.
func (l *listingSources) warn() {
	if !slices.ContainsFunc(l.srcs, func(s *source) bool { return len(s.Damage) > 0 }) {
		return
	}
	all := newCensusSource(l.rec.Files...) // it knows after which collection that is
	defer all.Close()
	for {
		if _, err := all.Next(); err == io.EOF {
			break
		}
	}
	all.warn(l.rec)
}

// close ends the reading. What it showed of its progress is removed: it may not have read to the end.
func (l *listingSources) close() {
	if len(l.srcs) > 0 {
		ui.ClearProgress()
	}
	for _, s := range l.srcs {
		s.Close()
	}
}

// deadAfter gives, by type, what nothing kept alive after the collection c, whose state is v; nil if no reference
// listing says that. Following the references takes long, so the index keeps the result.
func deadAfter(rec *ringstore.Recording, v *heap.View, c *heap.Collection) map[uint32]heap.Count {
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil || !slices.Contains(reaches.GCs(), c.GC) {
		return nil
	}
	dead, err := indexed(ownIndex(), deadResult(c.GC), rec.Path, func() (*map[uint32]heap.Count, error) {
		out, err := deadOf(reaches, v, c)
		return &out, err
	})
	if err != nil {
		return nil
	}
	return *dead
}

// deadOf is deadAfter without the index.
func deadOf(reaches *retention.Reaches, v *heap.View, c *heap.Collection) (map[uint32]heap.Count, error) {
	l, err := reaches.After(c.GC)
	if err != nil || l == nil || !l.Settles() {
		return nil, err
	}
	spaces := v.Spaces(c.Spaces)
	for i := range spaces { // what was allocated since, as large arrays in old space, is not in the state
		spaces[i].End = spaces[i].Top
	}
	_, types := l.BySpace(spaces, func(kind uint64) bool {
		return kind == trace.SpaceSurvivor || retention.Old(kind)
	})
	out := map[uint32]heap.Count{}
	for id, t := range types {
		out[id] = t.Dead()
	}
	return out, nil
}

// garbage says how much of old space was garbage when references were listed last; nil if that is not known.
func garbage(rec *ringstore.Recording) *leak.Garbage {
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return nil
	}
	gcs := reaches.GCs()
	gcs = gcs[max(0, len(gcs)-mostSettled):]
	var v *heap.View
	var spaces map[uint64][]heap.SpaceAt
	for _, gc := range slices.Backward(gcs) {
		l, err := reaches.After(gc)
		if err != nil || l == nil || !l.Settles() {
			continue
		}
		if spaces == nil {
			v, spaces = spacesAfter(rec, gcs)
		}
		if spaces[gc] == nil {
			continue
		}
		all, _ := l.BySpace(spaces[gc], retention.Old)
		return &leak.Garbage{GC: gc, Time: collection.Wall(v.Symbols, l.Time), Old: all.All().Bytes,
			Unreached: all.Unreached.Bytes, Weak: all.Weak.Bytes}
	}
	return nil
}

// listedBetween gives the collections of the oldest and the newest whole reference listing, 0 if there is none.
func listedBetween(rec *ringstore.Recording) (first, last uint64) {
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return 0, 0
	}
	if gcs := reaches.GCs(); len(gcs) > 0 {
		first, last = gcs[0], gcs[len(gcs)-1]
	}
	return first, last
}

// spacesAfter gives where the heap's spaces are after each of some collections, in order, as far as that is known. A
// collection that a storm left without a listing says it, too; but for regions, of which each can become another space.
func spacesAfter(rec *ringstore.Recording, gcs []uint64) (*heap.View, map[uint64][]heap.SpaceAt) {
	src := newCensusSource(rec.Files...)
	defer src.Close()
	r := censusOf(src)
	spaces := map[uint64][]heap.SpaceAt{}
	if err := collection.Each(r, func(c *heap.Collection) bool {
		if slices.Contains(gcs, c.GC) && (c.Known || r.Position().JVM.RegionWords == 0) {
			spaces[c.GC] = r.View().Spaces(c.Spaces)
		}
		return c.GC < gcs[len(gcs)-1]
	}); err != nil {
		clear(spaces)
	}
	return r.View(), spaces
}

// recordedIn asks the agent, if there is one, for the folder of the recording of a JVM; "" if it does not record it.
func recordedIn(ctx context.Context, socket, jvm string) string {
	cl, err := dialAgent(socket)
	if err != nil {
		return ""
	}
	st, err := cl.Status(ctx)
	if err != nil {
		return ""
	}
	s, err := pick(st.JVMs, jvm)
	if err != nil {
		return ""
	}
	return s.Dir
}

// settle has the agent take a reference listing of a JVM that it records, and gives the folder of the recording.
func settle(ctx context.Context, socket, jvm string) (dir string, err error) {
	cl, err := dialAgent(socket)
	if err != nil {
		return "", err
	}
	st, err := cl.Status(ctx)
	if err != nil {
		return "", err
	}
	s, err := pickRunning(st.JVMs, jvm)
	if err != nil {
		return "", err
	}
	r, err := cl.Settle(ctx, api.ReferencesRequest{ID: s.ID, Most: int64(defaultReferencePause)})
	if err != nil {
		return "", err
	}
	ui.Fprintf(ui.Stderr, "heapcam: found out which of %s live; the JVM stopped for %s\n",
		ui.Plural(r.Objects, "object"), ui.Nanoseconds(r.StopNS))
	return s.Dir, nil
}
