package ringstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// ErrImportRoom says that a recording is larger than what it may take.
var ErrImportRoom = errors.New("the recording is larger than what is free for it")

// Import copies a recording into the new ring folder dir, as one of the user uid: files holds one container, or ring files. What they hold is
// not believed: all copies have to be whole (the newest ring file of a recorder that was killed may end inside a frame), of one recording, and take
// at most most bytes (negative: any). After an error dir is gone. name is what the container says that its recording is called, "" if it does not.
// Errors: *DamageError (with ErrTorn: a container that was cut off, or is still being written), *TooNewError, ErrImportRoom, those of ctx, I/O errors.
func Import(ctx context.Context, files []*os.File, dir string, uid int, most int64) (name string, err error) {
	r := &Recording{Path: files[0].Name()}
	var size int64
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return "", err
		}
		size += st.Size()
		var magic [len(fileMagic)]byte
		f.ReadAt(magic[:], 0)
		if string(magic[:]) == fileMagic || len(files) > 1 {
			r.add(newFile(f.Name(), f, st.Size()))
			continue
		}
		r.Path = f.Name()
		if err := r.openTar(f, st.Size()); err != nil {
			return "", err
		}
	}
	var all int64
	for _, m := range r.members {
		all += min(m.size, max(size-m.start, 0))
	}
	if all > size { // sparse members may claim the same bytes again and again
		return "", corrupt(r.Path, 0, "its members are larger than it is")
	}
	if len(r.members) == 0 { // no container: files whose names say nothing
		r.arrange("")
	}
	for _, p := range r.Problems {
		if LeftOut(p) {
			return "", p
		}
	}
	if len(r.Files) == 0 {
		return "", corrupt(r.Path, 0, "no ring files in it")
	}
	if len(r.members) > 0 {
		vs := r.checkContainer(stopping{ctx, files[0]}, size, nil)
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if len(vs) > 0 {
			return "", vs[0].err
		}
	}
	if most >= 0 && size+block > most {
		return "", fmt.Errorf("%w: %d bytes, free are %d", ErrImportRoom, size, most)
	}
	who := Identity{Session: r.Files[0].Session, NSPID: r.Files[0].header.pid, UID: uid}
	if r.Manifest != nil {
		name = r.Manifest.Name
		who.Name, who.PID = name, int(r.Manifest.PID)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	for _, f := range r.Files {
		to := filepath.Join(dir, fmt.Sprintf("%08d%s", f.Index, fileSuffix))
		if err := copyTo(ctx, to, io.NewSectionReader(f.r, 0, f.Size)); err != nil {
			return "", err
		}
	}
	vs, err := CheckPath(dir) // the copies: what they were made of may have changed meanwhile
	if err != nil {
		return "", err
	}
	for i, v := range vs {
		if v.State == TooNew {
			return "", &TooNewError{File: v.File, Version: v.Version}
		}
		cut := v.State == Torn && v.TornAt == v.Bytes // no more than not closed
		if v.State == Missing || cut {
			continue
		}
		if v.State != Sound && !(v.State == Torn && i == len(r.Files)-1 && r.Manifest == nil && v.Frames > 0) {
			return "", errors.New(strings.ReplaceAll(v.Why, dir+string(filepath.Separator), ""))
		}
	}
	b, err := describeIdentity(who, nil)
	if err == nil {
		err = OS.WriteFile(filepath.Join(dir, RecordingName), b)
	}
	return name, err
}

// copyTo makes the new file to of r, synced.
func copyTo(ctx context.Context, to string, r io.Reader) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	}))
	return errors.Join(err, f.Sync(), f.Close())
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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
