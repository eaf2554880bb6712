package ringstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// block is what a file system allocates in; occupied sizes are rounded up to it.
const block = 4096

// Config is how large a ring may get.
type Config struct {
	// Dir is the ring folder, made if missing (mode 0700).
	Dir string
	// MaxTraceSize is M, bytes; 0: 1 GiB, at least 256 KiB. Deviation is d, 0 < d ≤ 0.5; 0: 0.25.
	MaxTraceSize int64
	Deviation    float64
	// Compression is "none" or "full"; "": full.
	Compression string

	fs fsys // tests; nil: the system's
}

func (c *Config) fill() error {
	if c.fs == nil {
		c.fs = osFS{}
	}
	if c.MaxTraceSize == 0 {
		c.MaxTraceSize = 1 << 30
	}
	if c.Deviation == 0 {
		c.Deviation = 0.25
	}
	if c.Compression == "" {
		c.Compression = "full"
	}
	switch {
	case c.Dir == "":
		return errors.New("ringstore: no folder")
	case c.MaxTraceSize < 1<<18:
		return fmt.Errorf("max_trace_size of %d bytes is too small: at least 256 KiB", c.MaxTraceSize)
	case !(c.Deviation > 0 && c.Deviation <= 0.5):
		return fmt.Errorf("max_trace_size_deviation of %v is out of range: more than 0, at most 0.5", c.Deviation)
	case c.Compression != "none" && c.Compression != "full":
		return fmt.Errorf("compression %q is unknown: none or full", c.Compression)
	}
	return nil
}

// Stats is what a store holds, in bytes.
type Stats struct {
	Bytes, Active, Room, Target int64
	Files                       int
	Rotate                      bool  // a file has reached T, or the total M, or a frame was refused
	Guarantee                   bool  // a sync point and the largest frame fit into d·M, so M(1−d) of complete trace is kept
	TooSmall                    bool  // the last sync point was refused or left no room for another: a larger max_trace_size is needed
	Evicted                     int64 // files given up for newer ones
}

// Recovery tells what Open found.
type Recovery struct {
	Resumed bool  // the folder held this session's recording
	Torn    int64 // bytes of an unfinished frame that were cut off the newest file
	Files   int
	Notes   []string // what is corrupt or too new, by file; it stays where it is
}

type fileSize struct {
	path string
	size int64 // occupied
}

// Store is the writing side of one JVM's ring. It is used by one goroutine.
type Store struct {
	cfg      Config
	dir      string
	id       Identity
	files    []fileSize // sealed ones, oldest first
	active   ringFile
	path     string // of the active file
	size     int64  // logical size of the active file
	blocks   int64  // what the system says that it occupies
	index    uint64
	source   uint64
	lastRot  int64 // stored bytes of the last head
	evicted  int64
	tooSmall bool
	largest  int64 // recent frame, fading
	refused  int64 // what the last refused frame needed, 0 since a new file has begun: that file shall have room for it
	enc      *zstd.Encoder
	buf      []byte
	now      func() time.Time
}

func occupied(n int64) int64 { return (n + block - 1) / block * block }

// Open opens or makes the ring folder. Errors: ErrOtherRecording when the folder holds another session.
func Open(cfg Config, id Identity) (*Store, Recovery, error) {
	var rec Recovery
	if err := cfg.fill(); err != nil {
		return nil, rec, err
	}
	dir := cfg.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	s := &Store{cfg: cfg, dir: dir, id: id, now: time.Now}
	names, err := ringFiles(dir)
	if err != nil {
		return nil, rec, err
	}
	for i, p := range names {
		st, err := os.Stat(p)
		if err != nil {
			continue
		}
		s.index = max(s.index, indexOf(p))
		f, err := OpenFile(p)
		if err != nil {
			rec.Notes = append(rec.Notes, err.Error())
			s.files = append(s.files, fileSize{p, occupied(st.Size())})
			continue
		}
		if f.Session != id.Session {
			f.Close()
			return nil, rec, fmt.Errorf("%s: session %s, not %s: %w", dir, f.Session, id.Session, ErrOtherRecording)
		}
		rec.Resumed = true
		end, sound := int64(headerSize), true
		for fr, err := range f.Headers() {
			if err != nil {
				sound = sound && errors.Is(err, ErrTorn)
				if !errors.Is(err, ErrTorn) {
					rec.Notes = append(rec.Notes, err.Error())
				}
				continue
			}
			s.source = max(s.source, fr.Source)
			end = fr.Offset + frameSize + int64(fr.Stored)
		}
		f.Close()
		if i == len(names)-1 && sound {
			if s.active, err = cfg.fs.Open(p); err == nil {
				if rec.Torn = st.Size() - end; rec.Torn > 0 {
					err = s.active.Truncate(end)
				}
			}
			if err == nil {
				s.size, s.path, s.blocks = end, p, s.active.Blocks()
				continue
			}
			if s.active != nil {
				s.active.Close()
			}
			rec.Torn, s.active = 0, nil
			rec.Notes = append(rec.Notes, err.Error())
		}
		s.files = append(s.files, fileSize{p, occupied(st.Size())})
	}
	rec.Files = len(names)
	if err := s.describe(); err != nil {
		return nil, rec, err
	}
	if cfg.Compression == "full" {
		if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, rec, err
		}
	}
	return s, rec, nil
}

// describe writes recording.json: whose recording the folder holds, for people and for status.
func (s *Store) describe() error {
	b, err := json.MarshalIndent(map[string]any{"schema": "heapcam.recording/1", "session": s.id.Session, "name": s.id.Name, "pid": s.id.PID,
		"nspid": s.id.NSPID, "start_ticks": s.id.StartTicks, "vm": s.id.VM, "probe": s.id.Probe}, "", "  ")
	if err != nil {
		return err
	}
	p := filepath.Join(s.dir, "recording.json")
	if _, err := os.Stat(p); err == nil && s.id.Name == "" {
		return nil
	}
	if err := os.WriteFile(p+".new", b, 0o600); err != nil {
		return fmt.Errorf("ring folder: %w", err)
	}
	return os.Rename(p+".new", p)
}

func ringFiles(dir string) ([]string, error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range es {
		if strings.HasSuffix(e.Name(), ".hcr") && e.Type().IsRegular() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	sort.Strings(out)
	return out, nil
}

func indexOf(path string) uint64 {
	var n uint64
	fmt.Sscanf(filepath.Base(path), "%d.hcr", &n)
	return n
}

func (s *Store) total() int64 {
	n := int64(2 * block) // the folder and recording.json
	for _, f := range s.files {
		n += f.size
	}
	return n + s.open()
}

// open is what the active file occupies: the system may take more than its length (preallocation, extent blocks).
func (s *Store) open() int64 {
	if s.active == nil {
		return 0
	}
	return max(occupied(s.size), s.blocks)
}

// grow is what n more bytes in the active file take.
func (s *Store) grow(n int64) int64 { return max(occupied(s.size+n), s.open()) - s.open() }

// reserve is the room that is kept beside the open file for the next head, so that a new file can begin whatever happens. Large heads have
// none, since it would leave too little for all else: there the open file itself may have to go for the next one.
func (s *Store) reserve() int64 {
	r := occupied(headerSize+s.lastRot+s.lastRot/4) + block
	if s.lastRot == 0 || r > s.limit()/4 {
		return 0
	}
	return r
}

// room is how much the active file may still grow.
func (s *Store) room() int64 {
	return min(s.limit()-s.total(), s.limit()-2*block-s.open()-s.reserve())
}

func (s *Store) limit() int64 {
	return s.cfg.MaxTraceSize + int64(float64(s.cfg.MaxTraceSize)*s.cfg.Deviation)
}

// target is T, at least four sync points (rule 5), at most half of M.
func (s *Store) target() int64 {
	n := int64(math.Ceil(1/s.cfg.Deviation - 1e-9))
	return min(max(s.cfg.MaxTraceSize/n, 4*s.lastRot), s.cfg.MaxTraceSize/2)
}

func (s *Store) pack(payload []byte, flags uint8, info FrameInfo) []byte {
	f := Frame{FrameInfo: info, Flags: flags, Raw: uint32(len(payload))}
	stored := payload
	if s.enc != nil {
		f.Codec = codecZstd
		stored = s.enc.EncodeAll(payload, nil)
	}
	s.buf = encodeFrame(s.buf[:0], f, stored)
	return s.buf
}

// Append adds a frame of whole blocks to the open file. After an error nothing of payload is in it.
// Errors: ErrNoFile, ErrNoRoom, I/O errors.
func (s *Store) Append(payload []byte, info FrameInfo) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(payload), MaxFrame)
	}
	if s.active == nil {
		return ErrNoFile
	}
	b := s.pack(payload, 0, info)
	s.largest = max(s.largest-s.largest/64, int64(len(b)))
	if need := s.grow(int64(len(b))); need > s.room() {
		if n := need + 2*block; n <= s.limit()/2 { // larger ones never fit
			s.refused = max(s.refused, n)
		}
		return fmt.Errorf("%d bytes needed, %d left: %w", need, max(s.room(), 0), ErrNoRoom)
	}
	return s.write(b, info)
}

func (s *Store) write(b []byte, info FrameInfo) error {
	n, err := s.active.WriteAt(b, s.size)
	s.blocks = s.active.Blocks()
	if err != nil {
		// What arrived of it is a torn tail in the middle: cut it, or seal the file if that fails too.
		if n > 0 && s.active.Truncate(s.size) != nil {
			s.size += int64(n)
			s.seal()
		}
		return fmt.Errorf("write to ring file: %w", err)
	}
	s.size += int64(len(b))
	s.source = max(s.source, info.Source)
	return nil
}

// Rotate begins a new file with head (META, DEFS, SYNC). The oldest files go first, by need: they are given up only because head's size is
// known and fits. After an error the file before is still the open one, unless head fits only without it: then it is the oldest file, and
// goes as such. Errors: ErrNoRoom when head is larger than M; I/O errors.
func (s *Store) Rotate(head []byte, info FrameInfo) error {
	if len(head) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(head), MaxFrame)
	}
	b := s.pack(head, FlagHead, info)
	need := occupied(headerSize + int64(len(b)))
	m := s.cfg.MaxTraceSize
	if need+2*block > m {
		s.tooSmall = true
		return fmt.Errorf("a sync point of %d bytes does not fit into max_trace_size %d; %d would do: %w", len(b), m, 8*int64(len(b)), ErrNoRoom)
	}
	last := s.lastRot
	s.lastRot = int64(len(b))
	s.tooSmall = 8*need > s.limit()
	// The new file shall have room to reach T before the total reaches M. When sync points are large T is more than d·M, and less than
	// M(1−d) stays (rule 5: otherwise the ring would hold little but listings).
	target := s.target()
	low := m - max(int64(float64(m)*s.cfg.Deviation), target)
	for len(s.files) > 0 {
		t := s.total()
		if t+need+s.refused <= s.limit() && (t+max(need, target) <= m || t-s.files[0].size < low) {
			break
		}
		if err := s.evict(); err != nil {
			s.lastRot = last
			return err
		}
	}
	if s.active != nil && s.total()+need > s.limit() {
		s.seal()
		if err := s.evict(); err != nil {
			return err
		}
	}
	if err := s.begin(b, info); err != nil {
		if s.active != nil {
			s.lastRot = last
		}
		return err
	}
	return nil
}

// evict gives up the oldest sealed file.
func (s *Store) evict() error {
	if err := s.cfg.fs.Remove(s.files[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("give up the oldest ring file: %w", err)
	}
	s.files = s.files[1:]
	s.evicted++
	return nil
}

func (s *Store) begin(b []byte, info FrameInfo) error {
	path := filepath.Join(s.dir, fmt.Sprintf("%08d.hcr", s.index+1))
	f, err := s.cfg.fs.Create(path)
	if err != nil {
		return fmt.Errorf("new ring file: %w", err)
	}
	s.index++ // a name is used once, even if its file could neither be written nor removed
	h := fileHeader{index: s.index, created: uint64(s.now().UnixNano()), session: s.id.Session, pid: uint32(s.id.PID), nspid: s.id.NSPID, ticks: s.id.StartTicks}
	all := append(h.encode(), b...)
	if _, err := f.WriteAt(all, 0); err != nil {
		f.Close()
		if s.cfg.fs.Remove(path) != nil {
			s.keep(path, max(occupied(int64(len(all))), 0))
		}
		return fmt.Errorf("new ring file: %w", err)
	}
	s.seal()
	s.active, s.path, s.size, s.blocks = f, path, int64(len(all)), f.Blocks()
	s.source = max(s.source, info.Source)
	s.refused = 0
	return nil
}

// keep counts a file that could not be removed; it goes when it is the oldest.
func (s *Store) keep(path string, size int64) { s.files = append(s.files, fileSize{path, size}) }

func (s *Store) seal() {
	if s.active == nil {
		return
	}
	s.active.Close()
	s.keep(s.path, s.open())
	s.active, s.path, s.size, s.blocks = nil, "", 0, 0
}

// LastSource is the position in the shared ring up to which the recording holds everything; 0 for a new one.
func (s *Store) LastSource() uint64 { return s.source }

// Dir is the ring folder.
func (s *Store) Dir() string { return s.dir }

// Stats says how the ring stands.
func (s *Store) Stats() Stats {
	t := s.total()
	st := Stats{Bytes: t, Active: s.size, Room: s.room(), Target: s.target(), Files: len(s.files), Evicted: s.evicted, TooSmall: s.tooSmall}
	if s.active != nil {
		st.Files++
	}
	m := s.cfg.MaxTraceSize
	spare := int64(float64(m) * s.cfg.Deviation)
	// A file holds at least as much else as its listing, as long as the next one fits beside it: otherwise each collection would be listed.
	next := s.lastRot + s.lastRot/4
	enough := s.size >= min(2*s.lastRot, max(s.limit()-2*block-next-spare/4, next))
	// At M a file that is little but its listing goes on while half of what was to spare is left.
	st.Rotate = s.refused > 0 || s.size >= st.Target && enough || t >= m && (enough || st.Room < spare/2)
	st.Guarantee = st.Target <= spare && next+s.largest+2*block <= spare
	return st
}

// Sync makes everything accepted survive a power loss.
func (s *Store) Sync() error {
	if s.active == nil {
		return nil
	}
	return s.active.Sync()
}

// Close syncs and closes; the recording stays.
func (s *Store) Close() error {
	err := s.Sync()
	s.seal()
	if s.enc != nil {
		s.enc.Close()
	}
	return err
}
