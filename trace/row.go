package trace

import (
	"fmt"
	"math"
)

// The generic layer between bytes and structs: rows of the spec table. Decoders, encoders and the text form all go
// through it, so that a field is checked in one way only.

// maxNums and maxTexts bound the numbers and the texts of a row; a test compares the table with them.
const (
	maxNums  = 14
	maxTexts = 5
)

// row is an event with its fields in the order of the table: numbers (signed ones as two's complement) and texts or
// blobs, which alias the block.
type row struct {
	ev   *Event
	num  [maxNums]uint64
	text [maxTexts][]byte
}

// inRange checks a number of a field; with a delta, v is the sum.
func (f *Field) inRange(v uint64) bool {
	if f.Type == FieldS && f.Delta == DeltaNone {
		s := int64(v)
		if s < 0 {
			return f.Max >= math.MaxInt64 || s >= -int64(f.Max)
		}
		return uint64(s) <= f.Max
	}
	return v >= f.Min && v <= f.Max
}

// read reads the event at the cursor into r and checks its fields and that b may hold it.
func (r *row) read(c *cursor, b *Block) {
	start := c.pos
	tag := c.byte()
	r.ev = eventByTag[tag]
	if r.ev == nil || !allowed[b.Kind][tag] || r.ev.Since > b.Version {
		if c.ok() {
			c.pos = start
			c.fail(fmt.Sprintf("event %d does not belong here", tag))
		}
		return
	}
	n, t := 0, 0
	for i := range r.ev.Fields {
		f := &r.ev.Fields[i]
		at := c.pos
		switch f.Type {
		case FieldU, FieldS:
			v := c.u()
			if f.Type == FieldS {
				v = uint64(unzigzag(v))
			}
			if c.ok() && !f.inRange(v) {
				c.pos = at
				c.fail(f.Name + " out of range")
			}
			r.num[n] = v
			n++
		case FieldStr, FieldLines:
			r.text[t] = c.str()
			t++
		case FieldBlob:
			r.text[t] = c.blob()
			t++
		}
	}
}

// append writes the event. It does not check: what a program writes out of range, its own reader refuses.
func (r *row) append(b []byte) []byte {
	b = append(b, byte(r.ev.Tag))
	n, t := 0, 0
	for i := range r.ev.Fields {
		switch r.ev.Fields[i].Type {
		case FieldU:
			b = appendU(b, r.num[n])
			n++
		case FieldS:
			b = appendS(b, int64(r.num[n]))
			n++
		case FieldStr, FieldLines:
			b = appendStr(b, r.text[t])
			t++
		case FieldBlob:
			b = appendBlob(b, r.text[t])
			t++
		}
	}
	return b
}

// put appends an event given by its fields in the order of the table.
func put(b []byte, tag Tag, nums []uint64, texts ...string) []byte {
	r := row{ev: eventByTag[tag]}
	copy(r.num[:], nums)
	for i, t := range texts {
		r.text[i] = []byte(t)
	}
	return r.append(b)
}

// putBlob appends an event that is one blob.
func putBlob(b []byte, tag Tag, blob []byte) []byte {
	return appendBlob(append(b, byte(tag)), blob)
}

const maxRecordFields = 7

// record is one record of a blob, with deltas applied.
type record [maxRecordFields]uint64

// read reads the record at the cursor; rec holds the one before.
func (rec *record) read(c *cursor, fields []Field) {
	prev := *rec
	for i := range fields {
		f := &fields[i]
		at := c.pos
		v := c.u()
		if f.Type == FieldS {
			v = uint64(unzigzag(v))
		} else if f.Delta != DeltaNone && v > f.Max { // it would wrap, and count down
			c.fail(f.Name + " out of range")
		}
		v += f.base(&prev, i)
		if c.ok() && !f.inRange(v) {
			c.pos = at
			c.fail(f.Name + " out of range")
		}
		rec[i] = v
	}
	if c.ok() && fields[0].Delta == DeltaEnd && rec[1] > MaxAddr-rec[0] {
		c.fail("range out of the address space")
	}
}

func (f *Field) base(prev *record, i int) uint64 {
	switch f.Delta {
	case DeltaPrev:
		return prev[i]
	case DeltaEnd:
		return prev[i] + prev[i+1]
	}
	return 0
}

// appendRecord writes rec, which comes after prev.
func appendRecord(b []byte, fields []Field, rec, prev *record) []byte {
	for i := range fields {
		v := rec[i] - fields[i].base(prev, i)
		if fields[i].Type == FieldS {
			b = appendS(b, int64(v))
		} else {
			b = appendU(b, v)
		}
	}
	return b
}

// readRecords reads a blob of records. Offsets in its error count from the blob's start.
func readRecords(blob []byte, ev *Event, each func(*record)) error {
	c := cursor{buf: blob}
	var rec record
	for n := 0; c.more(); n++ {
		if n == MaxRecords {
			c.fail("too many records")
			break
		}
		rec.read(&c, ev.Records)
		if c.ok() {
			each(&rec)
		}
	}
	return c.corrupt(0, ev)
}

// readCensus reads a blob of census rows.
func readCensus(blob []byte, each func(CensusRow)) error {
	c := cursor{buf: blob}
	for n := 0; c.more(); n++ {
		if n == MaxRecords {
			c.fail("too many records")
			break
		}
		r := CensusRow{Type: c.u(), Bucket: c.u()}
		mask := c.u()
		if c.ok() && (r.Type > MaxTypeID || r.Bucket > BucketOld || mask >= 1<<len(r.Cells)) {
			c.fail("type, bucket or mask out of range")
		}
		for i := range r.Cells {
			if mask>>i&1 != 0 {
				r.Cells[i] = CensusCell{c.u(), c.u()}
				if r.Cells[i].Objects > MaxCount || r.Cells[i].Bytes > MaxBytes {
					c.fail("count out of range")
				}
			}
		}
		if c.ok() {
			each(r)
		}
	}
	return c.corrupt(0, eventByTag[TagCensus])
}

func appendCensusRow(b []byte, r CensusRow, mask uint64) []byte {
	b = appendU(appendU(appendU(b, r.Type), r.Bucket), mask)
	for i, cell := range r.Cells {
		if mask>>i&1 != 0 {
			b = appendU(appendU(b, cell.Objects), cell.Bytes)
		}
	}
	return b
}

// corrupt gives the cursor's failure as an error, or nil.
func (c *cursor) corrupt(kind Kind, ev *Event) error {
	if c.ok() {
		return nil
	}
	e := &CorruptError{Kind: kind, Offset: int64(c.at), Why: c.why}
	if ev != nil {
		e.Event = ev.Name
	}
	return e
}
