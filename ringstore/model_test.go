package ringstore_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/ringstore/storetest"
)

const (
	dir     = "/rings/a"
	session = "abababababababababababababababab"
)

// frame gives the payload that is written with a number: it differs from all other payloads.
func frame(n uint64, size int) []byte {
	b := make([]byte, max(size, 8))
	r := rand.New(rand.NewPCG(n, 5))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	binary.LittleEndian.PutUint64(b, n)
	return b
}

// play is a store in a file system in memory, beside the plainest model: the numbers of the frames that were accepted.
type play struct {
	fs       *storetest.MemFS
	cfg      ringstore.Config
	s        *ringstore.Store
	now      time.Time
	n        uint64
	accepted map[uint64]int // size
	newest   uint64         // accepted and not given up
	synced   uint64         // the newest that an fsync has covered
	limit    int64
	broke    string
	r        *rand.Rand
}

func newPlay(m int64, d float64, seed uint64) *play {
	p := &play{fs: storetest.New(), now: time.Unix(1e9, 0), accepted: map[uint64]int{},
		r: rand.New(rand.NewPCG(seed, 2))}
	p.limit = m + int64(float64(m)*d) + storetest.Block // and /rings
	p.fs.After = func(op string, n int64) {
		if n > p.limit && p.broke == "" {
			p.broke = fmt.Sprintf("%s: %d bytes are occupied, the limit is %d", op, n, p.limit)
		}
	}
	p.cfg = ringstore.Config{Dir: dir, MaxTraceSize: m, Deviation: d, Compression: "none", FS: p.fs,
		Now: func() time.Time { return p.now }}
	return p
}

func (p *play) open() error {
	s, _, err := ringstore.Open(p.cfg, ringstore.Identity{Session: session, Name: "a"})
	if err == nil {
		p.s = s
	}
	return err
}

func (p *play) put(head bool, size int) error {
	p.n++
	b := frame(p.n, size)
	info := ringstore.FrameInfo{Source: p.n, T0: p.n, T1: p.n}
	var err error
	if head {
		info.Flags = ringstore.FlagListing
		err = p.s.Rotate(b, info)
	} else {
		err = p.s.Append(b, info)
	}
	if err == nil {
		p.accepted[p.n], p.newest = len(b), p.n
	}
	return err
}

// check reads all that is there. Everything from the oldest to newest that was accepted must be there, whole and in
// order, and nothing that was refused, a head that could not be removed again apart.
func (p *play) check(newest uint64) error {
	_, err := p.read(newest, ^uint64(0))
	return err
}

// read is check, and of the frames behind upto any may be missing.
func (p *play) read(newest, upto uint64) ([]uint64, error) {
	if p.broke != "" {
		return nil, errors.New(p.broke)
	}
	fail := p.fs.Fail
	p.fs.Fail = nil
	defer func() { p.fs.Fail = fail }()
	files, err := p.fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var got []uint64
	for _, i := range files {
		if !strings.HasSuffix(i.Name, ".hcr") {
			continue
		}
		f, err := ringstore.OpenFileIn(p.fs, path.Join(dir, i.Name))
		if err != nil {
			continue // what a failed creation left
		}
		for fr, err := range f.Frames() {
			if err != nil {
				continue
			}
			n := binary.LittleEndian.Uint64(fr.Payload)
			if n != fr.Source || string(fr.Payload) != string(frame(n, len(fr.Payload))) {
				return nil, fmt.Errorf("%s: frame %d is not what was written", i.Name, n)
			}
			if size, ok := p.accepted[n]; !ok && fr.Flags&ringstore.FlagHead != 0 {
				continue
			} else if !ok || size != len(fr.Payload) {
				return nil, fmt.Errorf("%s: frame %d was refused", i.Name, n)
			}
			got = append(got, n)
		}
		f.Close()
	}
	for i := 1; i < len(got); i++ {
		for n := got[i-1] + 1; n < got[i] && n <= upto; n++ {
			if _, ok := p.accepted[n]; ok {
				return nil, fmt.Errorf("frame %d was accepted and is missing between %d and %d", n, got[i-1], got[i])
			}
		}
		if got[i] <= got[i-1] {
			return nil, fmt.Errorf("frame %d behind %d", got[i], got[i-1])
		}
	}
	if newest > 0 && (len(got) == 0 || got[len(got)-1] < newest) {
		return nil, fmt.Errorf("frame %d was accepted, the newest is %v", newest, got[max(len(got)-1, 0):])
	}
	return got, nil
}

// oldest gives the number of the oldest frame that can be read: a power loss may leave files of zeros.
func (p *play) oldest() uint64 {
	for n := 1; n <= 1000; n++ {
		f, err := ringstore.OpenFileIn(p.fs, fmt.Sprintf("%s/%08d.hcr", dir, n))
		if err != nil {
			continue
		}
		for fr, err := range f.Frames() {
			if err == nil {
				f.Close()
				return fr.Source
			}
		}
		f.Close()
	}
	return 0
}

// whole says whether every file can be read to its end without damage.
func (p *play) whole() error {
	files, err := p.fs.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, i := range files {
		if !strings.HasSuffix(i.Name, ".hcr") {
			continue
		}
		f, err := ringstore.OpenFileIn(p.fs, path.Join(dir, i.Name))
		if err != nil {
			continue // a header that never reached the disk: check has seen that nothing that counts is missing
		}
		for _, err := range f.Frames() {
			if err != nil {
				return err
			}
		}
		f.Close()
	}
	return nil
}

var kinds = []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, errors.New("injected")}

// forget takes what a power loss has left for all that was accepted since the last sync.
func (p *play) forget() error {
	got, err := p.read(p.synced, p.synced)
	if err != nil {
		return err
	}
	p.newest = 0
	left := map[uint64]int{}
	for _, n := range got {
		if size, ok := p.accepted[n]; ok {
			left[n], p.newest = size, n
		}
	}
	for n := range p.accepted {
		if n <= p.synced { // given up, or there
			left[n] = p.accepted[n]
		}
	}
	p.accepted = left
	return nil
}

// TestModel drives a store through every sequence of writes, syncs, rotations, kills, power losses, full disks and
// failing operations. What the folder holds is always a list of accepted frames, in order; a kill loses nothing that
// was not given up, a power loss nothing that was synced; the limit holds at each operation; once nothing fails any
// more a new file can begin and nothing torn is left.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<19).Draw(rt, "M")
		d := rapid.Float64Range(0.05, 0.5).Draw(rt, "d")
		headMax := rapid.IntRange(1, int(m)/4).Draw(rt, "head")
		frameMax := rapid.IntRange(1, 60000).Draw(rt, "frame")
		rate := rapid.SampledFrom([]int{0, 3, 10}).Draw(rt, "faults in 100")
		full := rapid.Bool().Draw(rt, "disk gets full")
		keep := rapid.SampledFrom([]int64{0, 1 << 16}).Draw(rt, "keep_free")
		p := newPlay(m, d, rapid.Uint64().Draw(rt, "seed"))
		p.cfg.KeepFree = keep
		if full {
			p.fs.Capacity = 4 * m
		}
		burst := 0 // operations that fail in any case
		kind := kinds[0]
		p.fs.Fail = func(op, path string) error {
			if op == "readdir" || op == "openread" || op == "read" { // what is there can be read
				return nil
			}
			if burst > 0 {
				burst--
				return kind
			}
			if p.r.IntN(100) < rate {
				return kinds[p.r.IntN(len(kinds))]
			}
			return nil
		}
		reopen := func() {
			for i := 0; ; i++ {
				err := p.open()
				if err == nil {
					return
				}
				if i > 1000 {
					rt.Fatal(err)
				}
			}
		}
		reopen()
		for range 200 {
			p.now = p.now.Add(time.Duration(p.r.IntN(3000)) * time.Millisecond)
			switch k := p.r.IntN(50); k {
			case 0:
				p.fs.Kill()
				reopen()
				if err := p.check(p.newest); err != nil {
					rt.Fatalf("after a kill: %v", err)
				}
			case 1:
				p.fs.PowerLoss(p.r)
				reopen()
				if err := p.forget(); err != nil {
					rt.Fatalf("after a power loss: %v", err)
				}
			case 2, 3, 4:
				newest := p.newest
				if p.s.Sync() == nil {
					p.synced = newest
				}
			case 5:
				if rate > 0 {
					burst, kind = 1+p.r.IntN(20), kinds[p.r.IntN(len(kinds))]
				}
			case 6:
				if full {
					p.fs.Foreign = p.r.Int64N(p.fs.Capacity)
				}
			default:
				st := p.s.Stats()
				head := st.Rotate || st.Files == 0 || k == 7
				size := 1 + p.r.IntN(frameMax)
				if head {
					size = 1 + p.r.IntN(headMax)
				}
				err := p.put(head, size)
				if st := p.s.Stats(); st.Files == 0 || err != nil && st.Active == 0 {
					p.newest, p.synced = 0, 0 // the open file was given up
				} else if head && p.oldest() > p.synced {
					p.synced = 0 // all that was synced is given up
				}
			}
			if p.broke != "" {
				rt.Fatal(p.broke)
			}
		}
		if err := p.check(p.newest); err != nil {
			rt.Fatal(err)
		}
		rate, burst, p.fs.Foreign, p.fs.Capacity = 0, 0, 0, 0
		p.now = p.now.Add(time.Minute)
		if err := p.put(true, 1+p.r.IntN(int(m)/10)); err != nil && !errors.As(err, new(*ringstore.TooSmallError)) {
			rt.Fatalf("nothing fails any more, but no file can begin: %v %+v", err, p.s.Stats())
		}
		if err := p.s.Close(); err != nil {
			rt.Fatal(err)
		}
		if err := p.check(p.newest); err != nil {
			rt.Fatal(err)
		}
		reopen() // what a kill left torn is cut here
		if err := p.whole(); err != nil {
			var d *ringstore.DamageError
			if !errors.As(err, &d) || p.newest != 0 {
				// What a creation left that could neither be finished nor removed has a header and no frame.
				rt.Fatalf("torn or corrupt at the end: %v", err)
			}
		}
	})
}

// TestSetAside: files of a newer heapcam, damaged ones and rubbish are left as they are and count; new files begin
// beside them within the limit, and they go when it is their turn, as the oldest.
func TestSetAside(t *testing.T) {
	p := newPlay(1<<18, 0.25, 1)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := p.put(i%5 == 0, 4000); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.s.Close(); err != nil {
		t.Fatal(err)
	}
	change := map[string]func([]byte) []byte{
		// of the future
		"00000001.hcr": func(b []byte) []byte { b[8], b[100] = 77, 1; return b },
		// its header is damaged
		"00000002.hcr": func(b []byte) []byte { b[70] ^= 1; return b },
		"00000003.hcr": func(b []byte) []byte { b[5000] ^= 1; return b },                                  // a frame is
		"00000004.hcr": func(b []byte) []byte { return []byte(strings.Repeat("not a ring file. ", 600)) }, // the newest
	}
	was := map[string][]byte{}
	for n, f := range change {
		b, _ := p.fs.Read(dir + "/" + n)
		was[n] = f(b)
		p.fs.Put(dir+"/"+n, was[n])
	}
	s, rec, err := ringstore.Open(p.cfg, ringstore.Identity{Session: session})
	if err != nil || len(rec.Notes) < 3 || !rec.Resumed {
		t.Fatalf("%+v %v", rec, err)
	}
	p.s = s
	for n, b := range was {
		if got, ok := p.fs.Read(dir + "/" + n); !ok || string(got) != string(b) {
			t.Errorf("%s was changed or removed", n)
		}
	}
	if err := p.put(true, 4000); err != nil {
		t.Fatal(err)
	}
	if _, ok := p.fs.Read(dir + "/00000005.hcr"); !ok {
		t.Error("no new file beside them")
	}
	for range 200 {
		p.now = p.now.Add(time.Second)
		p.put(p.s.Stats().Rotate, 4000)
		if p.broke != "" {
			t.Fatal(p.broke)
		}
	}
	for n := range was {
		if _, ok := p.fs.Read(dir + "/" + n); ok {
			t.Errorf("%s is still there when its turn has come", n)
		}
	}
}
