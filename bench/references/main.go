// Command references prints how large the reference listings in recordings are: `go run ./bench/references DIR…`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

func main() {
	fmt.Println("| recording | objects | references | stored, bytes | by zstd | of that for an object | " +
		"raw references, for one | by class and slot | ns to pack one |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, dir := range os.Args[1:] {
		if err := measure(dir); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", dir, err)
		}
	}
}

// listing is what a reference listing takes.
type listing struct {
	about             trace.References
	kept              int
	raw, columns, all int // references raw, references by class and slot, and all of it, by zstd
	took              time.Duration
}

// reader reads the parts of a recording's listings.
type reader struct {
	names  *symbols.Table
	unpack *references.Unpacker
	pack   references.Packer
	zstd   *zstd.Encoder
	x      listing
}

func measure(dir string) error {
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	r := &reader{names: symbols.New()}
	if r.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return err
	}
	for _, f := range rec.Files {
		for fr, err := range f.Frames() {
			if err != nil {
				return err
			}
			for b, err := range trace.Blocks(fr.Payload) {
				if err != nil {
					return err
				}
				if err := r.block(b, int(fr.Stored)); err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
			}
		}
		if r.x.about.Objects > 0 {
			r.x.print(dir)
			r.x = listing{}
		}
	}
	return nil
}

func (r *reader) block(b trace.Block, stored int) error {
	switch b.Kind {
	case trace.KindMeta:
		return r.names.Meta(b)
	case trace.KindDefs:
		return r.names.Define(b)
	case trace.KindRefs:
	default:
		return nil
	}
	p, err := trace.DecodeRefs(b)
	if err != nil {
		return err
	}
	x := &r.x
	if p.HasAbout {
		*x = listing{about: p.About}
		r.unpack = references.NewUnpacker(r.names.Sizes())
	}
	if r.unpack == nil {
		return nil // its beginning is not there
	}
	slots, err := r.unpack.Unpack(p)
	if err != nil {
		return err
	}
	raw := *p
	raw.Columns, raw.Slots = nil, slots
	for _, s := range slots {
		x.raw += len(r.zstd.EncodeAll(s, nil))
	}
	begun := time.Now()
	columns, ok := r.pack.Pack(&raw, r.names.Sizes())
	x.took += time.Since(begun)
	x.columns += len(r.zstd.EncodeAll(columns, nil))
	if ok {
		raw.Columns, raw.Slots = columns, nil
	}
	x.all += len(r.zstd.EncodeAll(trace.EncodeRefs(&raw).Payload, nil))
	x.kept += stored
	return nil
}

// print prints a row. Figures by zstd are at its fastest: the agent packs less where it has little time.
func (x *listing) print(dir string) {
	a := &x.about
	objects, slots := float64(a.Objects), float64(max(a.Slots, 1))
	fmt.Printf("| %s, GC %d | %d | %d | %d | %d | %.2f | %.2f | %.2f | %.0f |\n", filepath.Base(dir), a.GC, a.Objects,
		a.Slots, x.kept, x.all, float64(x.all)/objects, float64(x.raw)/slots, float64(x.columns)/slots,
		float64(x.took)/slots)
}
