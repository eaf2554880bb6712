package ringstore

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Modes of compression (Config.Compression).
const (
	None = "none"
	Full = "full"
)

// packer makes frames.
type packer struct {
	mode string
	enc  *zstd.Encoder // nil: none
	zip  []byte
}

func newPacker(mode string) (*packer, error) {
	p := &packer{mode: mode}
	switch mode {
	case None:
		return p, nil
	case Full:
		var err error
		p.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		return p, err
	}
	return nil, fmt.Errorf("compression %q is unknown: none or full", mode)
}

func (p *packer) close() {
	if p.enc != nil {
		p.enc.Close()
	}
}

// frame appends payload as a frame to dst.
func (p *packer) frame(dst, payload []byte, info FrameInfo) []byte {
	f := Frame{FrameInfo: info, Raw: uint32(len(payload))}
	stored := payload
	if p.enc != nil {
		p.zip = p.enc.EncodeAll(payload, p.zip[:0])
		f.Codec, stored = codecZstd, p.zip
	}
	dst = encodeFrame(dst, f, stored)
	if cap(p.zip) > keepBuffer {
		p.zip = nil
	}
	return dst
}

// keepBuffer bounds the buffers that are kept: a rare large sync point must not hold its memory for ever.
const keepBuffer = 16 << 20
