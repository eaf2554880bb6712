package recording

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// State is what Check says of a file.
type State string

// States. Of each but Missing there is a file.
const (
	Sound State = "sound"
	// the file ends inside a frame or its index, or was not closed though others follow: a recorder was stopped
	Torn    State = "torn"
	Corrupt State = "corrupt" // it is not what was written
	TooNew  State = "too new"
	// Foreign files are of another recording, Misplaced ones are under a number that is not theirs, or twice. None
	// has the number of a Missing one: somebody removed it, or a recorder could not begin it; the collections tell what
	// is not there.
	Foreign   State = "foreign"
	Misplaced State = "misplaced"
	Missing   State = "missing"
)

// maxOffsets is how many damaged sections have their places reported.
const maxOffsets = 1000

// Verdict is the state of one file, every byte of which was read.
type Verdict struct {
	File    string  `json:"file"`
	State   State   `json:"state"`
	Bytes   int64   `json:"bytes"`
	Frames  int     `json:"frames"`         // sound ones
	Closed  bool    `json:"closed"`         // with an index
	Open    bool    `json:"open,omitempty"` // sound, and should have one: its recorder is writing to it, or was stopped
	TornAt  int64   `json:"torn_at,omitempty"`
	Corrupt int     `json:"corrupt_frames,omitempty"`
	At      []int64 `json:"corrupt_at,omitempty"` // offsets, of the first ones
	Why     string  `json:"why,omitempty"`        // of the first damage
	Version uint32  `json:"version,omitempty"`    // of a file that is too new
	Session string  `json:"session,omitempty"`    // of a foreign file
	Own     string  `json:"recording_session,omitempty"`

	err error // that Why is the text of, nil where there is none of its own
}

// CheckFile reads all of f: checksums, and whether each frame unpacks to blocks.
func CheckFile(f *segment.File) Verdict {
	v := Verdict{File: f.Name, State: Sound, Bytes: f.Size, Closed: f.Sealed()}
	bad := func(at int64, err error) {
		v.State = Corrupt
		v.Corrupt++
		if len(v.At) < maxOffsets {
			v.At = append(v.At, at)
		}
		if v.Corrupt == 1 {
			v.Why = err.Error()
		}
	}
	x, all := &segment.Index{}, true
	for fr, err := range f.Frames() {
		if fr.Offset > 0 {
			x.Add(fr.Frame)
		} else {
			all = false
		}
		var d *segment.DamageError
		switch {
		case err == nil:
			if at, err := framing(fr.Payload); err != nil {
				bad(fr.Offset, segment.Corrupt(f.Name, fr.Offset,
					"blocks inside the frame, at "+strconv.Itoa(at)+": "+err.Error()))
				continue
			}
			if why := misnamed(fr); why != "" {
				bad(fr.Offset, segment.Corrupt(f.Name, fr.Offset, why))
				continue
			}
			v.Frames++
		case errors.As(err, &d) && errors.Is(d.Err, segment.ErrTorn):
			v.TornAt = d.Offset
			if v.State == Sound {
				v.State, v.Why = Torn, err.Error()
			}
		case errors.As(err, &d):
			bad(d.Offset, err)
		default:
			bad(fr.Offset, err)
		}
	}
	v.Open = v.State == Sound && f.Unsealed()
	var d *segment.DamageError
	if f.Sealed() && all && v.State == Sound && errors.As(f.CheckIndex(x), &d) {
		bad(d.Offset, d)
	}
	return v
}

// framing says where the blocks of a payload stop being blocks.
func framing(p []byte) (at int, err error) {
	for b, err := range trace.Blocks(p) {
		if err != nil {
			return at, err
		}
		at += b.Size()
	}
	return at, nil
}

// misnamed says what the flags of a frame wrongly say of reference listings, "" if nothing: who needs none skips frames
// by these flags.
func misnamed(fr segment.FrameData) (why string) {
	alone, listed := fr.Flags&segment.FlagReferences != 0, fr.Flags&segment.FlagListed != 0
	for b, err := range trace.Blocks(fr.Payload) {
		switch {
		case err != nil: // it is no block: others say so
			return ""
		case alone && b.Kind != trace.KindRefs:
			return "its header says that it has reference listings alone"
		case b.Kind != trace.KindRefs || alone && listed:
		case !alone && fr.Flags&segment.FlagApart != 0:
			return "its header says that it has no reference listing"
		case alone:
			p, err := trace.DecodeRefs(b)
			if err == nil && p.Flags&(trace.RefFirst|trace.RefLast) != 0 {
				return "its header says that no reference listing begins or ends in it"
			}
		}
	}
	return ""
}

// Check gives the verdict of each file, those that could not be opened or are not of the recording included, and of
// what is beside them.
func (r *Recording) Check() []Verdict {
	var out []Verdict
	for i, f := range r.Files {
		v := CheckFile(f)
		if v.Open && i < len(r.Files)-1 {
			v.Open, v.State, v.TornAt = false, Torn, f.Size
			v.Why = f.Name + ": it has no index: it was not closed, and frames may be missing at its end"
		}
		var m *folder.MisplacedError
		for _, err := range r.Problems {
			if v.State == Sound && errors.As(err, &m) && !m.Copy && m.File == f.Name {
				v.State, v.Why = Misplaced, err.Error()
			}
		}
		out = append(out, v)
	}
	for _, err := range r.Problems {
		if LeftOut(err) {
			out = append(out, VerdictOf(r.Path, err))
		}
	}
	out = append(out, r.missing()...)
	for _, v := range r.checkMembers(out) { // one for each file
		if i := slices.IndexFunc(out, func(o Verdict) bool { return o.File == v.File }); i >= 0 {
			out[i].State, out[i].Why, out[i].Corrupt, out[i].At = v.State, v.Why, v.Corrupt, v.At
			continue
		}
		out = append(out, v)
	}
	return out
}

// missing gives the numbers that no file has although collections are missing there, too, and of which no manifest
// tells.
func (r *Recording) missing() (out []Verdict) {
	there := map[uint64]bool{}
	for _, err := range r.Problems {
		if v := VerdictOf("", err); v.State != Foreign {
			n, _ := segment.ParseName(v.File)
			there[n] = true
		}
	}
	if r.Manifest != nil {
		for _, n := range r.Manifest.Missing {
			there[n] = true
		}
		for _, name := range r.Manifest.Dropped {
			n, _ := segment.ParseName(name)
			there[n] = true
		}
	}
	for i := 1; i < len(r.Files); i++ {
		from, to := r.Files[i-1].Index+1, r.Files[i].Index
		for from < to && there[from] {
			from++
		}
		if from >= to {
			continue
		}
		a, b := r.Files[i-1].Window(), r.Files[i].Window()
		if a.LastGC > 0 && b.FirstGC > 0 && b.FirstGC <= a.LastGC+1 {
			continue
		}
		name := fmt.Sprintf("%08d%s", from, segment.Suffix)
		why := fmt.Sprintf("no file has number %d", from)
		if to-from > 1 {
			why = fmt.Sprintf("no files have the numbers %d to %d", from, to-1)
		}
		if b.FirstGC > 0 {
			why += fmt.Sprintf(", and the collections %d to %d are in no file", a.LastGC+1, b.FirstGC-1)
		}
		out = append(out, Verdict{File: r.in(name), State: Missing, Why: why})
	}
	return out
}

// in gives the path of a file of the recording.
func (r *Recording) in(name string) string {
	if len(r.members) > 0 {
		return r.Path + ":" + name
	}
	return filepath.Join(r.Path, name)
}

func VerdictOf(path string, err error) Verdict {
	v := Verdict{File: path, State: Corrupt, Why: err.Error(), err: err}
	var d *segment.DamageError
	var n *segment.TooNewError
	var f *folder.ForeignError
	var m *folder.MisplacedError
	switch {
	case errors.As(err, &n):
		v.File, v.State, v.Version = n.File, TooNew, n.Version
	case errors.As(err, &f):
		v.File, v.State, v.Session, v.Own, v.Bytes = f.File, Foreign, f.Session, f.Own, f.Size
	case errors.As(err, &m):
		v.File, v.State = m.File, Misplaced
	case errors.As(err, &d):
		v.File, v.At, v.Corrupt = d.File, []int64{d.Offset}, 1
		if d.Err == segment.ErrTorn {
			v.State, v.At, v.Corrupt, v.TornAt = Torn, nil, 0, d.Offset
		}
	}
	return v
}

// CheckPath checks whatever path is (see OpenRecording). The error is that of not finding it, or of the system.
func CheckPath(path string) ([]Verdict, error) {
	r, err := OpenAny(path)
	var out []Verdict
	if err != nil {
		v := VerdictOf(path, err)
		var d *segment.DamageError
		if v.State == Corrupt && !errors.As(err, &d) {
			if r != nil {
				r.Close()
			}
			return nil, err
		}
		if r == nil || !slices.Contains(r.Problems, err) {
			out = append(out, v)
		}
	}
	if r != nil {
		defer r.Close()
		out = append(r.Check(), out...)
	}
	return out, nil
}

// Worst gives the worst state: corrupt, then misplaced and foreign, too new, torn. A recorder whose disk was full
// may have left out what is missing: that is reported, and is no state of the recording.
func Worst(vs []Verdict) State {
	rank := map[State]int{Torn: 1, TooNew: 2, Misplaced: 3, Foreign: 4, Corrupt: 5}
	w := Sound
	for _, v := range vs {
		if rank[v.State] > rank[w] {
			w = v.State
		}
	}
	return w
}
