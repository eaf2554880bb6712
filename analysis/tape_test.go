package analysis

import (
	"io"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// memBlocks is a source of blocks from memory.
type memBlocks struct{ b []trace.Block }

func (s *memBlocks) Next() (trace.Block, error) {
	if len(s.b) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b, nil
}

// modelTape makes the blocks of a random legal stream.
func modelTape(seed, collector, depth uint64, steps int) []trace.Block {
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
