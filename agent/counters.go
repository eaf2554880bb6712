package agent

import (
	"encoding/json"
	"time"
)

// keepEvery is how often the counters of a session are kept, if they have changed: a kill of the agent loses the rest.
const keepEvery = 10 * time.Second

// counters are what an agent counts itself, over all agents that recorded the JVM; the rest the probe counts, or it can be seen on the disk.
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
	DetachedBy            string `json:"detached_by,omitempty"` // no count, but it is to be kept as they are
}

func countersOf(s *Status) counters {
	d := &s.Dropped
	return counters{s.Collections, s.SyncPoints, s.Rotations, s.Emergencies, s.EmergenciesUnanswered, d.RingEpochs, d.StoreEpochs, d.Samples, d.Definitions, d.Corrupt,
		s.FilesEvicted, s.SyncPointsCut, s.StoreFaults, s.ListingsSkipped, s.Switches, s.Incidents, s.IncidentsFailed, s.DetachedBy}
}

// recall takes over what agents before have counted of this recording.
func (s *session) recall() {
	var c counters
	if b := s.st.Counters(); b == nil || json.Unmarshal(b, &c) != nil {
		return
	}
	s.base, s.kept = c, c
	st := &s.status
	st.Collections, st.SyncPoints, st.Rotations, st.Emergencies, st.EmergenciesUnanswered = c.Collections, c.SyncPoints, c.Rotations, c.Emergencies, c.EmergenciesUnanswered
	st.Dropped = Drops{RingEpochs: c.RingEpochs, StoreEpochs: c.StoreEpochs, Samples: c.Samples, Definitions: c.Definitions, Corrupt: c.Corrupt}
	st.FilesEvicted, st.SyncPointsCut, st.StoreFaults, st.ListingsSkipped = c.FilesEvicted, c.SyncPointsCut, c.StoreFaults, c.ListingsSkipped
	st.Switches, st.Incidents, st.IncidentsFailed, st.DetachedBy = c.Switches, c.Incidents, c.IncidentsFailed, c.DetachedBy
}

// keepCounters has the store keep what has changed since it did last.
func (s *session) keepCounters() {
	st := s.snapshot()
	c := countersOf(&st)
	if c == s.kept {
		return
	}
	b, err := json.Marshal(c)
	if err == nil && s.st.KeepCounters(b) == nil {
		s.kept = c
	}
}
