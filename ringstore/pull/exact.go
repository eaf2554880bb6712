package pull

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// cutting is where a recording is cut, in times of the stream, ns; 0: not at all. It may begin at a sync point only,
// since the state before is needed to understand what follows: the last one at or before since. It ends behind the
// last collection whose pause was over at until, with what was written for that collection (its sync point, its
// summary).
type cutting struct {
	since, until uint64
	lastGC       uint64 // that was kept
	ended        bool   // nothing that comes is kept
}

// startOf gives the offset of the frame with the last sync point at or before since, 0 where the file is to be kept
// from its beginning.
func startOf(f *segment.File, since uint64) (at int64) {
	if since == 0 {
		return 0
	}
	const want = segment.FlagMarked | segment.FlagListing
	const asked = want | segment.FlagHead
	for fr, err := range f.Headers() {
		if err == nil && fr.Flags&asked == want && fr.T0 <= since {
			at = fr.Offset
		}
	}
	return at
}

// trimmed is a frame of which not all may be kept.
type trimmed struct {
	info  segment.FrameInfo
	raw   []byte
	holds bool // more than definitions
}

// trim gives what is to be kept of a frame. before: it lies before the sync point that the file is to begin with,
// whose collection is begin otherwise (0: as it was).
func (c *cutting) trim(fr segment.FrameData, before bool, begin uint64) (out trimmed, err error) {
	out.info = fr.FrameInfo
	late := c.until > 0 && fr.T1 > c.until
	if late {
		out.info.FirstGC, out.info.LastGC, out.info.T1 = 0, 0, min(fr.T0, c.until)
		out.info.T0 = out.info.T1
		out.info.Flags &^= segment.FlagListing | segment.FlagSummary | segment.FlagRamp | segment.FlagComplete |
			segment.FlagReferences | segment.FlagListed
	}
	for b, e := range trace.Blocks(fr.Payload) {
		if e != nil {
			return out, e
		}
		keep, held := true, true
		switch {
		case b.Kind == trace.KindMeta, b.Kind == trace.KindDefs:
			held = false
			if m, e := trace.DecodeMeta(b); late && !before && b.Kind == trace.KindMeta && e == nil && !m.HasJVM {
				t, ok := m.First()
				keep = !ok || t <= c.until
			}
		case before || c.ended:
			keep = false
		case b.Kind == trace.KindSummary:
			s, e := trace.DecodeSummary(b)
			keep = e == nil && (begin == 0 || s.First > begin) && (!late || c.lastGC > 0 && s.Last <= c.lastGC)
			if keep && late {
				out.info.Flags |= segment.FlagSummary
			}
		case !late:
		case b.Version > trace.FormatVersion:
			keep = false
		default:
			keep, e = c.keep(b, &out.info)
		}
		if e != nil {
			return out, e
		}
		if keep {
			out.raw = trace.AppendBlock(out.raw, b)
			out.holds = out.holds || held
		}
	}
	if !before {
		c.lastGC = max(c.lastGC, out.info.LastGC)
	}
	return out, nil
}

// keep decides on a block of a frame that continues behind until.
func (c *cutting) keep(b trace.Block, info *segment.FrameInfo) (bool, error) {
	stamp := func(gc, t uint64) {
		if info.FirstGC == 0 {
			info.FirstGC = gc
		}
		info.LastGC, info.T1 = max(info.LastGC, gc), max(info.T1, t)
		c.lastGC = max(c.lastGC, gc)
	}
	switch b.Kind {
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			return false, err
		}
		if end := e.Pause.Start + e.Pause.Dur; end <= c.until {
			stamp(e.Pause.GC, end)
			return true, nil
		}
		c.ended = true
		return false, nil
	case trace.KindSync:
		y, err := trace.DecodeSync(b)
		if err != nil {
			return false, err
		}
		if y.Time <= c.until || c.lastGC > 0 && y.GC <= c.lastGC {
			stamp(y.GC, y.Time)
			info.Flags |= segment.FlagListing
			return true, nil
		}
		c.ended = true
		return false, nil
	case trace.KindSlice:
		y, err := trace.DecodeSlice(b)
		if err != nil {
			return false, err
		}
		if y.Time <= c.until || c.lastGC > 0 && y.GC <= c.lastGC {
			stamp(y.GC, y.Time)
			info.Flags |= segment.FlagRamp
			if y.First() {
				info.Flags |= segment.FlagListing
			}
			if y.Last() {
				info.Flags |= segment.FlagComplete
			}
			return true, nil
		}
		c.ended = true
		return false, nil
	case trace.KindSamples:
		all, err := trace.DecodeSamples(b)
		for _, s := range all {
			if s.Time > c.until {
				return false, err
			}
		}
		return err == nil, err
	case trace.KindGap:
		g, err := trace.DecodeGap(b)
		return err == nil && g.Time <= c.until, err
	case trace.KindEnd:
		e, err := trace.DecodeEnd(b)
		return err == nil && e.Time <= c.until, err
	}
	return false, nil
}

// cutInto writes what c keeps of f to w as a sealed segment, each block as change (nil: none) gives it. holds: it is
// more than definitions.
func (c *cutting) cutInto(w io.Writer, f *segment.File, change func(trace.Block) (trace.Block, bool)) (size int64,
	out rewritten, holds bool, err error) {
	to, err := segment.NewStream(w, f)
	if err != nil {
		return 0, out, false, err
	}
	start := startOf(f, c.since)
	var head []byte // definitions before start
	begin := uint64(0)
	wanted := func(fr segment.Frame) bool {
		return fr.Offset >= start || fr.Flags&(segment.FlagDefs|segment.FlagHead) != 0
	}
	for fr, e := range f.FramesOf(wanted) {
		if e != nil {
			out.damaged++
			continue
		}
		if fr.Offset == start {
			begin = fr.LastGC
		}
		t, e := c.trim(fr, fr.Offset < start, begin)
		switch {
		case e != nil:
			out.damaged++
			continue
		case fr.Offset < start:
			head = append(head, t.raw...)
			continue
		case c.ended && !t.holds:
			continue
		}
		if fr.Offset == start {
			if len(head)+len(t.raw) > segment.MaxFrame {
				return 0, out, false, fmt.Errorf("%s: its definitions and a sync point are too large for one frame: "+
					"pull it without --exact", f.Name)
			}
			t.raw = append(head, t.raw...)
			t.info.Flags |= segment.FlagHead | segment.FlagDefs
		}
		if change != nil {
			var dropped int
			t.raw, dropped, _ = changed(t.raw, change)
			out.dropped += dropped
		}
		if len(t.raw) == 0 {
			continue
		}
		holds = holds || t.holds
		if err := to.Add(t.raw, t.info); err != nil {
			return 0, out, false, err
		}
	}
	x := to.Window()
	out.info, out.frames = x.FrameInfo, x.Frames
	size, err = to.Close()
	return size, out, holds, err
}

// exact writes what is to be kept of a file, as it is if that is all of it.
func (p *puller) exact(name string, f *segment.File, change func(trace.Block) (trace.Block, bool)) (done bool,
	err error) {
	c, w := p.cut, f.Window()
	if c.ended {
		return true, nil
	}
	if startOf(f, c.since) == 0 && (c.until == 0 || w.T1 <= c.until) {
		c.lastGC, c.since = max(c.lastGC, w.LastGC), 0 // only the first file begins elsewhere
		return false, nil
	}
	first := *c
	size, got, holds, err := first.cutInto(io.Discard, f, change)
	if err != nil || !holds {
		c.ended = first.ended
		return true, err
	}
	sum := sha256.New()
	if err := p.t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: p.m.Created}); err != nil {
		return true, err
	}
	if _, _, _, err := c.cutInto(io.MultiWriter(p.t, sum), f, change); err != nil {
		return true, err
	}
	c.since = 0
	p.at(f.Size)
	p.m.Add(f, got.info)
	if got.damaged > 0 {
		p.m.Damaged = append(p.m.Damaged, name)
	}
	p.m.Files = append(p.m.Files, fileOf(name, size, hex.EncodeToString(sum.Sum(nil)), got.info))
	return true, nil
}

// ErrNoTime says that a recording does not say when it was made, so that instants mean nothing in it.
var ErrNoTime = errors.New("the recording does not say when it began: use --last")

// cutAt gives where a pull with opt.Exact cuts. wall is the Unix time of the stream's zero, newest the time of the
// newest data, ns.
func cutAt(opt Options, wall int64, newest uint64) (*cutting, error) {
	c := &cutting{}
	at := func(ns int64) uint64 { return uint64(max(ns-wall, 1)) }
	if (!opt.Since.IsZero() || !opt.Until.IsZero()) && wall == 0 {
		return nil, ErrNoTime
	}
	if !opt.Since.IsZero() {
		c.since = at(opt.Since.UnixNano())
	}
	if !opt.Until.IsZero() {
		c.until = at(opt.Until.UnixNano())
	}
	if opt.LastDuration > 0 && newest > uint64(opt.LastDuration) {
		c.since = newest - uint64(opt.LastDuration)
	}
	return c, nil
}

// nothing says that no collection falls into the time that was asked for. It is an os.ErrNotExist.
type nothing struct{ dir string }

func (e nothing) Error() string {
	return e.dir + " has no data of this time: `heapcam report` shows which time it covers"
}
func (nothing) Unwrap() error { return os.ErrNotExist }
