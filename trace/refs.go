package trace

import "encoding/binary"

// RefPart is a decoded REFS block: one part of a reference listing. The blobs of Lists and Slots alias the block. A
// listing is complete if its parts 1 to the one with RefLast are there, in this order.
type RefPart struct {
	Listing, N, Flags uint64

	About    References
	HasAbout bool // the first part has it
	Classes  []RefClass
	Fields   []RefField
	Extra    []RefExtra
	Roots    []RefRoot
	Lists    [][]byte // list tokens of objects
	// Slots are the references of the objects so far, in their order: word of the target + 1, 0: null. RefSlot reads
	// them.
	Slots [][]byte
	// Columns are the same by class and slot, in the place of Slots: package references packs and unpacks them.
	Columns []byte
	// Samples are the sampled objects that lived when the JVM was stopped, and that had survived a collection.
	Samples []RefSample
}

// References says what a reference listing is. Refused: why there is none; then it has no objects.
type References struct {
	Ticket, GC       uint64 // request; newest collection when it was taken
	Time, Dur, Probe uint64 // when the JVM was stopped, how long, how long for the objects; ns
	Objects, Slots   uint64
	NumRoots         uint64
	Missing, Refused string // Missing: what it lacks, a line each
}

// RefClass is a class that is loaded, or of which there are objects. Slots are those of an instance; Statics those of
// its mirror. Type is 0 where there are no objects of it, and then it has a Name.
type RefClass struct {
	ID, Type, Kind, Slots, Statics uint64
	Name                           string
}

// RefField names a slot of a class's instances, or with RefStatic one of its mirror's statics. Declared is the class
// that declares it, 0: not known; Sig is the descriptor of the field's type.
type RefField struct {
	Class, Slot, Flags, Strength, Declared uint64
	Name, Sig                              string
}

// RefExtra is a reference that no slot has (RefDefines, RefResolved). Words from the heap base.
type RefExtra struct{ From, To, Kind uint64 }

// RefRoot is a root. Target is a word from the heap base + 1; Thread and Method are ids of definitions, 0: not known;
// BCI is a byte code index + 1, 0: not known.
type RefRoot struct{ Target, Kind, Thread, Method, BCI, Depth uint64 }

// RefSample is where a sample's object is. Word from the heap base.
type RefSample struct{ ID, Word uint64 }

// DecodeRefs decodes a REFS block. It begins with its refpart.
func DecodeRefs(b Block) (*RefPart, error) {
	p := &RefPart{}
	parts := 0
	err := rows(b, KindRefs, func(r *row) (string, error) {
		n := &r.num
		if (r.ev.Tag == TagRefPart) != (parts == 0) {
			return "refpart is not the first event, or not the only one", nil
		}
		parts = 1
		return p.take(r, n)
	})
	if err == nil && p.Columns != nil && len(p.Slots) > 0 {
		err = &CorruptError{Kind: KindRefs, Why: "slots and columns"}
	}
	if err == nil && parts == 0 {
		err = &CorruptError{Kind: KindRefs, Why: "no refpart"}
	}
	return p, err
}

func (p *RefPart) take(r *row, n *[maxNums]uint64) (why string, err error) {
	switch r.ev.Tag {
	case TagRefPart:
		p.Listing, p.N, p.Flags = n[0], n[1], n[2]
		if (p.Flags&RefFirst != 0) != (p.N == 1) {
			return "the first part is not part 1", nil
		}
	case TagReferences:
		if p.HasAbout || p.N != 1 {
			return "references not in the first part, or twice", nil
		}
		p.HasAbout = true
		p.About = References{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], r.str(0), r.str(1)}
	case TagRefClass:
		p.Classes = append(p.Classes, RefClass{n[0], n[1], n[2], n[3], n[4], r.str(0)})
	case TagRefField:
		p.Fields = append(p.Fields, RefField{n[0], n[1], n[2], n[3], n[4], r.str(0), r.str(1)})
	case TagRefExtra:
		err = readRecords(r.text[0], r.ev, func(rec *record) {
			p.Extra = append(p.Extra, RefExtra{rec[0], rec[1], rec[2]})
		})
	case TagRefRoots:
		err = readRecords(r.text[0], r.ev, func(rec *record) {
			p.Roots = append(p.Roots, RefRoot{rec[0], rec[1], rec[2], rec[3], rec[4], rec[5]})
		})
	case TagRefSamples:
		err = readRecords(r.text[0], r.ev, func(rec *record) {
			p.Samples = append(p.Samples, RefSample{rec[0], rec[1]})
		})
	case TagRefList:
		p.Lists = append(p.Lists, r.text[0])
	case TagRefSlots:
		if len(r.text[0])%4 != 0 {
			return "slots are not whole", nil
		}
		p.Slots = append(p.Slots, r.text[0])
	case TagRefColumns:
		if p.Columns != nil {
			return "two events of columns", nil
		}
		p.Columns = r.text[0]
	}
	return why, err
}

// RefSlot gives slot i of a blob of slots.
func RefSlot(slots []byte, i int) uint32 { return binary.LittleEndian.Uint32(slots[4*i:]) }

// EncodeRefs is the inverse of DecodeRefs.
func EncodeRefs(p *RefPart) Block {
	b := put(nil, TagRefPart, []uint64{p.Listing, p.N, p.Flags})
	if a := &p.About; p.HasAbout {
		b = put(b, TagReferences, []uint64{a.Ticket, a.GC, a.Time, a.Dur, a.Probe, a.Objects, a.Slots, a.NumRoots},
			a.Missing, a.Refused)
	}
	for _, c := range p.Classes {
		b = put(b, TagRefClass, []uint64{c.ID, c.Type, c.Kind, c.Slots, c.Statics}, c.Name)
	}
	for _, f := range p.Fields {
		b = put(b, TagRefField, []uint64{f.Class, f.Slot, f.Flags, f.Strength, f.Declared}, f.Name, f.Sig)
	}
	b = putRecords(b, TagRefExtra, len(p.Extra), func(i int) record {
		return record{p.Extra[i].From, p.Extra[i].To, p.Extra[i].Kind}
	})
	b = putRecords(b, TagRefRoots, len(p.Roots), func(i int) record {
		r := &p.Roots[i]
		return record{r.Target, r.Kind, r.Thread, r.Method, r.BCI, r.Depth}
	})
	b = putRecords(b, TagRefSamples, len(p.Samples), func(i int) record {
		return record{p.Samples[i].ID, p.Samples[i].Word}
	})
	for _, l := range p.Lists {
		b = putBlob(b, TagRefList, l)
	}
	for _, s := range p.Slots {
		b = putBlob(b, TagRefSlots, s)
	}
	if p.Columns != nil {
		b = putBlob(b, TagRefColumns, p.Columns)
	}
	x := block(KindRefs, b)
	x.Version = RefsFormatVersion
	if p.Columns != nil {
		x.Version = RefColumnsVersion
	}
	if len(p.Samples) > 0 {
		x.Version = RefSamplesVersion
	}
	return x
}
