package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// ErrImportRoom says that a recording is larger than what it may take.
var ErrImportRoom = errors.New("the recording is larger than what is free for it")

// Import copies a recording into the new ring folder dir, as one of the user uid: files holds one container, or ring
// files. What they hold is not believed: all copies have to be whole (the newest ring file of a recorder that was
// killed may end inside a frame), of one recording, and take at most most bytes (negative: any). After an error dir
// is gone. name is what the container says that its recording is called, "" if it does not.
// Errors: *DamageError (with ErrTorn: a container that was cut off, or is still being written), *TooNewError,
// ErrImportRoom, those of ctx, I/O errors.
func Import(ctx context.Context, files []*os.File, dir string, uid int, most int64) (name string, err error) {
	r, size, err := recording.OpenFiles(ctx, files)
	if err != nil {
		return "", err
	}
	if most >= 0 && size+vfs.Block > most {
		return "", fmt.Errorf("%w: %d bytes, free are %d", ErrImportRoom, size, most)
	}
	who := folder.Identity{Session: r.Files[0].Session, NSPID: r.Files[0].PID(), UID: uid}
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
		to := filepath.Join(dir, fmt.Sprintf("%08d%s", f.Index, segment.Suffix))
		if err := copyTo(ctx, to, io.NewSectionReader(f, 0, f.Size)); err != nil {
			return "", err
		}
	}
	vs, err := recording.CheckPath(dir) // the copies: what they were made of may have changed meanwhile
	if err != nil {
		return "", err
	}
	for i, v := range vs {
		if v.State == recording.TooNew {
			return "", &segment.TooNewError{File: v.File, Version: v.Version}
		}
		cut := v.State == recording.Torn && v.TornAt == v.Bytes // no more than not closed
		if v.State == recording.Missing || cut {
			continue
		}
		if v.State != recording.Sound && !(v.State == recording.Torn && i == len(r.Files)-1 && r.Manifest == nil &&
			v.Frames > 0) {
			return "", errors.New(strings.ReplaceAll(v.Why, dir+string(filepath.Separator), ""))
		}
	}
	b, err := folder.Describe(who, nil)
	if err == nil {
		err = vfs.OS.WriteFile(filepath.Join(dir, folder.RecordingName), b)
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

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
