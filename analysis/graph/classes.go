package graph

import (
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
)

// lastingLoaders are the class loaders of the JDK that are never unloaded, apart from the boot loader.
var lastingLoaders = map[string]bool{
	"jdk/internal/loader/ClassLoaders$AppClassLoader":      true,
	"jdk/internal/loader/ClassLoaders$PlatformClassLoader": true,
}

// addClasses gives objects a reference to the mirror of their class, as their last field, which no slot of the JVM has:
// an object keeps its class alive, and with it the class loader, its other classes and their statics. Objects of
// classes that are never unloaded get none: it would hold nothing.
func addClasses(r *room.Room, l *references.Listing) {
	edge, n := classEdges(l)
	if n == 0 {
		return
	}
	to := uint64(len(l.Slots)) + n
	if had := l.Slots; to > uint64(cap(had)) {
		l.Slots = room.Make[uint32](r, int(to))
		copy(l.Slots, had)
		room.Free(r, had)
	} else {
		l.Slots = had[:to]
	}
	for i := len(l.Addr) - 1; i >= 0; i-- { // from the end, for all slots move up
		from, end := l.First[i], l.First[i+1]
		l.First[i+1] = to
		e := edge[l.Code[i]]
		if e == 0 {
			to -= end - from
			copy(l.Slots[to:], l.Slots[from:end])
			continue
		}
		fields := from + uint64(len(l.Shapes[l.Code[i]].Fields))
		to -= end - fields
		copy(l.Slots[to:], l.Slots[fields:end])
		to--
		l.Slots[to] = e
		to -= fields - from
		copy(l.Slots[to:], l.Slots[from:fields])
	}
	for code, e := range edge {
		if e != 0 {
			s := &l.Shapes[code]
			s.Fields = append(s.Fields[:len(s.Fields):len(s.Fields)], references.ClassField)
		}
	}
}

// classEdges gives for each shape the slot that its objects get, 0 for none, and how many objects get one.
func classEdges(l *references.Listing) (edge []uint32, n uint64) {
	mirror, lasting := map[uint32]uint32{}, map[uint32]bool{}
	for i, code := range l.Code {
		s := &l.Shapes[code]
		switch {
		case s.Kind == references.Mirror && s.Class != 0:
			mirror[s.Class] = l.Addr[i] + 1
		case s.Kind == references.Loader && lastingLoaders[s.Name]:
			for _, t := range l.Of(i)[len(s.Fields):] {
				lasting[t] = true
			}
		}
	}
	for i := range l.Roots {
		if r := &l.Roots[i]; r.Kind == references.LoaderRoot || r.Kind == references.SystemClass {
			lasting[r.Target] = true
		}
	}
	edge = make([]uint32, len(l.Shapes))
	for code := range l.Shapes {
		s := &l.Shapes[code]
		switch s.Kind {
		case references.Instance, references.Reference, references.Loader, references.ObjectArray:
			n := len(s.Fields)
			had := n > 0 && s.Fields[n-1] == references.ClassField
			if t := mirror[s.Class]; s.Class != 0 && t != 0 && !lasting[t] && !had && n < references.MaxFields {
				edge[code] = t
			}
		}
	}
	for _, code := range l.Code {
		if edge[code] != 0 {
			n++
		}
	}
	return edge, n
}
