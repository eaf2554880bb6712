package segment

import "io"

// Stream writes a sealed segment to an io.Writer, from its header to its index. Frames are compressed as in mode Full.
//
// Owner and concurrency: one goroutine. Lifetime: from NewStream to Close, which leaves the io.Writer open.
// Errors: those of the io.Writer; after one the stream is of no use.
type Stream struct {
	w     io.Writer
	pack  *Packer
	name  string
	size  int64
	index Index
	frame []byte
}

// NewStream begins a segment with the file header of like.
func NewStream(w io.Writer, like *File) (*Stream, error) {
	pack, err := NewPacker(Full, 0, 0)
	if err != nil {
		return nil, err
	}
	s := &Stream{w: w, pack: pack, name: like.Name}
	return s, s.put(like.header.Encode())
}

func (s *Stream) put(b []byte) error {
	s.size += int64(len(b))
	_, err := s.w.Write(b)
	return err
}

// Add appends a frame of whole blocks. It does not keep raw.
func (s *Stream) Add(raw []byte, info FrameInfo) error {
	s.frame = s.pack.Frame(s.frame[:0], raw, info)
	f, err := decodeFrame(s.name, s.size, s.frame)
	if err != nil {
		return err
	}
	s.index.Add(f)
	return s.put(s.frame)
}

// Close writes the index and gives the size of the segment, bytes.
func (s *Stream) Close() (size int64, err error) {
	err = s.put(s.index.encode(s.size))
	return s.size, err
}

// Window says what the segment holds.
func (s *Stream) Window() Window { return Window{s.index.Info, len(s.index.Frames), true} }
