package ringstore

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const manifestName = "manifest.json"

// Manifest is the last member of a container: what it holds.
type Manifest struct {
	Schema  string         `json:"schema"` // heapcam.manifest/1
	Created time.Time      `json:"created"`
	Host    string         `json:"host,omitempty"`
	Name    string         `json:"name"`
	Session string         `json:"session"`
	PID     uint32         `json:"pid"`
	FirstGC uint64         `json:"first_gc"`
	LastGC  uint64         `json:"last_gc"`
	Files   []ManifestFile `json:"files"`
	Dropped []string       `json:"dropped,omitempty"` // files that the ring gave up while they were pulled
}

// ManifestFile is one member.
type ManifestFile struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func decodeManifest(b []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if m.Schema != "heapcam.manifest/1" {
		return nil, fmt.Errorf("schema %q is not heapcam.manifest/1", m.Schema)
	}
	return &m, nil
}

// PullOptions bound what is taken, counted back from the newest data; zero values take all. Whole files are taken: at least as much as asked.
type PullOptions struct {
	LastBytes    int64
	LastDuration time.Duration
	Progress     func(done, total int64)
}

// Pull writes the newest part of the ring folder dir to w as one container (tar). It works while a recorder writes: it reads each file up
// to its last whole frame and holds one file open at a time; a file that the ring gives up meanwhile is named in the manifest.
func Pull(ctx context.Context, dir string, w io.Writer, opt PullOptions) (*Manifest, error) {
	names, err := ringFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no ring files (*.hcr) in this folder", dir)
	}
	m := &Manifest{Schema: "heapcam.manifest/1", Created: time.Now().UTC().Truncate(time.Second), Name: filepath.Base(dir)}
	m.Host, _ = os.Hostname()
	from := pickFrom(names, opt)
	var total, done int64
	for _, n := range names[from:] {
		if st, err := os.Stat(n); err == nil {
			total += st.Size()
		}
	}
	t := tar.NewWriter(w)
	for _, n := range names[from:] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := pullFile(t, n, m, func(k int64) {
			done += k
			if opt.Progress != nil {
				opt.Progress(done, total)
			}
		}); errors.Is(err, os.ErrNotExist) {
			m.Dropped = append(m.Dropped, filepath.Base(n))
		} else if err != nil {
			return nil, fmt.Errorf("pull %s: %w", n, err)
		}
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := t.WriteHeader(&tar.Header{Name: manifestName, Mode: 0o600, Size: int64(len(b)), ModTime: m.Created}); err != nil {
		return nil, err
	}
	if _, err := t.Write(b); err != nil {
		return nil, err
	}
	return m, t.Close()
}

// pickFrom gives the index of the oldest file that is needed.
func pickFrom(names []string, opt PullOptions) int {
	if opt.LastBytes <= 0 && opt.LastDuration <= 0 {
		return 0
	}
	var bytes int64
	var newest uint64
	for i := len(names) - 1; i > 0; i-- {
		st, err := os.Stat(names[i])
		if err != nil {
			continue
		}
		bytes += st.Size()
		oldest := ^uint64(0)
		if f, err := OpenFile(names[i]); err == nil {
			for fr, err := range f.Headers() {
				if err == nil && fr.T1 > 0 {
					newest, oldest = max(newest, fr.T1), min(oldest, fr.T0)
				}
			}
			f.Close()
		}
		enough := opt.LastBytes > 0 && bytes >= opt.LastBytes
		if opt.LastDuration > 0 && oldest != ^uint64(0) {
			enough = newest-oldest >= uint64(opt.LastDuration)
		}
		if enough {
			return i
		}
	}
	return 0
}

func pullFile(t *tar.Writer, path string, m *Manifest, progress func(int64)) error {
	f, err := OpenFile(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return err
		}
		return copyRaw(t, path, m, progress) // what cannot be read is evidence too
	}
	defer f.Close()
	end := int64(headerSize)
	whole := true
	for fr, err := range f.Headers() {
		if err != nil {
			if !errors.Is(err, ErrTorn) {
				whole = false
			}
			continue
		}
		end = fr.Offset + frameSize + int64(fr.Stored)
		if fr.FirstGC > 0 && (m.FirstGC == 0 || fr.FirstGC < m.FirstGC) {
			m.FirstGC = fr.FirstGC
		}
		m.LastGC = max(m.LastGC, fr.LastGC)
	}
	if !whole {
		end = f.Size
	}
	m.Session, m.PID = f.Session, f.header.pid
	return member(t, filepath.Base(path), io.NewSectionReader(f.r, 0, end), end, m, progress)
}

func copyRaw(t *tar.Writer, path string, m *Manifest, progress func(int64)) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return member(t, filepath.Base(path), bytes.NewReader(b), int64(len(b)), m, progress)
}

type counting struct {
	io.Writer
	f func(int64)
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.f(int64(n))
	return n, err
}

func member(t *tar.Writer, name string, r io.Reader, size int64, m *Manifest, progress func(int64)) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: m.Created}); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(counting{t, progress}, sum), r); err != nil {
		return err
	}
	m.Files = append(m.Files, ManifestFile{name, size, hex.EncodeToString(sum.Sum(nil))})
	return nil
}
