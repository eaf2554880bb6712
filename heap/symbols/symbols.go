// Package symbols holds the names that a recording defines: classes, loaders, methods, stack frames, threads and the
// JVM that they belong to. Blocks refer to them by id.
//
// A definition may be repeated, since each file of a ring defines what it uses. A table only grows while a recording is
// read; Clone gives one that does not change any more. This package does not know objects or collections.
package symbols

import (
	"maps"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Table is what has been defined so far, by id. Make one with New; a Table that is read must not be defined in at the
// same time.
type Table struct {
	JVM     trace.JVM
	Types   map[uint64]trace.Type
	Loaders map[uint64]trace.Loader
	Methods map[uint64]trace.Method
	Frames  map[uint64]trace.Frame // parents are the ids that Site gives
	Threads map[uint64]trace.Thread
	// Candidates are the places that make objects of a type, as far as the probe has read bytecodes; Scans says of
	// which births all of them are known (trace.ScansCover).
	Candidates map[uint64][]trace.Candidate
	Scans      []trace.Scanned
	// SitesCut is what the recorder says of a full table of frames, nil if the table was not full.
	SitesCut *trace.SitesCut
	// Resource says whose recording it is; nil: not known.
	Resource trace.Resource

	first map[trace.Frame]uint64 // first id of each stack, by the frame without its id
	same  map[uint64]uint64      // ids of stacks that have an earlier id, to that one
	sizes *trace.TypeTable
}

// New gives an empty table.
func New() *Table {
	return &Table{
		Types: map[uint64]trace.Type{}, Loaders: map[uint64]trace.Loader{}, Methods: map[uint64]trace.Method{},
		Frames: map[uint64]trace.Frame{}, Threads: map[uint64]trace.Thread{},
		Candidates: map[uint64][]trace.Candidate{},
		first:      map[trace.Frame]uint64{}, sizes: trace.NewTypeTable(8),
	}
}

// Meta takes in a META block.
func (t *Table) Meta(b trace.Block) error {
	m, err := trace.DecodeMeta(b)
	if err == nil && m.HasJVM {
		t.JVM = m.JVM
		t.sizes.SetAlign(m.JVM.Align)
	}
	for _, s := range m.SitesCut {
		t.SitesCut = &s
	}
	if m.Resource != nil {
		t.Resource = m.Resource
	}
	return err
}

// Define takes in a DEFS block.
func (t *Table) Define(b trace.Block) error {
	d, err := trace.DecodeDefs(b)
	if err != nil {
		return err
	}
	for _, x := range d.Types {
		t.Types[x.ID] = x
	}
	for _, x := range d.Loaders {
		t.Loaders[x.ID] = x
	}
	for _, x := range d.Methods {
		t.Methods[x.ID] = x
	}
	for _, x := range d.Frames {
		t.frame(x)
	}
	for _, x := range d.Threads {
		t.Threads[x.ID] = x
	}
	t.candidates(&d)
	return t.sizes.DefineAll(d.Types)
}

func (t *Table) candidates(d *trace.Defs) {
	for _, c := range d.Candidates {
		have := t.Candidates[c.Type]
		if len(have) < trace.MaxCandidates && !slices.Contains(have, c) {
			t.Candidates[c.Type] = append(slices.Clip(have), c)
		}
	}
	for _, s := range d.Scanned {
		t.Scans = trace.AddScan(t.Scans, s)
	}
}

// frame takes in a frame. A probe whose table was full may give a stack that it meets again a new id: the first id
// stands for all of them.
func (t *Table) frame(f trace.Frame) {
	f.Parent = t.Site(f.Parent)
	same := f
	same.ID = 0
	if first, ok := t.first[same]; !ok {
		t.first[same] = f.ID
	} else if first != f.ID {
		if t.same == nil {
			t.same = map[uint64]uint64{}
		}
		t.same[f.ID] = first
	}
	t.Frames[f.ID] = f
}

// Site gives the id that stands for all frames with the stack of this one.
func (t *Table) Site(frame uint64) uint64 {
	if first, ok := t.same[frame]; ok {
		return first
	}
	return frame
}

// TypeName is the type's name as Class.getTypeName gives it, hidden classes without the parts that change from run to
// run.
func (t *Table) TypeName(id uint32) string {
	ty, ok := t.Types[uint64(id)]
	if !ok {
		return "(unknown class)"
	}
	return ty.Pretty()
}

// Filler says whether only the collector makes objects of this type, to fill gaps.
func (t *Table) Filler(id uint32) bool { return t.Types[uint64(id)].Flags&trace.TypeFiller != 0 }

// Sizes gives what decoders of tokens need of the types. It stays the table's.
func (t *Table) Sizes() *trace.TypeTable { return t.sizes }

// Clone gives a copy that later definitions do not change.
func (t *Table) Clone() *Table {
	c := *t
	c.Types, c.Loaders, c.Methods = maps.Clone(t.Types), maps.Clone(t.Loaders), maps.Clone(t.Methods)
	c.Frames, c.Threads = maps.Clone(t.Frames), maps.Clone(t.Threads)
	c.Candidates = maps.Clone(t.Candidates)
	c.first, c.same = maps.Clone(t.first), maps.Clone(t.same)
	c.sizes = nil // one is made by who continues reading: see Continue
	return &c
}

// Continue gives a clone that takes in further definitions.
func (t *Table) Continue() (*Table, error) {
	c := t.Clone()
	c.sizes = trace.NewTypeTable(8)
	c.sizes.SetAlign(t.JVM.Align)
	return c, c.sizes.DefineAll(slices.Collect(maps.Values(t.Types)))
}
