//go:build unix

package ringstore

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"
)

// faultFS does everything in real files, counts what they occupy at each operation, and fails the operations it is told to.
type faultFS struct {
	osFS
	size   map[string]int64 // logical
	synced map[string]int64
	limit  int64
	broke  string // how the limit was passed
	fail   func(op string) bool
}

var errFault = errors.New("injected")

func (f *faultFS) check(op string) {
	n := int64(2 * block)
	for _, s := range f.size {
		n += occupied(s)
	}
	if n > f.limit && f.broke == "" {
		f.broke = op
	}
}

func (f *faultFS) Create(path string) (ringFile, error) {
	if f.fail("create") {
		return nil, errFault
	}
	r, err := f.osFS.Create(path)
	if err != nil {
		return nil, err
	}
	f.size[path] = 0
	return &faultFile{r, f, path}, nil
}

func (f *faultFS) Open(path string) (ringFile, error) {
	if f.fail("open") {
		return nil, errFault
	}
	r, err := f.osFS.Open(path)
	if err != nil {
		return nil, err
	}
	return &faultFile{r, f, path}, nil
}

func (f *faultFS) Remove(path string) error {
	if f.fail("remove") {
		return errFault
	}
	delete(f.size, path)
	return f.osFS.Remove(path)
}

type faultFile struct {
	ringFile
	fs   *faultFS
	path string
}

func (f *faultFile) Blocks() int64 { return 0 }

func (f *faultFile) WriteAt(b []byte, at int64) (int, error) {
	fail := f.fs.fail("write")
	if fail {
		b = b[:len(b)/2] // a short write, as ENOSPC gives
	}
	n, err := f.ringFile.WriteAt(b, at)
	f.fs.size[f.path] = max(f.fs.size[f.path], at+int64(n))
	f.fs.check("write")
	if fail {
		err = errFault
	}
	return n, err
}

func (f *faultFile) Truncate(n int64) error {
	if f.fs.fail("truncate") {
		return errFault
	}
	f.fs.size[f.path] = n
	return f.ringFile.Truncate(n)
}

func (f *faultFile) Sync() error {
	if f.fs.fail("sync") {
		return errFault
	}
	f.fs.synced[f.path] = f.fs.size[f.path]
	return f.ringFile.Sync()
}

// TestFaults drives a store through failing operations, kills and power losses beside the plainest model: the list of frames that were
// accepted. What the folder holds is always a list of those, in order, without one that was refused; a kill loses nothing that is not
// evicted, a power loss nothing that was synced; the limit holds at each operation; once nothing fails any more a new file can begin.
func TestFaults(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<19).Draw(rt, "M")
		d := rapid.Float64Range(0.05, 0.5).Draw(rt, "d")
		headMax := rapid.IntRange(1, int(m)).Draw(rt, "head")
		frameMax := rapid.IntRange(1, 60000).Draw(rt, "frame")
		rate := rapid.SampledFrom([]int{0, 3, 10}).Draw(rt, "faults in 100")
		ask := rapid.Bool().Draw(rt, "rotates only when wanted")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		dir, err := os.MkdirTemp(base, "f")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		faults := true
		fs := &faultFS{size: map[string]int64{}, synced: map[string]int64{}, limit: m + int64(float64(m)*d)}
		fs.fail = func(string) bool { return faults && r.IntN(100) < rate }
		cfg := Config{Dir: dir, MaxTraceSize: m, Deviation: d, Compression: "none", fs: fs}
		open := func() *Store {
			s, _, err := Open(cfg, Identity{Session: session})
			if err != nil {
				rt.Fatal(err)
			}
			return s
		}
		s := open()
		defer func() { s.Close() }()
		accepted := map[uint64]bool{}
		n, lastAccepted := uint64(0), uint64(0)
		check := func(newest uint64) {
			if fs.broke != "" {
				rt.Fatalf("limit of %d passed at a %s", fs.limit, fs.broke)
			}
			names, _ := ringFiles(dir)
			var last uint64
			for _, p := range names {
				f, err := OpenFile(p)
				if err != nil {
					continue // what a failed creation left behind
				}
				for fr, err := range f.Frames() {
					if err != nil {
						continue
					}
					// A failed creation that could not be removed may hold its head, which the model calls refused.
					if !accepted[fr.Source] && fr.Flags&FlagHead == 0 || fr.Source <= last {
						rt.Fatalf("%s: frame %d after %d (accepted: %v)", p, fr.Source, last, accepted[fr.Source])
					}
					last = fr.Source
				}
				f.Close()
			}
			if newest != 0 && last < newest {
				rt.Fatalf("newest frame is %d, %d was accepted", last, newest)
			}
		}
		for range 150 {
			n++
			info := FrameInfo{Source: n}
			switch k := r.IntN(40); {
			case k == 0: // the recorder is killed: everything written stays
				s.active = nil
				s = open()
				check(lastAccepted)
				continue
			case k == 1: // power loss: what was not synced is cut somewhere
				if s.active != nil {
					p, size := s.path, fs.size[s.path]
					if lo := fs.synced[p]; size > lo {
						size = lo + r.Int64N(size-lo+1)
					}
					os.Truncate(p, size)
					fs.size[p], fs.synced[p] = size, size
					lastAccepted = 0
				}
				s.active = nil
				s = open()
				check(0)
				continue
			case k == 2:
				s.Sync()
				continue
			case s.Stats().Rotate || s.active == nil || !ask && k == 3:
				err = s.Rotate(random(r, 1+r.IntN(headMax)), info)
			default:
				err = s.Append(random(r, 1+r.IntN(frameMax)), info)
			}
			if err == nil {
				accepted[n], lastAccepted = true, n
			} else if !errors.Is(err, ErrNoRoom) && !errors.Is(err, errFault) && !errors.Is(err, ErrNoFile) {
				rt.Fatal(err)
			}
			if s.active == nil {
				lastAccepted = 0 // the open file was given up
			}
			if fs.broke != "" {
				check(0)
			}
		}
		check(lastAccepted)
		faults = false
		n++
		if err := s.Rotate(random(r, 1+r.IntN(int(m)-6*block)), FrameInfo{Source: n}); err != nil {
			rt.Fatalf("nothing fails any more, but no file can begin: %v", err)
		}
		accepted[n] = true
		check(n)
		names, _ := filepath.Glob(filepath.Join(dir, "*.hcr"))
		if len(names) == 0 {
			rt.Fatal("no file")
		}
	})
}
