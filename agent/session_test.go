package agent

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// played are what this binary is in processes that tests start.
var played = map[string]func(){}

// The pipes of Windows have one goroutine for as long as the program lives.
func TestMain(m *testing.M) {
	if f := played[os.Getenv("HEAPCAM_TEST_PLAYS")]; f != nil {
		f()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Microsoft/go-winio.ioCompletionProcessor"))
}

// memStore is a store in memory: one slice of frames a file.
type memStore struct {
	mu     sync.Mutex
	files  [][]byte
	source uint64
	limit  int  // bytes of a file until rotation is wanted
	refuse int  // the next so many writes are refused
	full   bool // the open file takes nothing more
	closed bool
	small  bool // no listing fits
	kept   []byte
}

// smallError is what a store says whose ring can not hold a listing.
type smallError struct{}

func (smallError) Error() string   { return "too small" }
func (smallError) TooSmall() int64 { return 12345 }

var errRefused = errors.New("no room")

func (m *memStore) Append(p []byte, f ringstore.FrameInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse > 0 {
		m.refuse--
		return errRefused
	}
	if m.small && f.Flags&ringstore.FlagListing != 0 {
		return smallError{}
	}
	if m.full {
		return errRefused
	}
	if len(m.files) == 0 {
		return errors.New("no file")
	}
	last := len(m.files) - 1
	m.files[last] = append(m.files[last], p...)
	m.source = f.Source
	return nil
}

func (m *memStore) Rotate(p []byte, f ringstore.FrameInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse > 0 {
		m.refuse--
		return errRefused
	}
	if m.small && f.Flags&ringstore.FlagListing != 0 {
		return smallError{}
	}
	m.files, m.full = append(m.files, append([]byte(nil), p...)), false
	m.source = f.Source
	return nil
}

func (m *memStore) Newest(f func(trace.Block)) (lastGC uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.files); n > 0 {
		for _, old := range m.files[:n-1] {
			for b := range trace.Blocks(old) {
				if b.Kind == trace.KindDefs {
					f(b)
				}
			}
		}
		for b := range trace.Blocks(m.files[n-1]) {
			f(b)
			if e, err := trace.DecodeEpoch(b); err == nil {
				lastGC = e.Pause.GC
			}
		}
	}
	return lastGC
}

func (m *memStore) LastSource() uint64          { m.mu.Lock(); defer m.mu.Unlock(); return m.source }
func (m *memStore) Queue(float64)               {}
func (m *memStore) CPU(float64)                 {}
func (m *memStore) Ease(int)                    {}
func (m *memStore) Resize(int64) error          { return nil }
func (m *memStore) Counters() []byte            { return m.kept }
func (m *memStore) KeepCounters(b []byte) error { m.kept = b; return nil }
func (m *memStore) SyncSoon() error             { return nil }
func (m *memStore) Close() error                { m.closed = true; return nil }
func (m *memStore) Stats() ringstore.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	if len(m.files) > 0 {
		n = len(m.files[len(m.files)-1])
	}
	return ringstore.Stats{Active: int64(n), Files: len(m.files), Rotate: n >= m.limit || m.full, Room: 1 << 30,
		Guarantee: true}
}

// logBuffer is a log that a test may read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

type rig struct {
	t     *testing.T
	a     *Agent
	mem   *memStore
	dir   string
	stop  func()
	ended chan struct{}
}

func newRig(t *testing.T, mem *memStore) *rig {
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, mem: mem, dir: rings}
	r.start(dir)
	return r
}

func (r *rig) start(dir string) {
	a, err := New(Config{Out: filepath.Join(dir, "out"), Watch: []string{r.dir}})
	if err != nil {
		r.t.Fatal(err)
	}
	a.store = func(ringstore.Config, ringstore.Identity, zerolog.Logger) (session.Store, error) {
		return r.mem, nil
	}
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	r.ended = make(chan struct{})
	go func() { defer close(r.ended); a.Run(ctx) }()
	var once sync.Once
	ended := r.ended
	r.stop = func() { once.Do(func() { cancel(); <-ended }) }
	r.t.Cleanup(r.stop)
}

func (r *rig) drain() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.a.Drain(ctx); err != nil {
		r.t.Fatalf("drain: %v; %+v", err, r.a.Status())
	}
}

// commit writes blocks as a probe does, waiting for room.
func (r *rig) commit(p *ringtest.Producer, blocks []trace.Block) {
	r.t.Helper()
	for i := 0; ; i++ {
		n := 0
		for _, b := range blocks {
			n += b.Size()
		}
		if p.Free() >= uint64(n) {
			if ok, err := p.Commit(blocks...); !ok || err != nil {
				r.t.Fatal(ok, err)
			}
			p.Beat()
			return
		}
		if i > 5000 {
			r.t.Fatalf("the agent does not read: %+v", r.a.Status())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// play lets a model run n epochs into the ring, answering requests for sync points, and returns the epochs.
func (r *rig) play(p *ringtest.Producer, m *tracetest.Model, n int) []*tracetest.Epoch {
	var eps []*tracetest.Epoch
	for range n {
		behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
		if err != nil {
			r.t.Fatal(err)
		}
		ep := m.Step(behind > 0 || len(eps) == 0)
		eps = append(eps, ep)
		r.commit(p, ep.Blocks)
	}
	return eps
}

// TestNoListingFits: a ring that is too small for a listing goes on without, loses no epoch, begins files all the same,
// and says so.
func TestNoListingFits(t *testing.T) {
	mem := &memStore{limit: 8 << 10, small: true}
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.All(1, trace.CollectorSerial, trace.DepthSurvivors))
	epochs := 0
	for range 40 {
		for _, ep := range r.play(p, m, 3) {
			for _, b := range ep.Blocks {
				if b.Kind == trace.KindEpoch {
					epochs++
				}
			}
		}
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	if err := p.State(shmring.StateGoodbye, ""); err != nil {
		t.Fatal(err)
	}
	r.drain()
	got := 0
	for _, f := range mem.files {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				got++
			case trace.KindSync:
				t.Error("a listing was written")
			case trace.KindGap:
				if g, err := trace.DecodeGap(b); err != nil || g.Reason == trace.GapStore {
					t.Error("a gap was written", g, err)
				}
			}
		}
	}
	st := r.a.Status()[0]
	if len(mem.files) < 3 || got != epochs || st.Dropped.StoreEpochs != 0 {
		t.Errorf("%d files, %d of %d epochs; %+v", len(mem.files), got, epochs, st)
	}
}

func TestEveryFileReadsAlone(t *testing.T) {
	for _, c := range []uint64{trace.CollectorSerial, trace.CollectorG1} {
		mem := &memStore{limit: 60 << 10}
		r := newRig(t, mem)
		p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := tracetest.New(tracetest.All(uint64(c), c, trace.DepthSurvivors))
		// The model may run ahead of the agent's requests; slow it down so that some are answered.
		var eps []*tracetest.Epoch
		for range 40 {
			eps = append(eps, r.play(p, m, 3)...)
			wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
		}
		r.commit(p, []trace.Block{m.End()})
		if err := p.State(shmring.StateGoodbye, ""); err != nil {
			t.Fatal(err)
		}
		p.Close() // Windows removes no file that is open
		r.drain()
		if !mem.closed || len(mem.files) < 3 {
			t.Fatalf("closed %v, %d files", mem.closed, len(mem.files))
		}
		if left, _ := shmring.Scan(r.dir); len(left) != 0 {
			t.Errorf("a drained ring was left: %v", left)
		}
		byGC := map[uint64]*tracetest.Epoch{}
		for _, e := range eps {
			if !e.Dropped {
				byGC[e.Pause.GC] = e
			}
		}
		checkFiles(t, mem.files, byGC)
		checkSummaries(t, mem.files, byGC)
		r.stop()
		st := r.a.Status()
		if len(st) != 1 || st[0].Phase != session.EndedPhase || st[0].Rotations != uint64(len(mem.files)-1) {
			t.Errorf("status %+v", st)
		}
	}
}

// checkFiles does as checkAlone; all epochs must be there once.
func checkFiles(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch) {
	t.Helper()
	seen := checkAlone(t, files, byGC, true)
	for gc := range byGC {
		if seen[gc] != 1 {
			t.Errorf("gc %d was recorded %d times", gc, seen[gc])
		}
	}
}

// checkAlone replays each file alone and compares the state after each of its collections with the truth; all: it must
// be known wherever it can be. It says how often each collection was there.
func checkAlone(t *testing.T, files [][]byte, byGC map[uint64]*tracetest.Epoch, all bool) map[uint64]int {
	t.Helper()
	seen := map[uint64]int{}
	states := 0
	for i, f := range files {
		rd := tracetest.NewReader()
		defined := map[uint64]bool{0: true}
		ids := map[uint64]uint64{}
		n := 0
		var at *tracetest.Epoch
		compare := func() {
			if at == nil || rd.LastSync == nil || !rd.Known && (at.Synced || !all) { // its listing begins the next file
				return
			}
			if rd.Known {
				states++
			}
			if why := rd.Compare(at, ids); why != "" {
				t.Fatalf("file %d alone, after gc %d: %s", i, at.Pause.GC, why)
			}
		}
		var prev trace.Kind
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatalf("file %d: %v", i, err)
			}
			if n == 0 && b.Kind != trace.KindMeta {
				t.Errorf("file %d begins with %v", i, b.Kind)
			}
			n++
			switch b.Kind {
			case trace.KindDefs:
				d, _ := trace.DecodeDefs(b)
				for _, fr := range d.Frames {
					if !defined[fr.Parent] {
						t.Errorf("file %d: frame %d before its parent %d", i, fr.ID, fr.Parent)
					}
					defined[fr.ID] = true
				}
			case trace.KindSamples:
				ss, _ := trace.DecodeSamples(b)
				for _, x := range ss {
					if !defined[x.Frame] {
						t.Errorf("file %d: sample %d with undefined frame %d", i, x.ID, x.Frame)
					}
				}
			case trace.KindSync:
				y, _ := trace.DecodeSync(b)
				for _, x := range y.Samples {
					if !defined[x.Frame] {
						t.Errorf("file %d: live sample %d with undefined frame %d", i, x.ID, x.Frame)
					}
				}
			case trace.KindGap:
				compare()
				at = nil
			case trace.KindEpoch:
				compare()
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					t.Fatal(err)
				}
				seen[e.Pause.GC]++
				at = byGC[e.Pause.GC]
				ids = map[uint64]uint64{}
			}
			if err := rd.Apply(b); err != nil {
				t.Fatalf("file %d, %v after %v: %v", i, b.Kind, prev, err)
			}
			prev = b.Kind
		}
		compare()
	}
	if states == 0 {
		t.Error("no state was ever known")
	}
	return seen
}

func TestRefusedWritesAreToldAndRecordingGoesOn(t *testing.T) {
	mem := &memStore{limit: 1 << 30}
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 7})
	r.play(p, m, 5)
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	mem.mu.Lock()
	mem.refuse = 2
	mem.mu.Unlock()
	for range 3 {
		r.play(p, m, 2)
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	p.End(shmring.StateGoodbye, "")
	r.drain()
	var gap trace.Gap
	synced := false
	for b, err := range trace.Blocks(mem.files[0]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindGap {
			gap, _ = trace.DecodeGap(b)
		}
		synced = synced || b.Kind == trace.KindSync && gap.Reason != 0
	}
	st := r.a.Status()[0]
	if gap.Reason != trace.GapStore || gap.Epochs == 0 || gap.Epochs != st.Dropped.StoreEpochs {
		t.Errorf("gap %+v, status %+v", gap, st.Dropped)
	}
	if !synced {
		t.Error("no sync point was asked for after the loss")
	}
	if st.StoreError == "" {
		t.Error("the refusal is not told")
	}
}

// TestLossStandsBeforeTheNextFile: epochs that the open file did not take are told before the listing that begins the
// next one. Behind it the gap would end what that listing has made known, and a reader of both files would compare the
// listing with a state that is older.
func TestLossStandsBeforeTheNextFile(t *testing.T) {
	mem := &memStore{limit: 1 << 30}
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 11})
	files := func() int { mem.mu.Lock(); defer mem.mu.Unlock(); return len(mem.files) }
	r.play(p, m, 2)
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	mem.mu.Lock()
	mem.full = true
	mem.mu.Unlock()
	from := files()
	for i := 0; files() == from; i++ {
		if i == 200 {
			t.Fatal("no file began")
		}
		r.play(p, m, 2)
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	p.End(shmring.StateGoodbye, "")
	r.drain()
	lost := r.a.Status()[0].Dropped.StoreEpochs
	var told uint64
	for b, err := range trace.Blocks(mem.files[from]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindGap {
			g, _ := trace.DecodeGap(b)
			told += g.Epochs
		}
		if b.Kind == trace.KindSync {
			break
		}
	}
	if lost == 0 || told != lost {
		t.Errorf("%d epochs were lost, %d are told before the listing", lost, told)
	}
}

func TestAnotherAgentGoesOn(t *testing.T) {
	mem := &memStore{limit: 6 << 10} // several files: what is defined in an older one is used by what waits in the ring
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 9})
	var eps []*tracetest.Epoch
	for range 12 {
		eps = append(eps, r.play(p, m, 4)...)
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	r.stop()
	eps = append(eps, r.play(p, m, 4)...) // nobody reads; the ring holds it
	r.start(t.TempDir())
	wait(t, func() bool { return p.Peek64(shmring.OffRedefine) > p.Peek64(shmring.OffRedefineDone) })
	r.commit(p, m.Head())
	p.Answer(shmring.OffRedefine, shmring.OffRedefineDone)
	ep := m.Step(true)
	r.commit(p, ep.Blocks)
	eps = append(eps, ep)
	eps = append(eps, r.play(p, m, 5)...)
	p.End(shmring.StateGoodbye, "")
	r.drain()
	byGC := map[uint64]*tracetest.Epoch{}
	for _, e := range eps {
		byGC[e.Pause.GC] = e
	}
	checkFiles(t, mem.files, byGC)
	if st := r.a.Status()[0]; st.Collections != uint64(len(eps)) { // over both agents
		t.Errorf("%d collections are counted of %d", st.Collections, len(eps))
	}
}

func TestHostileRingIsLeftAlone(t *testing.T) {
	mem := &memStore{limit: 1 << 30}
	r := newRig(t, mem)
	bad, err := ringtest.Create(r.dir, ringtest.Config{PID: 1 << 21})
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	good, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	m := tracetest.New(tracetest.Config{Seed: 3})
	r.play(good, m, 2)
	bad.Poke64(shmring.OffHead, 3)
	bad.Truncate(100)
	r.play(good, m, 2)
	good.End(shmring.StateGoodbye, "")
	wait(t, func() bool {
		for _, s := range r.a.Status() {
			if s.Phase == session.EndedPhase && s.Collections == 4 {
				return true
			}
		}
		return false
	})
}

func wait(t *testing.T, f func() bool, tell ...*Agent) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(end) {
			for _, a := range tell {
				t.Logf("%+v", a.Status())
			}
			t.Fatal("waited in vain")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestFolderName(t *testing.T) {
	if got := session.FolderName("../a b", 7, 9); got != "_a_b-7-9" {
		t.Errorf("FolderName = %q", got)
	}
}
