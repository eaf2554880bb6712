package ringstore

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
)

// Store is the writing side of one JVM's ring.
//
// Owner: the recorder. One store at a time writes to a folder; the recorder must see to that.
// Lifetime: from Open to Close. After Close only Stats, Dir, Counters and LastSource may be called.
// Concurrency: one goroutine. Readers, pulls and incidents may work on the folder at the same time, in any process.
// Errors: those of the file system, with context, and ErrNoRoom, ErrNoFile and *TooSmallError. After any error the
// store is as it was before the call, and works again when the file system does.
type Store struct {
	cfg   Config
	desc  description
	quota *quota.Quota

	active *segment.Writer  // the open segment; nil: none
	sealed []segment.Sealed // oldest first
	holds  holds
	number uint64 // of the newest segment
	source uint64 // position in the shared ring

	packer *segment.Packer
	head   []byte    // header of the frame that was made last
	one    [1][]byte // of Append

	syncer   syncer
	unsynced bool // the last sync failed
	noAlloc  bool // the file system cannot allocate ahead
	foreign  int  // files of other recordings that Open found in the folder
	counts   counts
}

// counts are what has happened since Open.
type counts struct {
	evicted int64 // segments evicted for newer ones
	cut     int64 // sync points that did not fit
	faults  int64 // operations of the file system that failed
	written int64 // bytes of frames, as stored
	gone    int64 // segments that somebody else removed, moved or cut
}

// Dir is the ring folder.
func (s *Store) Dir() string { return s.cfg.Dir }

// LastSource is the position in the shared ring up to which the recording holds everything; 0 for a new one.
func (s *Store) LastSource() uint64 { return s.source }

// KeepCounters keeps what the recorder counts, a JSON document of at most 2 KiB, beside the recording. It is written
// with the next sync. The store copies b.
func (s *Store) KeepCounters(b []byte) error { return s.desc.keep(b) }

// KeepResource keeps in recording.json whose recording it is, with the next sync.
func (s *Store) KeepResource(r trace.Resource) { s.desc.id.Resource, s.desc.stale = r, true }

// Counters gives what was kept last of this recording, by a recorder before as well; nil: nothing. The caller must not
// change it.
func (s *Store) Counters() []byte { return s.desc.counters }

// Queue sets how full the queue of what is still to be stored is, 0 to 1: Partial and Adaptive go by it.
func (s *Store) Queue(full float64) { s.packer.SetQueue(full) }

// CPU sets what Adaptive may spend, CPUs on average.
func (s *Store) CPU(cpus float64) { s.packer.SetBudget(cpus) }

// Ease sets how much less than configured is done to compress, for the sake of the CPU, whatever the mode: 0, 1 (fast)
// or 2 (little: a fifth of the time, and larger frames).
func (s *Store) Ease(n int) { s.packer.Ease(n) }

// Append is Write of one part.
func (s *Store) Append(payload []byte, info segment.FrameInfo) error {
	s.one[0] = payload
	err := s.Write(s.one[:], info)
	s.one[0] = nil
	return err
}

// Write adds a frame to the open segment: parts, each of whole blocks, one behind the other. After an error nothing of
// them is in it, whatever part the system had taken. The store keeps no part. It copies none, and makes no garbage,
// while frames are not compressed.
// Errors: ErrNoFile, ErrNoRoom, *TooSmallError for a sync point as Rotate, I/O errors.
func (s *Store) Write(parts [][]byte, info segment.FrameInfo) error {
	raw := 0
	for _, part := range parts {
		raw += len(part)
	}
	if raw > segment.MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", raw, segment.MaxFrame)
	}
	s.survey()
	if s.active == nil {
		return ErrNoFile
	}
	if err := s.active.Mend(); err != nil {
		return err
	}
	info.Flags &^= segment.FlagHead | segment.FlagIndex
	head, stored := s.packer.Pack(s.head[:0], parts, info)
	s.head = head
	n := int64(len(head))
	for _, part := range stored {
		n += int64(len(part))
	}
	s.quota.Frame(n)
	if info.Flags&(segment.FlagListing|segment.FlagRamp) == segment.FlagListing {
		if err := s.quota.Listing(n); err != nil {
			s.counts.cut++
			return err
		}
	}
	if s.active.Frames() >= segment.MaxFrames {
		s.quota.Refuse(1)
		return fmt.Errorf("a file of %d frames is full: %w", segment.MaxFrames, quota.ErrNoRoom)
	}
	if err := s.fit(n); err != nil {
		return err
	}
	s.allocate(n)
	if err := s.active.Append(head, stored...); err != nil {
		if vfs.NoSpace(err) {
			s.quota.Refuse(vfs.Occupied(n) + 2*vfs.Block)
		}
		return fmt.Errorf("write to ring file: %w", err)
	}
	s.counts.written += n
	s.source = max(s.source, info.Source)
	if info.Flags&segment.FlagComplete != 0 {
		_, since := s.active.Listing()
		s.quota.Ramped(since)
	}
	return nil
}

// fit makes sure that the open segment may grow by a frame of n bytes. While its listing is not complete, older
// segments are evicted for that, but not the only complete one.
func (s *Store) fit(n int64) error {
	for {
		u := s.usage()
		grow := max(vfs.Occupied(s.active.Needs(n)), u.Open) - u.Open
		if i := s.victim(true); u.Ramping && i >= 0 && grow > s.quota.Room(u) {
			if err := s.evict(i); err != nil {
				return err
			}
			continue
		}
		return s.quota.Fits(grow, u)
	}
}

// allocate takes blocks ahead, in steps, as far as the quota allows. What it cannot get is left to the write.
func (s *Store) allocate(n int64) {
	if s.noAlloc {
		return
	}
	if to := s.quota.Ahead(s.active.Needs(n), s.active.Ahead(), s.usage()); to > 0 {
		s.noAlloc = errors.Is(s.active.Allocate(to), vfs.ErrUnsupported)
	}
}

// usage is what the ring occupies now.
func (s *Store) usage() quota.Usage {
	u := quota.Usage{Overhead: overhead, Held: s.holds.size()}
	if s.active != nil {
		u.Open = s.active.Occupies()
		l, _ := s.active.Listing()
		u.Ramping = l == segment.Ramping
	}
	u.Total = u.Overhead + u.Held + u.Open
	for i := range s.sealed {
		u.Total += s.sealed[i].Size
	}
	return u
}

// failed counts a fault of the file system, and heeds what it says.
func (s *Store) failed(err error) {
	s.counts.faults++
	if vfs.NoSpace(err) {
		s.quota.DiskFull(s.cfg.Now(), s.usage().Total)
	}
}

// survey asks once a second what the file system has left, whether pulls have ended, and whether the open file is still
// in its place.
func (s *Store) survey() {
	now := s.cfg.Now()
	if !s.quota.Due(now) {
		return
	}
	s.holds.release()
	s.checkPlace()
	free := int64(-1)
	if s.cfg.KeepFree > 0 {
		if n, err := s.cfg.FS.Free(s.cfg.Dir); err == nil {
			free = n
		}
	}
	s.quota.Survey(now, s.usage().Total, free)
}

// Resize makes M what it says, at least 256 KiB. The oldest sealed segments are evicted at once as far as the new limit
// needs it. Errors: I/O errors; M is the new one also then.
func (s *Store) Resize(m int64) error {
	m = max(m, minTraceSize)
	if m == s.quota.Bounds().Max {
		return nil
	}
	s.quota.Resize(m)
	for len(s.sealed) > 0 && s.usage().Total > s.quota.Limit() { // the limit is above all
		if err := s.evict(max(s.victim(s.usage().Ramping), 0)); err != nil {
			return err
		}
	}
	if s.active == nil {
		return nil
	}
	return s.active.Trim()
}

// heal does again what has failed.
func (s *Store) heal() {
	if err := s.desc.write(); err != nil {
		s.failed(err)
	}
	s.cutTorn()
}

// cutTorn cuts off what failed writes left in sealed segments.
func (s *Store) cutTorn() {
	for i := range s.sealed {
		if s.sealed[i].Cut == 0 {
			continue
		}
		f, err := s.cfg.FS.Open(s.sealed[i].Path)
		if err != nil {
			continue
		}
		if f.Truncate(s.sealed[i].Cut) == nil {
			s.sealed[i].Size, s.sealed[i].Cut = vfs.Occupied(s.sealed[i].Cut), 0
		}
		f.Close()
	}
}

// victim gives the sealed segment to evict next, -1: none. keep: the newest segment is not complete, so that the only
// complete one has to stay.
func (s *Store) victim(keep bool) int {
	complete := 0
	for i := range s.sealed {
		if s.sealed[i].Listing == segment.Complete {
			complete++
		}
	}
	if s.active != nil {
		if l, _ := s.active.Listing(); l == segment.Complete {
			complete++
		}
	}
	for i := range s.sealed {
		if !keep || complete != 1 || s.sealed[i].Listing != segment.Complete {
			return i
		}
	}
	return -1
}

// evict removes a sealed segment.
func (s *Store) evict(i int) error {
	f := s.sealed[i]
	s.syncer.wait(f.Path) // an open file keeps its blocks
	if err := s.cfg.FS.Remove(f.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.failed(err)
		return fmt.Errorf("give up the oldest ring file: %w", err)
	}
	s.sealed = slices.Delete(s.sealed, i, i+1)
	s.counts.evicted++
	s.holds.evicted(f)
	return nil
}

// seal closes the open segment; none is open then.
func (s *Store) seal() {
	if s.active == nil {
		return
	}
	w := s.active
	s.sealed = append(s.sealed, w.Seal())
	s.active = nil
	s.syncer.finish(s.cfg.FS, w.File(), w.Path())
}

// abandon leaves the open segment as a dying process does.
func (s *Store) abandon() {
	if s.active != nil {
		s.active.Abandon()
		s.active = nil
	}
}

// Close seals the open segment, syncs and closes; the recording stays. Errors: those of the sync.
func (s *Store) Close() error {
	s.checkPlace()
	s.seal()
	return s.Sync()
}
