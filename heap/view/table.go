package view

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap/samples"
)

// foldKey is what combinations differ in, apart from samples. group is the code or, without WantLength, the type.
type foldKey struct {
	group, birth uint32 // birth with the mark
	space        int32
	label        uint32
	addr         uint64
}

// cell counts.
type cell struct{ objects, words uint64 }

// foldSampled is what combinations of sampled objects differ in.
type foldSampled struct {
	foldKey
	frame, thread uint64
}

// part of a table: of one space and range of addresses.
type foldTable struct {
	space int32
	label uint32
	addr  uint64
	keys  []uint64 // group<<32|birth, +1; 0 is empty
	count []cell
	used  int
}

func (t *foldTable) at(key uint64) *cell {
	if 2*t.used >= len(t.keys) {
		t.grow()
	}
	mask := uint64(len(t.keys) - 1)
	h := key * 0x9e3779b97f4a7c15
	for h = (h ^ h>>32) & mask; ; h = (h + 1) & mask {
		switch t.keys[h] {
		case key + 1:
			return &t.count[h]
		case 0:
			t.keys[h] = key + 1
			t.used++
			return &t.count[h]
		}
	}
}

func (t *foldTable) grow() {
	keys, count := t.keys, t.count
	n := max(64, 2*len(keys))
	t.keys, t.count, t.used = make([]uint64, n), make([]cell, n), 0
	for i, k := range keys {
		if k != 0 {
			*t.at(k - 1) = count[i]
		}
	}
}

// sampledTable tells samples apart by what they differ in: open addressing, the samples of each kept in one piece at
// the end.
type sampledTable struct {
	slot  []int32 // 1 + place in all
	all   []sampledGroup
	taken []takenSample
}

type sampledGroup struct {
	key   foldSampled
	n     int32
	bytes uint64
}

type takenSample struct {
	s     *samples.Sample
	bytes uint64
	of    int32 // place in all
}

func (k *foldSampled) hash() uint64 {
	const m = 0x9e3779b97f4a7c15
	h := (k.frame ^ k.thread<<40 ^ uint64(k.group)<<20) * m
	h = (h ^ h>>29 ^ uint64(k.birth)<<32 ^ k.addr ^ uint64(uint32(k.space)) ^ uint64(k.label)<<16) * m
	return h ^ h>>32
}

// size makes room for n samples.
func (t *sampledTable) size(n int) {
	t.taken, t.all = make([]takenSample, 0, n), make([]sampledGroup, 0, n)
	room := 256
	for room < 2*n {
		room *= 2
	}
	t.slot = make([]int32, room)
}

func (t *sampledTable) add(k foldSampled, s *samples.Sample, bytes uint64) {
	at := t.number(k)
	g := &t.all[at]
	g.n++
	g.bytes += bytes
	t.taken = append(t.taken, takenSample{s, bytes, at})
}

// number gives the place of a key in all.
func (t *sampledTable) number(k foldSampled) int32 {
	if 2*len(t.all) >= len(t.slot) {
		t.slot = make([]int32, max(256, 2*len(t.slot)))
		for i := range t.all {
			*t.find(&t.all[i].key) = int32(i + 1)
		}
	}
	at := t.find(&k)
	if *at == 0 {
		t.all = append(t.all, sampledGroup{key: k})
		*at = int32(len(t.all))
	}
	return *at - 1
}

// find gives the slot of a key, or the empty one that it takes.
func (t *sampledTable) find(k *foldSampled) *int32 {
	mask := uint64(len(t.slot) - 1)
	for h := k.hash() & mask; ; h = (h + 1) & mask {
		if i := t.slot[h]; i == 0 || t.all[i-1].key == *k {
			return &t.slot[h]
		}
	}
}

// samples gives the samples of all, those of each side by side.
func (t *sampledTable) samples() []*samples.Sample {
	next := make([]int32, len(t.all))
	for i, sum := 0, int32(0); i < len(next); i++ {
		next[i] = sum
		sum += t.all[i].n
	}
	out := make([]*samples.Sample, len(t.taken))
	for i := range t.taken {
		x := &t.taken[i]
		out[next[x.of]] = x.s
		next[x.of]++
	}
	return out
}

// byID puts all in the order of the samples' ids: groups by the first of theirs.
func (t *sampledTable) byID() {
	less := func(a, b takenSample) int { return cmp.Compare(a.s.ID, b.s.ID) }
	if slices.IsSortedFunc(t.taken, less) { // then the groups are, too: each began with its first
		return
	}
	slices.SortStableFunc(t.taken, less)
	all, to := make([]sampledGroup, 0, len(t.all)), make([]int32, len(t.all))
	for i := range t.taken {
		of := &t.taken[i].of
		if to[*of] == 0 {
			all = append(all, t.all[*of])
			to[*of] = int32(len(all))
		}
		*of = to[*of] - 1
	}
	t.all, t.slot = all, nil
}

// folded adds the groups to out. What tells the objects apart is for describe to say.
func (t *sampledTable) folded(out []Folded, describe func(*Folded, foldKey)) []Folded {
	samples := t.samples()
	for i := range t.all {
		g := &t.all[i]
		out = append(out, Folded{Objects: uint64(g.n), Bytes: g.bytes, Sampled: true, Frame: g.key.frame,
			Thread: g.key.thread, Samples: samples[:g.n:g.n]})
		describe(&out[len(out)-1], g.key.foldKey)
		samples = samples[g.n:]
	}
	return out
}
