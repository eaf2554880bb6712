package graph

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/heapcam/heapcam/trace/references"
)

// metaWriter writes names and numbers. A name is the number of an earlier equal one, or 0 and its length and bytes.
type metaWriter struct {
	b  []byte
	at map[string]uint64
}

func (m *metaWriter) u(vs ...uint64) {
	for _, v := range vs {
		m.b = binary.AppendUvarint(m.b, v)
	}
}

func (m *metaWriter) name(ss ...string) {
	for _, s := range ss {
		if at, ok := m.at[s]; ok {
			m.u(at)
			continue
		}
		m.at[s] = uint64(len(m.at)) + 1
		m.u(0, uint64(len(s)))
		m.b = append(m.b, s...)
	}
}

// meta is what a kept graph has apart from its columns.
func (g *Graph) meta() []byte {
	m := &metaWriter{at: map[string]uint64{}}
	m.u(g.L.Collection, g.L.Base, uint64(len(g.L.Missing)))
	m.name(g.L.Missing...)
	m.u(uint64(len(g.L.Shapes)))
	for i := range g.L.Shapes {
		s := &g.L.Shapes[i]
		m.u(uint64(s.Type), uint64(s.Class), uint64(s.Kind), uint64(len(s.Fields)))
		m.name(s.Name, s.Of, s.Rest)
		for _, f := range s.Fields {
			m.u(uint64(f.Strength))
			m.name(f.Name, f.Class, f.Declared)
		}
	}
	m.u(uint64(len(g.roots)))
	for i, r := range g.roots {
		m.u(uint64(g.target[i]), uint64(r.Target), uint64(r.Kind), uint64(max(r.Line, 0)))
		m.name(r.Thread, r.Class, r.Method, r.Field)
	}
	m.u(uint64(len(g.Dangling)))
	for _, code := range slices.Sorted(maps.Keys(g.Dangling)) {
		m.u(uint64(code), g.Dangling[code])
	}
	return m.b
}

// metaReader reads what metaWriter wrote. Its first error stays.
type metaReader struct {
	b     []byte
	names []string
	err   error
}

func (m *metaReader) u(limit uint64) uint64 {
	v, n := binary.Uvarint(m.b)
	if n <= 0 || v > limit {
		m.fail()
		return 0
	}
	m.b = m.b[n:]
	return v
}

func (m *metaReader) fail() {
	m.b = nil
	if m.err == nil {
		m.err = fmt.Errorf("%w: a number among the names", ErrKept)
	}
}

// count reads how many things follow that take so many bytes at least.
func (m *metaReader) count(limit uint64, bytes int) int {
	return int(m.u(min(limit, uint64(len(m.b)/bytes))))
}

func (m *metaReader) name() string {
	if at := m.u(uint64(len(m.names))); at > 0 {
		return m.names[at-1]
	}
	n := m.u(uint64(len(m.b)))
	if n > uint64(len(m.b)) { // the number itself took bytes
		m.fail()
		return ""
	}
	s := string(m.b[:n])
	m.b = m.b[n:]
	m.names = append(m.names, s)
	return s
}

// setMeta takes in what meta gave.
func (g *Graph) setMeta(b []byte) error {
	m := &metaReader{b: b}
	const most = 1<<64 - 1
	l := g.L
	l.Collection, l.Base = m.u(most), m.u(most)
	for range m.count(most, 1) {
		l.Missing = append(l.Missing, m.name())
	}
	l.Shapes = make([]references.Shape, m.count(references.MaxShapes, 7))
	for i := range l.Shapes {
		s := &l.Shapes[i]
		s.Type, s.Class, s.Kind = uint32(m.u(1<<32-1)), uint32(m.u(1<<32-1)), references.Kind(m.u(1<<8-1))
		fields := m.count(references.MaxFields, 4)
		s.Name, s.Of, s.Rest = m.name(), m.name(), m.name()
		if fields > 0 && m.err == nil {
			s.Fields = make([]references.Field, fields)
		}
		for k := range s.Fields {
			f := &s.Fields[k]
			f.Strength = references.Strength(m.u(1<<8 - 1))
			f.Name, f.Class, f.Declared = m.name(), m.name(), m.name()
		}
	}
	roots := m.count(references.MaxRoots, 8)
	g.roots, g.target = make([]references.Root, roots), make([]uint32, roots)
	for i := range g.roots {
		r := &g.roots[i]
		g.target[i], r.Target = uint32(m.u(1<<32-1)), uint32(m.u(1<<32-1))
		r.Kind, r.Line = references.RootKind(m.u(1<<8-1)), int(m.u(1<<31-1))
		r.Thread, r.Class, r.Method, r.Field = m.name(), m.name(), m.name(), m.name()
	}
	l.Roots = g.roots
	g.Dangling = map[uint32]uint64{}
	for range m.count(references.MaxShapes, 2) {
		code := m.u(1<<32 - 1)
		g.Dangling[uint32(code)] = m.u(most)
	}
	if m.err == nil && len(m.b) > 0 {
		m.err = fmt.Errorf("%w: %d bytes behind the names", ErrKept, len(m.b))
	}
	return m.err
}
