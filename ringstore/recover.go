package ringstore

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Recovery tells what Open found.
type Recovery struct {
	Resumed bool  // the folder held this session's recording
	Torn    int64 // bytes of an unfinished frame that were cut off the newest file
	Files   int
	Notes   []string        // what is corrupt or too new, by file; it stays where it is
	Foreign []*ForeignError // files of other recordings: they are neither counted nor touched
}

// Open opens or makes the ring folder. It reads the index of each closed file, the frame headers of one that is not, and the checksums of
// that one's tail. Errors: ErrOtherRecording when the folder holds another session.
func Open(cfg Config, id Identity) (*Store, Recovery, error) {
	var rec Recovery
	if err := cfg.fill(); err != nil {
		return nil, rec, err
	}
	pack, err := newPacker(cfg.Compression, cfg.Threshold, cfg.CPU)
	if err != nil {
		return nil, rec, err
	}
	s := &Store{cfg: cfg, fs: cfg.FS, dir: cfg.Dir, id: id, packer: pack}
	if err := s.fs.Mkdir(s.dir); err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	d, err := lookInto(s.fs, s.dir)
	if err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	if n := len(d.files) + len(d.aside); n > 0 && d.session != "" && d.session != id.Session {
		return nil, rec, fmt.Errorf("%s: session %s, not %s: %w", s.dir, d.session, id.Session, ErrOtherRecording)
	}
	names, described := d.files, d.described
	for _, err := range d.problems {
		rec.Notes = append(rec.Notes, err.Error())
	}
	rec.Foreign, s.foreign = d.aside, len(d.aside)
	s.dropPulls()
	for i, st := range names {
		if err := s.recoverFile(st, i == len(names)-1, &rec); err != nil {
			s.drop()
			return nil, rec, err
		}
	}
	rec.Files = len(names)
	s.syncer.later("") // the recorder before may have died before its fsync
	for _, n := range names {
		s.syncer.later(filepath.Join(s.dir, n.Name))
	}
	if described {
		s.recall()
	}
	if !described || id.Name != "" {
		s.undescribed = true
		s.heal()
	}
	return s, rec, nil
}

// drop lets go of the open file as a dying process does.
func (s *Store) drop() {
	if s.active != nil {
		s.active.Close()
		s.active = nil
	}
}

// recoverFile takes a file that is there in. Only the newest goes on being written, if it was not closed and is sound.
func (s *Store) recoverFile(st Info, newest bool, rec *Recovery) error {
	path := filepath.Join(s.dir, st.Name)
	s.index = max(s.index, indexOf(path))
	out := sealed{path: path, size: st.occupies()}
	if st.Size < headerSize && s.fs.Remove(path) == nil { // a creation that was cut off: there is nothing in it
		return nil
	}
	f, err := OpenFileIn(s.fs, path)
	if err != nil {
		var damage *DamageError
		var tooNew *TooNewError
		if !errors.As(err, &damage) && !errors.As(err, &tooNew) {
			err = fmt.Errorf("%s: %w", path, err)
		}
		rec.Notes = append(rec.Notes, err.Error())
		s.keep(out)
		return nil
	}
	defer f.Close()
	if f.Session != s.id.Session {
		return fmt.Errorf("%s: session %s, not %s: %w", s.dir, f.Session, s.id.Session, ErrOtherRecording)
	}
	rec.Resumed = true
	s.index = max(s.index, f.Index)
	newest = newest && f.placed() // one that was copied or renamed is not written to
	if f.x != nil {
		s.source = max(s.source, f.x.info.Source)
		s.keep(out)
		return nil
	}
	x, end, err := f.scan()
	s.source = max(s.source, x.info.Source)
	if err != nil {
		rec.Notes = append(rec.Notes, err.Error())
		s.keep(out)
		return nil
	}
	if !newest || len(x.frames) == 0 || f.header.version < formatVersion { // without a head it can not go on, an older one can not be closed
		if newest {
			rec.Torn = max(st.Size-end, 0)
		}
		if st.Size > end {
			out.cut = end
		}
		s.keep(out)
		s.heal()
		return nil
	}
	a, err := s.fs.Open(path)
	if err == nil && (st.Size > end || st.Blocks > occupied(st.Size)) { // what was taken ahead goes too
		err = a.Truncate(end)
	}
	if err != nil {
		if a != nil {
			a.Close()
		}
		rec.Notes = append(rec.Notes, fmt.Errorf("%s: %w", path, err).Error())
		if st.Size > end {
			out.cut = end
		}
		s.keep(out)
		return nil
	}
	rec.Torn = st.Size - end
	a.TryLock(false)
	s.active, s.path, s.size, s.x = a, path, end, *x
	s.stat()
	return nil
}
