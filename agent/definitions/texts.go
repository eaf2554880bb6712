package definitions

import (
	"hash/maphash"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// A program that loads the same classes again and again defines the same methods and thread names again and again,
// under new ids: what they say is kept once.

// method is what a method says, without its id.
type method struct {
	class, name, sig, file string
	flags                  uint64
	lines                  uint64 // hash of them
}

// known holds texts and methods by what they say.
type known struct {
	texts   map[string]string
	methods map[method]*trace.Method
	seed    maphash.Seed
}

func newKnown() known {
	return known{texts: map[string]string{}, methods: map[method]*trace.Method{}, seed: maphash.MakeSeed()}
}

// text gives the one copy of s, and how many bytes more are held for it.
func (k *known) text(s string) (string, int) {
	if t, ok := k.texts[s]; ok {
		return t, 0
	}
	k.texts[s] = s
	return s, len(s) + textBytes
}

// method gives the one copy of m, with the id of the first that said the same, and how many bytes more are held for it.
func (k *known) method(m *trace.Method) (*trace.Method, int) {
	key := method{m.Class, m.Name, m.Sig, m.File, m.Flags, k.hash(m.Lines)}
	if have := k.methods[key]; have != nil {
		if slices.Equal(have.Lines, m.Lines) {
			return have, 0
		}
		own := *m // another one has this hash: both are kept
		return &own, methodBytes(m)
	}
	bytes := 0
	for _, s := range []*string{&key.class, &key.name, &key.sig, &key.file} {
		var n int
		*s, n = k.text(*s)
		bytes += n
	}
	own := &trace.Method{ID: m.ID, Class: key.class, Name: key.name, Sig: key.sig, File: key.file, Flags: m.Flags,
		Lines: slices.Clip(slices.Clone(m.Lines))}
	k.methods[key] = own
	return own, bytes + bodyBytes + lineBytes*len(m.Lines)
}

func (k *known) hash(lines []trace.LineEntry) uint64 {
	h := uint64(len(lines))
	for _, l := range lines {
		h = maphash.Comparable(k.seed, [3]uint64{h, uint64(l.BCI), uint64(l.Line)})
	}
	return h
}

// What is held for a text beside its bytes, for a method beside its texts and lines, and for a line.
const (
	textBytes = 48
	bodyBytes = 256
	lineBytes = 16
)

func methodBytes(m *trace.Method) int {
	return bodyBytes + len(m.Class) + len(m.Name) + len(m.Sig) + len(m.File) + lineBytes*len(m.Lines)
}
