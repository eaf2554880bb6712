package folder

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// Which recording a folder or container belongs to follows from, in this order:
//
//  1. its description, if that is whole: recording.json of a folder, else its incident.json; the manifest of a
//     container. The recorder wrote it for this recording. It is believed even where most files, or all of them, are
//     of another session: then these are foreign.
//  2. most of its ring files, by their headers;
//  3. of as many the newest file (creation in the header), then the greater session: every reader finds the same.
//
// Files of any other session are foreign: they are named, set aside, and never read as part of the recording, copied,
// counted or removed. Files whose headers cannot be read have no session; they count as the recording's, whose
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
	Size    int64
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to another recording (session %.8s, here %.8s)", e.File,
		e.Session, e.Own)
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
		return fmt.Sprintf("%s has the same number (%d) as %s", e.File, e.Number, filepath.Base(e.Of))
	}
	return fmt.Sprintf("%s was renamed: it is read as number %d of the recording", e.File,
		e.Number)
}

// Origin is what a ring file says of the recording that it is of.
type Origin struct {
	Session string
	Created uint64 // when the file was made, Unix ns
}

// OwnSession applies the rule to the headers of the files.
func OwnSession(said string, hs []Origin) string {
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
		v := of[h.Session]
		of[h.Session] = votes{v.files + 1, max(v.newer, h.Created)}
	}
	for s, v := range of {
		b := of[best]
		if best == "" || v.files > b.files || v.files == b.files &&
			(v.newer > b.newer || v.newer == b.newer && s > best) {
			best = s
		}
	}
	return best
}

// IsSession says whether s is what a session looks like.
func IsSession(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// DescribedSession gives the session that the documents of the folder dir say, "" if they do not, and what is wrong
// with them.
func DescribedSession(fs vfs.FS, dir string, entries []vfs.Info) (session string, problems []error) {
	for _, name := range []string{RecordingName, IncidentName} {
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
				problems = append(problems, segment.Corrupt(filepath.Join(dir, name), 0,
					"it is of session "+s+", "+RecordingName+" of "+session))
			}
		}
	}
	return session, problems
}

func documentSession(fs vfs.FS, path, kind string) (string, error) {
	b, err := vfs.ReadSmall(fs, path)
	if err != nil {
		return "", err
	}
	if err := CheckKind(path, b, kind); err != nil {
		return "", err
	}
	var d struct {
		Session string `json:"session"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return "", segment.Corrupt(path, 0, err.Error())
	}
	if d.Session != "" && !IsSession(d.Session) {
		return "", segment.Corrupt(path, 0, "its session is not 32 hexadecimal digits")
	}
	return d.Session, nil
}

// Contents is what the headers of a ring folder's files say.
type Contents struct {
	Files     []vfs.Info // of the recording, by name, and those that cannot be read
	Foreign   []*ForeignError
	Session   string  // "": not known
	Described bool    // recording.json is there
	Problems  []error // of the documents
}

// Read sorts the ring files of dir into the recording's own and others.
func Read(fs vfs.FS, dir string) (Contents, error) {
	var out Contents
	es, err := fs.ReadDir(dir)
	if err != nil {
		return out, err
	}
	said, problems := DescribedSession(fs, dir, es)
	out.Problems = problems
	var hs []Origin
	sessions := map[string]string{}
	for _, e := range es {
		switch {
		case e.Dir:
		case e.Name == RecordingName:
			out.Described = true
		case strings.HasSuffix(e.Name, segment.Suffix):
			out.Files = append(out.Files, e)
			if h, err := segment.HeaderOf(fs, filepath.Join(dir, e.Name)); err == nil {
				hs = append(hs, Origin{h.Session, h.Created})
				sessions[e.Name] = h.Session
			}
		}
	}
	sort.SliceStable(out.Files, func(a, b int) bool { return segment.Before(out.Files[a].Name, out.Files[b].Name) })
	out.Session = OwnSession(said, hs)
	own := out.Files[:0]
	for _, f := range out.Files {
		if s, ok := sessions[f.Name]; ok && s != out.Session {
			out.Foreign = append(out.Foreign, &ForeignError{File: filepath.Join(dir, f.Name), Session: s,
				Own: out.Session, Size: f.Occupies()})
			continue
		}
		own = append(own, f)
	}
	out.Files = own
	return out, nil
}

// NothingOwn is the error of a folder that holds files of other recordings only, or none.
func (d Contents) NothingOwn(dir string) error {
	if len(d.Foreign) > 0 {
		return d.Foreign[0]
	}
	return fmt.Errorf("%s: no ring files (*.hcr) in this folder", dir)
}

// Folder is what can be said of a ring folder by the headers of its files.
type Folder struct {
	Session string   // "": no file, and no description, has it
	Files   []string // paths, oldest first; those that cannot be read are among them
	Foreign []*ForeignError
}

// LookInto says which files of a ring folder are the recording's and which are others'. Errors: I/O errors.
func LookInto(dir string) (Folder, error) {
	d, err := Read(vfs.OS, dir)
	out := Folder{Session: d.Session, Foreign: d.Foreign}
	for _, f := range d.Files {
		out.Files = append(out.Files, filepath.Join(dir, f.Name))
	}
	return out, err
}

func RingFiles(fs vfs.FS, dir string) ([]vfs.Info, error) {
	es, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []vfs.Info
	for _, e := range es {
		if !e.Dir && strings.HasSuffix(e.Name, segment.Suffix) {
			out = append(out, e)
		}
	}
	return out, nil
}
