package pull

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
)

// Options bound what is taken; zero values take all. Whole files are taken: at least as much as asked. With Exact
// the first and the last file are written anew, cut at collections, where times were asked for.
type Options struct {
	// LastBytes and LastDuration count back from the newest data.
	LastBytes    int64
	LastDuration time.Duration
	// Since and Until are instants.
	Since, Until time.Time
	Exact        bool
	// Redact leaves host and names of threads out. Files are written anew then.
	Redact bool
	// Created is in the manifest, in whole seconds. Zero: now. Pulls of one incident with the same Created have the
	// same bytes.
	Created time.Time
	// Progress gets how many bytes of how many are done.
	Progress func(done, total int64)
	// Part is what an earlier try has written already (ReadPart, Trim); the rest follows behind it.
	Part *Part
	// FS is where dir is; nil: the system's.
	FS vfs.FS
}

// Pull writes the newest part of the ring folder dir to w as one container (tar). It works while a recorder writes:
// it links the files that it wants, so that they stay whole, and reads each up to its last whole frame. When the ring
// needs the space it evicts a file that is not being read yet; that one is named in the manifest. Where links can
// not be made (a folder that is not ours, another file system) it reads the files in place.
func Pull(ctx context.Context, dir string, w io.Writer, opt Options) (*recording.Manifest, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS
	}
	all, err := folder.Read(opt.FS, dir)
	if err != nil {
		return nil, err
	}
	if len(all.Files) == 0 {
		return nil, all.NothingOwn(dir)
	}
	names, wall, newest := pick(opt.FS, dir, all.Files, opt)
	if len(names) == 0 {
		return nil, nothing{dir}
	}
	p := &puller{fs: opt.FS, opt: opt, t: tar.NewWriter(w)}
	if opt.Created.IsZero() {
		opt.Created = time.Now()
	}
	p.m = &recording.Manifest{Schema: "heapcam.manifest/1", Created: opt.Created.UTC().Truncate(time.Second),
		Redacted: opt.Redact}
	if i, ok := incident.Of(opt.FS, dir); ok {
		p.m.Incident, p.m.Reason, p.m.Ended = true, i.Reason, i.Ended
	}
	p.m.ZeroUnixNS = wall
	if opt.Exact {
		if p.cut, err = cutAt(opt, wall, newest); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		p.m.Exact = true
	}
	for _, f := range all.Foreign {
		p.m.Foreign = append(p.m.Foreign, recording.ForeignFile{Name: filepath.Base(f.File), Session: f.Session})
	}
	if !opt.Redact {
		p.m.Name = filepath.Base(dir)
		p.m.Host, _ = os.Hostname()
		p.m.Resource = folder.ReadResource(opt.FS, dir)
	}
	defer p.end()
	names = p.resume(names)
	for _, n := range p.link(dir, names) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := p.file(n)
		if errors.Is(err, errGone) {
			p.m.Dropped = append(p.m.Dropped, filepath.Base(n))
		} else if err != nil {
			return nil, fmt.Errorf("pull %s: %w", n, err)
		}
	}
	if len(p.m.Files) == 0 && (opt.Exact || len(p.m.Dropped) > 0) {
		return nil, nothing{dir}
	}
	return p.m, p.finish()
}

// resume counts in what an earlier try has written, and leaves out what need not be written again.
func (p *puller) resume(names []vfs.Info) []vfs.Info {
	if p.opt.Part == nil || len(p.opt.Part.members) == 0 {
		return names
	}
	for _, m := range p.opt.Part.members {
		p.m.Add(m.file, m.info)
		p.m.Files = append(p.m.Files, m.ManifestFile)
	}
	last := p.m.Files[len(p.m.Files)-1].Name
	for len(names) > 0 && names[0].Name <= last {
		p.size += names[0].Holds()
		p.done += names[0].Holds()
		names = names[1:]
	}
	return names
}

// errGone says that the ring has given the file up.
var errGone = errors.New("given up by the ring")

// puller writes one container.
//
// Owner: Pull or Salvage. Lifetime: that call; end removes the links, also after an error. Concurrency: one goroutine;
// the ring meanwhile removes links that are not being read.
// Errors: errGone for a segment that the ring has evicted; those of the system and of the writer end the pull.
type puller struct {
	fs   vfs.FS
	opt  Options
	t    *tar.Writer
	m    *recording.Manifest
	done int64
	size int64
	dir  string // of the links, "": none could be made
	lock vfs.File
	cut  *cutting // nil: files are copied whole
}

// link makes the pull's own names of the files, and gives them.
func (p *puller) link(dir string, names []vfs.Info) []string {
	pulls := filepath.Join(dir, folder.PullsName)
	folder.ClearPulls(p.fs, pulls)
	paths := make([]string, 0, len(names))
	for _, n := range names {
		p.size += n.Holds()
		paths = append(paths, filepath.Join(dir, n.Name))
	}
	if p.dir, p.lock = folder.NewPull(p.fs, pulls); p.dir == "" {
		return paths
	}
	for i, n := range paths {
		link := filepath.Join(p.dir, filepath.Base(n))
		err := p.fs.Link(n, link)
		switch {
		case err == nil || errors.Is(err, os.ErrNotExist): // the latter is reported when it is its turn
			paths[i] = link
		default: // no links here
			p.end()
			return append(paths[:0], namesIn(dir, names)...)
		}
	}
	return paths
}

func namesIn(dir string, names []vfs.Info) []string {
	var out []string
	for _, n := range names {
		out = append(out, filepath.Join(dir, n.Name))
	}
	return out
}

// end releases what the pull holds.
func (p *puller) end() {
	if p.dir == "" {
		return
	}
	if links, err := p.fs.ReadDir(p.dir); err == nil {
		for _, l := range links {
			p.fs.Remove(filepath.Join(p.dir, l.Name))
		}
	}
	p.lock.Close()
	p.fs.RemoveDir(p.dir)
	p.fs.RemoveDir(filepath.Dir(p.dir)) // if it was the last
	p.dir = ""
}

func (p *puller) file(path string) error {
	name := filepath.Base(path)
	r, err := p.fs.OpenRead(path)
	if errors.Is(err, os.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if p.dir != "" {
		defer p.fs.Remove(path)
		if ok, err := r.TryLock(false); err == nil && !ok {
			return errGone
		}
	}
	st, err := r.Info()
	if err != nil {
		return err
	}
	if p.dir != "" && st.Links == 0 {
		return errGone
	}
	st.Size = vfs.Written(r, st.Size)
	hole := st.Holds() < st.Size // it is most of the file, and a copy of it would fill a disk
	f, err := segment.NewFile(path, r, st.Size)
	if err != nil { // what cannot be read is evidence too
		p.m.Damaged = append(p.m.Damaged, name)
		if p.opt.Redact || hole {
			return nil
		}
		return p.copy(name, r, st.Size, segment.FrameInfo{})
	}
	if p.cut != nil {
		var change func(trace.Block) (trace.Block, bool)
		if p.opt.Redact {
			change = redactBlock
		}
		if done, err := p.exact(name, f, change); done || err != nil {
			return err
		}
	}
	if p.opt.Redact {
		return p.rewrite(name, f, redactBlock)
	}
	if hole {
		return p.rewrite(name, f, nil)
	}
	if f.Sealed() {
		w := f.Window().FrameInfo
		p.m.Add(f, w)
		return p.copy(name, r, st.Size, w)
	}
	x, end := segment.Index{}, int64(segment.HeaderSize)
	for fr, err := range f.Headers() {
		if err == nil {
			x.Add(fr)
			end = fr.End()
		} else if !errors.Is(err, segment.ErrTorn) {
			p.m.Damaged = append(p.m.Damaged, name)
			end = st.Size
			break
		}
	}
	p.m.Add(f, x.Info)
	return p.copy(name, r, end, x.Info)
}

func (p *puller) at(n int64) {
	p.done += n
	if p.opt.Progress != nil {
		p.opt.Progress(p.done, max(p.size, p.done))
	}
}

// copy writes size bytes of r as a member. What was read is hashed on another CPU while it is written and the next
// piece is read, so that a pull takes little longer than a copy.
func (p *puller) copy(name string, r io.ReaderAt, size int64, w segment.FrameInfo) error {
	if err := p.t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: p.m.Created}); err != nil {
		return err
	}
	sum := newHasher()
	defer sum.stop()
	for at := int64(0); at < size; {
		b := sum.buffer()
		n, err := r.ReadAt(b[:min(size-at, int64(len(b)))], at)
		if n == 0 {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		sum.write(b[:n])
		if _, err := p.t.Write(b[:n]); err != nil {
			return err
		}
		at += int64(n)
		p.at(int64(n))
	}
	p.m.Files = append(p.m.Files, fileOf(name, size, sum.hex(), w))
	return nil
}

// fileOf is what the manifest says of a member.
func fileOf(name string, size int64, digest string, w segment.FrameInfo) recording.ManifestFile {
	return recording.ManifestFile{Name: name, Bytes: size, SHA256: digest, FirstGC: w.FirstGC, LastGC: w.LastGC}
}

// missing names the files between the first and the last that the ring no longer had.
func (p *puller) missing() {
	for i := 1; i < len(p.m.Files); i++ {
		for n := segment.Number(p.m.Files[i-1].Name) + 1; n < segment.Number(p.m.Files[i].Name) &&
			len(p.m.Missing) < 1024; n++ {
			p.m.Missing = append(p.m.Missing, n)
		}
	}
}

// pick gives those of the files in dir that are needed, and, where times were asked for, the Unix time of the
// stream's zero, ns (0: it is not known), and the time of the newest data in the stream.
func pick(fs vfs.FS, dir string, names []vfs.Info, opt Options) (needed []vfs.Info, wall int64, newest uint64) {
	if opt.LastBytes <= 0 && opt.LastDuration <= 0 && opt.Since.IsZero() && opt.Until.IsZero() {
		return names, 0, 0
	}
	ws := make([]segment.FrameInfo, len(names))
	listed := make([]segment.Listing, len(names))
	for i := len(names) - 1; i >= 0; i-- {
		f, err := segment.OpenIn(fs, filepath.Join(dir, names[i].Name))
		if err != nil {
			continue
		}
		ws[i], listed[i] = f.Window().FrameInfo, f.Listing()
		if wall == 0 && (!opt.Since.IsZero() || !opt.Until.IsZero()) {
			wall = wallZero(f)
		}
		f.Close()
	}
	to := len(names)
	if !opt.Until.IsZero() {
		for to > 0 && wall+int64(ws[to-1].T0) > opt.Until.UnixNano() {
			to--
		}
	}
	from := to
	var bytes int64
	for from > 0 {
		w := ws[from-1]
		newest = max(newest, w.T1)
		if !opt.Since.IsZero() && w.T1 > 0 && wall+int64(w.T1) < opt.Since.UnixNano() {
			break
		}
		from--
		bytes += names[from].Holds()
		if opt.LastBytes > 0 && bytes >= opt.LastBytes ||
			opt.LastDuration > 0 && w.T1 > 0 && newest-w.T0 >= uint64(opt.LastDuration) {
			break
		}
	}
	// Files whose listing is under way alone would not say what lives.
	for from > 0 && listed[from] == segment.Ramping && !slices.Contains(listed[from:to], segment.Complete) {
		from--
	}
	return names[from:to], wall, newest
}

// wallZero gives the Unix time, ns, of the stream's zero, 0 if the file does not say.
func wallZero(f *segment.File) int64 {
	for b, err := range f.Definitions() {
		if err != nil || b.Kind != trace.KindMeta {
			continue
		}
		if m, err := trace.DecodeMeta(b); err == nil && m.HasJVM {
			return int64(m.JVM.T0WallMS) * int64(time.Millisecond)
		}
	}
	return 0
}
