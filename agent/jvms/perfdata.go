package jvms

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// Layout of HotSpot's PerfData, version 2 (perfMemory.hpp). Magic and byte order come first, so that the rest can be
// read.
//
//	0  u32 magic (big-endian ca fe c0 c0)   8  i32 used       24 i32 entry_offset
//	4  u8 byte order (1: little), u8 major  12 i32 overflow   28 i32 num_entries
//	6  u8 minor, u8 accessible              16 i64 mod_time
//
//	entry: 0 i32 length, 4 i32 name_offset, 8 i32 vector_length, 12 u8 type, 13 u8 flags, 14 u8 units, 15 u8
//	variability, 16 i32 data_offset
const (
	perfMagic      = 0xcafec0c0
	perfHeader     = 32
	perfEntry      = 20
	maxPerfData    = 1 << 20 // 32 KiB by default (PerfDataMemorySize)
	maxPerfEntries = 1 << 14 // some 250 are there
	maxPerfName    = 256
	maxPerfText    = 4096
)

// PerfError says why PerfData cannot be read.
type PerfError struct {
	Offset int
	Why    string
}

func (e *PerfError) Error() string { return fmt.Sprintf("PerfData at %d: %s", e.Offset, e.Why) }

// parsePerf gives the counters that are texts or longs. The file changes while it is read; b is a copy. One that the
// JVM is still filling (accessible = 0) is an error, to be tried again.
func parsePerf(b []byte) (map[string]string, error) {
	if len(b) < perfHeader {
		return nil, &PerfError{0, "short header"}
	}
	if binary.BigEndian.Uint32(b) != perfMagic {
		return nil, &PerfError{0, "no magic"}
	}
	var order binary.ByteOrder = binary.BigEndian
	if b[4] == 1 {
		order = binary.LittleEndian
	}
	if b[5] != 2 {
		return nil, &PerfError{5, "version " + strconv.Itoa(int(b[5]))}
	}
	if b[7] == 0 {
		return nil, &PerfError{7, "not yet accessible"}
	}
	off, n := uint64(order.Uint32(b[24:])), order.Uint32(b[28:])
	if n > maxPerfEntries {
		return nil, &PerfError{28, "too many entries"}
	}
	out := make(map[string]string)
	for range n {
		if off%4 != 0 || off+perfEntry > uint64(len(b)) {
			return nil, &PerfError{int(min(off, maxPerfData)), "entry beyond the end"}
		}
		e := b[off:]
		length, name := uint64(order.Uint32(e)), uint64(order.Uint32(e[4:]))
		vector, data := uint64(order.Uint32(e[8:])), uint64(order.Uint32(e[16:]))
		if length < perfEntry || length > uint64(len(e)) || name >= length || data >= length {
			return nil, &PerfError{int(off), "entry's lengths contradict each other"}
		}
		e = e[:length]
		key := nulText(e[name:], maxPerfName)
		switch {
		case e[12] == 'B' && vector > 0:
			if vector > length-data {
				return nil, &PerfError{int(off), "text beyond its entry"}
			}
			out[key] = clean(nulText(e[data:data+vector], maxPerfText))
		case e[12] == 'J' && vector == 0 && length-data >= 8:
			out[key] = strconv.FormatInt(int64(order.Uint64(e[data:])), 10)
		}
		off += length
	}
	return out, nil
}

func nulText(b []byte, limit int) string {
	b = b[:min(len(b), limit)]
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
