package ringstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// maxTaken bounds how many names that are taken a new segment goes past.
const maxTaken = 100

// Rotate begins a new segment with head (META, DEFS and, if info says so, SYNC). The oldest segments are evicted first,
// by need: that happens only because head's size is known and fits. After an error the segment before is still the open
// one, unless head fits only without it: then it is the oldest, and is evicted as such.
// Errors: *TooSmallError when head holds a sync point and two segments of four such do not fit; ErrNoRoom when it is
// larger than M; I/O errors.
func (s *Store) Rotate(head []byte, info segment.FrameInfo) (err error) {
	if len(head) > segment.MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(head), segment.MaxFrame)
	}
	s.survey()
	info.Flags = info.Flags&^segment.FlagIndex | segment.FlagHead
	ramp := info.Flags&segment.FlagRamp != 0
	listing := info.Flags&segment.FlagListing != 0 && !ramp
	if listing {
		defer func() {
			if err != nil {
				s.counts.cut++
			}
		}()
	}
	// The file header is filled in when the file is made.
	all := s.packer.Frame(make([]byte, segment.HeaderSize, segment.HeaderSize+segment.FrameSize), head, info)
	stored := int64(len(all)) - segment.HeaderSize
	if listing {
		if err := s.quota.Listing(stored); err != nil {
			return err
		}
	}
	need := vfs.Occupied(segment.HeaderSize + stored + segment.IndexSize(1))
	if m := s.quota.Max(); need+overhead > m {
		return fmt.Errorf("a head of %d bytes does not fit into max_trace_size %d: %w", stored, m, quota.ErrNoRoom)
	}
	if held := s.holds.size(); need+overhead+held > s.quota.Limit() { // no eviction would help
		return heldError(need, held)
	}
	var undo func()
	if room := need; ramp {
		undo = s.quota.Ramp(stored)
		if room += s.quota.Reserve() - stored; room+overhead+s.holds.size() > s.quota.Limit() {
			room = need // it may be less this time
		}
		err = s.makeRoom(need, room, info.Flags&segment.FlagComplete == 0)
	} else {
		undo = s.quota.Head(stored, listing)
		err = s.makeRoom(need, need, false)
	}
	if err == nil {
		err = s.begin(all, info)
	}
	if err != nil && s.active != nil {
		undo()
	}
	if err == nil && info.Flags&segment.FlagComplete != 0 {
		s.quota.Ramped(stored)
	}
	return err
}

func heldError(need, held int64) error {
	return fmt.Errorf("%d bytes needed beside %d that a pull holds: %w", need, held, quota.ErrNoRoom)
}

// makeRoom evicts what a new segment needs that begins with so many bytes, and needs so much room soon. keep: it is not
// complete with that, so that one that is has to stay.
func (s *Store) makeRoom(need, room int64, keep bool) error {
	var trimmed error
	if s.active != nil {
		trimmed = s.active.Trim()
	}
	m, target, low := s.quota.Max(), s.quota.Target(), s.quota.Low()
	for i := s.victim(keep); i >= 0; i = s.victim(keep) {
		t := s.usage().Total
		if t+room+s.quota.Refused() <= s.quota.Limit() &&
			(t+max(room, target) <= m || t-overhead-s.sealed[i].Size < low) {
			break
		}
		if err := s.evict(i); err != nil {
			return err
		}
	}
	if s.active != nil && s.usage().Total+need > s.quota.Limit() {
		if trimmed != nil { // it is blocks without content that are in the way
			return fmt.Errorf("give back what was taken ahead: %w", trimmed)
		}
		if l, _ := s.active.Listing(); keep && l == segment.Complete {
			return fmt.Errorf("%d bytes needed beside the only complete file: %w", need, quota.ErrNoRoom)
		}
		s.seal()
		if err := s.evict(max(s.victim(keep), 0)); err != nil {
			return err
		}
	}
	if s.usage().Total+need > s.quota.Limit() { // a pull holds what was evicted
		return heldError(need, s.holds.size())
	}
	return nil
}

// begin makes a segment of all: room for its header, and the first frame.
func (s *Store) begin(all []byte, info segment.FrameInfo) error {
	f, path, err := s.create()
	if errors.Is(err, os.ErrNotExist) { // somebody removed the folder
		s.remake()
		f, path, err = s.create()
	}
	if err != nil {
		s.failed(err)
		return fmt.Errorf("new ring file: %w", err)
	}
	id := &s.desc.id
	h := segment.Header{
		Number: s.number, Created: uint64(s.cfg.Now().UnixNano()), Session: id.Session,
		PID: uint32(id.PID), NSPID: id.NSPID, StartTicks: id.StartTicks,
	}
	copy(all, h.Encode())
	if err := segment.WriteWhole(f, all, 0); err != nil {
		s.failed(err)
		s.discard(f, path, int64(len(all)))
		return fmt.Errorf("new ring file: %w", err)
	}
	before := s.active
	s.seal()
	s.active = segment.NewWriter(f, path, all, before, s.failed)
	s.counts.written += int64(len(all)) - segment.HeaderSize
	s.source = max(s.source, info.Source)
	s.quota.Began()
	if err := s.cfg.FS.SyncDir(s.cfg.Dir); err != nil {
		s.failed(err)
		s.syncer.later("")
	}
	return nil
}

// create makes the file of the next number whose name is free.
func (s *Store) create() (f vfs.File, path string, err error) {
	for range maxTaken {
		path = filepath.Join(s.cfg.Dir, fmt.Sprintf("%08d%s", s.number+1, segment.Suffix))
		if f, err = s.cfg.FS.Create(path); !errors.Is(err, os.ErrExist) {
			break
		}
		s.number++ // somebody's file has this name
	}
	if err == nil {
		s.number++ // a name is used once, even if its file can neither be written nor removed
	}
	return f, path, err
}

// discard removes a new file that could not be written. One of which nothing is left is no evidence of anything.
func (s *Store) discard(f vfs.File, path string, length int64) {
	if s.cfg.FS.Remove(path) != nil {
		cut := int64(segment.HeaderSize)
		if f.Truncate(segment.HeaderSize) == nil {
			cut = 0
		}
		s.sealed = append(s.sealed, segment.Sealed{Path: path, Size: vfs.Occupied(length), Cut: cut})
	}
	f.Close()
}
