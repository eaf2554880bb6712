package recording

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// tarBlock is what a tar file is made of. Two blocks of zeros end it.
const tarBlock = 512

// maxEnd bounds the zeros at the end of a container: other programs than this one fill up to 10 KiB.
const maxEnd = 1 << 20

// checkMembers compares a container with its manifest, and looks at what lies between its members; of an incident it
// looks whether its files are those that were kept. so is what was said of the files already: nothing is said twice.
func (r *Recording) checkMembers(so []Verdict) (out []Verdict) {
	said := map[string]State{}
	for _, v := range so {
		said[v.File] = v.State
	}
	if r.dir {
		return r.checkIncident(said)
	}
	if r.at == nil {
		return nil
	}
	return r.checkContainer(r.at, r.size, said)
}

// checkContainer is checkMembers of a container of size bytes.
func (r *Recording) checkContainer(f io.ReaderAt, size int64, said map[string]State) (out []Verdict) {
	if r.Manifest != nil {
		out = r.checkManifest(f, said)
	}
	err := r.checkBetween(f, size)
	if err != nil && (r.Manifest != nil || !errors.Is(err, segment.ErrTorn)) { // that it was cut off was said
		out = append(out, VerdictOf(r.Path, err))
	}
	return out
}

// checkManifest reads every member that the manifest names.
func (r *Recording) checkManifest(f io.ReaderAt, said map[string]State) (out []Verdict) {
	of := map[string]member{}
	for _, m := range r.members {
		if _, twice := of[m.name]; !twice {
			of[m.name] = m
		}
	}
	names := []string{ManifestName}
	for _, want := range r.Manifest.Files {
		path := r.in(want.Name)
		if slices.Contains(names, want.Name) {
			return append(out, VerdictOf("", segment.Corrupt(path, 0, "the manifest names it twice")))
		}
		names = append(names, want.Name)
		if s, ok := said[path]; ok && s != Sound {
			continue
		}
		m, ok := of[want.Name]
		if !ok {
			out = append(out, VerdictOf("", segment.Corrupt(path, 0,
				"the manifest names it, and the container does not have it")))
			continue
		}
		sum := sha256.New()
		n, err := io.Copy(sum, io.NewSectionReader(f, m.start, m.size))
		if err != nil || n != m.size || m.size != want.Bytes || hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
			out = append(out, VerdictOf("", segment.Corrupt(path, 0,
				"it is not what was pulled: the manifest has another size or digest")))
		}
	}
	for _, m := range r.members {
		if s := said[r.in(m.name)]; !slices.Contains(names, m.name) && (s == "" || s == Sound) {
			out = append(out, VerdictOf("", segment.Corrupt(r.in(m.name), 0, "the manifest does not name it")))
		}
	}
	return out
}

// checkBetween looks at the bytes of a container that are no member's: headers, what fills the last block of each, and
// the end.
func (r *Recording) checkBetween(f io.ReaderAt, size int64) error {
	var b [tarBlock]byte
	block := func(at, n int64) ([]byte, error) {
		k, err := f.ReadAt(b[:n], at)
		if k < int(n) {
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		return b[:n], nil
	}
	fill := func(at int64) error {
		n := -at & (tarBlock - 1)
		p, err := block(at, min(n, max(size-at, 0)))
		if err == nil && len(bytes.Trim(p, "\x00")) > 0 {
			err = segment.Corrupt(r.Path, at, "what fills the block behind a member is not zeros")
		}
		return err
	}
	end := int64(0)
	for _, m := range r.members {
		if m.start > size {
			break
		}
		if err := fill(end); err != nil {
			return err
		}
		end = (end + tarBlock - 1) &^ (tarBlock - 1)
		for _, at := range []int64{end, m.start - tarBlock} { // one, but for members of 8 GiB and more
			p, err := block(at, tarBlock)
			if err != nil {
				return err
			}
			sum := 8 * int(' ')
			for i, c := range p {
				if i < 148 || i >= 156 {
					sum += int(c)
				}
			}
			if string(p[148:156]) != fmt.Sprintf("%06o\x00 ", sum) {
				return segment.Corrupt(r.Path, at, "the checksum of a member's header is wrong")
			}
		}
		end = m.start + m.size
	}
	if end >= size {
		return segment.Torn(r.Path, size, "the container ends inside its last member")
	}
	if err := fill(end); err != nil {
		return err
	}
	end = (end + tarBlock - 1) &^ (tarBlock - 1)
	for at := end; at < size; at += tarBlock {
		p, err := block(at, min(tarBlock, size-at))
		if err != nil {
			return err
		}
		switch {
		case len(bytes.Trim(p, "\x00")) == 0 && at < end+maxEnd:
		case len(p) < tarBlock:
			return segment.Torn(r.Path, at, "the container ends inside a member's header")
		default:
			return segment.Corrupt(r.Path, at, "something stands behind the end")
		}
	}
	if size < end+2*tarBlock {
		return segment.Torn(r.Path, size, "the container ends without its end marks: it was cut off")
	}
	return nil
}

// checkIncident compares the files of an incident with those that were kept. Incidents of earlier versions do not say.
func (r *Recording) checkIncident(said map[string]State) (out []Verdict) {
	path := filepath.Join(r.Path, folder.IncidentName)
	if _, damaged := said[path]; damaged {
		return nil
	}
	b, err := vfs.ReadSmall(vfs.OS, path)
	var inc struct {
		Names []string `json:"ring_files"`
	}
	if err != nil || json.Unmarshal(b, &inc) != nil || len(inc.Names) == 0 {
		return nil
	}
	es, err := vfs.OS.ReadDir(r.Path)
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, e := range es {
		there[e.Name] = true
		file := filepath.Join(r.Path, e.Name)
		s := said[file]
		if strings.HasSuffix(e.Name, segment.Suffix) && !slices.Contains(inc.Names, e.Name) && (s == "" || s == Sound) {
			why := file + ": it was not kept with this incident, and is not named in " + folder.IncidentName
			out = append(out, Verdict{File: file, State: Misplaced, Why: why})
		}
	}
	for _, name := range inc.Names {
		if !there[name] {
			out = append(out, VerdictOf("", segment.Corrupt(filepath.Join(r.Path, name), 0,
				folder.IncidentName+" names it, and it is not there")))
		}
	}
	return out
}
