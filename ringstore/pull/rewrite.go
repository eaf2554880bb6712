package pull

import (
	"io"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// redactBlock gives the block as it may leave, false for one that cannot be looked into.
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
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err != nil {
			return b, false
		}
		if m.Resource == nil {
			return b, true
		}
		m.Resource = nil
		return trace.EncodeMeta(m), true
	case trace.KindSamples, trace.KindEpoch, trace.KindSync, trace.KindGap, trace.KindEnd,
		trace.KindSummary, trace.KindSlice, trace.KindRefs:
		return b, true
	}
	return b, false
}

type rewritten struct {
	info    segment.FrameInfo
	frames  int
	damaged int
	dropped int // blocks that change refused
}

// rewrite writes the sound frames of f to w as a sealed segment, each block as change (nil: none) gives it, and says
// how large that is.
func rewrite(f *segment.File, w io.Writer, change func(trace.Block) (trace.Block, bool)) (size int64, out rewritten,
	err error) {
	to, err := segment.NewStream(w, f)
	if err != nil {
		return 0, out, err
	}
	for fr, e := range f.Frames() {
		if e != nil {
			out.damaged++
			continue
		}
		raw := fr.Payload
		if change != nil {
			var dropped, damaged int
			raw, dropped, damaged = changed(raw, change)
			out.dropped, out.damaged = out.dropped+dropped, out.damaged+damaged
		}
		if err := to.Add(raw, fr.FrameInfo); err != nil {
			return 0, out, err
		}
	}
	x := to.Window()
	out.info, out.frames = x.FrameInfo, x.Frames
	size, err = to.Close()
	return size, out, err
}

// changed gives the blocks of a payload as change gives them, how many it refused, and whether (1) the rest could not
// be read.
func changed(payload []byte, change func(trace.Block) (trace.Block, bool)) (raw []byte, dropped, damaged int) {
	for b, err := range trace.Blocks(payload) {
		if err != nil {
			return raw, dropped, 1
		}
		if b, ok := change(b); ok {
			raw = trace.AppendBlock(raw, b)
		} else {
			dropped++
		}
	}
	return raw, dropped, 0
}
