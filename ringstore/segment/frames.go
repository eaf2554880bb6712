package segment

import (
	"io"
	"iter"

	"github.com/heapcam/heapcam/trace"
	"github.com/klauspost/compress/zstd"
)

// Definitions iterates over the blocks of the frames that hold definitions; of files that do not say which, over all.
// Errors as Frames.
func (f *File) Definitions() iter.Seq2[trace.Block, error] {
	return f.blocks(func(fr Frame) bool { return fr.Flags&FlagMarked == 0 || fr.Flags&(FlagDefs|FlagHead) != 0 })
}

// Summaries iterates over the summaries of the file and what they need to be read: META and definitions. Errors as
// Frames.
func (f *File) Summaries() iter.Seq2[trace.Block, error] {
	frames := f.blocks(func(fr Frame) bool {
		return fr.Flags&FlagMarked == 0 || fr.Flags&(FlagDefs|FlagHead|FlagSummary) != 0
	})
	return func(yield func(trace.Block, error) bool) {
		for b, err := range frames {
			if err == nil && b.Kind != trace.KindMeta && b.Kind != trace.KindDefs && b.Kind != trace.KindSummary {
				continue
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// BlocksWithoutReferences iterates over all blocks as Blocks does. But of a reference listing it may give only the
// first and the last part: each frame in between gives a REFS block without payload. The checksums of all frames are
// checked. Errors as Blocks.
func (f *File) BlocksWithoutReferences() iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(f.Headers(), nil, need{ends: true}))
}

// BlocksWithoutTokens iterates as BlocksWithoutReferences does, and may leave out the tokens of EPOCH blocks: then
// their blobs are empty. Where frames hold columns, tokens are most of what there is to unpack. Errors as Blocks.
func (f *File) BlocksWithoutTokens() iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(f.Headers(), nil, need{noEpochTokens, true}))
}

// References iterates over the frames with parts of reference listings, and what they need to be read: META and
// definitions. Of files that do not say which these are, over all. Errors as Blocks.
func (f *File) References() iter.Seq2[trace.Block, error] {
	return f.blocks(func(fr Frame) bool { return mayRefer(fr) || fr.Flags&(FlagDefs|FlagHead) != 0 })
}

// ReferenceEnds iterates as References does, without the definitions. Of a listing it may leave out parts, as
// BlocksWithoutReferences does. Errors as Blocks.
func (f *File) ReferenceEnds() iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(f.Headers(), mayRefer, need{ends: true}))
}

// mayRefer says whether a frame may have parts of reference listings.
func mayRefer(fr Frame) bool { return fr.Flags&FlagApart == 0 || fr.Flags&FlagReferences != 0 }

// Pauses iterates like BlocksWithoutTokens, but leaves out frames that hold listings, unless they also hold
// definitions, and may leave out the tokens of those: for callers that only want to know what the collections took.
func (f *File) Pauses() iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(f.Headers(), func(fr Frame) bool {
		listing := fr.Flags&(FlagListing|FlagRamp) == FlagListing || fr.Flags&FlagReferences != 0
		return fr.Flags&FlagMarked == 0 || !listing || fr.Flags&(FlagDefs|FlagHead) != 0
	}, need{tokens: noTokens}))
}

// Frames iterates over frames with their payloads (whole blocks of the stream). Errors as Headers; a frame whose
// payload is damaged is yielded with the error and a nil payload.
func (f *File) Frames() iter.Seq2[FrameData, error] { return f.frames(f.Headers(), nil, need{}) }

// BlocksFrom is BlocksWithoutReferences from the frame at the offset at on, or from the first one if at is 0. It calls
// behind with the offset of what follows each frame that can be read, after the frame's blocks.
func (f *File) BlocksFrom(at int64, behind func(at int64)) iter.Seq2[trace.Block, error] {
	return f.blocksFrom(at, behind, need{ends: true})
}

// BlocksWithoutTokensFrom is BlocksFrom of what BlocksWithoutTokens gives.
func (f *File) BlocksWithoutTokensFrom(at int64, behind func(at int64)) iter.Seq2[trace.Block, error] {
	return f.blocksFrom(at, behind, need{noEpochTokens, true})
}

func (f *File) blocksFrom(at int64, behind func(at int64), needs need) iter.Seq2[trace.Block, error] {
	frames := f.frames(f.headers(max(at, HeaderSize)), nil, needs)
	return f.blocksOf(func(yield func(FrameData, error) bool) {
		for fr, err := range frames {
			if !yield(fr, err) {
				return
			}
			if err == nil {
				behind(fr.End())
			}
		}
	})
}

// FramesOf is Frames of those that want wants. The others are not read.
func (f *File) FramesOf(want func(Frame) bool) iter.Seq2[FrameData, error] {
	return f.frames(f.Headers(), want, need{})
}

// need says what of a frame a reader needs; the zero value: all of it.
type need struct {
	tokens
	ends bool // of reference listings, the first and last part alone
}

// tokens says which blobs of tokens a reader needs.
type tokens int

const (
	allTokens     tokens = iota
	noEpochTokens        // not those of EPOCH blocks
	noTokens             // not those of listings either
)

// leftOut is the payload in place of one that a reader needs nothing of.
var leftOut = trace.AppendBlock(nil, trace.Block{Kind: trace.KindRefs, Version: trace.RefsFormatVersion})

// none says whether nothing of a frame's payload is needed.
func (n need) none(fr Frame) bool {
	return n.ends && fr.Flags&(FlagReferences|FlagListed) == FlagReferences
}

// spare says whether a reader that needs only these tokens needs none of a frame's.
func (t tokens) spare(fr Frame) bool {
	return t == noTokens || t == noEpochTokens && fr.Flags&(FlagMarked|FlagListing|FlagRamp) == FlagMarked
}

// frames gives the frames of heads with their payloads. It leaves out the frames that want, unless nil, does not want,
// and may leave out what needs does not name.
func (f *File) frames(heads iter.Seq2[Frame, error], want func(Frame) bool, needs need) iter.Seq2[FrameData, error] {
	return func(yield func(FrameData, error) bool) {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxFrame))
		if err != nil {
			yield(FrameData{}, err)
			return
		}
		defer dec.Close()
		var stored, scratch []byte
		var part *zstd.Decoder
		if needs.tokens != allTokens {
			if part, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderMaxMemory(MaxFrame)); err != nil {
				yield(FrameData{}, err)
				return
			}
			defer part.Close()
		}
		for fr, err := range heads {
			if err == nil && want != nil && !want(fr) {
				continue
			}
			d := FrameData{Frame: fr}
			if err == nil {
				if cap(stored) < int(fr.Stored) || needs.tokens == allTokens {
					stored = make([]byte, fr.Stored) // bounded: Headers checked it against the file
				}
				stored = stored[:fr.Stored]
				if _, err = f.r.ReadAt(stored, fr.Offset+FrameSize); err == nil || err == io.EOF {
					switch {
					case needs.none(fr):
						if d.Payload = leftOut; Checksum(stored) != fr.crc {
							d.Payload = nil // the same error as for who needs it
						}
					case needs.spare(fr) && Checksum(stored) == fr.crc:
						d.Payload = fr.payloadWithoutTokens(stored, part, &scratch)
					}
					if d.Payload == nil {
						d.Payload, err = fr.payload(f.Name, stored, dec, &scratch)
						if fr.Codec == codecNone { // it is the payload; else it is read into again
							stored = nil
						}
					}
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Blocks iterates over the blocks of all frames. Errors as Frames; a block that cannot be framed is damage too.
func (f *File) Blocks() iter.Seq2[trace.Block, error] { return f.blocks(nil) }

func (f *File) blocks(want func(Frame) bool) iter.Seq2[trace.Block, error] {
	return f.blocksOf(f.frames(f.Headers(), want, need{}))
}

func (f *File) blocksOf(frames iter.Seq2[FrameData, error]) iter.Seq2[trace.Block, error] {
	return func(yield func(trace.Block, error) bool) {
		for fr, err := range frames {
			if err != nil {
				if !yield(trace.Block{}, err) {
					return
				}
				continue
			}
			for b, err := range trace.Blocks(fr.Payload) {
				if err != nil {
					err = Corrupt(f.Name, fr.Offset, err.Error())
				}
				if !yield(b, err) {
					return
				}
			}
		}
	}
}

// From is BlocksWithoutReferences from the frame on that holds collection gc: for who knows already what was defined
// before. Frames that are left out are not read.
func (f *File) From(gc uint64) iter.Seq2[trace.Block, error] {
	return func(yield func(trace.Block, error) bool) {
		past := false
		f.blocksOf(f.frames(f.Headers(), func(fr Frame) bool {
			past = past || fr.LastGC >= gc
			return past
		}, need{ends: true}))(yield)
	}
}

// FrameData is a frame and its unpacked payload.
type FrameData struct {
	Frame
	Payload []byte
}
