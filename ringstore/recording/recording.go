package recording

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// Recording is a container, a ring folder or a single segment, opened alike.
//
// Owner: who opened it, who must Close it; the files are closed with it. Lifetime: from Open to Close.
// Concurrency: as File; Close and Watch alone. It may be opened while a recorder writes: it is then what the files held
// when they were opened, and files that the ring evicts meanwhile are read to their end.
// Errors: what is wrong with single files is in Problems; Open fails only where nothing can be read.
type Recording struct {
	Path     string
	Session  string          // whose files these are
	Files    []*segment.File // in the order of their numbers
	Manifest *Manifest       // of a container, else nil
	Problems []error         // files that could not be opened or are not of this recording, documents that are damaged
	c        io.Closer
	at       io.ReaderAt // of a container: its size bytes
	size     int64

	dir     bool     // Path is a folder
	members []member // of a container, as they lie in it
	ends    int64    // where the last of them ends
}

// member is one of a container, whatever it is.
type member struct {
	name        string
	start, size int64
}

// Watch has f called with the bytes of each read, to show progress. It is called once, before anything is read.
func (r *Recording) Watch(f func(bytes int)) {
	for _, file := range r.Files {
		file.Watch(f)
	}
}

// Open opens path whatever it is. A folder of which nothing can be read, or that has no ring files, is an
// error; files of it that are damaged are in Problems, and so is the fact that a container was cut off.
func Open(path string) (*Recording, error) {
	r, err := OpenAny(path)
	if err != nil && r != nil {
		r.Close()
		r = nil
	}
	return r, err
}

// OpenAny gives what is known of a recording of which nothing can be read, beside the error.
func OpenAny(path string) (*Recording, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{Path: path}
	if st.IsDir() {
		es, err := vfs.OS.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			if !e.Dir && strings.HasSuffix(e.Name, segment.Suffix) {
				r.add(segment.Open(filepath.Join(path, e.Name)))
			}
		}
		if len(r.Files)+len(r.Problems) == 0 {
			return nil, fmt.Errorf("%s: no ring files (*.hcr) in this folder", path)
		}
		r.dir = true
		said, problems := folder.DescribedSession(vfs.OS, path, es)
		r.arrange(said)
		r.Problems = append(r.Problems, problems...)
		return r.checked()
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else opening a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if st, err = f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, cmp.Or(err, error(&os.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}))
	}
	var magic [8]byte
	_, _ = f.ReadAt(magic[:], 0)
	if string(magic[:]) == segment.Magic {
		f.Close()
		if r.add(segment.Open(path)); len(r.Files) > 0 {
			r.Session = r.Files[0].Session
		}
		return r.checked()
	}
	r.c, r.at, r.size = f, f, st.Size()
	if err := r.openTar(); err != nil {
		return r, err
	}
	return r.checked()
}

func (r *Recording) add(f *segment.File, err error) {
	if err != nil {
		r.Problems = append(r.Problems, err)
		return
	}
	r.Files = append(r.Files, f)
}

func (r *Recording) checked() (*Recording, error) {
	if len(r.Files) == 0 && len(r.Problems) > 0 {
		return r, r.Problems[0]
	}
	return r, nil
}

// OpenContainer opens a container that is not a file of this system: size bytes of at. Close closes at, too, if it can
// be closed. Errors as those of Open.
func OpenContainer(name string, at io.ReaderAt, size int64) (*Recording, error) {
	r := &Recording{Path: name, at: at, size: size}
	r.c, _ = at.(io.Closer)
	err := r.openTar()
	if err == nil {
		r, err = r.checked()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Position counts the bytes that the tar reader has consumed, so that members can be read in place later.
type Position struct {
	F    io.ReaderAt
	Size int64
	At   int64
}

func (p *Position) Read(b []byte) (int, error) {
	n, err := p.F.ReadAt(b, p.At)
	p.At += int64(n)
	return n, err
}

func (p *Position) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		p.At = off
	case io.SeekCurrent:
		p.At += off
	case io.SeekEnd:
		p.At = p.Size + off
	}
	return p.At, nil
}

func (r *Recording) openTar() error {
	f, size := r.at, r.size
	p := &Position{F: f, Size: size}
	t := tar.NewReader(p)
	described := false
	for {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if len(r.members) == 0 {
				return segment.NotOurs(r.Path, size)
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				r.Problems = append(r.Problems, segment.Corrupt(r.Path, r.ends,
					"the container is not what was written here: "+err.Error()))
				described = true // who knows
			}
			break
		}
		start := p.At
		name := filepath.Base(h.Name)
		r.members = append(r.members, member{name, start, h.Size})
		r.ends = start + h.Size
		switch {
		case name == ManifestName && h.Size < 1<<20 && start+h.Size <= size:
			described = true
			b, err := io.ReadAll(io.LimitReader(t, 1<<20))
			if err == nil {
				r.Manifest, err = decodeManifest(r.Path+":"+name, b)
			}
			if err != nil {
				r.Problems = append(r.Problems, err)
			}
		case strings.HasSuffix(name, segment.Suffix):
			n := min(h.Size, max(size-start, 0))
			r.add(segment.NewFile(r.Path+":"+name, io.NewSectionReader(f, start, n), n))
		}
	}
	said := ""
	if r.Manifest != nil && folder.IsSession(r.Manifest.Session) {
		said = r.Manifest.Session
	}
	r.arrange(said)
	if !described { // it comes last
		err := segment.Torn(r.Path, size, "the file was cut off: its table of contents is missing")
		if len(r.Files) == 0 {
			return err
		}
		r.Problems = append(r.Problems, err)
	}
	return nil
}

// Close closes all files.
func (r *Recording) Close() error {
	for _, f := range r.Files {
		f.Close()
	}
	if r.c != nil {
		return r.c.Close()
	}
	return nil
}

// OpenFiles opens what files hold, one container or ring files, believing nothing: a recording of which anything would
// be left out is refused. size is what the files have together, bytes. Close of the recording does not close them.
// Errors: *DamageError (ErrTorn: the container was cut off), *TooNewError, *ForeignError, those of ctx, I/O errors.
func OpenFiles(ctx context.Context, files []*os.File) (r *Recording, size int64, err error) {
	r = &Recording{Path: files[0].Name()}
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return nil, 0, err
		}
		size += st.Size()
		var magic [len(segment.Magic)]byte
		_, _ = f.ReadAt(magic[:], 0)
		if string(magic[:]) == segment.Magic || len(files) > 1 {
			r.add(segment.NewFile(f.Name(), f, st.Size()))
			continue
		}
		r.Path, r.at, r.size = f.Name(), f, st.Size()
		if err := r.openTar(); err != nil {
			return nil, 0, err
		}
	}
	var all int64
	for _, m := range r.members {
		all += min(m.size, max(size-m.start, 0))
	}
	if all > size { // sparse members may claim the same bytes again and again
		return nil, 0, segment.Corrupt(r.Path, 0, "its members are larger than it is")
	}
	if len(r.members) == 0 { // no container: files whose names say nothing
		r.arrange("")
	}
	for _, p := range r.Problems {
		if LeftOut(p) {
			return nil, 0, p
		}
	}
	if len(r.Files) == 0 {
		return nil, 0, segment.Corrupt(r.Path, 0, "no ring files in it")
	}
	if len(r.members) > 0 {
		vs := r.checkContainer(stopping{ctx, files[0]}, size, nil)
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if len(vs) > 0 {
			return nil, 0, vs[0].err
		}
	}
	return r, size, nil
}

// stopping reads until ctx is done.
type stopping struct {
	ctx context.Context
	r   io.ReaderAt
}

func (s stopping) ReadAt(b []byte, at int64) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.ReadAt(b, at)
}
