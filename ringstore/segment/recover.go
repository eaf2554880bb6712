package segment

import (
	"errors"
	"time"
)

const (
	// tailTime and tailBytes bound what of an unfinished file is checked against its checksums when it is opened
	// again: what may not have reached the disk before a power loss. An fsync a second was asked for; ten stand for
	// slow ones.
	tailTime  = uint64(10 * time.Second)
	tailBytes = 64 << 20
)

// Recover goes through the frames of a file without index. end is the offset behind the last that counts: a torn tail
// does not, nor do frames at the end whose payload is not what was written, as after a power loss. The error is
// damage in the middle, which stays where it is.
func (f *File) Recover() (x *Index, end int64, err error) {
	x, end = &Index{}, HeaderSize
	for fr, e := range f.Headers() {
		switch {
		case e == nil:
			x.Add(fr)
			end = fr.End()
		default:
			if d := (*DamageError)(nil); err == nil && !(errors.As(e, &d) && d.last) {
				err = e
			}
		}
	}
	if err != nil {
		return x, end, err
	}
	from, n := len(x.Frames), int64(0)
	for from > 1 && n < tailBytes {
		fr := x.Frames[from-1]
		if n += int64(fr.Stored); fr.T1 > 0 && fr.T1+tailTime < x.Info.T1 {
			break
		}
		from--
	}
	if len(x.Frames) > 0 && from == 1 {
		from = 0
	}
	bad, last := -1, -1
	for i := from; i < len(x.Frames); i++ {
		if f.sound(x.Frames[i]) {
			last = i
		} else if bad < 0 {
			bad = i
		}
	}
	switch {
	case bad < 0:
	case last > bad:
		return x, end, Corrupt(f.Name, x.Frames[bad].Offset, "the checksum of a frame is wrong")
	default: // nothing sound follows
		y := &Index{}
		for _, fr := range x.Frames[:bad] {
			y.Add(fr)
		}
		end = x.Frames[bad].Offset
		return y, end, nil
	}
	return x, end, nil
}
