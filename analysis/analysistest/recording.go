// Package analysistest has recordings in memory, for tests of what reads them.
package analysistest

import (
	"io"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// Source is a source of blocks from memory.
type Source struct{ B []trace.Block }

func (s *Source) Next() (trace.Block, error) {
	if len(s.B) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.B[0]
	s.B = s.B[1:]
	return b, nil
}

// Recording makes the blocks of a random legal stream.
func Recording(seed, collector, depth uint64, steps int) []trace.Block {
	m := tracetest.New(tracetest.All(seed, collector, depth))
	var bs []trace.Block
	for i := range steps {
		switch i % 11 {
		case 6:
			bs = append(bs, m.Walk().Blocks...)
		case 9:
			bs = append(bs, m.FullGC().Blocks...)
		default:
			bs = append(bs, m.Step(i%5 == 0).Blocks...)
		}
	}
	return append(bs, m.End())
}

// Program makes the blocks of a program that runs at a steady pace in a heap of fixed sizes. Its eden is small, so it
// spends much of its time in young collections; its old space never becomes full.
func Program(seed, collector uint64, steps int) []trace.Block {
	m := tracetest.New(tracetest.Config{Seed: seed, Collector: collector, Depth: trace.DepthFull, Fill: true,
		Eden: 1 << 17, Old: 1 << 22, Longest: 10e6})
	var bs []trace.Block
	for i := range steps {
		bs = append(bs, m.Step(i%10 == 0).Blocks...)
	}
	return append(bs, m.End())
}
