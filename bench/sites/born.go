package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// firstSited is the lowest id of what stands for an object whose site the bytecode told (heap/samples).
const firstSited = trace.MaxSampleID + 1

// count is objects and bytes.
type count struct{ objects, bytes uint64 }

func (c *count) add(o heap.Object) { c.objects, c.bytes = c.objects+1, c.bytes+8*o.Words }

func share(a, b uint64) string { return fmt.Sprintf("%.2f %%", 100*float64(a)/float64(max(b, 1))) }

// born is what a recording with exact sites says of objects that were new in a collection and survived it.
type born struct {
	collections                      int
	all, told, sampled, ints, others count // ints, others: int[], and other types, without a site
	missing                          map[uint32]*count
	same, caller, wrong              uint64 // samples whose site the bytecode noted, too
	differ                           map[string]int
}

// bornTable prints of how many new objects the site is known, in the second half of the collections (the first half is
// warm-up), and how many samples end at the bytecode that noted it, are below it, or have another stack. Where the
// collector fills gaps with int[], most of these without a site are no objects of the program. more: types without a
// site and samples that differ are printed, too, to the standard error.
func bornTable(recordings []string, more bool) {
	fmt.Println("| recording | collections | new objects | told | told or sampled | new bytes | told | " +
		"told or sampled | int[] without (fillers, most of them) | without these: objects, bytes | " +
		"samples compared | a caller was noted | another site |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, path := range recordings {
		b, r, err := bornOf(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			continue
		}
		known := count{b.told.objects + b.sampled.objects, b.told.bytes + b.sampled.bytes}
		compared := b.same + b.caller + b.wrong
		fmt.Printf("| %s | %d | %d | %s | %s |", filepath.Base(path), b.collections, b.all.objects,
			share(b.told.objects, b.all.objects), share(known.objects, b.all.objects))
		fmt.Printf(" %d | %s | %s | %d, %d bytes |", b.all.bytes, share(b.told.bytes, b.all.bytes),
			share(known.bytes, b.all.bytes), b.ints.objects, b.ints.bytes)
		fmt.Printf(" %s, %s | %d | %d | %d |\n", share(known.objects, known.objects+b.others.objects),
			share(known.bytes, known.bytes+b.others.bytes), compared, b.caller, b.wrong)
		if r.Symbols.SitesCut != nil {
			fmt.Fprintf(os.Stderr, "  stacks of samples were cut: the probe's table of frames was full\n")
		}
		if more {
			b.details(r)
		}
	}
}

func (b *born) details(r *heap.Replay) {
	most := 12
	types := slices.SortedFunc(maps.Keys(b.missing), func(x, y uint32) int {
		return cmp.Compare(b.missing[y].bytes, b.missing[x].bytes)
	})
	for _, t := range types[:min(most, len(types))] {
		m := b.missing[t]
		fmt.Fprintf(os.Stderr, "  %9d objects, %11d bytes without: %s\n", m.objects, m.bytes,
			r.Symbols.Types[uint64(t)].Name)
	}
	texts := slices.SortedFunc(maps.Keys(b.differ), func(x, y string) int {
		return cmp.Compare(b.differ[y], b.differ[x])
	})
	for _, x := range texts[:min(most, len(texts))] {
		fmt.Fprintf(os.Stderr, "  %d times %s\n", b.differ[x], x)
	}
}

func bornOf(path string) (*born, *heap.Replay, error) {
	half := uint64(0)
	for pass := 0; ; pass++ {
		rec, err := ringstore.OpenRecording(path)
		if err != nil {
			return nil, nil, err
		}
		b := &born{missing: map[uint32]*count{}, differ: map[string]int{}}
		r := heap.NewReplay(&source{files: rec.Files})
		last := uint64(0)
		r.OnTold = func(s *heap.Sample, frame uint64) { b.compare(r, s, frame) }
		err = collection.Each(r, func(c *heap.Collection) bool {
			last = c.GC
			if pass > 0 && c.Known && c.GC > half && c.Kind == trace.PauseYoung {
				b.follow(r, c)
			}
			return true
		})
		rec.Close()
		if err != nil || pass > 0 {
			return b, r, err
		}
		half = last / 2
	}
}

func (b *born) follow(r *heap.Replay, c *heap.Collection) {
	b.collections++
	r.State.Each(func(o heap.Object) bool {
		if uint64(o.Birth) != c.GC || o.AtLeast || r.Filler(o.Type) {
			return true
		}
		b.all.add(o)
		x := r.Live.Get(o.Sample)
		switch {
		case o.Sample >= firstSited || x != nil && x.Told:
			b.told.add(o)
		case x != nil && x.Frame != 0:
			b.sampled.add(o)
		default:
			if b.missing[o.Type] == nil {
				b.missing[o.Type] = &count{}
			}
			b.missing[o.Type].add(o)
			if r.Symbols.Types[uint64(o.Type)].Name == "[I" {
				b.ints.add(o)
			} else {
				b.others.add(o)
			}
		}
		return true
	})
}

// compare holds a sample's stack against what the bytecode noted. A caller is noted where no bytecode allocates: at a
// call of a native method, of one that compiled code replaces, or of the code behind a deserialized object.
func (b *born) compare(r *heap.Replay, s *heap.Sample, told uint64) {
	want := r.Symbols.Frames[told]
	for at, depth := s.Frame, 0; at != 0 && depth < 1000; depth++ {
		f := r.Symbols.Frames[at]
		if f.Method == want.Method && f.BCI == want.BCI {
			if depth == 0 {
				b.same++
			} else {
				b.caller++
			}
			return
		}
		at = f.Parent
	}
	b.wrong++
	b.differ[fmt.Sprintf("%s: told %s, sampled %s", r.Symbols.Types[s.Type].Name, stack(r, told),
		stack(r, s.Frame))]++
}

// stack names the innermost frames.
func stack(r *heap.Replay, frame uint64) string {
	var out []string
	for depth := 0; depth < 5 && frame != 0; depth++ {
		f := r.Symbols.Frames[frame]
		m := r.Symbols.Methods[f.Method]
		out = append(out, fmt.Sprintf("%s.%s:%d", strings.Trim(m.Class, "L;"), m.Name, f.BCI))
		frame = f.Parent
	}
	return strings.Join(out, " < ")
}

// source gives the blocks of some files, one file after the other.
type source struct {
	files []*ringstore.File
	next  func() (trace.Block, error, bool)
}

func (s *source) Next() (trace.Block, error) {
	for {
		if s.next == nil {
			if len(s.files) == 0 {
				return trace.Block{}, io.EOF
			}
			s.next, _ = iter.Pull2(s.files[0].Blocks())
			s.files = s.files[1:]
		}
		b, err, ok := s.next()
		if ok && !errors.Is(err, io.EOF) {
			return b, err
		}
		s.next = nil
	}
}
