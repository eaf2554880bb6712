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
	var pid int
	var ticks uint64
	s.set(func(st *Status) {
		if !st.Spool && !st.Unseen {
			pid, ticks = st.PID, st.StartTicks
		}
	})
	f, err := jvms.FootprintOf(pid, ticks)
	if err != nil || f.RSS == 0 {
		return
	}
	s.alarms.process = trace.Process{Time: max(s.in.time, s.in.now()), RSS: f.RSS, Anon: f.Anon, Swap: f.Swap,
		Threads: f.Threads, Heap: f.Heap, Metaspace: f.Metaspace, Code: f.Code, Classes: f.Classes, Limit: f.Limit,
		Used: f.Used}
	s.remark(trace.Meta{Process: []trace.Process{s.alarms.process}})
}
