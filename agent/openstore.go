package agent

import "github.com/heapcam/heapcam/ringstore"

// ringStore fits ringstore's Store to what a session needs.
type ringStore struct{ s *ringstore.Store }

func openStoreDefault(cfg *Config, dir string, id identity) (store, error) {
	s, rec, err := ringstore.Open(dir, ringstore.Config{MaxTraceSize: cfg.MaxTraceSize, Deviation: cfg.Deviation, Compression: cfg.Compression},
		ringstore.Identity{Session: id.Session, PID: uint32(id.PID), StartTicks: id.StartTicks})
	if err != nil {
		return nil, err
	}
	for _, n := range rec.Notes {
		cfg.Log.Warn().Str("dir", dir).Msg(n)
	}
	return ringStore{s}, nil
}

func info(f frameInfo) ringstore.FrameInfo {
	return ringstore.FrameInfo{Source: f.Source, FirstGC: f.FirstGC, LastGC: f.LastGC, T0: f.T0, T1: f.T1}
}

func (r ringStore) Append(payload []byte, f frameInfo) error { return r.s.Append(payload, info(f)) }
func (r ringStore) Rotate(head []byte, f frameInfo) error    { return r.s.Rotate(head, info(f)) }
func (r ringStore) LastSource() uint64                       { return r.s.LastSource() }
func (r ringStore) Close() error                             { return r.s.Close() }

func (r ringStore) Stats() storeStats {
	s := r.s.Stats()
	return storeStats{Bytes: s.Bytes, Active: s.Active, Room: s.Room, Files: s.Files, Rotate: s.Rotate, Guarantee: s.Guarantee}
}
