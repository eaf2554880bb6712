package pull

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// Part is what an interrupted Pull has left: whole members of a container.
//
// Owner: who read it, until it is given to Pull. Lifetime: the file that it was read from must stay as it is, but for
// being cut to the length that Trim gives. Concurrency: one goroutine.
type Part struct {
	members []partMember
}

type partMember struct {
	recording.ManifestFile
	file *segment.File // header and window; its bytes are the container's
	info segment.FrameInfo
	end  int64 // of the member in the container
}

// ReadPart reads the whole members of a container that was cut off. They are hashed, so a part of many GiB takes its
// time.
func ReadPart(f *os.File) (*Part, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p := &recording.Position{F: f, Size: st.Size()}
	t := tar.NewReader(p)
	out := &Part{}
	for {
		h, err := t.Next()
		if err != nil { // the end, or where it was cut
			return out, nil
		}
		start := p.At
		if !strings.HasSuffix(h.Name, segment.Suffix) || h.Size < 0 || h.Size > st.Size()-start {
			return out, nil
		}
		padded := (h.Size + 511) &^ 511
		if padded > st.Size()-start {
			return out, nil
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(f, start, h.Size)); err != nil {
			return nil, err
		}
		m := partMember{ManifestFile: recording.ManifestFile{Name: filepath.Base(h.Name), Bytes: h.Size,
			SHA256: hex.EncodeToString(sum.Sum(nil))}, end: start + padded}
		if m.file, err = segment.NewFile(m.Name, io.NewSectionReader(f, start, h.Size), h.Size); err != nil {
			return out, nil
		}
		m.info = m.file.Window().FrameInfo
		m.FirstGC, m.LastGC = m.info.FirstGC, m.info.LastGC
		out.members = append(out.members, m)
	}
}

// Trim leaves the members that a new pull of dir would not write otherwise, and gives the length to which the
// container is to be cut.
func (p *Part) Trim(dir string, fs vfs.FS) int64 {
	var end int64
	n := 0
	for ; n < len(p.members); n++ {
		m := p.members[n]
		if f, err := segment.OpenIn(fs, filepath.Join(dir, m.Name)); err == nil {
			same := f.Session == m.file.Session && f.Size == m.Bytes && digest(f) == m.SHA256
			f.Close()
			if !same {
				break
			}
		} else if !os.IsNotExist(err) || !sameSession(fs, dir, m.file.Session) {
			break
		}
		end = m.end
	}
	p.members = p.members[:n]
	return end
}

// digest gives the SHA-256 of the whole file as lower-case hexadecimal, "" if it cannot be read.
func digest(f *segment.File) string {
	sum := sha256.New()
	if n, err := io.Copy(sum, io.NewSectionReader(f, 0, f.Size)); err != nil || n != f.Size {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Files is how many members there are.
func (p *Part) Files() int { return len(p.members) }

func sameSession(fs vfs.FS, dir, session string) bool {
	d, err := folder.Read(fs, dir)
	return err == nil && d.Session == session
}
