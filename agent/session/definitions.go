package session

import (
	"maps"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

const (
	// maxDefs bounds each table of definitions, maxDefBytes all of them together, bytes: what a JVM can make the agent
	// remember. A program of 100,000 classes in use has some 60 MB.
	maxDefs     = 1 << 20
	maxDefBytes = 256 << 20
	// defBytes is what an entry takes beside its texts and lines.
	defBytes = 128
)

// definitions holds the definitions of one recording, and which of them the present file has. A definition travels once
// from the probe; each file must be readable alone, so what a file uses and does not have yet is written before its
// use. Types and loaders that the probe reports as unloaded are dropped when a file begins. Methods and
// frames stay: the probe bounds how many it sends, and uses them again.
type definitions struct {
	types   map[uint64]trace.Type
	loaders map[uint64]trace.Loader
	methods map[uint64]trace.Method
	frames  map[uint64]trace.Frame
	threads map[uint64]trace.Thread

	candidates map[uint64][]trace.Candidate // of a type
	scans      []trace.Scanned              // trace.AddScan

	// missing: frames that the file refers to and that are not known.
	inFile   struct{ types, loaders, methods, frames, threads, missing map[uint64]struct{} }
	unloaded struct{ types, loaders map[uint64]struct{} }
	ofTypes  map[uint64]int // types of a loader
	// recalled: types and loaders that only older files define. The probe may have reported to an agent before that
	// they were unloaded.
	recalled struct{ types, loaders map[uint64]struct{} }

	dropped uint64 // definitions beyond the bounds
	missing uint64 // frames that a file refers to and lacks
	bytes   int    // of the tables
}

func newDefinitions() *definitions {
	d := &definitions{
		types: map[uint64]trace.Type{}, loaders: map[uint64]trace.Loader{}, methods: map[uint64]trace.Method{},
		frames: map[uint64]trace.Frame{}, threads: map[uint64]trace.Thread{}, ofTypes: map[uint64]int{},
		candidates: map[uint64][]trace.Candidate{},
	}
	d.unloaded.types, d.unloaded.loaders = map[uint64]struct{}{}, map[uint64]struct{}{}
	d.newFile()
	return d
}

func (d *definitions) newFile() {
	f := &d.inFile
	f.types, f.loaders, f.methods = map[uint64]struct{}{}, map[uint64]struct{}{}, map[uint64]struct{}{}
	f.frames, f.threads, f.missing = map[uint64]struct{}{}, map[uint64]struct{}{}, map[uint64]struct{}{}
}

// What the texts and lines of a definition take.
func typeBytes(t trace.Type) int     { return len(t.Name) }
func loaderBytes(l trace.Loader) int { return len(l.Name) }
func methodBytes(m trace.Method) int {
	return len(m.Class) + len(m.Name) + len(m.Sig) + len(m.File) + 16*len(m.Lines)
}
func frameBytes(trace.Frame) int     { return 0 }
func threadBytes(t trace.Thread) int { return len(t.Name) }

// put keeps a definition; false: there is no room for it.
func put[T any](d *definitions, m map[uint64]T, id uint64, v T, size func(T) int) bool {
	bytes := size(v) + defBytes
	old, ok := m[id]
	if ok {
		bytes -= size(old) + defBytes
	}
	if !ok && len(m) >= maxDefs || d.bytes+bytes > maxDefBytes {
		d.dropped++
		return false
	}
	d.bytes += bytes
	m[id] = v
	return true
}

// add takes a DEFS block of the probe and returns what must be written to the present file at once: types and loaders
// that it lacks, and whatever is new. A site that is used only later stands in a file before the ring forgets it, so
// that the death of the agent takes none.
func (d *definitions) add(x trace.Defs) (out trace.Defs) {
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
		if use(d.inFile.types, t.ID) {
			out.Types = append(out.Types, t)
		}
	}
	for _, l := range x.Loaders {
		if !put(d, d.loaders, l.ID, l, loaderBytes) {
			continue
		}
		delete(d.unloaded.loaders, l.ID)
		delete(d.recalled.loaders, l.ID)
		if use(d.inFile.loaders, l.ID) {
			out.Loaders = append(out.Loaders, l)
		}
	}
	for _, m := range x.Methods {
		_, had := d.methods[m.ID]
		if put(d, d.methods, m.ID, m, methodBytes) && !had && use(d.inFile.methods, m.ID) {
			out.Methods = append(out.Methods, m)
		}
	}
	var fresh []uint64
	for _, f := range x.Frames {
		if _, had := d.frames[f.ID]; put(d, d.frames, f.ID, f, frameBytes) && !had {
			fresh = append(fresh, f.ID)
		}
	}
	for _, t := range x.Threads {
		if _, had := d.threads[t.ID]; put(d, d.threads, t.ID, t, threadBytes) && !had && use(d.inFile.threads, t.ID) {
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
func (d *definitions) addCandidates(out, x *trace.Defs) {
	for _, c := range x.Candidates {
		have := d.candidates[c.Type]
		if _, ok := d.types[c.Type]; !ok || slices.Contains(have, c) {
			continue
		}
		if len(have) >= trace.MaxCandidates || d.bytes+defBytes > maxDefBytes {
			d.dropped++
			continue
		}
		d.bytes += defBytes
		d.candidates[c.Type] = append(have, c)
		out.Candidates = append(out.Candidates, c)
	}
	for _, s := range x.Scanned {
		d.scans = trace.AddScan(d.scans, s)
		out.Scanned = append(out.Scanned, s)
	}
}

// use marks id and says whether it was not there yet.
func use(m map[uint64]struct{}, id uint64) bool {
	if _, ok := m[id]; ok {
		return false
	}
	m[id] = struct{}{}
	return true
}

// need adds to out what a reference to frame and thread needs in the present file, and counts a frame that is not
// known.
func (d *definitions) need(out *trace.Defs, frame, thread uint64) {
	if t, ok := d.threads[thread]; ok && use(d.inFile.threads, thread) {
		out.Threads = append(out.Threads, t)
	}
	if !d.frame(out, frame) && use(d.inFile.missing, frame) {
		d.missing++
	}
}

// frame adds to out what the present file lacks of a stack, parents before children. A stack that is not known up to
// its outermost frame is left out, and is written whole once it is known. A child never precedes its parent.
func (d *definitions) frame(out *trace.Defs, frame uint64) (whole bool) {
	start := len(out.Frames)
	for frame != 0 {
		f, ok := d.frames[frame]
		if !ok {
			for _, f := range out.Frames[start:] {
				delete(d.inFile.frames, f.ID)
			}
			out.Frames = out.Frames[:start]
			return false
		}
		if !use(d.inFile.frames, frame) {
			break
		}
		out.Frames = append(out.Frames, f)
		frame = f.Parent
	}
	for _, f := range out.Frames[start:] {
		if m, ok := d.methods[f.Method]; ok && use(d.inFile.methods, f.Method) {
			out.Methods = append(out.Methods, m)
		}
	}
	slices.Reverse(out.Frames[start:])
	return true
}

// recall notes that all that is known comes from older files.
func (d *definitions) recall() {
	d.recalled.types, d.recalled.loaders = map[uint64]struct{}{}, map[uint64]struct{}{}
	for id := range d.types {
		d.recalled.types[id] = struct{}{}
	}
	for id := range d.loaders {
		d.recalled.loaders[id] = struct{}{}
	}
}

// redefined says that the probe has sent all definitions since recall: what only files define was unloaded.
func (d *definitions) redefined() {
	maps.Copy(d.unloaded.types, d.recalled.types)
	maps.Copy(d.unloaded.loaders, d.recalled.loaders)
	d.recalled.types, d.recalled.loaders = nil, nil
}

// forget drops what was unloaded, before a new file begins. in says that objects of a type are listed all the same:
// then the type stays for one more file.
func (d *definitions) forget(in func(typ uint64) bool) {
	for id := range d.unloaded.types {
		if in(id) {
			continue
		}
		t := d.types[id]
		d.bytes -= typeBytes(t) + defBytes
		if d.ofTypes[t.Loader]--; d.ofTypes[t.Loader] <= 0 {
			delete(d.ofTypes, t.Loader)
		}
		delete(d.types, id)
		delete(d.unloaded.types, id)
		d.bytes -= len(d.candidates[id]) * defBytes
		delete(d.candidates, id)
	}
	for id := range d.unloaded.loaders {
		if d.ofTypes[id] == 0 {
			d.bytes -= loaderBytes(d.loaders[id]) + defBytes
			delete(d.loaders, id)
			delete(d.unloaded.loaders, id)
		}
	}
}

// all gives every type, loader and candidate, for the head of a new file.
func (d *definitions) all() trace.Defs {
	var out trace.Defs
	for _, id := range slices.Sorted(maps.Keys(d.loaders)) {
		use(d.inFile.loaders, id)
		out.Loaders = append(out.Loaders, d.loaders[id])
	}
	for _, id := range slices.Sorted(maps.Keys(d.types)) {
		use(d.inFile.types, id)
		out.Types = append(out.Types, d.types[id])
		for _, c := range d.candidates[id] {
			if m, ok := d.methods[c.Method]; ok && use(d.inFile.methods, c.Method) {
				out.Methods = append(out.Methods, m)
			}
			out.Candidates = append(out.Candidates, c)
		}
	}
	out.Scanned = d.scans
	return out
}

func empty(x trace.Defs) bool {
	return len(x.Types)+len(x.Loaders)+len(x.Methods)+len(x.Frames)+len(x.Threads)+len(x.Candidates)+
		len(x.Scanned) == 0
}

// anyUnloaded says that forget may have something to drop.
func (d *definitions) anyUnloaded() bool { return len(d.unloaded.types)+len(d.unloaded.loaders) > 0 }

// listed returns what the live samples of a listing refer to and the present file lacks.
func (d *definitions) listed(live []trace.LiveSample) (need trace.Defs) {
	for i := range live {
		d.need(&need, live[i].Frame, live[i].Thread)
	}
	return need
}
