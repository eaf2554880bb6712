package ringstore

import (
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
	// MaxTraceSize is M, bytes; at least 1 MiB. Deviation is d, 0 < d ≤ 0.5.
	MaxTraceSize int64
	Deviation    float64
	// Compression is "none" or "full".
	Compression string
}

func (c Config) validate() error {
	switch {
	case c.MaxTraceSize < 1<<20:
		return fmt.Errorf("max_trace_size of %d bytes is too small: at least 1 MiB", c.MaxTraceSize)
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
	Rotate                      bool  // a file has reached T, or the total M
	Guarantee                   bool  // a sync point fits into d·M, so M(1−d) of complete trace is kept
	Evicted                     int64 // files given up for newer ones
}

// Recovery tells what Open found.
type Recovery struct {
	Files  int
	Notes  []string // what is torn, corrupt or too new, by file
	Source uint64
}

type fileSize struct {
	path string
	size int64 // occupied
}

// Store is the writing side of one JVM's ring. It is used by one goroutine.
type Store struct {
	cfg     Config
	dir     string
	id      Identity
	files   []fileSize // sealed ones, oldest first
	active  *os.File
	size    int64 // logical size of the active file
	index   uint64
	source  uint64
	lastRot int64 // stored bytes of the last head
	evicted int64
	enc     *zstd.Encoder
	buf     []byte
	now     func() time.Time
}

func occupied(n int64) int64 { return (n + block - 1) / block * block }

// Open opens or makes the ring folder dir. Errors: *IdentityError when the folder holds another session.
func Open(dir string, cfg Config, id Identity) (*Store, Recovery, error) {
	var rec Recovery
	if err := cfg.validate(); err != nil {
		return nil, rec, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, rec, fmt.Errorf("ring folder: %w", err)
	}
	s := &Store{cfg: cfg, dir: dir, id: id, now: time.Now}
	names, err := ringFiles(dir)
	if err != nil {
		return nil, rec, err
	}
	for _, p := range names {
		st, err := os.Stat(p)
		if err != nil {
			continue
		}
		s.files = append(s.files, fileSize{p, occupied(st.Size())})
		idx := indexOf(p)
		s.index = max(s.index, idx)
		f, err := OpenFile(p)
		if err != nil {
			rec.Notes = append(rec.Notes, err.Error())
			continue
		}
		if f.Header.Identity.Session != id.Session {
			f.Close()
			return nil, rec, &IdentityError{dir, f.Header.Identity.Session, id.Session}
		}
		for fr, err := range f.Headers() {
			if err != nil {
				rec.Notes = append(rec.Notes, err.Error())
				continue
			}
			s.source = max(s.source, fr.Source)
		}
		f.Close()
	}
	rec.Files, rec.Source = len(s.files), s.source
	if cfg.Compression == "full" {
		if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, rec, err
		}
	}
	return s, rec, nil
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
	n := int64(0)
	for _, f := range s.files {
		n += f.size
	}
	if s.active != nil {
		n += occupied(s.size)
	}
	return n
}

func (s *Store) limit() int64 {
	return s.cfg.MaxTraceSize + int64(float64(s.cfg.MaxTraceSize)*s.cfg.Deviation)
}

// target is T, at least four sync points (rule 5), at most half of M.
func (s *Store) target() int64 {
	n := int64(math.Ceil(1/s.cfg.Deviation - 1e-9))
	return min(max(s.cfg.MaxTraceSize/n, 4*s.lastRot), s.cfg.MaxTraceSize/2)
}

func (s *Store) pack(payload []byte, flags uint16, info FrameInfo) []byte {
	f := Frame{FrameInfo: info, Flags: flags, Raw: uint32(len(payload))}
	stored := payload
	if s.enc != nil {
		f.Codec = codecZstd
		stored = s.enc.EncodeAll(payload, nil)
	}
	s.buf = encodeFrame(s.buf[:0], f, stored)
	return s.buf
}

// Append adds a frame of whole blocks to the open file; with none open it begins one. After an error nothing of payload is in it.
// Errors: *LimitError, I/O errors.
func (s *Store) Append(payload []byte, info FrameInfo) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(payload), MaxFrame)
	}
	b := s.pack(payload, 0, info)
	if s.active == nil {
		return s.begin(b, info)
	}
	if need := occupied(s.size+int64(len(b))) - occupied(s.size); s.total()+need > s.limit() {
		return &LimitError{need, s.limit() - s.total()}
	}
	return s.write(b, info)
}

func (s *Store) write(b []byte, info FrameInfo) error {
	n, err := s.active.WriteAt(b, s.size)
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
// known and fits. After an error the file before is still the open one.
func (s *Store) Rotate(head []byte, info FrameInfo) error {
	if len(head) > MaxFrame {
		return fmt.Errorf("frame of %d bytes: at most %d", len(head), MaxFrame)
	}
	b := s.pack(head, FlagHead, info)
	need := occupied(fileHeaderSize + int64(len(b)))
	if need > s.limit()-occupied(s.size) {
		return &LimitError{need, s.limit() - occupied(s.size)} // would not fit even alone beside the open file
	}
	s.lastRot = int64(len(b))
	m, low := s.cfg.MaxTraceSize, s.cfg.MaxTraceSize-int64(float64(s.cfg.MaxTraceSize)*s.cfg.Deviation)
	for len(s.files) > 0 {
		t := s.total()
		if t+need <= s.limit() && (t+need <= m || t-s.files[0].size < low) {
			break
		}
		if err := os.Remove(s.files[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("give up the oldest ring file: %w", err)
		}
		s.files = s.files[1:]
		s.evicted++
	}
	return s.begin(b, info)
}

func (s *Store) begin(b []byte, info FrameInfo) error {
	need := occupied(fileHeaderSize + int64(len(b)))
	for len(s.files) > 0 && s.total()+need > s.limit() {
		if err := os.Remove(s.files[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		s.files = s.files[1:]
		s.evicted++
	}
	if s.total()+need > s.limit() {
		return &LimitError{need, s.limit() - s.total()}
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%08d.hcr", s.index+1))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("new ring file: %w", err)
	}
	h := FileHeader{Index: s.index + 1, CreatedMS: uint64(s.now().UnixMilli()), Identity: s.id}
	all := append(h.encode(), b...)
	if _, err := f.WriteAt(all, 0); err != nil {
		f.Close()
		os.Remove(path)
		return fmt.Errorf("new ring file: %w", err)
	}
	s.seal()
	s.active, s.size = f, int64(len(all))
	s.index++
	s.source = max(s.source, info.Source)
	return nil
}

func (s *Store) seal() {
	if s.active == nil {
		return
	}
	s.files = append(s.files, fileSize{s.active.Name(), occupied(s.size)})
	s.active.Close()
	s.active, s.size = nil, 0
}

// LastSource is the position in the shared ring up to which the recording holds everything; 0 for a new one.
func (s *Store) LastSource() uint64 { return s.source }

// Dir is the ring folder.
func (s *Store) Dir() string { return s.dir }

// Stats says how the ring stands.
func (s *Store) Stats() Stats {
	t := s.total()
	st := Stats{Bytes: t, Active: s.size, Room: s.limit() - t, Target: s.target(), Files: len(s.files), Evicted: s.evicted}
	if s.active != nil {
		st.Files++
	}
	st.Rotate = s.size >= st.Target || t >= s.cfg.MaxTraceSize
	st.Guarantee = float64(s.lastRot) <= s.cfg.Deviation*float64(s.cfg.MaxTraceSize)
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
