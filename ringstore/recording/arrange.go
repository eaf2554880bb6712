package recording

import (
	"errors"
	"sort"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// arrange puts the files of a recording in order and sets aside what is not part of it. said is what its description
// says.
func (r *Recording) arrange(said string) {
	hs := make([]folder.Origin, 0, len(r.Files))
	for _, f := range r.Files {
		hs = append(hs, folder.Origin{Session: f.Session, Created: f.Created()})
	}
	r.Session = folder.OwnSession(said, hs)
	own := make([]*segment.File, 0, len(r.Files))
	for _, f := range r.Files {
		if f.Session == r.Session {
			own = append(own, f)
			continue
		}
		r.Problems = append(r.Problems, &folder.ForeignError{File: f.Name, Session: f.Session, Own: r.Session,
			Size: f.Size})
		f.Close()
	}
	sort.SliceStable(own, func(i, j int) bool {
		a, b := own[i], own[j]
		switch {
		case a.Index != b.Index:
			return a.Index < b.Index
		case a.Placed() != b.Placed():
			return a.Placed()
		case a.Sealed() != b.Sealed():
			return a.Sealed()
		}
		return segment.Before(a.Name, b.Name)
	})
	r.Files = own[:0]
	for i, f := range own {
		if n := len(r.Files); i > 0 && n > 0 && r.Files[n-1].Index == f.Index {
			r.Problems = append(r.Problems, &folder.MisplacedError{File: f.Name, Number: f.Index, Copy: true,
				Of: r.Files[n-1].Name})
			f.Close()
			continue
		}
		if !f.Placed() {
			r.Problems = append(r.Problems, &folder.MisplacedError{File: f.Name, Number: f.Index})
		}
		r.Files = append(r.Files, f)
	}
}

// LeftOut says whether err, one of a recording's problems, means that a file is not read.
func LeftOut(err error) bool {
	var m *folder.MisplacedError
	return !errors.As(err, &m) || m.Copy
}
