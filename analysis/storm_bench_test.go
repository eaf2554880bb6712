package analysis

import (
	"github.com/heapcam/heapcam/analysis/leak"
	"io"
	"iter"
	"os"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// pulled gives the blocks of an iterator.
type pulled struct {
	next func() (trace.Block, error, bool)
	stop func()
}

func (p pulled) Next() (trace.Block, error) {
	b, err, ok := p.next()
	if !ok {
		return b, io.EOF
	}
	return b, err
}

// BenchmarkRecording reads the recording HEAPCAM_RECORDING (bench/storm writes one) for a report: counted, and
// replayed.
func BenchmarkRecording(b *testing.B) {
	path := os.Getenv("HEAPCAM_RECORDING")
	if path == "" {
		b.Skip("no HEAPCAM_RECORDING")
	}
	for _, c := range []struct {
		name   string
		of     func(*ringstore.File) iter.Seq2[trace.Block, error]
		reader func(heap.BlockSource) heap.Reader
	}{
		{"counted", (*ringstore.File).BlocksWithoutTokens,
			func(s heap.BlockSource) heap.Reader { return heap.NewCensus(s) }},
		{"replayed", (*ringstore.File).Blocks, func(s heap.BlockSource) heap.Reader { return heap.NewReplay(s) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				rec, err := ringstore.OpenRecording(path)
				if err != nil {
					b.Fatal(err)
				}
				next, stop := iter.Pull2(func(yield func(trace.Block, error) bool) {
					for _, f := range rec.Files {
						for x, err := range c.of(f) {
							if !yield(x, err) {
								return
							}
						}
					}
				})
				if _, err := MakeReport(c.reader(pulled{next, stop}), leak.Options{}); err != nil {
					b.Fatal(err)
				}
				stop()
				rec.Close()
			}
		})
	}
}
