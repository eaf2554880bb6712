package session

import (
	"encoding/json"
	"time"
)

// keepEvery is how often the counters of a session are kept, if they have changed: a kill of the agent loses the rest.
const keepEvery = 10 * time.Second

// tally keeps the counters of a recording over all agents that recorded it.
type tally struct {
	base, kept counters // of agents before; as the store keeps them
	at         time.Time
}

// due says, every keepEvery, that the counters are to be kept.
func (t *tally) due(now time.Time) bool {
	if now.Sub(t.at) < keepEvery {
		return false
	}
	t.at = now
	return true
}

// counters are what an agent counts itself, over all agents that recorded the JVM; the rest the probe counts, or it can
// be seen on the disk.
type counters struct {
	Collections           uint64 `json:"collections"`
	SyncPoints            uint64 `json:"sync_points"`
	Rotations             uint64 `json:"rotations"`
	Emergencies           uint64 `json:"emergencies"`
	EmergenciesUnanswered uint64 `json:"emergencies_unanswered"`
	RingEpochs            uint64 `json:"ring_epochs"`
	StoreEpochs           uint64 `json:"store_epochs"`
	Samples               uint64 `json:"samples_dropped"`
	Definitions           uint64 `json:"definitions"`
	Corrupt               uint64 `json:"corrupt"`
	FilesEvicted          int64  `json:"files_evicted"`
	SyncPointsCut         int64  `json:"sync_points_cut"`
	StoreFaults           int64  `json:"store_faults"`
	ListingsSkipped       uint64 `json:"listings_skipped"`
	Switches              uint64 `json:"switches"`
	Incidents             uint64 `json:"incidents"`
	IncidentsFailed       uint64 `json:"incidents_failed"`
	Missed                uint64 `json:"missed_collections"`
	ReferencesNS          uint64 `json:"references_ns"`
	DetachedBy            string `json:"detached_by,omitempty"` // no count, but it is to be kept as they are
}

func countersOf(s *Status) counters {
	d := &s.Dropped
	return counters{
		s.Collections, s.SyncPoints, s.Rotations, s.Emergencies, s.EmergenciesUnanswered,
		d.RingEpochs, d.StoreEpochs, d.Samples, d.Definitions, d.Corrupt,
		s.FilesEvicted, s.SyncPointsCut, s.StoreFaults, s.ListingsSkipped,
		s.Switches, s.Incidents, s.IncidentsFailed, s.Missed, s.ReferencesNS, s.DetachedBy,
	}
}

func (c *counters) drops() Drops {
	return Drops{
		RingEpochs: c.RingEpochs, StoreEpochs: c.StoreEpochs,
		Samples: c.Samples, Definitions: c.Definitions, Corrupt: c.Corrupt,
	}
}

// restore puts c into a status.
func (c *counters) restore(st *Status) {
	st.Collections, st.SyncPoints, st.Rotations = c.Collections, c.SyncPoints, c.Rotations
	st.Emergencies, st.EmergenciesUnanswered = c.Emergencies, c.EmergenciesUnanswered
	st.Dropped = c.drops()
	st.FilesEvicted, st.SyncPointsCut, st.StoreFaults = c.FilesEvicted, c.SyncPointsCut, c.StoreFaults
	st.ListingsSkipped, st.Switches, st.Missed = c.ListingsSkipped, c.Switches, c.Missed
	st.ReferencesNS = c.ReferencesNS
	st.Incidents, st.IncidentsFailed, st.DetachedBy = c.Incidents, c.IncidentsFailed, c.DetachedBy
}

// DetachedBy returns who had an agent detach from the JVM of a recording, as its counters say: those of
// ringstore's recording.json. Errors: those of encoding/json.
func DetachedBy(b []byte) (who string, err error) {
	var c counters
	if len(b) > 0 {
		err = json.Unmarshal(b, &c)
	}
	return c.DetachedBy, err
}

// Counted puts what the counters of a recording say into st: those of ringstore's recording.json. known: they say how
// much was lost. They do not where there are none, or where the recording goes on behind them, as after a kill of its
// recorder; st.LastGC is its newest collection.
func Counted(b []byte, st *Status) (known bool) {
	var c counters
	if len(b) == 0 || json.Unmarshal(b, &c) != nil || c.Collections+c.RingEpochs < st.LastGC {
		return false
	}
	st.Collections = c.Collections
	st.Dropped = c.drops()
	return true
}

// recall takes over what agents before have counted of this recording.
func (s *Session) recall() {
	var c counters
	if b := s.out.st.Counters(); b == nil || json.Unmarshal(b, &c) != nil {
		return
	}
	s.tally.base, s.tally.kept = c, c
	c.restore(&s.status)
}

// keepCounters has the store keep what has changed since it did last.
func (s *Session) keepCounters() {
	st := s.Status()
	c := countersOf(&st)
	if c == s.tally.kept {
		return
	}
	b, err := json.Marshal(c)
	if err == nil && s.out.st.KeepCounters(b) == nil {
		s.tally.kept = c
	}
}
