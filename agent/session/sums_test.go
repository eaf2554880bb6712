package session

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/check"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// straight is a session whose steps the test makes: no goroutine, and no waiting.
type straight struct {
	mem *sessiontest.MemStore
	p   *ringtest.Producer
	s   *Session
}

func (d *straight) start() error {
	ring, err := shmring.Open(d.p.Path, shmring.Options{})
	if err != nil {
		return err
	}
	h, err := ring.Status()
	if err != nil {
		return err
	}
	fresh, err := ring.Acquire()
	if err != nil {
		return err
	}
	cfg := Config{
		MaxTraceSize: 1 << 20, Deviation: 0.25, Compression: "none", SyncInterval: time.Second, Emergency: "off",
		Limits: func() *Limits { return &Limits{SamplingShare: -1} }, Process: quota.NewProcess(0, 0),
		WriteRate: quota.NewSharedRate("max_total_write_rate", 0), Log: zerolog.Nop(),
	}
	who := JVM{Identity: ringstore.Identity{Session: h.Session, Name: "jvm"}, Here: true}
	d.s, err = New(cfg, ring, d.mem, filepath.Join(filepath.Dir(d.p.Path), "out"), h, fresh, who)
	return err
}

func (d *straight) stop() { d.s.Close() }

// commit gives the session blocks, and has it read them.
func (d *straight) commit(bs []trace.Block) error {
	if ok, err := d.p.Commit(bs...); !ok || err != nil {
		return fmt.Errorf("commit: %v %v", ok, err)
	}
	d.p.Beat()
	for !sessiontest.Read(d.p) {
		if err := d.s.step(); err != nil {
			return err
		}
	}
	return nil
}

// restart ends the session and begins another, whom the probe tells its definitions again.
func (d *straight) restart(m *tracetest.Model) error {
	d.stop()
	if err := d.start(); err != nil {
		return err
	}
	if d.p.Peek64(shmring.OffRedefine) > d.p.Peek64(shmring.OffRedefineDone) {
		if _, err := d.p.Answer(shmring.OffRedefine, shmring.OffRedefineDone); err != nil {
			return err
		}
		return d.commit(m.Head())
	}
	return nil
}

// TestSumsEqualReplay: what a session says lives, in summaries, is what a replay of its files gives, whatever has
// happened: full collections, failed evacuations, faults, epochs that the ring or the store lost, listings that were
// left out, walks, other agents that continue, and fillers that G1 puts over dead objects between two pauses.
func TestSumsEqualReplay(t *testing.T) {
	compared, scrubbed := uint64(0), 0
	rapid.Check(t, func(t *rapid.T) {
		cfg := tracetest.All(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(1, 3).Draw(t, "collector"),
			rapid.SampledFrom([]uint64{trace.DepthSurvivors, trace.DepthFull}).Draw(t, "depth"))
		cfg.Eden, cfg.SampleEvery = rapid.Uint64Range(512, 4096).Draw(t, "eden"), rapid.IntRange(2, 16).Draw(t, "every")
		if rapid.Bool().Draw(t, "calm") {
			cfg.Full, cfg.EvacFail, cfg.Fault, cfg.Drop = 0, 0, 0, 0
		}
		cfg.Scrub = true
		cfg.Quiet, cfg.Forget, cfg.Untyped = 0.1, 0.5, 0.05
		dir, err := os.MkdirTemp("", "sums")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p, err := ringtest.Create(dir, ringtest.Config{Mapped: true})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		d := &straight{mem: &sessiontest.MemStore{Limit: rapid.IntRange(4<<10, 64<<10).Draw(t, "limit")}, p: p}
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		defer func() { d.stop() }()
		m := tracetest.New(cfg)
		step := func(f func() *tracetest.Epoch) {
			if err := d.commit(f().Blocks); err != nil {
				t.Fatal(err)
			}
		}
		natural := func() *tracetest.Epoch {
			behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
			if err != nil {
				t.Fatal(err)
			}
			return m.Step(behind > 0 || rapid.IntRange(0, 3).Draw(t, "sync") == 0)
		}
		for range rapid.IntRange(4, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0:
				step(m.FullGC)
			case 1:
				step(m.Walk)
			case 2:
				if err := d.restart(m); err != nil {
					t.Fatal(err)
				}
			case 3:
				d.mem.Refuse(rapid.IntRange(1, 3).Draw(t, "refused"))
			case 4:
				d.mem.Fill()
			default:
				step(natural)
			}
		}
		step(func() *tracetest.Epoch { return m.Step(true) })
		k, c := sumsOf(t, d.mem.Files())
		if k.Different > 0 {
			t.Fatalf("%d rows differ: %s", k.Different, k.First)
		}
		if c.Different > 0 {
			t.Fatalf("the count differs: %s", c.First)
		}
		compared += k.Types + k.Sites
		scrubbed += int(k.Swept)
	})
	if compared < 1000 || scrubbed == 0 {
		t.Errorf("%d sums compared; %d rows since a Remark", compared, scrubbed)
	}
}

// sumsOf replays files one after the other, and holds the summaries and the count against the replay.
func sumsOf(t *rapid.T, files [][]byte) (*check.SummaryCheck, *check.CountCheck) {
	var bs []trace.Block
	for _, f := range files {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			bs = append(bs, b)
		}
	}
	r := heap.NewReplay(&analysistest.Source{B: bs})
	k, c := check.Summaries(r), check.Counts(heap.NewCensus(&analysistest.Source{B: bs}))
	if err := collection.Each(r, func(x *heap.Collection) bool {
		k.Collection(x)
		c.Collection(r, x)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 {
		t.Fatal(r.Faults[0])
	}
	return k, c
}
