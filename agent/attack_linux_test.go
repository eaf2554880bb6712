package agent

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// attacked is an agent with a JVM that is recorded all the while, and must lose nothing.
type attacked struct {
	*rig
	log     *logBuffer
	good    *ringtest.Producer
	model   *tracetest.Model
	goods   uint64
	before  runtime.MemStats
	cpu     time.Duration
	began   time.Time
	threads int
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func underAttack(t *testing.T) *attacked {
	t.Helper()
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	x := &attacked{log: &logBuffer{}}
	a, err := New(Config{Out: filepath.Join(dir, "out"), Watch: []string{rings}, MaxTraceSize: 2 << 20,
		MaxRing: 64 << 20, Log: zerolog.New(x.log)})
	if err != nil {
		t.Fatal(err)
	}
	x.rig = &rig{t: t, a: a, dir: rings}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	if x.good, err = ringtest.Create(rings, ringtest.Config{Mapped: true, Name: shmring.FileName(1, 1)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.good.Close() })
	x.model = tracetest.New(tracetest.Config{Seed: 5})
	x.step()
	wait(t, func() bool { return len(a.Status()) == 1 }, a)
	runtime.GC()
	runtime.ReadMemStats(&x.before)
	x.cpu, x.began, x.threads = cpuTime(), time.Now(), runtime.NumGoroutine()
	return x
}

// step lets the good JVM go on.
func (x *attacked) step() {
	x.t.Helper()
	x.play(x.good, x.model, 1)
	x.goods++
}

// unharmed ends the good JVM and says what the agent took.
func (x *attacked) unharmed() {
	x.t.Helper()
	x.step()
	x.good.End(shmring.StateGoodbye, "")
	wait(x.t, func() bool {
		for _, s := range x.a.Status() {
			if s.Session == x.good.Session && s.Phase == session.EndedPhase && s.Collections == x.goods &&
				s.Dropped == (session.Drops{}) {
				return true
			}
		}
		return false
	}, x.a)
	long := os.Getenv("HEAPCAM_FULL") != ""
	// Rings whose makers fell silent count as gone after some seconds, longer on a busy machine: as long as it goes on.
	fewest, since := runtime.NumGoroutine(), time.Now()
	for long && fewest > x.threads+10 && time.Since(since) < 20*time.Second {
		time.Sleep(50 * time.Millisecond)
		if n := runtime.NumGoroutine(); n < fewest {
			fewest, since = n, time.Now()
		}
	}
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	grew := int64(now.HeapAlloc) - int64(x.before.HeapAlloc)
	x.t.Logf("%v, of CPU %v; %d MiB of heap more, %d MiB from the system, %d goroutines more, %d lines of log",
		time.Since(x.began).Round(time.Millisecond),
		(cpuTime() - x.cpu).Round(time.Millisecond), grew>>20, now.Sys>>20, runtime.NumGoroutine()-x.threads,
		strings.Count(x.log.String(), "\n"))
	if more := runtime.NumGoroutine() - x.threads; long && more > 20 {
		x.t.Errorf("%d goroutines are left", more)
	}
	if grew > 128<<20 {
		x.t.Errorf("%d bytes of heap more", grew)
	}
	if strings.Contains(x.log.String(), "internal error") {
		for line := range strings.Lines(x.log.String()) {
			if strings.Contains(line, "internal error") {
				x.t.Error(line)
			}
		}
	}
}

// words are the header's: offset and size of each.
func words() (out [][2]int) {
	for off := 8; off < shmring.OffReason; off += 4 {
		switch {
		case off >= shmring.OffSession && off < shmring.OffHead:
			continue
		case off%8 == 0:
			out = append(out, [2]int{off, 8})
		}
		out = append(out, [2]int{off, 4})
	}
	words := []int{shmring.OffSession, shmring.OffProbeVersion, shmring.OffReason, shmring.OffJVM, shmring.OffName}
	for _, off := range words {
		out = append(out, [2]int{off, 8}, [2]int{off + 8, 8})
	}
	return out
}

// TestHostileHeaders has fake JVMs write any value into any word of their headers, before they are opened, while they
// send, and while a larger ring takes over; the data in between is whole, damaged or random.
func TestHostileHeaders(t *testing.T) {
	n := 150
	if os.Getenv("HEAPCAM_FULL") != "" {
		n = 6000
	}
	x := underAttack(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	ws := words()
	values := func(was uint64) uint64 {
		return []uint64{0, 1, ^uint64(0), 1 << 31, 1<<31 - 1, 1 << 32, 1 << 63, 1<<63 - 1, was + 1, was - 1, was + 8,
			was - 8, rnd.Uint64()}[rnd.IntN(13)]
	}
	var open []*ringtest.Producer
	shut := func(keep int) {
		for len(open) > keep {
			p := open[0]
			open = open[1:]
			p.State(shmring.StateGoodbye, "")
			p.Close()
			os.Remove(p.Path)
			os.Remove(p.Path + shmring.NextSuffix)
		}
	}
	for i := range n {
		p, err := ringtest.Create(x.dir,
			ringtest.Config{Mapped: true, Name: shmring.FileName(uint32(i+2), 1), Starting: true})
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, p)
		m := tracetest.New(tracetest.All(uint64(i), trace.CollectorSerial, trace.DepthFull))
		blocks := func() (b []byte) {
			for _, blk := range m.Step(true).Blocks {
				b = trace.AppendBlock(b, blk)
			}
			switch i % 4 {
			case 1: // bits flip
				for range 1 + rnd.IntN(20) {
					b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
				}
			case 2: // in payloads only: the framing holds
				for off := 0; off+trace.BlockHeaderSize < len(b); {
					_, size, err := trace.ReadBlock(b[off:])
					if err != nil {
						break
					}
					if size > trace.BlockHeaderSize {
						b[off+trace.BlockHeaderSize+rnd.IntN(size-trace.BlockHeaderSize)] = byte(rnd.Uint64())
					}
					off += size
				}
			case 3:
				if rnd.IntN(8) == 0 {
					for j := range b {
						b[j] = byte(rnd.Uint64())
					}
				}
			}
			return b
		}
		poke := func() {
			w := ws[rnd.IntN(len(ws))]
			if v := values(p.Peek64(w[0])); w[1] == 8 {
				p.Poke64(w[0], v)
			} else {
				p.Poke32(w[0], uint32(v))
			}
		}
		when := rnd.IntN(3)
		if when == 0 {
			poke()
		}
		p.State(shmring.StateRecording, "")
		p.CommitBytes(blocks())
		p.Ready()
		if when == 0 {
			continue
		}
		x.a.Rescan()
		if i%3 == 0 {
			wait(t, func() bool { return p.Peek64(shmring.OffAgentGeneration) != 0 }, x.a)
		}
		p.CommitBytes(blocks())
		if when == 2 {
			if p.Grow(2<<20, rnd.IntN(2) == 0) == nil {
				p.CommitBytes(blocks())
			}
		}
		for range 1 + rnd.IntN(3) {
			poke()
		}
		p.CommitBytes(blocks())
		shut(40)
		x.step()
	}
	shut(0)
	x.unharmed()
}

// TestLogIsBounded has a fake JVM do at full speed what the agent tells its log of.
func TestLogIsBounded(t *testing.T) {
	x := underAttack(t)
	p, err := ringtest.Create(x.dir, ringtest.Config{Mapped: true, Name: shmring.FileName(2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 6})
	x.play(p, m, 1)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() { // words whose changes the agent records
		defer close(done)
		for i := uint32(0); !stop.Load(); i++ {
			p.Poke32(shmring.OffSyncTooLong, i&1)
			p.Poke32(shmring.OffPause, i&4)
			p.Poke32(shmring.OffState, uint32(shmring.StateRecording)+i>>2&1)
			time.Sleep(100 * time.Microsecond)
		}
	}()
	sent := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		var notes []trace.Note
		for range 32 {
			sent++
			notes = append(notes, trace.Note{Time: uint64(sent), Text: fmt.Sprint("note ", sent)})
		}
		x.commit(p, []trace.Block{trace.EncodeMeta(trace.Meta{Notes: notes})})
		if sent%3200 == 0 {
			x.step()
		}
	}
	stop.Store(true)
	<-done
	p.Poke32(shmring.OffPause, 0)
	p.Poke32(shmring.OffState, uint32(shmring.StateRecording))
	lines := strings.Count(x.log.String(), "\n")
	t.Logf("%d notes sent", sent)
	if lines > 1000 {
		t.Errorf("%d lines of log", lines)
	}
	x.unharmed()
}

// TestReloadRace changes all limits to anything, from two sides at once, while rings take over, JVMs come and are
// detached from.
func TestReloadRace(t *testing.T) {
	x := underAttack(t)
	var stop atomic.Bool
	var all sync.WaitGroup
	for seed := range uint64(2) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 7))
			f := func() float64 {
				return []float64{0, -1, 1e-300, 0.01, 1, 1e300, math.Inf(1), math.Inf(-1), math.NaN()}[rnd.IntN(9)]
			}
			n := func() int64 { return []int64{0, 0, -1, 1, 1 << 20, math.MaxInt64, math.MinInt64}[rnd.IntN(7)] }
			for !stop.Load() {
				x.a.SetLimits(session.Limits{BudgetCPU: f(), BudgetPause: time.Duration(n()), SamplingShare: f(),
					LiveSamples: uint64(n()), MaxWriteRate: n(),
					MaxTotalWriteRate: n(), MaxCPU: f(), MaxMemory: 0})
				time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
			}
		})
	}
	for i := range 5 {
		p, err := ringtest.Create(x.dir, ringtest.Config{Mapped: true, Name: shmring.FileName(uint32(i+2), 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m := tracetest.New(tracetest.Config{Seed: uint64(i)})
		x.play(p, m, 1)
		x.a.Rescan()
		wait(t, func() bool { return p.Peek64(shmring.OffAgentGeneration) != 0 }, x.a)
		for _, size := range []uint64{2 << 20, 4 << 20} {
			wait(t, func() bool { _, err := os.Lstat(p.Path + shmring.NextSuffix); return err != nil }, x.a)
			if err := p.Grow(size, true); err != nil {
				t.Fatal(err)
			}
			x.play(p, m, 2)
			x.step()
		}
		id := ""
		for _, s := range x.a.Status() {
			if s.Session == p.Session {
				id = s.ID
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); x.a.Detach(id) }()
		wait(t, func() bool { return p.Peek32(shmring.OffDetach) == 1 }, x.a)
		p.End(shmring.StateDetached, "")
		<-done
	}
	stop.Store(true)
	all.Wait()
	x.a.SetLimits(session.Limits{})
	x.unharmed()
}

// TestManyUsers: whoever has very many users' numbers, and no JVM, fills neither the log nor the place of those who
// have one.
func TestManyUsers(t *testing.T) {
	x := underAttack(t)
	h := api.New(x.a, api.Config{Log: x.a.cfg.Log}).Handler(nil, func(r *http.Request) api.Caller {
		uid, _ := strconv.Atoi(r.Header.Get("uid"))
		return api.Caller{Name: "uid " + r.Header.Get("uid"), UID: uid, Role: api.Owner}
	})
	ask := func(uid int, verb string) int {
		r := httptest.NewRequest("POST", "/v1/"+verb, strings.NewReader(`{"all":true}`))
		r.Header.Set("uid", strconv.Itoa(uid))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := range 1000 {
				ask(100000+part*1000+i, []string{"pause", "resume", "detach", "attach", "reload"}[i%5])
			}
		})
	}
	all.Wait()
	if n := strings.Count(x.log.String(), `"audit"`); n > 60 {
		t.Errorf("%d lines of log", n)
	}
	if code := ask(os.Getuid(), "resume"); code != 200 { // of the good JVM
		t.Errorf("the owner is answered %d", code)
	}
	x.unharmed()
}
