package trace

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The text form: what `heapcam dump` prints and golden tests are written in. Names of events, fields and values come
// from the spec table. Indentation is part of it:
//
//	block EPOCH version=1 flags=0 seq=3         one line a block
//	  pause gc=1 kind=young flags=exact …       two spaces: one line an event, in the order of the payload
//	  moves                                     an event that is a blob: its tokens follow
//	    segment start=1024 words=512            four spaces: one line a token or record
//	    lane0 type=2                            # @1030 java.lang.String
//	    end
//	  hex 63ff00                                what cannot be read, to the end of the payload (or of the blob)
//
// Numbers are decimal or 0x…; strings are quoted as in Go, so that any bytes survive; "#" begins a comment, which the
// parser ignores. Fields may come in any order; one left out is 0 or empty. ParseText is the inverse of TextWriter; it
// checks the form only, so that tests can write down what no decoder takes.

// TextWriter writes blocks as text. It remembers types and alignment of the META and DEFS blocks that pass through it,
// since tokens cannot be read without; the tokens of a block whose types it has not seen are written as hex.
type TextWriter struct {
	// Types is used for tokens and filled from DEFS; a caller that starts in the midst of a session may fill it
	// beforehand.
	Types *TypeTable
	// Brief leaves out the tokens and records of blobs. What it writes cannot be parsed back.
	Brief bool

	w     *bufio.Writer
	names map[uint64]string
}

// NewTextWriter writes to w.
func NewTextWriter(w io.Writer) *TextWriter {
	return &TextWriter{Types: NewTypeTable(8), w: bufio.NewWriter(w), names: map[uint64]string{}}
}

// maxTextNames bounds the names kept for comments.
const maxTextNames = 1 << 20

// Block writes one block and flushes. Its error is that of the writer underneath: any block can be written.
func (t *TextWriter) Block(b Block) error {
	fmt.Fprintf(t.w, "block %v version=%d flags=%d seq=%d\n", b.Kind, b.Version, b.Flags, b.Seq)
	c := cursor{buf: b.Payload}
	if b.Version <= FormatVersion {
		for c.more() {
			at := c.pos
			var r row
			r.read(&c, &b)
			if !c.ok() {
				c.pos = at
				break
			}
			t.event(&r)
		}
	}
	if why := c.why; c.pos < len(b.Payload) {
		if why == "" {
			why = "newer version"
		}
		t.hex("  ", b.Payload[c.pos:], why)
	}
	return t.w.Flush()
}

func (t *TextWriter) event(r *row) {
	t.learn(r)
	t.w.WriteString("  ")
	t.w.WriteString(r.ev.Name)
	if r.ev.Form != BlobNone {
		if t.Brief {
			fmt.Fprintf(t.w, " # %d bytes\n", len(r.text[0]))
			return
		}
		t.w.WriteByte('\n')
		t.blob(r.ev, r.text[0])
		return
	}
	n, x := 0, 0
	for i := range r.ev.Fields {
		f := &r.ev.Fields[i]
		t.w.WriteByte(' ')
		t.w.WriteString(f.Name)
		t.w.WriteByte('=')
		switch f.Type {
		case FieldU, FieldS:
			t.w.WriteString(f.text(r.num[n]))
			n++
		case FieldStr:
			t.w.WriteString(strconv.Quote(string(r.text[x])))
			x++
		case FieldLines:
			t.w.WriteString(linesText(r.text[x]))
			x++
		}
	}
	t.w.WriteByte('\n')
}

// learn takes from META and DEFS what tokens need.
func (t *TextWriter) learn(r *row) {
	switch r.ev.Tag {
	case TagJVM:
		t.Types.SetAlign(r.num[8])
	case TagType:
		// One beyond the limits stays undefined, and its tokens are written as hex.
		_ = t.Types.Define(Type{ID: r.num[0], Flags: r.num[1], Size: r.num[2], Log2: r.num[3]})
		if len(t.names) < maxTextNames {
			t.names[r.num[0]] = shortName(PrettyClass(r.str(0)))
		}
	}
}

// maxComment is how many bytes of a name the comments have. A class may have one of 64 KiB and a million objects; the
// line that defines it has all of it.
const maxComment = 200

// shortName cuts a name for comments, and says how long it is.
func shortName(name string) string {
	if len(name) <= maxComment {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(name[:maxComment], ""), len(name))
}

func (t *TextWriter) blob(ev *Event, blob []byte) {
	switch ev.Form {
	case BlobWalk:
		w := NewWalkTokens(blob, t.Types)
		w.All = true
		for w.Next() {
		}
		if err := w.Err(); err != nil {
			t.hex("    ", blob, err.Error())
			return
		}
		t.walk(blob)
	case BlobList:
		l := NewListTokens(blob, t.Types)
		l.All = true
		for l.Next() {
		}
		if err := l.Err(); err != nil {
			t.hex("    ", blob, err.Error())
			return
		}
		t.list(blob)
	case BlobRecords:
		if err := readRecords(blob, ev, func(*record) {}); err != nil {
			t.hex("    ", blob, err.Error())
			return
		}
		_ = readRecords(blob, ev, func(rec *record) {
			t.w.WriteString("    ")
			t.w.WriteString(ev.Record)
			for i := range ev.Records {
				t.w.WriteByte(' ')
				t.w.WriteString(ev.Records[i].Name)
				t.w.WriteByte('=')
				t.w.WriteString(ev.Records[i].text(rec[i]))
			}
			t.w.WriteByte('\n')
		})
	case BlobSlots, BlobColumns:
		t.hex("    ", blob, "")
	case BlobCensus:
		if err := readCensus(blob, func(CensusRow) {}); err != nil {
			t.hex("    ", blob, err.Error())
			return
		}
		t.census(blob)
	}
}

func (t *TextWriter) walk(blob []byte) {
	w := NewWalkTokens(blob, t.Types)
	w.All = true
	for w.Next() {
		switch w.Kind {
		case WalkSegment:
			fmt.Fprintf(t.w, "    segment start=%d words=%d\n", w.Addr, w.Words)
			continue
		case WalkSkip:
			fmt.Fprintf(t.w, "    skip words=%d\n", w.Words)
			continue
		case WalkEnd:
			t.w.WriteString("    end\n")
			continue
		}
		switch w.Form {
		case walkDead:
			t.w.WriteString("    dead")
		case walkMove:
			t.w.WriteString("    move")
		default:
			fmt.Fprintf(t.w, "    lane%d", w.Form-walkLane0)
		}
		t.object(w.Type, w.Length)
		if w.Form == walkMove {
			fmt.Fprintf(t.w, " to=%d", w.Dest)
		}
		fmt.Fprintf(t.w, " # @%d", w.Addr)
		if w.Kind == WalkMove && w.Form != walkMove {
			fmt.Fprintf(t.w, " to %d", w.Dest)
		}
		t.name(w.Type)
	}
}

func (t *TextWriter) list(blob []byte) {
	l := NewListTokens(blob, t.Types)
	l.All = true
	for l.Next() {
		switch l.Kind {
		case ListSegment:
			fmt.Fprintf(t.w, "    segment start=%d\n", l.Addr)
		case ListSkip:
			fmt.Fprintf(t.w, "    skip words=%d\n", l.Words)
		case ListEnd:
			// The next segment counts from here, and the parser does not know the sizes of objects.
			fmt.Fprintf(t.w, "    end at=%d\n", l.Addr)
		case ListObject:
			t.w.WriteString("    obj")
			t.object(l.Type, l.Length)
			fmt.Fprintf(t.w, " # @%d", l.Addr)
			t.name(l.Type)
		}
	}
}

func (t *TextWriter) object(typ uint32, length uint64) {
	fmt.Fprintf(t.w, " type=%d", typ)
	if t.Types.HasLength(uint64(typ)) {
		fmt.Fprintf(t.w, " len=%d", length)
	}
}

// name ends a comment with the name of a type. Names come from a JVM: quoted if they hold anything but letters that
// print.
func (t *TextWriter) name(typ uint32) {
	t.w.WriteByte(' ')
	n := t.names[uint64(typ)]
	if q := strconv.Quote(n); q[1:len(q)-1] != n {
		n = q
	}
	t.w.WriteString(n)
	t.w.WriteByte('\n')
}

// census rows need their mask, which readCensus does not keep: a cell may be there and zero.
func (t *TextWriter) census(blob []byte) {
	for c := (cursor{buf: blob}); c.more(); {
		typ, bucket, mask := c.u(), c.u(), c.u()
		fmt.Fprintf(t.w, "    row type=%d bucket=%d", typ, bucket)
		for i, name := range CensusFieldNames {
			if mask>>i&1 != 0 {
				o, b := c.u(), c.u()
				fmt.Fprintf(t.w, " %s=%d/%d", name, o, b)
			}
		}
		t.w.WriteByte('\n')
	}
}

// hexLine is the number of bytes in a line of hex.
const hexLine = 64

func (t *TextWriter) hex(indent string, b []byte, why string) {
	if t.Brief {
		fmt.Fprintf(t.w, "%shex # %d bytes: %s\n", indent, len(b), why)
		return
	}
	for len(b) > 0 {
		n := min(len(b), hexLine)
		t.w.WriteString(indent)
		t.w.WriteString("hex ")
		t.w.WriteString(hex.EncodeToString(b[:n]))
		if why != "" {
			t.w.WriteString(" # " + why)
			why = ""
		}
		t.w.WriteByte('\n')
		b = b[n:]
	}
}

// text writes a number of a field.
func (f *Field) text(v uint64) string {
	switch {
	case f.Enum != nil:
		return f.Enum.String(v)
	case f.Type == FieldS && f.Delta == DeltaNone:
		return strconv.FormatInt(int64(v), 10)
	case f.Max == maxAny:
		return "0x" + strconv.FormatUint(v, 16)
	}
	return strconv.FormatUint(v, 10)
}

// linesText writes a line table as bci:line,…, or as 0x… if it cannot be read.
func linesText(b []byte) string {
	lines, why := decodeLines(b)
	if why != "" {
		return "0x" + hex.EncodeToString(b)
	}
	var s []byte
	for i, l := range lines {
		if i > 0 {
			s = append(s, ',')
		}
		s = strconv.AppendInt(s, int64(l.BCI), 10)
		s = append(s, ':')
		s = strconv.AppendInt(s, int64(l.Line), 10)
	}
	return string(s)
}
