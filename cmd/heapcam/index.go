package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/history"
)

// readIndex keeps what was made of recordings, so that one that was read once opens at once. It lies in a folder of
// the reader's own: a recording may be where nobody may write, and what lies beside one could be anybody's. A thing
// is found by what its recording is (names, sizes, times and both ends of its files) and by the program that made
// it, so what is stale is never found.
type readIndex struct {
	dir     string // made if need be; "": nothing is kept
	program string // whose work is as good as one's own
}

// kept is a kind of thing that is made of a whole recording. Its name ends its files' names.
type kept[T any] struct {
	name   string
	pack   func(*T) ([]byte, error)
	unpack func([]byte, *T) error
}

var (
	keptReport = kept[analysis.Report]{
		"report.json",
		func(r *analysis.Report) ([]byte, error) { return json.Marshal(r) },
		func(b []byte, r *analysis.Report) error {
			if err := json.Unmarshal(b, r); err != nil || r.Schema != analysis.ReportSchema {
				return cmp.Or(err, errors.New("another schema"))
			}
			return nil
		},
	}
	// keptHistories are those of what survived so many collections.
	keptHistories = func(survived int) kept[history.Histories] {
		return kept[history.Histories]{fmt.Sprintf("histories%d", survived), (*history.Histories).Pack,
			func(b []byte, h *history.Histories) error { return h.Unpack(b) }}
	}
)

const (
	// maxIndexed bounds one file of the index, bytes, and keepIndexed their number.
	maxIndexed  = 64 << 20
	keepIndexed = 64
	// indexEnd is what of each end of a file tells it from others, bytes.
	indexEnd = 64 << 10
	// settled is how long a file must have been left alone: a recording that grows is not kept.
	settled = 2 * time.Second
)

// indexed gives a thing of the kind k of the recording at path (a file, or a folder of ring files) as makeIt would
// make it. What goes wrong with the index is no error: then nothing is kept.
func indexed[T any](x readIndex, k kept[T], path string, makeIt func() (*T, error)) (*T, error) {
	key, ok := x.key(path)
	if !ok {
		return makeIt()
	}
	file := filepath.Join(x.dir, key+"."+k.name)
	if it := new(T); readIndexed(file, func(b []byte) error { return k.unpack(b, it) }) {
		return it, nil
	}
	it, err := makeIt()
	if err != nil {
		return nil, err
	}
	if again, ok := x.key(path); ok && again == key {
		if b, err := k.pack(it); err == nil {
			_ = x.write(file, b)
		}
	}
	return it, nil
}

func (x readIndex) key(path string) (string, bool) {
	if x.dir == "" {
		return "", false
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", x.program)
	newest := time.Time{}
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() {
			return errors.New("not a file")
		}
		if st.ModTime().After(newest) {
			newest = st.ModTime()
		}
		rel, err := filepath.Rel(path, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %d %d\n", rel, st.Size(), st.ModTime().UnixNano())
		for _, at := range []int64{0, max(0, st.Size()-indexEnd)} {
			if _, err := io.Copy(h, io.NewSectionReader(f, at, indexEnd)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || newest.IsZero() || time.Since(newest) < settled {
		return "", false
	}
	return hex.EncodeToString(h.Sum(nil)), true
}

// readIndexed has unpack read the file, and says whether that went well.
func readIndexed(file string, unpack func([]byte) error) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIndexed+1))
	if err != nil || len(b) > maxIndexed || unpack(b) != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // those that are used stay
	return true
}

func (x readIndex) write(file string, b []byte) error {
	if len(b) > maxIndexed {
		return nil
	}
	if err := os.MkdirAll(x.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(x.dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	x.sweep()
	return nil
}

// sweep removes the files that were not used for longest.
func (x readIndex) sweep() {
	all, _ := filepath.Glob(filepath.Join(x.dir, "*.report.json"))
	more, _ := filepath.Glob(filepath.Join(x.dir, "*.histories*"))
	all = append(all, more...)
	if len(all) <= keepIndexed {
		return
	}
	at := map[string]time.Time{}
	for _, f := range all {
		if st, err := os.Lstat(f); err == nil {
			at[f] = st.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b string) int { return at[a].Compare(at[b]) })
	for _, f := range all[:len(all)-keepIndexed] {
		_ = os.Remove(f)
	}
}

// ownIndex is the index of this user and this program.
func ownIndex() readIndex {
	dir, err := os.UserCacheDir()
	if err != nil {
		return readIndex{}
	}
	me, err := os.Executable()
	if err != nil {
		return readIndex{}
	}
	st, err := os.Stat(me)
	if err != nil {
		return readIndex{}
	}
	return readIndex{filepath.Join(dir, "heapcam"),
		fmt.Sprintf("%s %d %d", version, st.Size(), st.ModTime().UnixNano())}
}
