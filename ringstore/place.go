package ringstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Whose recording a folder or container holds is told by, in this order:
//
//  1. its description, if that is whole: recording.json of a folder, else its incident.json; the manifest of a container. The recorder wrote it
//     for this recording. It is believed even where most files, or all of them, are of another session: then these are foreign.
//  2. most of its ring files, by their headers;
//  3. of as many the newest file (creation in the header), then the greater session: whoever looks finds the same.
//
// Files of any other session are foreign: they are named, set aside, and never read as part of the recording, copied,
// counted or removed. Files whose headers can not be read tell no session; they count as the recording's, whose
// recorder must bound them.
//
// Inside the recording the number in a file's header is its place, whatever its name. Of several with one number the
// one whose name says so is read, else a closed one, else the first by name; the others are set aside as copies.

// ForeignError says that a ring file is of another recording than the one beside which it lies. It is not part of that
// one.
type ForeignError struct {
	File    string
	Session string // of the file
	Own     string // of the recording
	size    int64
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: this file is of another recording: its session is %s, that of the recording here is %s; it was set aside",
		e.File, e.Session, e.Own)
}

// MisplacedError says that a ring file of the recording has the name of another one, or is there twice.
type MisplacedError struct {
	File   string
	Number uint64 // in its header
	Copy   bool   // another file has this number, and is read; else this one is
	Of     string // that file
}

func (e *MisplacedError) Error() string {
	if e.Copy {
		return fmt.Sprintf("%s: this file has number %d, as %s has: it was set aside", e.File, e.Number, filepath.Base(e.Of))
	}
	return fmt.Sprintf("%s: this file was renamed: it is number %d of the recording, and is read as that", e.File, e.Number)
}

// fileNumber gives the number that a ring file's name says, of a path or a member of a container.
func fileNumber(path string) (n uint64, ok bool) {
	name := filepath.Base(path)
	name = name[strings.LastIndexByte(name, ':')+1:]
	digits, ok := strings.CutSuffix(name, fileSuffix)
	if !ok || len(digits) < 8 || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// ownSession applies the rule to the headers of the files.
func ownSession(said string, hs []fileHeader) string {
	if said != "" {
		return said
	}
	type votes struct {
		files int
		newer uint64
	}
	of := map[string]votes{}
	best := ""
	for _, h := range hs {
		v := of[h.session]
		of[h.session] = votes{v.files + 1, max(v.newer, h.created)}
	}
	for s, v := range of {
		b := of[best]
		if best == "" || v.files > b.files || v.files == b.files && (v.newer > b.newer || v.newer == b.newer && s > best) {
			best = s
		}
	}
	return best
}

// isSession says whether s is what a session looks like.
func isSession(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// describedSession gives the session that the documents of the folder dir say, "" if they do not, and what is wrong
// with them.
func describedSession(fs FS, dir string, entries []Info) (session string, problems []error) {
	for _, name := range []string{RecordingName, incidentName} {
		for _, e := range entries {
			if e.Dir || e.Name != name {
				continue
			}
			s, err := documentSession(fs, filepath.Join(dir, name), strings.TrimSuffix(name, ".json"))
			switch {
			case err != nil:
				problems = append(problems, err)
			case session == "":
				session = s
			case s != "" && s != session:
				problems = append(problems, corrupt(filepath.Join(dir, name), 0, "it is of session "+s+", "+RecordingName+" of "+session))
			}
		}
	}
	return session, problems
}

func documentSession(fs FS, path, kind string) (string, error) {
	b, err := readSmall(fs, path)
	if err != nil {
		return "", err
	}
	if err := checkDocument(path, b, kind); err != nil {
		return "", err
	}
	var d struct {
		Session string `json:"session"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return "", corrupt(path, 0, err.Error())
	}
	if d.Session != "" && !isSession(d.Session) {
		return "", corrupt(path, 0, "its session is not 32 hexadecimal digits")
	}
	return d.Session, nil
}

// folder is what the headers of a ring folder's files say.
type folder struct {
	files     []Info // of the recording, by name, and those that can not be read
	aside     []*ForeignError
	session   string  // "": nothing tells
	described bool    // recording.json is there
	problems  []error // of the documents
}

// lookInto sorts the ring files of dir into the recording's own and others.
func lookInto(fs FS, dir string) (folder, error) {
	var out folder
	es, err := fs.ReadDir(dir)
	if err != nil {
		return out, err
	}
	said, problems := describedSession(fs, dir, es)
	out.problems = problems
	var hs []fileHeader
	sessions := map[string]string{}
	for _, e := range es {
		switch {
		case e.Dir:
		case e.Name == RecordingName:
			out.described = true
		case strings.HasSuffix(e.Name, fileSuffix):
			out.files = append(out.files, e)
			if h, err := headerOf(fs, filepath.Join(dir, e.Name)); err == nil {
				hs = append(hs, h)
				sessions[e.Name] = h.session
			}
		}
	}
	sort.SliceStable(out.files, func(a, b int) bool { return before(out.files[a].Name, out.files[b].Name) })
	out.session = ownSession(said, hs)
	own := out.files[:0]
	for _, f := range out.files {
		if s, ok := sessions[f.Name]; ok && s != out.session {
			out.aside = append(out.aside, &ForeignError{File: filepath.Join(dir, f.Name), Session: s, Own: out.session, size: f.occupies()})
			continue
		}
		own = append(own, f)
	}
	out.files = own
	return out, nil
}

// before orders the names of ring files: by number, then as text.
func before(a, b string) bool {
	x, _ := fileNumber(a)
	y, _ := fileNumber(b)
	if x != y {
		return x < y
	}
	return a < b
}

func headerOf(fs FS, path string) (fileHeader, error) {
	f, err := fs.OpenRead(path)
	if err != nil {
		return fileHeader{}, err
	}
	defer f.Close()
	var b [headerSize]byte
	n, _ := f.ReadAt(b[:], 0)
	return decodeHeader(path, b[:n])
}

// nothingOwn is the error of a folder that holds files of other recordings only, or none.
func (d folder) nothingOwn(dir string) error {
	if len(d.aside) > 0 {
		return d.aside[0]
	}
	return fmt.Errorf("%s: no ring files (*.hcr) in this folder", dir)
}

// Folder is what can be said of a ring folder by the headers of its files.
type Folder struct {
	Session string   // "": no file, and no description, tells
	Files   []string // paths, oldest first; those that can not be read are among them
	Foreign []*ForeignError
}

// LookInto says which files of a ring folder are the recording's and which are others'. Errors: I/O errors.
func LookInto(dir string) (Folder, error) {
	d, err := lookInto(OS, dir)
	out := Folder{Session: d.session, Foreign: d.aside}
	for _, f := range d.files {
		out.Files = append(out.Files, filepath.Join(dir, f.Name))
	}
	return out, err
}

// arrange puts the files of a recording in order and sets aside what is not part of it. said is what its description
// says.
func (r *Recording) arrange(said string) {
	hs := make([]fileHeader, 0, len(r.Files))
	for _, f := range r.Files {
		hs = append(hs, f.header)
	}
	r.Session = ownSession(said, hs)
	own := make([]*File, 0, len(r.Files))
	for _, f := range r.Files {
		if f.Session == r.Session {
			own = append(own, f)
			continue
		}
		r.Problems = append(r.Problems, &ForeignError{File: f.Name, Session: f.Session, Own: r.Session, size: f.Size})
		f.Close()
	}
	sort.SliceStable(own, func(i, j int) bool {
		a, b := own[i], own[j]
		switch {
		case a.Index != b.Index:
			return a.Index < b.Index
		case a.placed() != b.placed():
			return a.placed()
		case (a.x != nil) != (b.x != nil):
			return a.x != nil
		}
		return before(a.Name, b.Name)
	})
	r.Files = own[:0]
	for i, f := range own {
		if n := len(r.Files); i > 0 && n > 0 && r.Files[n-1].Index == f.Index {
			r.Problems = append(r.Problems, &MisplacedError{File: f.Name, Number: f.Index, Copy: true, Of: r.Files[n-1].Name})
			f.Close()
			continue
		}
		if !f.placed() {
			r.Problems = append(r.Problems, &MisplacedError{File: f.Name, Number: f.Index})
		}
		r.Files = append(r.Files, f)
	}
}

// placed says whether the file's name has its number.
func (f *File) placed() bool {
	n, ok := fileNumber(f.Name)
	return ok && n == f.Index
}

// LeftOut says whether err, one of a recording's problems, means that a file is not read.
func LeftOut(err error) bool {
	var m *MisplacedError
	return !errors.As(err, &m) || m.Copy
}
