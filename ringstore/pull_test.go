package ringstore_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore"
)

// slow is a reader of a pull who lets the ring continue while he takes it.
type slow struct {
	bytes.Buffer
	between func()
	cut     int // fails behind so many bytes; 0: never
}

var errCut = errors.New("nobody listens any more")

func (s *slow) Write(b []byte) (int, error) {
	s.between()
	if s.cut > 0 && s.Len()+len(b) > s.cut {
		n, _ := s.Buffer.Write(b[:s.cut-s.Len()])
		return n, errCut
	}
	return s.Buffer.Write(b)
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

// members gives the numbers of the frames that a container holds, in order, and checks each digest of the manifest.
func members(rt fataler, container []byte, m *ringstore.Manifest) []uint64 {
	t := tar.NewReader(bytes.NewReader(container))
	var got []uint64
	i := 0
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			rt.Fatal(err)
		}
		b, err := io.ReadAll(t)
		if err != nil {
			rt.Fatal(err)
		}
		if h.Name == "manifest.json" {
			continue
		}
		sum := sha256.Sum256(b)
		if f := m.Files[i]; f.Name != h.Name || f.Bytes != h.Size || f.SHA256 != hex.EncodeToString(sum[:]) {
			rt.Fatalf("member %s of %d bytes, digest %x; the manifest says %+v", h.Name, h.Size, sum, f)
		}
		i++
		for at := 128; at < len(b); {
			stored := int(binary.LittleEndian.Uint32(b[at+8:]))
			if b[at+5]&ringstore.FlagIndex == 0 {
				n := binary.LittleEndian.Uint64(b[at+64:])
				if string(b[at+64:at+64+stored]) != string(frame(n, stored)) {
					rt.Fatalf("%s: frame %d is not what was written", h.Name, n)
				}
				got = append(got, n)
			}
			at += 64 + stored
		}
	}
	if i != len(m.Files) {
		rt.Fatalf("%d members, %d in the manifest", i, len(m.Files))
	}
	return got
}

// TestPullModel pulls while the ring continues: what comes out is a list of whole frames without a hole, files apart
// that the manifest names; the limit holds whatever the pull holds; a pull that dies holds nothing once the next
// store opens.
func TestPullModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<19).Draw(rt, "M")
		d := rapid.Float64Range(0.05, 0.5).Draw(rt, "d")
		frameMax := rapid.IntRange(1, 30000).Draw(rt, "frame")
		rate := rapid.IntRange(0, 30).Draw(rt, "frames of the ring between two writes of the pull")
		p := newPlay(m, d, rapid.Uint64().Draw(rt, "seed"))
		if err := p.open(); err != nil {
			rt.Fatal(err)
		}
		step := func() {
			p.now = p.now.Add(300 * time.Millisecond)
			st := p.s.Stats()
			p.put(st.Rotate || st.Files == 0, 1+p.r.IntN(frameMax))
			if p.s.Stats().Files == 0 {
				p.newest = 0 // what a pull cannot give back is in the way of all else
			}
			if p.broke != "" {
				rt.Fatal(p.broke)
			}
		}
		for range p.r.IntN(100) {
			step()
		}
		step()
		for range 3 {
			for n := 0; p.s.Stats().Files == 0; n++ { // the last pull was in the way of all
				if n > 100 {
					rt.Fatal("no pull is there, and the ring does not begin anew")
				}
				step()
			}
			w := &slow{between: func() {
				for range p.r.IntN(rate + 1) {
					step()
				}
			}}
			switch p.r.IntN(3) {
			case 0: // one that is cut off
				w.cut = 1 + p.r.IntN(int(m))
			case 1: // one that dies: its folder stays, its locks go
				before := p.fs.Fail
				p.fs.Fail = func(op, path string) error {
					if op == "remove" && filepath.Base(filepath.Dir(filepath.Dir(path))) == ".pull" && w.Len() > 0 {
						return errCut
					}
					return nil
				}
				w.cut = 1 + p.r.IntN(int(m))
				ringstore.Pull(context.Background(), dir, w, ringstore.PullOptions{FS: p.fs})
				p.fs.Fail = before
				p.fs.Kill()
				if err := p.open(); err != nil {
					rt.Fatal(err)
				}
				if left, _ := p.fs.ReadDir(dir + "/.pull"); len(left) > 0 {
					rt.Fatalf("a dead pull left %v", left)
				}
				if err := p.check(p.newest); err != nil {
					rt.Fatal(err)
				}
				continue
			}
			man, err := ringstore.Pull(context.Background(), dir, w, ringstore.PullOptions{FS: p.fs})
			if w.cut > 0 && errors.Is(err, errCut) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			got := members(rt, w.Bytes(), man)
			for i := 1; i < len(got); i++ {
				for n := got[i-1] + 1; n < got[i]; n++ {
					if _, ok := p.accepted[n]; ok && len(man.Dropped) == 0 {
						rt.Fatalf("frame %d is missing between %d and %d, and the manifest tells of no loss: %+v", n,
							got[i-1], got[i], man)
					}
				}
				if got[i] <= got[i-1] {
					rt.Fatalf("frame %d behind %d", got[i], got[i-1])
				}
			}
			if rate == 0 && (len(man.Dropped) > 0 || got[len(got)-1] != p.newest) {
				rt.Fatalf("nothing was written meanwhile, and the newest of the pull is %v, not %d; %+v", got,
					p.newest, man)
			}
		}
		p.now = p.now.Add(time.Minute)
		if st := p.s.Stats(); st.HeldBytes > 0 {
			rt.Fatalf("no pull is there, and %d bytes are held", st.HeldBytes)
		}
		if left, _ := p.fs.ReadDir(dir + "/.pull"); len(left) > 0 {
			rt.Fatalf("left: %v", left)
		}
	})
}

// TestPullResumes cuts a pull off at many places while the ring continues, and continues it.
func TestPullResumes(t *testing.T) {
	d := filepath.Join(t.TempDir(), "rec")
	s, _, err := ringstore.Open(ringstore.Config{Dir: d, MaxTraceSize: 1 << 20, Compression: "none"},
		ringstore.Identity{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := uint64(0)
	step := func() {
		n++
		st := s.Stats()
		info := ringstore.FrameInfo{Source: n, T0: n, T1: n}
		if st.Files == 0 || st.Rotate {
			err = s.Rotate(frame(n, 500), info)
		} else {
			err = s.Append(frame(n, 5000), info)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		step()
	}
	path := filepath.Join(t.TempDir(), "x.part")
	for cut := 1; ; cut += 100_001 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		part, err := ringstore.ReadPart(f)
		if err != nil {
			t.Fatal(err)
		}
		end := part.Trim(d, ringstore.OS)
		if err := f.Truncate(end); err != nil {
			t.Fatal(err)
		}
		f.Seek(end, io.SeekStart)
		w := &slow{cut: cut, between: func() {}}
		m, err := ringstore.Pull(context.Background(), d, w, ringstore.PullOptions{Part: part})
		f.Write(w.Bytes())
		f.Close()
		if errors.Is(err, errCut) {
			for range 3 {
				step()
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		b, _ := os.ReadFile(path)
		got := members(t, b, m)
		for i := 1; i < len(got); i++ {
			if got[i] != got[i-1]+1 {
				t.Fatalf("frame %d behind %d: %+v", got[i], got[i-1], m)
			}
		}
		if got[len(got)-1] != n {
			t.Fatalf("ends with %d of %d", got[len(got)-1], n)
		}
		if part.Files() == 0 {
			t.Error("nothing was taken over from the part")
		}
		break
	}
}
