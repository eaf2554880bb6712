package shmring_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
)

func create(t testing.TB, c ringtest.Config) *ringtest.Producer {
	t.Helper()
	p, err := ringtest.Create(t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func open(t testing.TB, p *ringtest.Producer) *shmring.Ring {
	t.Helper()
	r, err := shmring.Open(p.Path, shmring.Options{CheckOwner: true, UID: os.Geteuid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func acquired(t testing.TB, p *ringtest.Producer) *shmring.Ring {
	t.Helper()
	r := open(t, p)
	if _, err := r.Acquire(); err != nil {
		t.Fatal(err)
	}
	return r
}

func commit(t testing.TB, p *ringtest.Producer, size int) {
	t.Helper()
	if ok, err := p.Commit(trace.Block{Kind: trace.KindEpoch, Payload: make([]byte, size)}); !ok || err != nil {
		t.Fatalf("commit: %v, %v", ok, err)
	}
}

func quarantined(t testing.TB, err error) {
	t.Helper()
	var v *shmring.ViolationError
	if !errors.As(err, &v) || v.Error() == "" {
		t.Errorf("got %v, want a violation", err)
	}
}

// TestModel runs producer and agent against a model: what was committed comes out once, in order, whole, across
// wraps, overflows and restarts of the agent.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "ring")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p, err := ringtest.Create(dir, ringtest.Config{})
		if err != nil {
			rt.Fatal(err)
		}
		defer p.Close()
		openRing := func() *shmring.Ring {
			r, err := shmring.Open(p.Path, shmring.Options{})
			if err == nil {
				_, err = r.Acquire()
			}
			if err != nil {
				rt.Fatal(err)
			}
			return r
		}
		r := openRing()
		defer func() { r.Close() }()
		var committed [][]byte // framed blocks, all
		var starts []uint64
		var read, kept int // blocks given out, and committed by the agent
		var drops uint64
		rt.Repeat(map[string]func(*rapid.T){
			"produce": func(rt *rapid.T) {
				n := rapid.IntRange(1, 4).Draw(rt, "blocks")
				var all []byte
				var each [][]byte
				for range n {
					size := rapid.SampledFrom([]int{0, 1, 7, 8, 100, 5000, 70_001, 400_000, 1<<20 - 16}).Draw(rt,
						"size")
					b := trace.AppendBlock(nil, trace.Block{Kind: trace.KindEpoch,
						Seq:     uint64(len(committed) + len(each) + 1),
						Payload: bytes.Repeat([]byte{byte(len(committed))}, size)})
					all = append(all, b...)
					each = append(each, b)
				}
				fits := uint64(len(all)) <= p.Free()
				head := p.Head()
				ok, err := p.CommitBytes(all)
				if err != nil || ok != fits {
					rt.Fatalf("commit: %v, %v", ok, err)
				}
				if !ok {
					drops++
					return
				}
				for _, b := range each {
					committed, starts = append(committed, b), append(starts, head)
					head += uint64(len(b))
				}
			},
			"half a record": func(rt *rapid.T) {
				n := min(p.Free(), uint64(rapid.IntRange(0, 5000).Draw(rt, "n")))
				if err := p.WriteBehind(bytes.Repeat([]byte{0xee}, int(n))); err != nil {
					rt.Fatal(err)
				}
			},
			"read": func(rt *rapid.T) {
				b, err := r.Read(rapid.SampledFrom([]int{-1, 1, 16, 1000, 100_000, 1 << 30}).Draw(rt, "limit"))
				if err != nil {
					rt.Fatal(err)
				}
				if len(b.Data) == 0 && read < len(committed) {
					rt.Fatal("nothing given though there is")
				}
				if len(b.Data) > 0 && b.Start != starts[read] {
					rt.Fatalf("starts at %d, want %d", b.Start, starts[read])
				}
				for len(b.Data) > 0 {
					want := committed[read]
					if !bytes.HasPrefix(b.Data, want) {
						rt.Fatalf("block %d differs", read)
					}
					b.Data = b.Data[len(want):]
					read++
				}
			},
			"commit": func(rt *rapid.T) {
				if read == kept {
					return
				}
				k := rapid.IntRange(kept, read-1).Draw(rt, "to")
				if err := r.Commit(starts[k] + uint64(len(committed[k]))); err != nil {
					rt.Fatal(err)
				}
				kept = k + 1
			},
			"agent dies": func(rt *rapid.T) {
				r.Close()
				r = openRing()
				read = kept
			},
			"": func(rt *rapid.T) {
				s, err := r.Status()
				if err != nil || s.EpochsDropped != drops || s.Backlog() > s.Capacity {
					rt.Fatalf("%+v, %v; dropped %d", s, err, drops)
				}
			},
		})
	})
}

func TestStatusAndControls(t *testing.T) {
	p := create(t, ringtest.Config{JVM: "a VM\x1b[31m", Probe: "0.1"})
	r := open(t, p)
	if _, err := r.Read(1); !errors.Is(err, shmring.ErrNotAcquired) {
		t.Errorf("read before Acquire: %v", err)
	}
	if err := r.Detach(); !errors.Is(err, shmring.ErrNotAcquired) {
		t.Errorf("control before Acquire: %v", err)
	}
	if s, _ := r.Status(); s.AgentAlive() || s.AgentGeneration != 0 {
		t.Errorf("an agent is there: %+v", s)
	}
	fresh, err := r.Acquire()
	if err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	p.Poke64(shmring.OffSyncWanted, 41) // counters are relative
	do := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	ticket, err := r.RequestSync()
	do(err)
	if ticket != 42 {
		t.Errorf("ticket %d", ticket)
	}
	_, err = r.RequestEmergency(shmring.MethodGC)
	do(err)
	do(r.SetDepth(3))
	do(r.SetEpochMax(15))
	do(r.SetCostMax(19))
	do(r.SetInterval(0))
	do(r.SetPause(shmring.PauseSwitch))
	do(r.Detach())
	p.State(shmring.StateGaveUp, "bad\nheap")
	for off, v := range map[int]uint64{shmring.OffEpochs: 5, shmring.OffEpochsFailed: 6, shmring.OffSamples: 7,
		shmring.OffSamplesDropped: 8,
		shmring.OffProbeNS:        9, shmring.OffPauseNS: 10, shmring.OffLastSyncBytes: 11, shmring.OffLiveBytes: 12,
		shmring.OffSampleNS: 13, shmring.OffExhausted: 14, shmring.OffHelpersNS: 20,
		shmring.OffEpochsCut: 16, shmring.OffSitesCut: 17, shmring.OffSitesFolded: 18} {
		p.Poke64(off, v)
	}
	if d, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone); d != 42 || err != nil {
		t.Errorf("answer: %d, %v", d, err)
	}
	s, err := r.Status()
	do(err)
	if s.SyncDone < ticket || s.Emergency != 1 || s.EmergencyMethod != shmring.MethodGC || s.DepthWanted != 3 ||
		s.IntervalWanted != 1 || s.PauseWhy != shmring.PauseSwitch || !s.Detach ||
		s.State != shmring.StateGaveUp || !s.State.Ended() || s.Reason != "bad\uFFFDheap" ||
		s.JVM != "a VM\uFFFD[31m" || s.Probe != "0.1" || s.Session != p.Session ||
		s.Epochs != 5 || s.EpochsFailed != 6 || s.Samples != 7 || s.SamplesDropped != 8 || s.ProbeNS != 9 ||
		s.PauseNS != 10 || s.LastSyncBytes != 11 ||
		s.LiveBytes != 12 || s.SampleNS != 13 || s.Exhausted != 14 || s.EpochMax != 15 || s.CostMax != 19 ||
		s.HelpersNS != 20 ||
		s.EpochsCut != 16 || s.SitesCut != 17 || s.SitesFolded != 18 || !s.AgentAlive() || s.Redefine != 0 {
		t.Errorf("%+v", s)
	}
}

func TestAgents(t *testing.T) {
	p := create(t, ringtest.Config{})
	commit(t, p, 100)
	first := acquired(t, p)
	b, err := first.Read(1 << 20)
	if err != nil || len(b.Data) == 0 {
		t.Fatal(err)
	}
	if err := first.Commit(b.End + 8); err == nil {
		t.Error("a position was committed that was not read")
	}
	second := open(t, p)
	if _, err := second.Acquire(); !errors.Is(err, shmring.ErrBusy) {
		t.Errorf("two agents: %v", err)
	}
	first.Close() // killed before it committed
	fresh, err := second.Acquire()
	if err != nil || fresh {
		t.Fatal(fresh, err)
	}
	if s, _ := second.Status(); s.Redefine != 1 {
		t.Errorf("redefine is %d", s.Redefine)
	}
	again, err := second.Read(1 << 20)
	if err != nil || again.Start != b.Start || again.End != b.End {
		t.Errorf("read again: %+v, %v", again, err)
	}
	p.Poke64(shmring.OffAgentGeneration, 99) // an agent that the lock did not stop
	if err := second.Commit(again.End); !errors.Is(err, shmring.ErrSuperseded) {
		t.Errorf("superseded: %v", err)
	}
	if p.Peek64(shmring.OffTail) != 0 {
		t.Error("tail was stored by an agent that is none any more")
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	var not *shmring.NotRingError
	var newer *shmring.TooNewError
	try := func(name string, opt shmring.Options, change func(p *ringtest.Producer)) error {
		p, err := ringtest.Create(dir, ringtest.Config{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		change(p)
		r, err := shmring.Open(p.Path, opt)
		if err == nil {
			r.Close()
		}
		return err
	}
	for name, change := range map[string]func(p *ringtest.Producer){
		"magic":          func(p *ringtest.Producer) { p.Poke64(shmring.OffMagic, 7) },
		"abi 0":          func(p *ringtest.Producer) { p.Poke32(shmring.OffABI, 0) },
		"header size":    func(p *ringtest.Producer) { p.Poke32(shmring.OffHeaderSize, 8192) },
		"capacity 0":     func(p *ringtest.Producer) { p.Poke64(shmring.OffCapacity, 0) },
		"capacity odd":   func(p *ringtest.Producer) { p.Poke64(shmring.OffCapacity, 1<<20+8) },
		"capacity large": func(p *ringtest.Producer) { p.Poke64(shmring.OffCapacity, 1<<40) },
		"short":          func(p *ringtest.Producer) { p.Truncate(1 << 20) },
		"session":        func(p *ringtest.Producer) { p.Poke32(shmring.OffSession, 0x2f2e2e2f) },
	} {
		if err := try(name, shmring.Options{}, change); !errors.As(err, &not) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nothing := func(*ringtest.Producer) {}
	if err := try("abi 3", shmring.Options{}, func(p *ringtest.Producer) {
		p.Poke32(shmring.OffABI,
			3)
	}); !errors.As(err, &newer) || newer.ABI != 3 {
		t.Errorf("newer: %v", err)
	}
	if err := try("no magic", shmring.Options{}, func(p *ringtest.Producer) {
		p.Poke64(shmring.OffMagic,
			0)
	}); !errors.Is(err, shmring.ErrNotReady) {
		t.Errorf("not ready: %v", err)
	}
	if err := try("empty", shmring.Options{}, func(p *ringtest.Producer) { p.Truncate(0) }); !errors.Is(err,
		shmring.ErrNotReady) {
		t.Errorf("empty: %v", err)
	}
	if err := try("limit", shmring.Options{MaxCapacity: 1 << 19}, nothing); !errors.As(err, &not) {
		t.Errorf("limit: %v", err)
	}
	if err := try("pid", shmring.Options{PID: 1 << 30}, nothing); !errors.As(err, &not) {
		t.Errorf("pid: %v", err)
	}
	if err := try("ticks", shmring.Options{StartTicks: 1}, nothing); !errors.As(err, &not) {
		t.Errorf("ticks: %v", err)
	}
	if _, err := shmring.Open(filepath.Join(dir, "nothing"), shmring.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := shmring.Open(dir, shmring.Options{}); !errors.As(err, &not) {
		t.Errorf("folder: %v", err)
	}
}

// TestHostile: each of these ends in quarantine, and stays there.
func TestHostile(t *testing.T) {
	for name, attack := range map[string]func(p *ringtest.Producer){
		"head beyond capacity": func(p *ringtest.Producer) { p.Poke64(shmring.OffHead, 1<<20+4096) },
		"head huge":            func(p *ringtest.Producer) { p.Poke64(shmring.OffHead, ^uint64(7)) },
		"head goes back":       func(p *ringtest.Producer) { p.Poke64(shmring.OffHead, 16) },
		"head odd":             func(p *ringtest.Producer) { p.Poke64(shmring.OffHead, p.Head()+4) },
		"tail rewritten":       func(p *ringtest.Producer) { p.Poke64(shmring.OffTail, 8) },
		"capacity rewritten":   func(p *ringtest.Producer) { p.Poke64(shmring.OffCapacity, 1<<30) },
		"session rewritten":    func(p *ringtest.Producer) { p.Poke32(shmring.OffSession, 0x30303030) },
		"truncated":            func(p *ringtest.Producer) { p.Truncate(shmring.HeaderSize + 64) },
		"truncated to nothing": func(p *ringtest.Producer) { p.Truncate(0) },
		"not framed":           func(p *ringtest.Producer) { p.CommitBytes(bytes.Repeat([]byte{0}, 32)) },
		"length too long": func(p *ringtest.Producer) {
			p.CommitBytes([]byte{4, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
				0, 0, 0, 0})
		},
		"length beyond limit": func(p *ringtest.Producer) {
			p.CommitBytes([]byte{4, 1, 0, 0, 0, 0, 0, 0xf0, 0, 0, 0,
				0, 0, 0, 0, 0})
		},
		"half a header": func(p *ringtest.Producer) { p.CommitBytes([]byte{4, 1, 0, 0, 0, 0, 0, 0}) },
		"dirt in padding": func(p *ringtest.Producer) {
			p.CommitBytes([]byte{4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1})
		},
	} {
		for _, limit := range []int{1, 1 << 20} {
			p := create(t, ringtest.Config{})
			r := acquired(t, p)
			commit(t, p, 1000)
			commit(t, p, 1000)
			if b, err := r.Read(1040); err != nil || len(b.Data) != 1016 {
				t.Fatal(len(b.Data), err)
			}
			attack(p)
			var err error
			for i := 0; i < 4 && err == nil; i++ {
				_, err = r.Read(limit)
			}
			quarantined(t, err)
			if t.Failed() {
				t.Fatalf("%s, limit %d", name, limit)
			}
			_, err = r.Status()
			quarantined(t, err)
			quarantined(t, r.Commit(0))
			quarantined(t, r.Beat())
			quarantined(t, r.Wait(context.Background()))
			if st, err := os.Stat(p.Path); name == "truncated to nothing" && (err != nil || st.Size() != 0) {
				t.Errorf("a truncated file was written to: %v, %v", st, err)
			}
		}
	}
}

func TestWait(t *testing.T) {
	p := create(t, ringtest.Config{})
	r := acquired(t, p)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := r.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("empty: %v", err)
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		p.Commit(trace.Block{Kind: trace.KindEpoch, Payload: []byte{1}})
		p.End(shmring.StateGoodbye, "bye")
	}()
	n := 0
	var err error
	for {
		if err = r.Wait(context.Background()); err != nil {
			break
		}
		b, err := r.Read(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		for block, err := range trace.Blocks(b.Data) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				if _, err := trace.DecodeEnd(block); err != nil {
					t.Error(err)
				}
			}
		}
		if err := r.Commit(b.End); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, shmring.ErrEnded) || n != 2 {
		t.Errorf("%d blocks, then %v", n, err)
	}
	if err := r.Unlink(); err != nil {
		t.Error(err)
	}
	p.Close()
	r.Close() // on Windows this removes it, unless somebody has it open
	if _, err := os.Stat(p.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Unlink: %v", err)
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{"", "heapcam-1-2", "heapcam-1-2.ring.x", "heapcam-01-2.ring", "heapcam-1-+2.ring",
		"heapcam-99999999999-2.ring", "heapcam-1-2-3.ring", "heapcam-.ring"} {
		if pid, ticks, ok := shmring.ParseName(s); ok {
			t.Errorf("ParseName(%q) = %d, %d", s, pid, ticks)
		}
	}
	if pid, ticks, ok := shmring.ParseName("/x/" + shmring.FileName(7, 1<<40)); !ok || pid != 7 || ticks != 1<<40 {
		t.Error(pid, ticks, ok)
	}
	p := create(t, ringtest.Config{})
	os.WriteFile(filepath.Join(filepath.Dir(p.Path), "other"), nil, 0o600)
	if got, err := shmring.Scan(filepath.Dir(p.Path)); err != nil || len(got) != 1 || got[0] != p.Path {
		t.Error(got, err)
	}
	if got, err := shmring.Scan("/nonexistent"); err != nil || got != nil {
		t.Error(got, err)
	}
}
