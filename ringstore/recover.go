package ringstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// Recovery is what Open found.
type Recovery struct {
	Resumed bool  // the folder held this session's recording
	Torn    int64 // bytes of an unfinished frame that were cut off the newest file
	Files   int
	Notes   []string               // what is corrupt or too new, by file; it stays where it is
	Foreign []*folder.ForeignError // files of other recordings: they are neither counted nor touched
}

// Open opens or makes the ring folder. It reads the index of each sealed segment, the frame headers of one that is not,
// and the checksums of that one's tail. The caller must Close the store.
// Errors: ErrOtherRecording when the folder holds another session; what is wrong with cfg; I/O errors.
func Open(cfg Config, id folder.Identity) (*Store, Recovery, error) {
	var rec Recovery
	if err := cfg.fill(); err != nil {
		return nil, rec, err
	}
	pack, err := segment.NewPacker(cfg.Compression, cfg.Threshold, cfg.CPU)
	if err != nil {
		return nil, rec, err
	}
	s := &Store{
		cfg: cfg, packer: pack,
		desc:  description{fs: cfg.FS, dir: cfg.Dir, id: id},
		quota: quota.New(quota.Bounds{Max: cfg.MaxTraceSize, Deviation: cfg.Deviation, KeepFree: cfg.KeepFree}),
		holds: holds{fs: cfg.FS, dir: cfg.Dir},
	}
	if err := cfg.FS.Mkdir(cfg.Dir); err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	d, err := folder.Read(cfg.FS, cfg.Dir)
	if err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	if n := len(d.Files) + len(d.Foreign); n > 0 && d.Session != "" && d.Session != id.Session {
		return nil, rec, s.otherRecording(d.Session)
	}
	for _, err := range d.Problems {
		rec.Notes = append(rec.Notes, err.Error())
	}
	rec.Foreign, s.foreign = d.Foreign, len(d.Foreign)
	s.holds.recover()
	for i, st := range d.Files {
		if err := s.recover(st, i == len(d.Files)-1, &rec); err != nil {
			s.abandon()
			return nil, rec, err
		}
	}
	rec.Files = len(d.Files)
	s.syncer.later("") // the recorder before may have died before its fsync
	for _, n := range d.Files {
		s.syncer.later(filepath.Join(cfg.Dir, n.Name))
	}
	if d.Described {
		s.desc.recall()
	}
	if !d.Described || id.Name != "" {
		s.desc.stale = true
		s.heal()
	}
	return s, rec, nil
}

func (s *Store) otherRecording(session string) error {
	return fmt.Errorf("%s: session %s, not %s: %w", s.cfg.Dir, session, s.desc.id.Session, ErrOtherRecording)
}

// recover takes a file that is there in. Only the newest is written further, if it was not sealed and is sound.
func (s *Store) recover(st vfs.Info, newest bool, rec *Recovery) error {
	path := filepath.Join(s.cfg.Dir, st.Name)
	s.number = max(s.number, segment.Number(path))
	out := segment.Sealed{Path: path, Size: st.Occupies()}
	// a creation that was cut off: there is nothing in it
	if st.Size < segment.HeaderSize && s.cfg.FS.Remove(path) == nil {
		return nil
	}
	keep := func(note error) error {
		if note != nil {
			rec.Notes = append(rec.Notes, note.Error())
		}
		s.sealed = append(s.sealed, out)
		return nil
	}
	f, err := segment.OpenIn(s.cfg.FS, path)
	if err != nil {
		var damage *segment.DamageError
		var tooNew *segment.TooNewError
		if !errors.As(err, &damage) && !errors.As(err, &tooNew) {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return keep(err)
	}
	defer f.Close()
	if f.Session != s.desc.id.Session {
		return s.otherRecording(f.Session)
	}
	rec.Resumed = true
	s.number = max(s.number, f.Index)
	if f.Sealed() {
		s.source = max(s.source, f.Window().Source)
		out.Listing = f.Listing()
		return keep(nil)
	}
	x, end, err := f.Recover()
	s.source = max(s.source, x.Info.Source)
	out.Listing, _ = x.Listing()
	if err != nil {
		return keep(err)
	}
	// One that was copied or renamed is not written to. Without a head it cannot continue, and one of an older version
	// cannot be sealed.
	if !newest || len(x.Frames) == 0 || !f.Resumable() {
		if newest && f.Placed() {
			rec.Torn = max(st.Size-end, 0)
		}
		if st.Size > end {
			out.Cut = end
		}
		_ = keep(nil)
		s.heal()
		return nil
	}
	a, err := s.cfg.FS.Open(path)
	if err == nil && (st.Size > end || st.Blocks > vfs.Occupied(st.Size)) { // what was taken ahead goes too
		err = a.Truncate(end)
	}
	if err != nil {
		if a != nil {
			a.Close()
		}
		if st.Size > end {
			out.Cut = end
		}
		return keep(fmt.Errorf("%s: %w", path, err))
	}
	rec.Torn = st.Size - end
	s.active = segment.ResumeWriter(a, path, x, end, s.failed)
	return nil
}
