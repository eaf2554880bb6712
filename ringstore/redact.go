package ringstore

import (
	"io"

	"github.com/heapcam/heapcam/trace"
)

// redactBlock gives the block as it may leave, false for one that can not be looked into.
func redactBlock(b trace.Block) (trace.Block, bool) {
	if b.Version > trace.FormatVersion {
		return b, false
	}
	switch b.Kind {
	case trace.KindDefs:
		d, err := trace.DecodeDefs(b)
		if err != nil {
			return b, false
		}
		for i := range d.Threads {
			d.Threads[i].Name = ""
		}
		return trace.EncodeDefs(d), true
	case trace.KindMeta, trace.KindSamples, trace.KindEpoch, trace.KindSync, trace.KindGap, trace.KindEnd, trace.KindSummary:
		return b, true
	}
	return b, false
}

type rewritten struct {
	info    FrameInfo
	frames  int
	damaged int
	dropped int // blocks that change refused
}

// rewrite writes the sound frames of f to w as a closed file, each block as change (nil: none) gives it, and says how large the file is.
func (f *File) rewrite(w io.Writer, change func(trace.Block) (trace.Block, bool)) (size int64, out rewritten, err error) {
	pack, err := newPacker(Full, 0, 0)
	if err != nil {
		return 0, out, err
	}
	put := func(b []byte) error {
		size += int64(len(b))
		_, err := w.Write(b)
		return err
	}
	h := f.header
	if err := put(h.encode()); err != nil {
		return 0, out, err
	}
	var x index
	var raw, frame []byte
	for fr, e := range f.Frames() {
		if e != nil {
			out.damaged++
			continue
		}
		raw = fr.Payload
		if change != nil {
			raw = nil
			for b, e := range trace.Blocks(fr.Payload) {
				if e != nil {
					out.damaged++
					break
				}
				c, ok := change(b)
				if !ok {
					out.dropped++
					continue
				}
				raw = trace.AppendBlock(raw, c)
			}
		}
		frame = pack.frame(frame[:0], raw, fr.FrameInfo)
		d, err := decodeFrame(f.Name, size, frame)
		if err != nil {
			return 0, out, err
		}
		x.add(d)
		if err := put(frame); err != nil {
			return 0, out, err
		}
	}
	out.info, out.frames = x.info, len(x.frames)
	err = put(x.encode(size))
	return size, out, err
}
