//go:build unix

package session

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
)

// tape is what a probe commits: META, definitions and samples before the first collection, then one collection each.
type tape struct {
	commits [][]byte
	objects uint64 // walked and listed
	raw     int
}

// BenchmarkRecorder plays a recorded ring to a session that writes a ring folder, without a JVM. Reported: CPU of the
// recorder for each object, all threads, fsync and Go's collector included; and bytes on disk for each object.
// HEAPCAM_TAPE=DIR plays a recording made with --depth full --compression none in place of a synthetic one.
func BenchmarkRecorder(b *testing.B) {
	var t *tape
	if dir := os.Getenv("HEAPCAM_TAPE"); dir != "" {
		t = loadTape(b, dir, 400<<20)
	} else {
		t = synthesize(40, 1_500_000)
	}
	for _, m := range []struct {
		name, mode string
		cpus       float64 // that compression may take
	}{
		{"none", ringstore.None, 1000},
		{"adaptive", ringstore.Adaptive, 1000},
		{"adaptive-busy", ringstore.Adaptive, 1e-6},
	} {
		b.Run(m.name, func(b *testing.B) {
			var took cpu
			var stored int64
			for range b.N {
				x, n := t.record(b, m.mode, m.cpus)
				took, stored = took.plus(x), stored+n
			}
			n := float64(t.objects) * float64(b.N)
			b.ReportMetric(float64((took.user+took.kernel).Nanoseconds())/n, "cpu-ns/object")
			b.ReportMetric(float64(took.kernel.Nanoseconds())/n, "kernel-ns/object")
			b.ReportMetric(float64(stored)/n, "B/object")
			b.ReportMetric(float64(t.raw)/float64(t.objects), "raw-B/object")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// record plays the tape to a new session. It gives the CPU time that recording took, and the bytes that it wrote.
func (t *tape) record(b *testing.B, mode string, cpus float64) (took cpu, stored int64) {
	b.Helper()
	dir, err := os.MkdirTemp("", "recorder")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ringDir := dir
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		if ringDir, err = os.MkdirTemp("/dev/shm", "recorder"); err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(ringDir)
	}
	p, err := ringtest.Create(ringDir, ringtest.Config{Mapped: true, Capacity: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	s := benchSession(b, p, filepath.Join(dir, "out"), mode, cpus)
	defer s.Close()
	for _, c := range t.commits {
		if ok, err := p.CommitBytes(c); !ok || err != nil {
			b.Fatal(ok, err)
		}
		if _, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone); err != nil {
			b.Fatal(err)
		}
		from := processCPU()
		for p.Peek64(shmring.OffTail) != p.Head() {
			if err := s.charged(s.step); err != nil {
				b.Fatal(err)
			}
		}
		s.syncDue()
		took = took.plus(processCPU().less(from))
	}
	from := processCPU()
	if err := s.out.st.Close(); err != nil {
		b.Fatal(err)
	}
	took = took.plus(processCPU().less(from))
	if st := s.Status(); st.Dropped != (Drops{}) || st.Collections == 0 || st.StoreError != "" {
		b.Fatalf("%+v", st)
	}
	return took, s.out.st.Stats().Written
}

func benchSession(b *testing.B, p *ringtest.Producer, out, mode string, cpus float64) *Session {
	b.Helper()
	ring, err := shmring.Open(p.Path, shmring.Options{})
	if err != nil {
		b.Fatal(err)
	}
	h, err := ring.Status()
	if err != nil {
		b.Fatal(err)
	}
	fresh, err := ring.Acquire()
	if err != nil {
		b.Fatal(err)
	}
	who := JVM{Identity: ringstore.Identity{Session: h.Session, Name: "jvm"}, Here: true}
	st, err := OpenStore(ringstore.Config{Dir: out, MaxTraceSize: 4 << 30, Deviation: 0.5, Compression: mode,
		CPU: cpus}, who.Identity, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	limits := &Limits{SamplingShare: -1}
	s, err := New(Config{
		MaxTraceSize: 4 << 30, Deviation: 0.5, Compression: mode, SyncInterval: time.Second, Emergency: "walk",
		Limits: func() *Limits { return limits }, WriteRate: quota.NewSharedRate("max_total_write_rate", 0),
		Process: quota.NewProcess(0, 0), Log: zerolog.Nop(),
	}, ring, st, out, h, fresh, who)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// cpu is time that the process has taken.
type cpu struct{ user, kernel time.Duration }

func (c cpu) plus(x cpu) cpu { return cpu{c.user + x.user, c.kernel + x.kernel} }
func (c cpu) less(x cpu) cpu { return cpu{c.user - x.user, c.kernel - x.kernel} }

func processCPU() cpu {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return cpu{}
	}
	return cpu{time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())}
}

// loadTape reads so many bytes of a recording that was not compressed.
func loadTape(b *testing.B, dir string, limit int) *tape {
	b.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer rec.Close()
	t, types := &tape{}, trace.NewTypeTable(8)
	var commit []byte
	for _, f := range rec.Files {
		for bl, err := range f.Blocks() {
			if err != nil {
				b.Fatal(err)
			}
			if bl.Kind == trace.KindSummary || bl.Kind == trace.KindGap || bl.Kind == trace.KindEnd {
				continue
			}
			if bl.Kind == trace.KindMeta {
				bl.Version = 1
				if m, err := trace.DecodeMeta(bl); err != nil || !m.HasJVM {
					continue
				}
			}
			if bl.Kind == trace.KindEpoch && len(commit) > 0 {
				t.commits, t.raw, commit = append(t.commits, commit), t.raw+len(commit), nil
				if t.raw > limit {
					return t
				}
			}
			if bl.Seq == 0 {
				bl.Seq = 1
			}
			t.count(b, bl, types)
			commit = trace.AppendBlock(commit, bl)
		}
	}
	t.commits, t.raw = append(t.commits, commit), t.raw+len(commit)
	return t
}

// count counts the objects of a block.
func (t *tape) count(b *testing.B, bl trace.Block, types *trace.TypeTable) {
	b.Helper()
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	switch bl.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(bl)
		fail(err)
		types.SetAlign(m.JVM.Align)
	case trace.KindDefs:
		d, err := trace.DecodeDefs(bl)
		fail(err)
		fail(types.DefineAll(d.Types))
	case trace.KindSync:
		y, err := trace.DecodeSync(bl)
		fail(err)
		t.objects += y.Objects
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(bl)
		fail(err)
		for _, blob := range e.Allocs {
			w := trace.NewWalkTokens(blob, types)
			for w.Next() {
				if w.Kind == trace.WalkDead || w.Kind == trace.WalkMove {
					t.objects++
				}
			}
			fail(w.Err())
		}
	}
}

// synthesize makes a tape of epochs of n objects each. A program allocates by idioms, short sequences of types; some
// are frequent, and one object in fifty survives.
func synthesize(epochs, n int) *tape {
	rng := rand.New(rand.NewPCG(5, 5))
	types := trace.NewTypeTable(8)
	var defs trace.Defs
	for i := range uint64(600) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: "x/T"}
		if i%10 >= 7 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4, Name: "[I"}
		}
		defs.Types = append(defs.Types, ty)
	}
	if err := types.DefineAll(defs.Types); err != nil {
		panic(err)
	}
	idioms := make([][][2]uint64, 500)
	for i := range idioms {
		for range 2 + rng.IntN(12) {
			idioms[i] = append(idioms[i], [2]uint64{1 + uint64(rng.IntN(1+rng.IntN(600))), uint64(rng.IntN(60))})
		}
	}
	jvm := trace.JVM{ABI: 1, Collector: trace.CollectorParallel, Align: 8, Depth: trace.DepthFull, Interval: 1 << 19,
		Session: "00112233445566778899aabbccddeeff"}
	meta := trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: jvm})
	meta.Version, meta.Seq = 1, 1
	def := trace.EncodeDefs(defs)
	def.Seq = 2
	t := &tape{commits: [][]byte{trace.AppendBlock(trace.AppendBlock(nil, meta), def)}}
	dest, zipf := uint64(1<<28), rand.NewZipf(rng, 1.3, 4, uint64(len(idioms)-1))
	for gc := range uint64(epochs) {
		w := trace.NewWalkEncoder(types)
		w.Begin(1<<10, 1<<26)
		for left := n; left > 0; {
			idiom := idioms[zipf.Uint64()]
			for times := 1 + rng.IntN(1+rng.IntN(40)); times > 0; times-- {
				for _, o := range idiom {
					length := uint64(0)
					if types.HasLength(o[0]) {
						if length = o[1]; rng.IntN(8) == 0 {
							length = uint64(rng.IntN(60))
						}
					}
					if rng.IntN(50) > 0 {
						w.Dead(uint32(o[0]), length)
					} else {
						w.Move(uint32(o[0]), length, dest)
						words, _ := types.Words(o[0], length)
						dest += words
					}
					left--
				}
			}
		}
		w.End()
		if err := w.Err(); err != nil {
			panic(err)
		}
		block := trace.EncodeEpoch(&trace.Epoch{Allocs: [][]byte{w.Bytes()}, Pause: trace.Pause{
			GC: gc + 1, Kind: trace.PauseYoung, Flags: trace.PauseExact, Depth: trace.DepthFull,
			Start: (gc + 1) * 1e8, Dur: 1e7, Interval: 1 << 19}})
		block.Version, block.Seq = 1, 3+gc
		t.commits = append(t.commits, trace.AppendBlock(nil, block))
	}
	for _, c := range t.commits {
		t.raw += len(c)
	}
	t.objects = countObjects(t.commits, types)
	return t
}

func countObjects(commits [][]byte, types *trace.TypeTable) (n uint64) {
	for _, c := range commits {
		for bl, err := range trace.Blocks(c) {
			if err != nil || bl.Kind != trace.KindEpoch {
				continue
			}
			e, _ := trace.DecodeEpoch(bl)
			for _, blob := range e.Allocs {
				for w := trace.NewWalkTokens(blob, types); w.Next(); {
					if w.Kind != trace.WalkSegment {
						n++
					}
				}
			}
		}
	}
	return n
}
