package session

import (
	"time"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/trace"
)

// footprintEvery is how often the memory of the JVM's process is written into the recording.
const footprintEvery = 10 * time.Second

// noteFootprint writes what memory the JVM's process takes, now and then, or at once if that is asked for: it says
// later whether the heap or something else took it. A JVM whose process the agent does not see has none.
func (s *Session) noteFootprint(atOnce bool) {
	now := time.Now()
	if !s.in.known || !atOnce && now.Sub(s.in.footprintAt) < footprintEvery {
		return
	}
	s.in.footprintAt = now
	f, err := jvms.FootprintOf(s.process())
	if err != nil || f.RSS == 0 {
		return
	}
	s.alarms.process = trace.Process{Time: max(s.in.time, s.in.now()), RSS: f.RSS, Anon: f.Anon, Swap: f.Swap,
		Threads: f.Threads, Heap: f.Heap, Metaspace: f.Metaspace, Code: f.Code, Classes: f.Classes, Limit: f.Limit,
		Used: f.Used}
	s.remark(trace.Meta{Process: []trace.Process{s.alarms.process}})
}

// process gives pid and start of the JVM's process; 0, which no process has, if the agent does not see it.
func (s *Session) process() (pid int, startTicks uint64) {
	s.set(func(st *Status) {
		if !st.Spool && !st.Unseen {
			pid, startTicks = st.PID, st.StartTicks
		}
	})
	return pid, startTicks
}

// killSettles is how long a process that the kernel kills may still be there.
const killSettles = 5 * time.Second

// kills are readings of the kernel's counters of kills, while the JVM lived.
type kills struct {
	newest, before   jvms.Kills
	newestAt, readAt time.Time // readAt: of the newest attempt
	count            int       // readings
}

// read reads the counters, now and then.
func (k *kills) read(now time.Time, process func() (pid int, startTicks uint64)) {
	if now.Sub(k.readAt) < footprintEvery {
		return
	}
	k.readAt = now
	if x, err := jvms.KillsOf(process()); err == nil {
		k.take(now, x)
	}
}

func (k *kills) take(now time.Time, x jvms.Kills) {
	k.before, k.newest, k.newestAt = k.newest, x, now
	k.count++
}

// since gives the counters as they were when the JVM surely had not been killed; now it was found dead. The newest ones
// may have been read while it was ending.
func (k *kills) since(now time.Time) *jvms.Kills {
	if k.count > 1 && now.Sub(k.newestAt) < killSettles {
		return &k.before
	}
	return &k.newest
}

// noteKilled writes that the kernel killed a process for want of memory, if that is why the JVM may have ended.
func (s *Session) noteKilled(now time.Time, at uint64) *trace.Killed {
	scope, limit := s.alarms.kills.since(now).Killed()
	if scope == 0 {
		return nil
	}
	k := trace.Killed{Time: at, Scope: scope, Limit: limit}
	s.remark(trace.Meta{Killed: []trace.Killed{k}})
	return &k
}
