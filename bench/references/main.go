// Command references prints how large the reference listings in recordings are: `go run ./bench/references DIR…`.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

func main() {
	fmt.Println("| recording | objects | slots | bytes stored | by zstd | an object | references alone, a slot | " +
		"objects alone, an object |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, dir := range os.Args[1:] {
		if err := measure(dir); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", dir, err)
		}
	}
}

// listing is what a reference listing takes.
type listing struct {
	about       trace.References
	kept        int
	list, slots int // objects and references alone, by zstd
	packed      int // all of it, by zstd
}

func measure(dir string) error {
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		return err
	}
	defer rec.Close()
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	var x listing
	for _, f := range rec.Files {
		for fr, err := range f.Frames() {
			if err != nil {
				return err
			}
			for b, err := range trace.Blocks(fr.Payload) {
				if err != nil {
					return err
				}
				if b.Kind != trace.KindRefs {
					continue
				}
				p, err := trace.DecodeRefs(b)
				if err != nil {
					return err
				}
				if p.HasAbout {
					x = listing{about: p.About}
				}
				x.kept += int(fr.Stored)
				for _, s := range p.Lists {
					x.list += len(pack.EncodeAll(s, nil))
				}
				for _, s := range p.Slots {
					x.slots += len(pack.EncodeAll(s, nil))
				}
				x.packed += len(pack.EncodeAll(fr.Payload, nil))
				if p.Flags&trace.RefLast != 0 && x.about.Objects > 0 {
					x.print(dir)
				}
			}
		}
	}
	return nil
}

// print prints a row. Figures of parts are those of zstd at its fastest: the agent packs less
// where it has little time.
func (x *listing) print(dir string) {
	objects, slots := float64(x.about.Objects), float64(max(x.about.Slots, 1))
	a := &x.about
	fmt.Printf("| %s, GC %d | %d | %d | %d | %d | %.2f | %.2f | %.2f |\n", filepath.Base(dir), a.GC, a.Objects, a.Slots,
		x.kept, x.packed, float64(x.packed)/objects, float64(x.slots)/slots, float64(x.list)/objects)
}
