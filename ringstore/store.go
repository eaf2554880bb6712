package ringstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// sickAfter is how many writes in a row may fail in one file until a new one is wanted.
const sickAfter = 3

// Store is the writing side of one JVM's ring. It is used by one goroutine.
type Store struct {
	cfg Config
	fs  FS
	dir string
	id  Identity

	files  []sealed // oldest first
	held   []sealed // given up, but a pull reads them; path is the pull's
	active RingFile
	path   string // of the active file
	size   int64  // logical size of the active file
	blocks int64  // what the system says that it occupies
	ahead  int64  // up to where blocks were taken ahead
	x      index  // of the active file
	dirty  bool   // behind size there may be the rest of a write that failed
	sick   int    // writes that failed in a row

	unsynced bool // the last sync failed

	index    uint64
	source   uint64
	lastRot  int64 // stored bytes of the last head
	listing  int64 // stored bytes of the last head that held a sync point
	tooSmall int64 // max_trace_size that the last sync point needs, 0 if it fits
	largest  int64 // recent frame, fading
	refused  int64 // what the last refused frame needed, 0 since a new file has begun: that file shall have room for it

	capped    bool  // the disk is full, or keep_free is reached
	cap       int64 // what the ring held then
	growth    int64 // what keep_free leaves, as last seen; 0: not limited by it
	surveyed  time.Time
	fullUntil time.Time
	noAlloc   bool
	foreign   int // files of other recordings that Open found in the folder

	undescribed bool // recording.json is still to be written
	counters    json.RawMessage

	evicted, cut, faults int64
	written              int64 // bytes of frames

	syncer syncer

	packer *packer
	buf    []byte
}

// describe writes recording.json.
func (s *Store) describe() error {
	b, err := s.description()
	if err != nil {
		return err
	}
	return s.fs.WriteFile(filepath.Join(s.dir, RecordingName), b)
}

// description says whose recording the folder holds, for people and for status, and what the recorder counts.
func (s *Store) description() ([]byte, error) {
	return describeIdentity(s.id, s.counters)
}

// maxCounters bounds what KeepCounters takes, bytes: recording.json stays within its block.
const maxCounters = 2048

// KeepCounters keeps what the recorder counts, a JSON document of at most 2 KiB, beside the recording; it is written with the next sync.
func (s *Store) KeepCounters(b []byte) error {
	if len(b) > maxCounters || !json.Valid(b) {
		return fmt.Errorf("counters of %d bytes: a JSON document of at most %d", len(b), maxCounters)
	}
	s.counters = append(json.RawMessage(nil), b...)
	s.undescribed = true
	return nil
}

// Counters gives what was kept last of this recording, by a recorder before as well; nil: nothing.
func (s *Store) Counters() []byte { return s.counters }

// recall reads the counters that a recorder before has kept.
func (s *Store) recall() {
	b, err := readSmall(s.fs, filepath.Join(s.dir, RecordingName))
	if err != nil {
		return
	}
	var r struct {
		Session  string          `json:"session"`
		Counters json.RawMessage `json:"counters"`
	}
	if CheckDocument(s.dir, b) == nil && json.Unmarshal(b, &r) == nil && r.Session == s.id.Session && len(r.Counters) <= 2*maxCounters { // indented
		s.counters = r.Counters
	}
}

// Queue tells how full the queue of what is still to be stored is, 0 to 1: Partial and Adaptive go by it.
func (s *Store) Queue(full float64) { s.packer.queue = full }

// CPU makes what Adaptive may spend what it says, CPUs on average.
func (s *Store) CPU(cpus float64) { s.packer.budget = cpus }

// Ease says how much less than configured is done to compress, for the sake of the CPU, whatever the mode: 0, 1 (fast) or 2 (little: a fifth of the time,
// and larger frames).
func (s *Store) Ease(n int) {
	s.packer.most = effortBest - effort(min(max(n, 0), int(effortBest-effortS2)))
}

// pack makes a frame behind so many free bytes. It is good until the next one is made.
func (s *Store) pack(free int, payload []byte, info FrameInfo) []byte {
	if cap(s.buf) < free {
		s.buf = make([]byte, free, 1<<16)
	}
	b := s.packer.frame(s.buf[:free], payload, info)
	s.buf = b
	if cap(b) > keepBuffer {
		s.buf = nil
	}
	return b
}

// Append adds a frame of whole blocks to the open file. After an error nothing of payload is in it, whatever part the system had taken.
// Errors: ErrNoFile, ErrNoRoom, *TooSmallError for a sync point as Rotate, I/O errors.
func (s *Store) Append(payload []byte, info FrameInfo) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(payload), MaxFrame)
	}
	if s.active == nil {
		return ErrNoFile
	}
	if err := s.mend(); err != nil {
		return err
	}
	s.survey()
	info.Flags &^= FlagHead | FlagIndex
	b := s.pack(0, payload, info)
	s.largest = max(s.largest-s.largest/64, int64(len(b)))
	if n := needed(int64(len(b))); info.Flags&FlagListing != 0 && n > s.size0() {
		s.tooSmall = n
		s.cut++
		return &TooSmallError{Head: int64(len(b)), Max: s.size0(), Needed: n}
	}
	if len(s.x.frames) >= maxIndex {
		s.refused = max(s.refused, 1)
		return fmt.Errorf("a file of %d frames is full: %w", maxIndex, ErrNoRoom)
	}
	if need := s.grow(int64(len(b))); need > 0 && need > s.room() {
		if n := need + 2*block; n <= s.limit()/2 { // larger ones never fit
			s.refused = max(s.refused, n)
		}
		return fmt.Errorf("%d bytes needed, %d left: %w", need, max(s.room(), 0), ErrNoRoom)
	}
	return s.write(b, info, len(payload))
}

func (s *Store) write(b []byte, info FrameInfo, raw int) error {
	s.allocate(int64(len(b)))
	n, err := s.active.WriteAt(b, s.size)
	if err == nil && n < len(b) {
		err = errShort
	}
	if err != nil {
		s.failed(err)
		s.dirty = true // even n = 0 promises nothing
		s.sick++
		if noSpace(err) {
			s.refused = max(s.refused, occupied(int64(len(b)))+2*block)
		}
		s.mend() // if it fails too, it is tried again before the next write, at sealing and at opening
		s.stat()
		return fmt.Errorf("write to ring file: %w", err)
	}
	s.sick = 0
	s.took(b, s.size)
	s.stat()
	s.source = max(s.source, info.Source)
	return nil
}

// took counts a whole frame, at the end of the active file, in.
func (s *Store) took(b []byte, at int64) {
	f, err := decodeFrame(s.path, at, b)
	if err == nil { // it was encoded just now
		s.x.add(f)
	}
	s.size = at + int64(len(b))
	s.written += int64(len(b))
}

var errShort = errors.New("short write")

func (s *Store) stat() {
	if i, err := s.active.Info(); err == nil {
		s.blocks = i.Blocks
	}
}

// failed counts a fault of the file system, and heeds what it says.
func (s *Store) failed(err error) {
	s.faults++
	if noSpace(err) {
		s.full()
	}
}

// allocate takes blocks ahead, in steps, as far as the limit allows. What it can not get is left to the write.
func (s *Store) allocate(n int64) {
	end := s.size + n + indexSize(len(s.x.frames)+1)
	if s.noAlloc || s.capped || end <= s.ahead {
		return
	}
	step := min(max(s.target()/16, allocMin), allocMax) / block * block
	to := occupied(end + step)
	if to-s.open() > s.room()/2 { // near the limit frames take what they need
		return
	}
	err := s.active.Allocate(s.size, to-s.size)
	switch {
	case errors.Is(err, ErrUnsupported):
		s.noAlloc = true
	case err != nil:
		s.failed(err)
	default:
		s.ahead = to
	}
}

// mend cuts off what a failed write may have left.
func (s *Store) mend() error {
	if !s.dirty {
		return nil
	}
	if err := s.active.Truncate(s.size); err != nil {
		s.failed(err)
		return fmt.Errorf("cut off a failed write: %w", err)
	}
	s.dirty, s.ahead = false, 0
	return nil
}

// Rotate begins a new file with head (META, DEFS and, if info says so, SYNC). The oldest files go first, by need: they are given up only
// because head's size is known and fits. After an error the file before is still the open one, unless head fits only without it: then it is
// the oldest file, and goes as such. Errors: *TooSmallError when head holds a sync point and two files of four such do not fit; ErrNoRoom
// when it is larger than M; I/O errors.
func (s *Store) Rotate(head []byte, info FrameInfo) (err error) {
	if len(head) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(head), MaxFrame)
	}
	s.survey()
	info.Flags = info.Flags&^FlagIndex | FlagHead
	listing := info.Flags&FlagListing != 0
	if listing {
		defer func() {
			if err != nil {
				s.cut++
			}
		}()
	}
	all := s.pack(headerSize, head, info) // the file header comes when the file does
	b := all[headerSize:]
	need := occupied(headerSize + int64(len(b)) + indexSize(1))
	m := s.size0()
	if n := needed(int64(len(b))); listing && n > m {
		s.tooSmall = n
		return &TooSmallError{Head: int64(len(b)), Max: m, Needed: n}
	}
	if need+overhead > m {
		return fmt.Errorf("a head of %d bytes does not fit into max_trace_size %d: %w", len(b), m, ErrNoRoom)
	}
	if held := s.heldSize(); need+overhead+held > s.limit() { // nothing that could be given up would help
		return fmt.Errorf("%d bytes needed beside %d that a pull holds: %w", need, held, ErrNoRoom)
	}
	last, lastListing := s.lastRot, s.listing
	s.lastRot, s.listing = int64(len(b)), 0
	if listing {
		s.listing, s.tooSmall = int64(len(b)), 0
	}
	defer func() {
		if err != nil && s.active != nil {
			s.lastRot, s.listing = last, lastListing
		}
	}()
	trimmed := s.trim()
	// The new file shall have room to reach T before the total reaches M. When sync points are large T is more than d·M, and less than
	// M(1−d) stays (rule 5: otherwise the ring would hold little but listings).
	target := s.target()
	low := m - max(int64(float64(m)*s.cfg.Deviation), target)
	for len(s.files) > 0 {
		t := s.total()
		if t+need+s.refused <= s.limit() && (t+max(need, target) <= m || t-overhead-s.files[0].size < low) {
			break
		}
		if err := s.evict(); err != nil {
			return err
		}
	}
	if s.active != nil && s.total()+need > s.limit() {
		if trimmed != nil { // it is blocks without content that are in the way
			return fmt.Errorf("give back what was taken ahead: %w", trimmed)
		}
		s.seal()
		if err := s.evict(); err != nil {
			return err
		}
	}
	if s.total()+need > s.limit() { // a pull holds what was given up
		return fmt.Errorf("%d bytes needed beside %d that a pull holds: %w", need, s.heldSize(), ErrNoRoom)
	}
	return s.begin(all, info)
}

// trim gives back what was taken ahead.
func (s *Store) trim() error {
	if s.active == nil || s.ahead == 0 || s.dirty {
		return nil
	}
	if err := s.active.Truncate(s.size); err != nil {
		s.failed(err)
		return err
	}
	s.ahead = 0
	s.stat()
	return nil
}

// evict gives up the oldest sealed file.
func (s *Store) evict() error {
	f := s.files[0]
	s.syncer.wait(f.path) // an open file keeps its blocks
	if err := s.fs.Remove(f.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.failed(err)
		return fmt.Errorf("give up the oldest ring file: %w", err)
	}
	s.files = s.files[1:]
	s.evicted++
	s.takeFromPulls(f)
	return nil
}

// maxTaken bounds how many names that are taken a new file goes past.
const maxTaken = 100

// begin makes a file of all: room for its header, and the first frame.
func (s *Store) begin(all []byte, info FrameInfo) (err error) {
	var path string
	var f RingFile
	for range maxTaken {
		path = filepath.Join(s.dir, fmt.Sprintf("%08d%s", s.index+1, fileSuffix))
		if f, err = s.fs.Create(path); !errors.Is(err, os.ErrExist) {
			break
		}
		s.index++ // somebody's file has this name
	}
	if err != nil {
		s.failed(err)
		return fmt.Errorf("new ring file: %w", err)
	}
	s.index++ // a name is used once, even if its file could neither be written nor removed
	h := fileHeader{index: s.index, created: uint64(s.cfg.Now().UnixNano()), session: s.id.Session, pid: uint32(s.id.PID), nspid: s.id.NSPID, ticks: s.id.StartTicks}
	copy(all, h.encode())
	n, err := f.WriteAt(all, 0)
	if err == nil && n < len(all) {
		err = errShort
	}
	if err != nil {
		s.failed(err)
		// A file of which nothing is left is no evidence of anything.
		if s.fs.Remove(path) != nil {
			cut := int64(headerSize)
			if f.Truncate(headerSize) == nil {
				cut = 0
			}
			s.keep(sealed{path, occupied(int64(len(all))), cut})
		}
		f.Close()
		return fmt.Errorf("new ring file: %w", err)
	}
	frames := s.x.frames
	s.seal()
	f.TryLock(false) // says that the ring is in use
	s.active, s.path = f, path
	s.x = index{frames: frames[:0]}
	s.dirty, s.sick, s.ahead = false, 0, 0
	s.took(all[headerSize:], headerSize)
	s.stat()
	s.source = max(s.source, info.Source)
	s.refused = 0
	if err := s.fs.SyncDir(s.dir); err != nil {
		s.failed(err)
		s.syncer.later("")
	}
	return nil
}

// Resize makes M what it says, at least 256 KiB. The oldest closed files go at once as far as the new limit needs it.
func (s *Store) Resize(m int64) error {
	m = max(m, minTraceSize)
	if m == s.cfg.MaxTraceSize {
		return nil
	}
	s.cfg.MaxTraceSize = m
	s.tooSmall = 0
	for len(s.files) > 0 && s.total() > s.limit() {
		if err := s.evict(); err != nil {
			return err
		}
	}
	return s.trim()
}

// keep counts a sealed file.
func (s *Store) keep(f sealed) { s.files = append(s.files, f) }

// seal closes the active file with its index. If that can not be written the file stays without; what is torn is cut off later.
func (s *Store) seal() {
	if s.active == nil {
		return
	}
	f, out := s.active, sealed{path: s.path}
	size := s.size
	if s.mend() == nil {
		b := s.x.encode(s.size)
		n, err := f.WriteAt(b, s.size)
		if err == nil && n == len(b) {
			size += int64(len(b))
			s.dirty = false
		} else {
			s.failed(errors.Join(err, errShort))
			s.dirty = true
		}
		if s.dirty || s.ahead > 0 {
			if err := f.Truncate(size); err != nil {
				s.failed(err)
			} else {
				s.dirty = false
			}
		}
	}
	if s.dirty {
		out.cut = size
	}
	s.stat()
	out.size = max(occupied(size), s.blocks)
	s.keep(out)
	s.active, s.path, s.size, s.blocks, s.ahead, s.dirty, s.sick = nil, "", 0, 0, 0, false, 0
	s.x = index{}
	s.syncer.finish(s.fs, f, out.path)
}

// heal does again what has failed.
func (s *Store) heal() {
	s.describeIf()
	s.cutTorn()
}

// describeIf writes recording.json if that is still to be done.
func (s *Store) describeIf() {
	if s.undescribed {
		if err := s.describe(); err != nil {
			s.failed(err)
		} else {
			s.undescribed = false
		}
	}
}

// cutTorn cuts off what failed writes left in sealed files.
func (s *Store) cutTorn() {
	for i := range s.files {
		if s.files[i].cut == 0 {
			continue
		}
		f, err := s.fs.Open(s.files[i].path)
		if err != nil {
			continue
		}
		if f.Truncate(s.files[i].cut) == nil {
			s.files[i].size, s.files[i].cut = occupied(s.files[i].cut), 0
		}
		f.Close()
	}
}

// LastSource is the position in the shared ring up to which the recording holds everything; 0 for a new one.
func (s *Store) LastSource() uint64 { return s.source }

// Dir is the ring folder.
func (s *Store) Dir() string { return s.dir }
