package trace

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// SyntaxError says what is wrong with a text, and where.
type SyntaxError struct {
	Line int // from 1
	Why  string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("trace: text line %d: %s", e.Line, e.Why) }

// maxTextLine bounds a line of text: a string of MaxStr bytes, quoted.
const maxTextLine = 5 * MaxStr

// ParseText reads the text form of any number of blocks (see TextWriter). Errors: *SyntaxError, or that of r.
func ParseText(r io.Reader) ([]Block, error) {
	p := &textParser{}
	s := bufio.NewScanner(r)
	s.Buffer(nil, maxTextLine)
	for s.Scan() {
		p.n++
		if err := p.line(s.Text()); err != nil {
			return nil, &SyntaxError{p.n, err.Error()}
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	p.closeBlock()
	return p.out, nil
}

type textParser struct {
	n     int
	out   []Block
	block *Block
	ev    *Event // blob event that is open, or nil
	blob  []byte

	// What the tokens and records of the blob count from.
	end, dest uint64
	prev      record
}

// pair is key=value of a line; value is unquoted, and key is "" for a word without "=".
type pair struct{ key, value string }

func (p *textParser) line(s string) error {
	indent := len(s) - len(strings.TrimLeft(s, " "))
	words, err := split(s[indent:])
	if err != nil || len(words) == 0 {
		return err
	}
	name := words[0].value
	if words[0].key != "" {
		return fmt.Errorf("line begins with %s=", words[0].key)
	}
	switch {
	case indent == 0 && name == "block":
		return p.openBlock(words[1:])
	case p.block == nil:
		return fmt.Errorf("%q before the first block", name)
	case indent == 2:
		p.closeBlob()
		return p.event(name, words[1:])
	case indent == 4 && p.ev != nil:
		return p.token(name, words[1:])
	}
	return fmt.Errorf("%q with an indentation of %d makes no sense here", name, indent)
}

// split cuts a line into words and drops its comment.
func split(s string) ([]pair, error) {
	var out []pair
	for {
		s = strings.TrimLeft(s, " \t\r")
		if s == "" || s[0] == '#' {
			return out, nil
		}
		end := strings.IndexAny(s, " \t\r\"")
		if end < 0 {
			end = len(s)
		}
		word := s[:end]
		s = s[end:]
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			key, value = "", word
		}
		if strings.HasPrefix(s, `"`) {
			q, err := strconv.QuotedPrefix(s)
			if err != nil || !ok || value != "" {
				return nil, fmt.Errorf("a quote that makes no sense")
			}
			s = s[len(q):]
			if value, err = strconv.Unquote(q); err != nil {
				return nil, err
			}
		}
		out = append(out, pair{key, value})
	}
}

func (p *textParser) openBlock(words []pair) error {
	p.closeBlock()
	if len(words) == 0 || words[0].key != "" {
		return fmt.Errorf("block without a kind")
	}
	b := &Block{Version: FormatVersion}
	for _, s := range blockSpecs {
		if s.Name == words[0].value {
			b.Kind = s.Kind
		}
	}
	if b.Kind == 0 {
		k, err := strconv.ParseUint(words[0].value, 0, 8)
		if err != nil {
			return fmt.Errorf("unknown kind of block %q", words[0].value)
		}
		b.Kind = Kind(k)
	}
	for _, w := range words[1:] {
		var v uint64
		var err error
		switch w.key {
		case "version":
			v, err = strconv.ParseUint(w.value, 0, 8)
			b.Version = uint8(v)
		case "flags":
			v, err = strconv.ParseUint(w.value, 0, 16)
			b.Flags = uint16(v)
		case "seq":
			b.Seq, err = strconv.ParseUint(w.value, 0, 64)
		default:
			err = fmt.Errorf("unknown field %q", w.key)
		}
		if err != nil {
			return err
		}
	}
	p.block = b
	return nil
}

func (p *textParser) closeBlock() {
	p.closeBlob()
	if p.block != nil {
		p.out = append(p.out, *p.block)
		p.block = nil
	}
}

func (p *textParser) closeBlob() {
	if p.ev != nil {
		p.block.Payload = putBlob(p.block.Payload, p.ev.Tag, p.blob)
	}
	p.ev, p.blob = nil, nil
	p.end, p.dest, p.prev = 0, 0, record{}
}

func parseHex(words []pair) ([]byte, error) {
	if len(words) != 1 || words[0].key != "" {
		return nil, fmt.Errorf("hex wants one word of digits")
	}
	return hex.DecodeString(words[0].value)
}

func (p *textParser) event(name string, words []pair) error {
	if name == "hex" {
		b, err := parseHex(words)
		p.block.Payload = append(p.block.Payload, b...)
		return err
	}
	ev := eventByName[name]
	if ev == nil {
		return fmt.Errorf("unknown event %q", name)
	}
	if ev.Form != BlobNone {
		p.ev = ev
		if len(words) > 0 {
			return fmt.Errorf("%s has no fields of its own", name)
		}
		return nil
	}
	get, err := fields(words)
	if err != nil {
		return err
	}
	r := row{ev: ev}
	n, t := 0, 0
	for i := range ev.Fields {
		f := &ev.Fields[i]
		switch f.Type {
		case FieldU, FieldS:
			if r.num[n], err = f.parse(get); err != nil {
				return err
			}
			n++
		case FieldStr:
			r.text[t] = []byte(get[f.Name])
			delete(get, f.Name)
			t++
		case FieldLines:
			if r.text[t], err = parseLines(get[f.Name]); err != nil {
				return err
			}
			delete(get, f.Name)
			t++
		}
	}
	if err := nothingLeft(get); err != nil {
		return err
	}
	p.block.Payload = r.append(p.block.Payload)
	return nil
}

func (p *textParser) token(name string, words []pair) error {
	if name == "hex" {
		b, err := parseHex(words)
		p.blob = append(p.blob, b...)
		return err
	}
	get, err := fields(words)
	if err != nil {
		return err
	}
	switch p.ev.Form {
	case BlobWalk:
		err = p.walkToken(name, get)
	case BlobList:
		err = p.listToken(name, get)
	case BlobCensus:
		err = p.censusRow(name, get)
	case BlobRecords:
		if name != p.ev.Record {
			return fmt.Errorf("%s where %s was expected", name, p.ev.Record)
		}
		var rec record
		for i := range p.ev.Records {
			if rec[i], err = p.ev.Records[i].parse(get); err != nil {
				return err
			}
		}
		p.blob = appendRecord(p.blob, p.ev.Records, &rec, &p.prev)
		p.prev = rec
	}
	if err != nil {
		return err
	}
	return nothingLeft(get)
}

func (p *textParser) walkToken(name string, get map[string]string) error {
	num := numbers{get: get}
	switch name {
	case "segment":
		start, words := num.u("start"), num.u("words")
		p.blob = appendU(appendS(p.blob, int64(start-p.end)), words)
		p.end = start + words
		return num.err
	case "skip":
		p.blob = appendU(p.blob, num.u("words")<<walkBits|walkSkip)
		return num.err
	case "end":
		p.blob = appendU(p.blob, walkEnd)
		return nil
	}
	form := uint64(0)
	switch name {
	case "dead":
		form = walkDead
	case "move":
		form = walkMove
	case "lane0", "lane1", "lane2", "lane3":
		form = walkLane0 + uint64(name[4]-'0')
	default:
		return fmt.Errorf("unknown token %q", name)
	}
	p.blob = appendU(p.blob, num.u("type")<<walkBits|form)
	num.length(&p.blob)
	if form == walkMove {
		to := num.u("to")
		p.blob = appendS(p.blob, int64(to-p.dest))
		p.dest = to
	}
	return num.err
}

func (p *textParser) listToken(name string, get map[string]string) error {
	num := numbers{get: get}
	switch name {
	case "segment":
		p.blob = appendS(p.blob, int64(num.u("start")-p.end))
	case "skip":
		p.blob = appendU(appendU(p.blob, listSkip), num.u("words"))
	case "end":
		p.blob = appendU(p.blob, listEnd)
		p.end = num.u("at")
	case "obj":
		p.blob = appendU(p.blob, num.u("type")-1+listType)
		num.length(&p.blob)
	default:
		return fmt.Errorf("unknown token %q", name)
	}
	return num.err
}

func (p *textParser) censusRow(name string, get map[string]string) error {
	if name != "row" {
		return fmt.Errorf("%s where row was expected", name)
	}
	num := numbers{get: get}
	r := CensusRow{Type: num.u("type"), Bucket: num.u("bucket")}
	mask := uint64(0)
	for i, key := range CensusFieldNames {
		v, ok := get[key]
		if !ok {
			continue
		}
		delete(get, key)
		mask |= 1 << i
		objects, bytes, ok := strings.Cut(v, "/")
		if !ok {
			return fmt.Errorf("%s wants objects/bytes", key)
		}
		r.Cells[i] = CensusCell{num.parse(objects), num.parse(bytes)}
	}
	p.blob = appendCensusRow(p.blob, r, mask)
	return num.err
}

// numbers takes numbers out of the fields of a line; the first error sticks.
type numbers struct {
	get map[string]string
	err error
}

func (n *numbers) u(key string) uint64 {
	v, ok := n.get[key]
	if !ok {
		return 0
	}
	delete(n.get, key)
	return n.parse(v)
}

func (n *numbers) parse(s string) uint64 {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil && n.err == nil {
		n.err = err
	}
	return v
}

// length writes the length of an object if the line gives one.
func (n *numbers) length(blob *[]byte) {
	if _, ok := n.get["len"]; ok {
		*blob = appendU(*blob, n.u("len"))
	}
}

func fields(words []pair) (map[string]string, error) {
	m := make(map[string]string, len(words))
	for _, w := range words {
		if w.key == "" {
			return nil, fmt.Errorf("%q is no key=value", w.value)
		}
		if _, twice := m[w.key]; twice {
			return nil, fmt.Errorf("%s= twice", w.key)
		}
		m[w.key] = w.value
	}
	return m, nil
}

func nothingLeft(get map[string]string) error {
	for key := range get {
		return fmt.Errorf("unknown field %q", key)
	}
	return nil
}

// parse is the inverse of Field.text. A field left out is 0.
func (f *Field) parse(get map[string]string) (uint64, error) {
	s, ok := get[f.Name]
	if !ok {
		return 0, nil
	}
	delete(get, f.Name)
	if f.Enum != nil {
		if v, ok := f.Enum.Value(s); ok {
			return v, nil
		}
		return 0, fmt.Errorf("%s=%q is no %s", f.Name, s, f.Enum.Name)
	}
	if f.Type == FieldS && f.Delta == DeltaNone {
		v, err := strconv.ParseInt(s, 0, 64)
		return uint64(v), err
	}
	return strconv.ParseUint(s, 0, 64)
}

func parseLines(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	if h, ok := strings.CutPrefix(s, "0x"); ok {
		return hex.DecodeString(h)
	}
	var lines []LineEntry
	for part := range strings.SplitSeq(s, ",") {
		b, l, ok := strings.Cut(part, ":")
		bci, err1 := strconv.ParseUint(b, 10, 16)
		line, err2 := strconv.ParseUint(l, 10, 31)
		if !ok || err1 != nil || err2 != nil || len(lines) > 0 && int(bci) < lines[len(lines)-1].BCI {
			return nil, fmt.Errorf("line table wants bci:line,… in the order of bci: %q", part)
		}
		lines = append(lines, LineEntry{int(bci), int(line)})
	}
	return appendLines(nil, lines), nil
}
