package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/internal/faultfs"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// disk is an agent that records one JVM, played by a model, into a file system whose faults are chosen.
type disk struct {
	rig
	m     *faultfs.Mount
	p     *ringtest.Producer
	model *tracetest.Model
	eps   []*tracetest.Epoch
	log   logBuffer
	limit int64
	most  atomic.Int64 // what was occupied, at most
}

func newDisk(t *testing.T, m int64) *disk {
	d := &disk{m: faultfs.New(t), limit: m + m/4}
	d.t, d.dir = t, t.TempDir()
	a, err := New(Config{Out: filepath.Join(d.m.Dir, "out"), Watch: []string{d.dir}, MaxTraceSize: m,
		SyncInterval: 20 * time.Millisecond, Compression: "none",
		Log: zerolog.New(&d.log)})
	if err != nil {
		t.Fatal(err)
	}
	d.a = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	t.Cleanup(func() { d.fail(nil); cancel(); <-ended })
	d.fail(nil)
	if d.p, err = ringtest.Create(d.dir, ringtest.Config{Mapped: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.p.Close() })
	d.model = tracetest.New(tracetest.Config{Seed: 5, Full: 0.01, Depth: trace.DepthFull, Eden: 24 << 10})
	return d
}

// fail decides which operations on ring files fail from now on.
func (d *disk) fail(f func(op faultfs.Op, n int) syscall.Errno) {
	var n atomic.Int64
	d.m.Fail(func(op faultfs.Op, name string) syscall.Errno {
		used := onDisk(d.m.Backing)
		for {
			most := d.most.Load()
			if used <= most || d.most.CompareAndSwap(most, used) {
				break
			}
		}
		if f == nil {
			return 0
		}
		return f(op, int(n.Add(1)))
	})
}

// play records n epochs, in batches after each of which it waits until they have been dealt with: what the agent asks
// for meanwhile comes in the next one.
func (d *disk) play(n, batch int) {
	d.t.Helper()
	for range n / batch {
		d.eps = append(d.eps, d.rig.play(d.p, d.model, batch)...)
		wait(d.t, func() bool { return d.p.Peek64(shmring.OffTail) == d.p.Head() }, d.a)
	}
}

// end has the JVM write its end marker, and reads what was recorded: per file its blocks.
func (d *disk) end() (files [][]byte, dir string) {
	d.t.Helper()
	if err := d.p.End(shmring.StateGoodbye, ""); err != nil {
		d.t.Fatal(err)
	}
	d.drain()
	dir = d.a.Status()[0].Dir
	vs, err := ringstore.CheckPath(dir)
	if err != nil || ringstore.Worst(vs) != ringstore.Sound {
		d.t.Errorf("%+v %v", vs, err)
	}
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rec.Close()
	for _, f := range rec.Files {
		var b []byte
		for x, err := range f.Blocks() {
			if err != nil {
				d.t.Fatal(err)
			}
			b = trace.AppendBlock(b, x)
		}
		files = append(files, b)
	}
	return files, dir
}

// check compares what was recorded with what happened: each file alone gives the true states, what is missing between
// the oldest and the newest collection is reported, the newest ones are there, the limit was kept at each operation.
func (d *disk) check() session.Status {
	t := d.t
	t.Helper()
	files, _ := d.end()
	byGC := map[uint64]*tracetest.Epoch{}
	for _, e := range d.eps {
		byGC[e.Pause.GC] = e
	}
	seen := sessiontest.CheckAlone(t, files, byGC, false) // a listing that was left out leaves the state unknown
	var reported, missing uint64
	first := uint64(0)
	for _, f := range files {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				if e, err := trace.DecodeEpoch(b); err == nil && first == 0 {
					first = e.Pause.GC
				}
			case trace.KindGap:
				if g, err := trace.DecodeGap(b); err == nil && first != 0 {
					reported += g.Epochs
				}
			}
		}
	}
	last := d.eps[len(d.eps)-1].Pause.GC
	for gc := first; gc <= last; gc++ {
		if seen[gc] > 1 {
			t.Errorf("collection %d is there %d times", gc, seen[gc])
		}
		if seen[gc] == 0 {
			missing++
		}
	}
	st := d.a.Status()[0]
	if missing != reported || missing > st.Dropped.StoreEpochs {
		t.Errorf("%d collections are missing behind the first, %d are reported, %d were counted", missing, reported,
			st.Dropped.StoreEpochs)
	}
	if st.Dropped.RingEpochs > 0 || st.Dropped.Corrupt > 0 {
		t.Errorf("lost before the store: %+v", st.Dropped)
	}
	for gc := last - 19; gc <= last; gc++ {
		if seen[gc] == 0 {
			t.Errorf("collection %d of %d is missing long after the fault: %+v\n%s", gc, last, st, d.log.String())
			break
		}
	}
	if st.Dropped.StoreEpochs > 0 &&
		(!strings.Contains(d.log.String(), "the store refused a write") || st.StoreError == "") {
		t.Errorf("%d epochs were dropped, and nobody could know: %q %s", st.Dropped.StoreEpochs, st.StoreError,
			d.log.String())
	}
	if most := d.most.Load(); most > d.limit+1<<16 { // beside the ring: the folder for incidents and others
		t.Errorf("%d bytes were occupied, the limit is %d", most, d.limit)
	}
	return st
}

func only(ops ...faultfs.Op) func(e syscall.Errno) func(faultfs.Op, int) syscall.Errno {
	return func(e syscall.Errno) func(faultfs.Op, int) syscall.Errno {
		return func(op faultfs.Op, _ int) syscall.Errno {
			for _, o := range ops {
				if o == op {
					return e
				}
			}
			return 0
		}
	}
}

// TestFaultyDisk lets the file system below an agent fail for a while: recording degrades by whole epochs, which are
// reported, recovers by itself, keeps its limit, and what is there in the end is sound and true.
func TestFaultyDisk(t *testing.T) {
	all := only(faultfs.Create, faultfs.Write, faultfs.Fsync, faultfs.Truncate, faultfs.Allocate, faultfs.Unlink,
		faultfs.Rename, faultfs.Link, faultfs.Mkdir)
	for _, c := range []struct {
		name  string
		fault func(faultfs.Op, int) syscall.Errno
		drops bool // epochs must be lost
	}{
		{"write EIO", only(faultfs.Write)(syscall.EIO), true},
		{"write ENOSPC", only(faultfs.Write)(syscall.ENOSPC), true},
		{"write EDQUOT", only(faultfs.Write, faultfs.Allocate)(syscall.EDQUOT), true},
		{"all EROFS", all(syscall.EROFS), true},
		{"all EIO", all(syscall.EIO), true},
		{"fsync EIO", only(faultfs.Fsync)(syscall.EIO), false},
		{"allocate EIO", only(faultfs.Allocate)(syscall.EIO), false},
		{"create EIO", only(faultfs.Create)(syscall.EIO), false},
		{"unlink EIO", only(faultfs.Unlink)(syscall.EIO), false},
		{"write and truncate EIO", only(faultfs.Write, faultfs.Truncate)(syscall.EIO), true},
		{"every third EIO", func(_ faultfs.Op, n int) syscall.Errno {
			if n%3 == 0 {
				return syscall.EIO
			}
			return 0
		}, false},
		{"slow", func(op faultfs.Op, _ int) syscall.Errno {
			if op == faultfs.Write || op == faultfs.Fsync {
				time.Sleep(30 * time.Millisecond)
			}
			return 0
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, 512<<10)
			d.play(120, 40)
			d.fail(c.fault)
			d.play(120, 40)
			if st := d.a.Status()[0]; st.Phase != session.Recording {
				t.Errorf("%+v", st)
			}
			d.fail(nil)
			d.play(60, 15)
			st := d.check()
			if drops := st.Dropped.StoreEpochs > 0; c.drops && !drops {
				t.Error("nothing was lost")
			} else if c.name == "slow" && (drops || st.StoreFaults > 0) {
				t.Error("a slow disk is none that fails")
			}
			t.Logf("%d epochs dropped, %d faults, %d files begun, %d evicted, %d bytes of %d", st.Dropped.StoreEpochs,
				st.StoreFaults, st.Rotations, st.FilesEvicted, d.most.Load(), d.limit)
		})
	}
}

// TestOneFaultLosesOnlyItsOperation fails the n-th operation: the loss is reported, and nothing else is lost.
func TestOneFaultLosesOnlyItsOperation(t *testing.T) {
	step := 9
	if os.Getenv("HEAPCAM_FULL") != "" {
		step = 1
	}
	for n := 1; n < 40; n += step {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, 512<<10)
			d.fail(func(_ faultfs.Op, i int) syscall.Errno {
				if i == n {
					return syscall.EIO
				}
				return 0
			})
			d.play(60, 20)
			st := d.check()
			if st.Dropped.StoreEpochs > 30 {
				t.Errorf("one fault cost %d epochs", st.Dropped.StoreEpochs)
			}
		})
	}
}
