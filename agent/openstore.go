package agent

import (
	"errors"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// ringStore makes a store of package ringstore one of ours.
type ringStore struct {
	*ringstore.Store
	dir string
}

func openStoreDefault(cfg *Config, dir string, who identity) (store, error) {
	s, rec, err := ringstore.Open(ringstore.Config{
		Dir: dir, MaxTraceSize: cfg.MaxTraceSize, Deviation: cfg.Deviation, Compression: cfg.Compression, KeepFree: cfg.KeepFree,
		Threshold: cfg.Threshold, CPU: cfg.CompressionCPU,
	}, ringstore.Identity{
		Session: who.Session, Name: who.Name, PID: who.PID, UID: who.UID, NSPID: who.NSPID, StartTicks: who.StartTicks, VM: who.VM, Probe: who.Probe,
	})
	if errors.Is(err, ringstore.ErrOtherRecording) {
		return nil, errOtherSession
	}
	if err != nil {
		return nil, err
	}
	for _, n := range rec.Notes {
		cfg.Log.Warn().Str("dir", dir).Str("file", n).Msg("a ring file can not be read whole; it stays until its turn to go")
	}
	for _, f := range rec.Foreign {
		cfg.Log.Warn().Str("dir", dir).Str("file", f.File).Str("session", f.Session).Str("recording_session", f.Own).
			Msg("a ring file of another recording lies in the folder; it is not counted and not removed")
	}
	if rec.Torn > 0 {
		cfg.Log.Warn().Str("dir", dir).Int64("bytes", rec.Torn).Msg("cut a torn tail off the recording; the shared ring still holds what it was")
	}
	return ringStore{s, dir}, nil
}

func info(f frameInfo) ringstore.FrameInfo {
	i := ringstore.FrameInfo{Source: f.Source, FirstGC: f.FirstGC, LastGC: f.LastGC, T0: f.T0, T1: f.T1, Flags: ringstore.FlagMarked}
	if f.Listing {
		i.Flags |= ringstore.FlagListing
	}
	if f.Defs {
		i.Flags |= ringstore.FlagDefs
	}
	if f.Summary {
		i.Flags |= ringstore.FlagSummary
	}
	return i
}

func (s ringStore) Append(p []byte, f frameInfo) error { return s.Store.Append(p, info(f)) }
func (s ringStore) Rotate(p []byte, f frameInfo) error { return s.Store.Rotate(p, info(f)) }

func (s ringStore) Stats() storeStats {
	st := s.Store.Stats()
	return storeStats{
		Bytes: st.Bytes, Active: st.Active, Room: st.Room, Target: st.Target, Limit: st.Limit, Files: st.Files, Rotate: st.Rotate, Guarantee: st.Guarantee,
		Deviation: st.Deviation, Capped: st.Capped, Needed: st.Needed, Evicted: st.Evicted, Cut: st.Cut, Faults: st.Faults, Held: st.HeldBytes, Written: st.Written,
		Foreign: st.Foreign,
	}
}

// maxRecall bounds what is read of the files before the newest for their definitions, bytes as stored: about a second.
const maxRecall = 64 << 20

func (s ringStore) Newest(take func(trace.Block)) (lastGC uint64) {
	rec, err := ringstore.OpenRecording(s.dir)
	if err != nil || len(rec.Files) == 0 {
		return 0
	}
	defer rec.Close()
	last := len(rec.Files) - 1
	from, size := last, int64(0)
	for ; from > 0; from-- {
		for h, err := range rec.Files[from-1].Headers() {
			if err == nil && (h.Flags&ringstore.FlagMarked == 0 || h.Flags&(ringstore.FlagDefs|ringstore.FlagHead) != 0) {
				size += int64(h.Stored)
			}
		}
		if size > maxRecall {
			break
		}
	}
	for _, f := range rec.Files[from:last] {
		for b, err := range f.Definitions() {
			if err == nil && b.Kind == trace.KindDefs {
				take(b)
			}
		}
	}
	newest := rec.Files[last]
	for b, err := range newest.Definitions() {
		if err == nil {
			take(b)
		}
	}
	for h, err := range newest.Headers() {
		if err == nil {
			lastGC = max(lastGC, h.LastGC)
		}
	}
	return lastGC
}
