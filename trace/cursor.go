package trace

import "encoding/binary"

// cursor reads a byte slice within its bounds. The first failure sticks: later reads give zero and the position no
// longer moves, so callers may read a whole row and look at the error once.
type cursor struct {
	buf []byte
	pos int
	why string // "" while all is well
	at  int    // where why happened
}

func (c *cursor) fail(why string) {
	if c.why == "" {
		c.why, c.at = why, c.pos
	}
}

func (c *cursor) ok() bool   { return c.why == "" }
func (c *cursor) more() bool { return c.why == "" && c.pos < len(c.buf) }

// u reads an unsigned LEB128.
func (c *cursor) u() uint64 {
	if c.why != "" {
		return 0
	}
	if c.pos < len(c.buf) && c.buf[c.pos] < 0x80 {
		v := c.buf[c.pos]
		c.pos++
		return uint64(v)
	}
	v, n := binary.Uvarint(c.buf[c.pos:])
	if n <= 0 {
		c.fail(varintWhy(n))
		return 0
	}
	c.pos += n
	return v
}

// s reads a zigzag signed LEB128.
func (c *cursor) s() int64 { return unzigzag(c.u()) }

// bytes gives the next n bytes, aliasing the buffer.
func (c *cursor) bytes(n uint64) []byte {
	if c.why != "" {
		return nil
	}
	if n > uint64(len(c.buf)-c.pos) {
		c.fail("length runs past the end")
		return nil
	}
	b := c.buf[c.pos : c.pos+int(n) : c.pos+int(n)]
	c.pos += int(n)
	return b
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (c *cursor) str() []byte {
	n := c.u()
	if n > MaxStr {
		c.fail("string too long")
		return nil
	}
	return c.bytes(n)
}

func (c *cursor) blob() []byte {
	n := c.bytes(4)
	if n == nil {
		return nil
	}
	return c.bytes(uint64(binary.LittleEndian.Uint32(n)))
}

func varintWhy(n int) string {
	if n == 0 {
		return "integer runs past the end"
	}
	return "integer longer than 64 bits"
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendU(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }
func appendS(b []byte, v int64) []byte  { return binary.AppendUvarint(b, zigzag(v)) }

func appendStr[T string | []byte](b []byte, s T) []byte {
	return append(appendU(b, uint64(len(s))), s...)
}

func appendBlob(b, blob []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(blob))), blob...)
}
