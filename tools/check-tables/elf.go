package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"sort"
)

// tables is what a libjvm exports about itself.
type tables struct {
	fields []field
	types  map[string]uint64 // sizes
	consts map[string]int64  // those of both tables of constants
}

// field is a row of gHotSpotVMStructs.
type field struct {
	typ, name, declared string
	static              bool
	offset              uint64
}

// image is a library as the dynamic linker would leave it in memory, at address 0 and without other libraries.
type image struct {
	file     *elf.File
	segments []segment
	symbols  map[string]uint64
}

type segment struct {
	at   uint64
	data []byte
}

// relative is the type of a relocation that adds the address of the library, and absolute that of one that stores the
// address of a symbol.
var relative = map[elf.Machine]uint32{
	elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE),
}
var absolute = map[elf.Machine]uint32{
	elf.EM_X86_64: uint32(elf.R_X86_64_64), elf.EM_AARCH64: uint32(elf.R_AARCH64_ABS64),
}

// load reads a library and applies the relocations that need no other library. Nothing in the library is executed.
func load(path string) (*image, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian || relative[f.Machine] == 0 {
		return nil, fmt.Errorf("%s: not a library of x86-64 or aarch64", path)
	}
	m := &image{file: f, symbols: map[string]uint64{}}
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		data := make([]byte, p.Memsz)
		if _, err := p.ReadAt(data[:p.Filesz], 0); err != nil {
			return nil, err
		}
		m.segments = append(m.segments, segment{p.Vaddr, data})
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			m.symbols[s.Name] = s.Value
		}
	}
	return m, m.relocate(symbols)
}

func (m *image) relocate(symbols []elf.Symbol) error {
	s := m.file.Section(".rela.dyn")
	if s == nil {
		return fmt.Errorf("the library has no .rela.dyn")
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	var r elf.Rela64
	for in := bytes.NewReader(data); in.Len() > 0; {
		if err := binary.Read(in, binary.LittleEndian, &r); err != nil {
			return err
		}
		value := uint64(r.Addend)
		switch uint32(r.Info) {
		case relative[m.file.Machine]:
		case absolute[m.file.Machine]:
			if n := r.Info >> 32; n > 0 && n <= uint64(len(symbols)) {
				value += symbols[n-1].Value
			}
		default:
			continue
		}
		if at := m.at(r.Off, 8); at != nil {
			binary.LittleEndian.PutUint64(at, value)
		}
	}
	return nil
}

// at gives n bytes at an address; nil: the library has none there.
func (m *image) at(address, n uint64) []byte {
	i := sort.Search(len(m.segments), func(i int) bool { return m.segments[i].at > address }) - 1
	if i < 0 {
		return nil
	}
	s := m.segments[i]
	if o := address - s.at; o+n <= uint64(len(s.data)) {
		return s.data[o : o+n]
	}
	return nil
}

func (m *image) u64(address uint64) uint64 {
	if b := m.at(address, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (m *image) text(address uint64) string {
	var s []byte
	for n := uint64(0); address != 0 && n < 512; n++ {
		b := m.at(address+n, 1)
		if b == nil || b[0] == 0 {
			break
		}
		s = append(s, b[0])
	}
	return string(s)
}

// layouts are the columns of the tables, and the size of a row behind them. A libjvm computes them when it is loaded:
// its file says 0. The probe takes them from the running JVM and refuses others.
var layouts = map[string]map[string]uint64{
	"gHotSpotVMStructs": {"TypeName": 0, "FieldName": 8, "TypeString": 16, "IsStatic": 24, "Offset": 32, "Address": 40,
		"": 48},
	"gHotSpotVMTypes":         {"TypeName": 0, "SuperclassName": 8, "Size": 32, "": 40},
	"gHotSpotVMIntConstants":  {"Name": 0, "Value": 8, "": 16},
	"gHotSpotVMLongConstants": {"Name": 0, "Value": 8, "": 16},
}

// rows calls f with each row of a table: the address of each of its columns.
func (m *image) rows(table string, f func(column func(string) uint64)) error {
	at, ok := m.symbols[table]
	if !ok {
		return fmt.Errorf("the library does not export %s", table)
	}
	layout, n := layouts[table], 0
	// the first column is a name, and the last row has none
	for row := m.u64(at); n < 1<<14 && m.text(m.u64(row)) != ""; row += layout[""] {
		f(func(name string) uint64 { return row + layout[name] })
		n++
	}
	if n == 0 {
		return fmt.Errorf("%s is empty in the file", table)
	}
	return nil
}

// read gives the tables of a library.
func read(path string) (*tables, error) {
	m, err := load(path)
	if err != nil {
		return nil, err
	}
	t := &tables{types: map[string]uint64{}, consts: map[string]int64{}}
	for _, r := range []struct {
		table string
		f     func(func(string) uint64)
	}{
		{"gHotSpotVMStructs", func(col func(string) uint64) {
			t.fields = append(t.fields, field{m.text(m.u64(col("TypeName"))), m.text(m.u64(col("FieldName"))),
				m.text(m.u64(col("TypeString"))), uint32(m.u64(col("IsStatic"))) != 0, m.u64(col("Offset"))})
		}},
		{"gHotSpotVMTypes", func(col func(string) uint64) {
			t.types[m.text(m.u64(col("TypeName")))] = m.u64(col("Size"))
		}},
		{"gHotSpotVMIntConstants", func(col func(string) uint64) {
			t.consts[m.text(m.u64(col("Name")))] = int64(int32(m.u64(col("Value"))))
		}},
		{"gHotSpotVMLongConstants", func(col func(string) uint64) {
			t.consts[m.text(m.u64(col("Name")))] = int64(m.u64(col("Value")))
		}},
	} {
		if err := m.rows(r.table, r.f); err != nil {
			return nil, err
		}
	}
	return t, nil
}
