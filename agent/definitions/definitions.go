// Package definitions holds what a JVM's probe has defined (types, loaders, methods, frames, threads), and says what of
// it a file of the recording still lacks. A definition travels once from the probe; each file must be readable alone.
// So what a file uses and does not have yet is written before its use.
//
// Every id and every text is hostile: tables are bounded, and what is beyond is dropped and counted.
package definitions

import (
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

const (
	// maxDefs bounds each table of definitions, maxDefBytes all of them together, bytes: what a JVM can make the agent
	// remember. A program of 100,000 classes in use has some 60 MB.
	maxDefs     = 1 << 20
	maxDefBytes = 256 << 20
	// defBytes is what an entry of a map takes beside its texts.
	defBytes = 128
)

// Tables are the definitions of one recording, and which of them the present file has. Types and loaders that the probe
// reports as unloaded are dropped when a file begins. Methods and frames stay: the probe bounds how many it sends, and
// uses them again. Make one with New. It is not safe for concurrent use.
type Tables struct {
	Dropped uint64 // definitions beyond the bounds
	Missing uint64 // frames that a file refers to and lacks
	Bytes   int    // of the tables, about

	types   map[uint64]trace.Type
	loaders map[uint64]trace.Loader
	methods paged[*trace.Method] // without their ids
	frames  paged[frame]
	odd     map[uint64]trace.Frame // frames that do not fit into a frame
	threads paged[thread]
	known   known

	candidates map[uint64][]trace.Candidate // of a type
	scans      []trace.Scanned              // trace.AddScan

	// missing: frames that the file refers to and that are not known.
	inFile   struct{ types, loaders, methods, frames, threads, missing ids }
	unloaded struct{ types, loaders map[uint64]struct{} }
	ofTypes  map[uint64]int // types of a loader
	// recalled: types and loaders that only older files define. The probe may have reported to an agent before that
	// they were unloaded.
	recalled struct{ types, loaders map[uint64]struct{} }
}

// frame is a trace.Frame without its id, its parent + 1.
type frame struct {
	parent, method uint32
	bci            int32
}

// thread is a trace.Thread without its id; there: it is not the zero value.
type thread struct {
	name  string
	flags uint64
	there bool
}

// New gives tables that hold nothing.
func New() *Tables {
	d := &Tables{
		types: map[uint64]trace.Type{}, loaders: map[uint64]trace.Loader{}, odd: map[uint64]trace.Frame{},
		ofTypes: map[uint64]int{}, candidates: map[uint64][]trace.Candidate{}, known: newKnown(),
	}
	d.unloaded.types, d.unloaded.loaders = map[uint64]struct{}{}, map[uint64]struct{}{}
	return d
}

// NewFile says that the present file has no definitions yet.
func (d *Tables) NewFile() {
	for _, s := range []*ids{&d.inFile.types, &d.inFile.loaders, &d.inFile.methods, &d.inFile.frames,
		&d.inFile.threads, &d.inFile.missing} {
		s.clear()
	}
}

// Type gives a type.
func (d *Tables) Type(id uint64) (trace.Type, bool) { t, ok := d.types[id]; return t, ok }

// EachType calls f for each type, in the order of their ids.
func (d *Tables) EachType(f func(trace.Type)) {
	for _, id := range slices.Sorted(maps.Keys(d.types)) {
		f(d.types[id])
	}
}

// NumTypes is how many types there are.
func (d *Tables) NumTypes() int { return len(d.types) }

// Method gives a method. Its texts and lines are shared with others.
func (d *Tables) Method(id uint64) (trace.Method, bool) {
	m := d.methods.get(id)
	if m == nil {
		return trace.Method{}, false
	}
	out := *m
	out.ID = id
	return out, true
}

// Frame gives a frame.
func (d *Tables) Frame(id uint64) (trace.Frame, bool) {
	if f := d.frames.get(id); f != (frame{}) {
		return trace.Frame{ID: id, Parent: uint64(f.parent - 1), Method: uint64(f.method), BCI: int64(f.bci)}, true
	}
	f, ok := d.odd[id]
	return f, ok
}

func (d *Tables) thread(id uint64) (trace.Thread, bool) {
	t := d.threads.get(id)
	return trace.Thread{ID: id, Flags: t.flags, Name: t.name}, t.there
}

// What the texts of a type and of a loader take.
func typeBytes(t trace.Type) int     { return len(t.Name) }
func loaderBytes(l trace.Loader) int { return len(l.Name) }

// put keeps a type or a loader; false: there is no room for it.
func put[T any](d *Tables, m map[uint64]T, id uint64, v T, size func(T) int) bool {
	bytes := size(v) + defBytes
	old, ok := m[id]
	if ok {
		bytes -= size(old) + defBytes
	}
	if !ok && len(m) >= maxDefs || !d.room(bytes) {
		d.Dropped++
		return false
	}
	d.Bytes += bytes
	m[id] = v
	return true
}

func (d *Tables) room(bytes int) bool { return d.Bytes+bytes <= maxDefBytes }

// putMethod keeps a method, and says whether it is new.
func (d *Tables) putMethod(m *trace.Method) (fresh bool) {
	had := d.methods.get(m.ID) != nil
	if !had && d.methods.n >= maxDefs || !d.room(methodBytes(m)+4*textBytes) {
		d.Dropped++
		return false
	}
	own, bytes := d.known.method(m)
	d.Bytes += bytes + d.methods.set(m.ID, own)
	return !had
}

// putFrame keeps a frame, and says whether it is new.
func (d *Tables) putFrame(f trace.Frame) (fresh bool) {
	_, had := d.Frame(f.ID)
	if !had && d.frames.n+len(d.odd) >= maxDefs || !d.room(defBytes) {
		d.Dropped++
		return false
	}
	fits := f.ID < denseIDs && f.Parent < math.MaxUint32 && f.Method <= math.MaxUint32 && f.BCI == int64(int32(f.BCI))
	switch {
	case fits && d.odd[f.ID] == (trace.Frame{}):
		d.Bytes += d.frames.set(f.ID, frame{uint32(f.Parent + 1), uint32(f.Method), int32(f.BCI)})
	case d.frames.get(f.ID) == (frame{}):
		if d.odd[f.ID] = f; !had {
			d.Bytes += defBytes
		}
	}
	return !had
}

// putThread keeps a thread, and says whether it is new.
func (d *Tables) putThread(t trace.Thread) (fresh bool) {
	had := d.threads.get(t.ID).there
	if !had && d.threads.n >= maxDefs || !d.room(len(t.Name)+defBytes) {
		d.Dropped++
		return false
	}
	name, bytes := d.known.text(t.Name)
	d.Bytes += bytes + d.threads.set(t.ID, thread{name, t.Flags, true})
	return !had
}

// Add takes a DEFS block of the probe and returns what must be written to the present file at once: types and loaders
// that it lacks, and whatever is new. A site that is used only later stands in a file before the ring forgets it, so
// that the death of the agent takes none.
func (d *Tables) Add(x trace.Defs) (out trace.Defs) {
	for _, t := range x.Types {
		old, had := d.types[t.ID]
		if !put(d, d.types, t.ID, t, typeBytes) {
			continue
		}
		delete(d.unloaded.types, t.ID)
		delete(d.recalled.types, t.ID)
		if had {
			d.ofTypes[old.Loader]--
		}
		d.ofTypes[t.Loader]++
		if d.inFile.types.add(t.ID) {
			out.Types = append(out.Types, t)
		}
	}
	for _, l := range x.Loaders {
		if !put(d, d.loaders, l.ID, l, loaderBytes) {
			continue
		}
		delete(d.unloaded.loaders, l.ID)
		delete(d.recalled.loaders, l.ID)
		if d.inFile.loaders.add(l.ID) {
			out.Loaders = append(out.Loaders, l)
		}
	}
	for i := range x.Methods {
		if m := &x.Methods[i]; d.putMethod(m) && d.inFile.methods.add(m.ID) {
			out.Methods = append(out.Methods, *m)
		}
	}
	var fresh []uint64
	for _, f := range x.Frames {
		if d.putFrame(f) {
			fresh = append(fresh, f.ID)
		}
	}
	for _, t := range x.Threads {
		if d.putThread(t) && d.inFile.threads.add(t.ID) {
			out.Threads = append(out.Threads, t)
		}
	}
	for _, id := range x.GoneTypes {
		if _, ok := d.types[id]; ok {
			d.unloaded.types[id] = struct{}{}
		}
	}
	for _, id := range x.GoneLoaders {
		if _, ok := d.loaders[id]; ok {
			d.unloaded.loaders[id] = struct{}{}
		}
	}
	d.addCandidates(&out, &x)
	for _, id := range fresh { // all are known now: parents come first whatever the order of the block
		d.frame(&out, id)
	}
	return out
}

// addCandidates takes candidates of types that are known, and adds to out those that are new.
func (d *Tables) addCandidates(out, x *trace.Defs) {
	for _, c := range x.Candidates {
		have := d.candidates[c.Type]
		if _, ok := d.types[c.Type]; !ok || slices.Contains(have, c) {
			continue
		}
		if len(have) >= trace.MaxCandidates || !d.room(defBytes) {
			d.Dropped++
			continue
		}
		d.Bytes += defBytes
		d.candidates[c.Type] = append(have, c)
		if m, ok := d.Method(c.Method); ok && d.inFile.methods.add(c.Method) { // a stack of an older file had it
			out.Methods = append(out.Methods, m)
		}
		out.Candidates = append(out.Candidates, c)
	}
	for _, s := range x.Scanned {
		d.scans = trace.AddScan(d.scans, s)
		out.Scanned = append(out.Scanned, s)
	}
}

// CandidatesOf gives the bytecodes that make objects of a type, as far as the probe has read. They stay the tables'.
func (d *Tables) CandidatesOf(typ uint64) []trace.Candidate { return d.candidates[typ] }

// Rounds says which births the candidates account for (trace.ScansCover).
func (d *Tables) Rounds() []trace.Scanned { return d.scans }

// Need adds to out what a reference to frame and thread needs in the present file, and counts a frame that is not
// known.
func (d *Tables) Need(out *trace.Defs, frame, thread uint64) {
	if t, ok := d.thread(thread); ok && d.inFile.threads.add(thread) {
		out.Threads = append(out.Threads, t)
	}
	if !d.frame(out, frame) && d.inFile.missing.add(frame) {
		d.Missing++
	}
}

// frame adds to out what the present file lacks of a stack, parents before children. A stack that is not known up to
// its outermost frame is left out, and is written whole once it is known. A child never precedes its parent.
func (d *Tables) frame(out *trace.Defs, id uint64) (whole bool) {
	start := len(out.Frames)
	for id != 0 {
		f, ok := d.Frame(id)
		if !ok {
			for _, f := range out.Frames[start:] {
				d.inFile.frames.remove(f.ID)
			}
			out.Frames = out.Frames[:start]
			return false
		}
		if !d.inFile.frames.add(id) {
			break
		}
		out.Frames = append(out.Frames, f)
		id = f.Parent
	}
	for _, f := range out.Frames[start:] {
		if m, ok := d.Method(f.Method); ok && d.inFile.methods.add(f.Method) {
			out.Methods = append(out.Methods, m)
		}
	}
	slices.Reverse(out.Frames[start:])
	return true
}

// Recall notes that all that is known comes from older files.
func (d *Tables) Recall() {
	d.recalled.types, d.recalled.loaders = map[uint64]struct{}{}, map[uint64]struct{}{}
	for id := range d.types {
		d.recalled.types[id] = struct{}{}
	}
	for id := range d.loaders {
		d.recalled.loaders[id] = struct{}{}
	}
}

// Redefined says that the probe has sent all definitions since Recall: what only files define was unloaded.
func (d *Tables) Redefined() {
	maps.Copy(d.unloaded.types, d.recalled.types)
	maps.Copy(d.unloaded.loaders, d.recalled.loaders)
	d.recalled.types, d.recalled.loaders = nil, nil
}

// Forget drops what was unloaded, before a new file begins. in says that objects of a type are listed all the same:
// then the type stays for one more file.
func (d *Tables) Forget(in func(typ uint64) bool) {
	for id := range d.unloaded.types {
		if in(id) {
			continue
		}
		t := d.types[id]
		d.Bytes -= typeBytes(t) + defBytes
		if d.ofTypes[t.Loader]--; d.ofTypes[t.Loader] <= 0 {
			delete(d.ofTypes, t.Loader)
		}
		delete(d.types, id)
		delete(d.unloaded.types, id)
		d.Bytes -= len(d.candidates[id]) * defBytes
		delete(d.candidates, id)
	}
	for id := range d.unloaded.loaders {
		if d.ofTypes[id] == 0 {
			d.Bytes -= loaderBytes(d.loaders[id]) + defBytes
			delete(d.loaders, id)
			delete(d.unloaded.loaders, id)
		}
	}
}

// All gives every type, loader and candidate, for the head of a new file.
func (d *Tables) All() trace.Defs {
	var out trace.Defs
	for _, id := range slices.Sorted(maps.Keys(d.loaders)) {
		d.inFile.loaders.add(id)
		out.Loaders = append(out.Loaders, d.loaders[id])
	}
	for _, id := range slices.Sorted(maps.Keys(d.types)) {
		d.inFile.types.add(id)
		out.Types = append(out.Types, d.types[id])
		for _, c := range d.candidates[id] {
			if m, ok := d.Method(c.Method); ok && d.inFile.methods.add(c.Method) {
				out.Methods = append(out.Methods, m)
			}
			out.Candidates = append(out.Candidates, c)
		}
	}
	out.Scanned = d.scans
	return out
}

// AnyUnloaded says that Forget may have something to drop.
func (d *Tables) AnyUnloaded() bool { return len(d.unloaded.types)+len(d.unloaded.loaders) > 0 }

// Listed returns what the live samples and the sites of a listing refer to and the present file lacks.
func (d *Tables) Listed(live []trace.LiveSample, sited []trace.SitedAddr) (need trace.Defs) {
	for i := range live {
		d.Need(&need, live[i].Frame, live[i].Thread)
	}
	for i := range sited {
		d.Need(&need, sited[i].Frame, 0)
	}
	return need
}

// Rooted returns what roots refer to and the present file lacks.
func (d *Tables) Rooted(roots []trace.RefRoot) (need trace.Defs) {
	for i := range roots {
		if t, ok := d.thread(roots[i].Thread); ok && d.inFile.threads.add(t.ID) {
			need.Threads = append(need.Threads, t)
		}
		if m, ok := d.Method(roots[i].Method); ok && d.inFile.methods.add(m.ID) {
			need.Methods = append(need.Methods, m)
		}
	}
	return need
}
