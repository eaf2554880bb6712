package pull

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// Salvage writes the sound frames of all that path holds to w as a container, and says what it left out: as
// Check. A file whose header is damaged is read as one of the others' recording. Nothing is changed at path.
func Salvage(ctx context.Context, path string, w io.Writer) (*recording.Manifest, []recording.Verdict, error) {
	r, err := recording.OpenAny(path)
	var d *segment.DamageError
	if err != nil && !errors.As(err, &d) {
		return nil, nil, err
	}
	if r == nil {
		r = &recording.Recording{Path: path}
	}
	if err != nil && !slices.Contains(r.Problems, err) {
		r.Problems = append(r.Problems, err)
	}
	defer r.Close()
	vs := r.Check()
	files := append([]*segment.File(nil), r.Files...)
	var like *segment.File
	if n := len(r.Files); n > 0 {
		like = r.Files[n-1]
	}
	for _, p := range r.Problems {
		if _, ring := strings.CutSuffix(damagedFile(p), segment.Suffix); ring && errors.As(p, &d) &&
			d.Offset < segment.HeaderSize {
			if f := segment.OpenHeadless(d.File, like); f != nil {
				defer f.Close()
				number(f, files)
				files = append(files, f)
			}
		}
	}
	sortFiles(files)
	m := &recording.Manifest{Schema: "heapcam.manifest/1", Created: time.Now().UTC().Truncate(time.Second),
		Name: strings.TrimSuffix(filepath.Base(path), ".heapcam")}
	p := &puller{t: tar.NewWriter(w), m: m}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		name := fmt.Sprintf("%08d%s", f.Index, segment.Suffix) // whatever it was renamed to
		if err := p.rewrite(name, f, nil); err != nil {
			return nil, nil, err
		}
	}
	if len(m.Files) == 0 {
		return nil, vs, segment.Corrupt(path, 0, "nothing in it is sound")
	}
	return m, vs, p.finish()
}

// number gives a file without a header, whose name may say nothing, one that none of files has.
func number(f *segment.File, files []*segment.File) {
	newest, taken := uint64(0), f.Index == 0
	for _, o := range files {
		newest, taken = max(newest, o.Index), taken || o.Index == f.Index
	}
	if taken {
		f.Renumber(newest + 1)
	}
}

func damagedFile(err error) string { return recording.VerdictOf("", err).File }

func sortFiles(fs []*segment.File) {
	for i := range fs { // few, and nearly sorted
		for j := i; j > 0 && fs[j].Index < fs[j-1].Index; j-- {
			fs[j], fs[j-1] = fs[j-1], fs[j]
		}
	}
}

// rewrite writes a file anew as a member, each block as change gives it. Twice: a member's size is before it.
func (p *puller) rewrite(name string, f *segment.File, change func(trace.Block) (trace.Block, bool)) error {
	size, got, err := rewrite(f, io.Discard, change)
	if err != nil || got.frames == 0 {
		return err
	}
	if err := p.t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: p.m.Created}); err != nil {
		return err
	}
	sum := sha256.New()
	if _, got, err = rewrite(f, io.MultiWriter(p.t, sum), change); err != nil {
		return err
	}
	p.at(f.Size)
	p.m.Add(f, got.info)
	if got.damaged > 0 {
		p.m.Damaged = append(p.m.Damaged, name)
	}
	p.m.Files = append(p.m.Files, fileOf(name, size, hex.EncodeToString(sum.Sum(nil)), got.info))
	return nil
}

// finish writes the manifest and closes the container.
func (p *puller) finish() error {
	p.missing()
	b, err := folder.EncodeDocument(p.m)
	if err != nil {
		return err
	}
	if err := p.t.WriteHeader(&tar.Header{Name: recording.ManifestName, Mode: 0o600, Size: int64(len(b)),
		ModTime: p.m.Created}); err != nil {
		return err
	}
	if _, err := p.t.Write(b); err != nil {
		return err
	}
	return p.t.Close()
}
