//go:build unix

// Command compression measures what the store makes of real recordings: bytes per object at full depth and per listed
// object, and the time it takes, in each mode. It is given ring folders that were recorded with --compression none
// (bench/compression/record.sh), and stores their frames again. Modes are run in turns, and the median is shown.
//
// Bytes of a listing are its frame's, in proportion to its raw size. Time is the process's CPU time over all that the
// store does, the write to the file system included.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

var modes = []string{ringstore.None, ringstore.Partial, ringstore.Full, ringstore.Adaptive}

// tape is a recording in memory.
type tape struct {
	name         string
	frames       []ringstore.FrameData
	raw          int64
	born, listed uint64
	listingShare []float64 // of each frame's raw bytes
}

// result is one run of a mode.
type result struct {
	perBorn, perListed, ratio, nsPerObject float64
}

func main() {
	rounds := flag.Int("rounds", 3, "runs of each mode; the median is shown")
	limit := flag.Int64("limit", 200<<20, "how much of a recording is taken, raw bytes")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: compression RING-FOLDER…")
		os.Exit(2)
	}
	sums := map[string]result{}
	n := 0.0
	fmt.Println("| recording | mode | B/object born | B/object listed | stored/raw | CPU ns/object |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, dir := range flag.Args() {
		t, err := load(dir, *limit)
		if err != nil {
			fatal(err)
		}
		if t.born == 0 {
			fatal(fmt.Errorf("%s: no objects of depth full", dir))
		}
		all := map[string][]result{}
		for range *rounds {
			for _, m := range modes {
				r, err := store(t, m)
				if err != nil {
					fatal(err)
				}
				all[m] = append(all[m], r)
			}
		}
		n++
		for _, m := range modes {
			r := median(all[m])
			fmt.Printf("| %s | %s | %.3f | %.3f | %.3f | %.1f |\n", t.name, m, r.perBorn, r.perListed, r.ratio,
				r.nsPerObject)
			s := sums[m]
			sums[m] = result{s.perBorn + r.perBorn, s.perListed + r.perListed, s.ratio + r.ratio,
				s.nsPerObject + r.nsPerObject}
		}
	}
	for _, m := range modes {
		s := sums[m]
		fmt.Printf("| **mean** | %s | %.3f | %.3f | %.3f | %.1f |\n", m, s.perBorn/n, s.perListed/n, s.ratio/n,
			s.nsPerObject/n)
	}
}

func load(dir string, limit int64) (*tape, error) {
	t := &tape{name: filepath.Base(filepath.Dir(dir))}
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		return nil, err
	}
	defer rec.Close()
	types := trace.NewTypeTable(8)
	for _, f := range rec.Files {
		for fr, err := range f.Frames() {
			if err != nil {
				return nil, err
			}
			if t.raw > limit {
				return t, nil
			}
			listing := 0
			for b, err := range trace.Blocks(fr.Payload) {
				if err != nil {
					return nil, err
				}
				if b.Kind == trace.KindSync {
					listing += b.Size()
				}
				if err := t.count(b, types); err != nil {
					return nil, err
				}
			}
			t.frames = append(t.frames, fr)
			t.listingShare = append(t.listingShare, float64(listing)/float64(max(1, len(fr.Payload))))
			t.raw += int64(len(fr.Payload))
		}
	}
	return t, nil
}

func (t *tape) count(b trace.Block, types *trace.TypeTable) error {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err != nil {
			return err
		}
		types.SetAlign(m.JVM.Align)
	case trace.KindDefs:
		d, err := trace.DecodeDefs(b)
		if err != nil {
			return err
		}
		return types.DefineAll(d.Types)
	case trace.KindSync:
		s, err := trace.DecodeSync(b)
		if err != nil {
			return err
		}
		t.listed += s.Objects
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			return err
		}
		for _, blob := range e.Allocs {
			w := trace.NewWalkTokens(blob, types)
			for w.Next() {
				if w.Kind == trace.WalkDead || w.Kind == trace.WalkMove {
					t.born++
				}
			}
			if err := w.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func store(t *tape, mode string) (r result, err error) {
	dir, err := os.MkdirTemp("", "compression")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	s, _, err := ringstore.Open(ringstore.Config{Dir: filepath.Join(dir, "rec"), MaxTraceSize: 4 << 30, Deviation: 0.5,
		Compression: mode, CPU: 1000},
		ringstore.Identity{Session: "00112233445566778899aabbccddeeff"})
	if err != nil {
		return r, err
	}
	from := cpu()
	for i, f := range t.frames {
		if i == 0 {
			err = s.Rotate(f.Payload, f.FrameInfo)
		} else {
			info := f.FrameInfo
			info.Flags &^= ringstore.FlagHead
			err = s.Append(f.Payload, info)
		}
		if err != nil {
			return r, err
		}
	}
	if err := s.Close(); err != nil {
		return r, err
	}
	took := cpu() - from
	rec, err := ringstore.OpenRecording(filepath.Join(dir, "rec"))
	if err != nil {
		return r, err
	}
	defer rec.Close()
	var stored, listings float64
	i := 0
	for _, f := range rec.Files {
		for fr, err := range f.Headers() {
			if err != nil {
				return r, err
			}
			stored += float64(fr.Stored)
			listings += float64(fr.Stored) * t.listingShare[i]
			i++
		}
	}
	return result{(stored - listings) / float64(t.born), listings / float64(max(1, t.listed)), stored / float64(t.raw),
		float64(took.Nanoseconds()) / float64(t.born)}, nil
}

func median(rs []result) result {
	slices.SortFunc(rs, func(a, b result) int { return int(1e6 * (a.nsPerObject - b.nsPerObject)) })
	return rs[len(rs)/2]
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "compression:", err)
	os.Exit(1)
}
