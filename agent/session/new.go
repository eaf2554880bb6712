package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// StoreError says that the recording's folder cannot be used now.
type StoreError struct {
	Dir string
	Err error
}

func (e *StoreError) Error() string { return fmt.Sprintf("recording %s: %v", e.Dir, e.Err) }
func (e *StoreError) Unwrap() error { return e.Err }

// JVM is whose ring it is.
type JVM struct {
	ringstore.Identity
	Here bool   // the process is seen from here
	Kept string // name by which the service manager keeps the ring; "": it does not
}

// New makes a session that records ring into the folder dir by st. fresh says that no agent recorded the ring before;
// h is its status when it was opened. The caller keeps ring and store if there is an error.
func New(
	cfg Config, ring *shmring.Ring, st Store, dir string, h shmring.Status, fresh bool, who JVM,
) (*Session, error) {
	last, err := emergency.New(cfg.Emergency, ring.RequestEmergency)
	if err != nil {
		return nil, err
	}
	s := &Session{
		cfg: cfg, ring: ring, defs: definitions.New(),
		in:     stream{redefining: !fresh, began: time.Now()},
		losses: losses{reported: h},
		syncs:  newSchedule(cfg.MaxTraceSize, last),
		heap:   heapView{live: newLive()},
		out:    writer{st: st, skipTo: st.LastSource()},
		steer: steering{
			source: cfg.Limits, write: newWriteLimit(cfg.WriteRate), cpu: cpuLimit{process: cfg.Process},
		},
		alarms: alarms{oom: exhaustion{seen: h.Exhausted}},
	}
	s.heap.live.est.Prove(coverage.NewProofs(s.defs))
	if fresh {
		s.alarms.oom.seen = 0
		s.losses.reported.EpochsDropped, s.losses.reported.SamplesDropped = 0, 0
	}
	s.kept, s.in.whose, s.in.base = who.Kept, who.Resource, who.Resource
	away := ring.Away()
	s.status = Status{
		ID: filepath.Base(dir), Name: who.Name, PID: who.PID, UID: ring.Owner(), StartTicks: h.StartTicks,
		Session: h.Session, VM: h.JVM, Probe: h.Probe, Renew: cfg.Probe != "" && h.Probe != cfg.Probe,
		Spool: away && !who.Here, Unseen: !away && !who.Here && ring.Owner() >= 0,
		RingOnDisk: h.Flags&shmring.FlagDisk != 0,
		RingMemfd:  h.Flags&shmring.FlagMemfd != 0, RingKept: who.Kept != "",
		Phase: Recording, Dir: dir, Since: time.Now(),
		Resource: who.Resource, RingBytes: h.Capacity, GuaranteeMet: true, Pauses: &Pauses{},
	}
	s.log = BoundLog(logs.With(cfg.Log, logs.Recording.Of(s.status.ID)))
	if h.EpochMax|h.CostMax != 0 { // of an agent before
		if err := errors.Join(ring.SetEpochMax(0), ring.SetCostMax(0)); err != nil {
			return nil, err
		}
	}
	if err := s.applyLimits(); err != nil {
		return nil, err
	}
	s.recall()
	if s.out.skipTo > 0 {
		s.resume()
	}
	return s, nil
}

// resume begins a new file of a recording that an agent before began: what its files define is known, so that what
// still lies in the ring can be read even if the JVM no longer answers.
func (s *Session) resume() {
	s.losses.lastGC = s.out.st.Newest(s.recalled)
	if s.in.redefining {
		s.defs.Recall()
	}
	if !s.in.known {
		return
	}
	s.out.pos = s.out.skipTo
	s.begin(nil)
	// How much was lost while nobody read shows in the collections' numbers.
	s.out.push(trace.EncodeGap(trace.Gap{Reason: trace.GapAway}))
	s.syncs.plan.Lost()
}
