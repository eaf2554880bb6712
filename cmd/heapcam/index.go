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
	"syscall"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/heap"
)

// errDamaged keeps a result out of the index: who reads it from there would not be warned.
var errDamaged = errors.New("the recording is damaged")

// readIndex caches results of reading a recording, so that the same recording opens at once the next time. It is in a
// folder of the reader: the folder of a recording may be read-only, and other users could have written files there.
// The key of a result has the names, sizes, times and both ends of the recording's files, and the program that made
// it. So a stale result is never found.
type readIndex struct {
	dir     string // created when needed; "": nothing is cached
	program string // version of the program, whose results alone are used
}

// resultKind is a kind of result. Its name ends the names of its files.
type resultKind[T any] struct {
	name   string
	pack   func(*T) ([]byte, error)
	unpack func([]byte, *T) error
}

var (
	reportResult = resultKind[analysis.Report]{
		"report.json",
		func(r *analysis.Report) ([]byte, error) {
			if len(r.Damage) > 0 {
				return nil, errDamaged
			}
			return json.Marshal(r)
		},
		func(b []byte, r *analysis.Report) error {
			if err := json.Unmarshal(b, r); err != nil || r.Schema != analysis.ReportSchema {
				return cmp.Or(err, errors.New("another schema"))
			}
			return nil
		},
	}
	// adviceResult has the line on heap sizes of a report; without a flag there is none.
	adviceResult = resultKind[whatif.Advice]{
		"advice.json",
		func(a *whatif.Advice) ([]byte, error) { return json.Marshal(a) },
		func(b []byte, a *whatif.Advice) error { return json.Unmarshal(b, a) },
	}
	// deadResult has, by type, what nothing kept alive after a collection; null: no reference listing says that.
	deadResult = func(gc uint64) resultKind[map[uint32]heap.Count] {
		return resultKind[map[uint32]heap.Count]{fmt.Sprintf("dead%d.json", gc),
			func(dead *map[uint32]heap.Count) ([]byte, error) { return json.Marshal(dead) },
			func(b []byte, dead *map[uint32]heap.Count) error { return json.Unmarshal(b, dead) }}
	}
	// heapHistoryResult has the history of objects that survived so many collections.
	heapHistoryResult = func(survived int) resultKind[history.HeapHistory] {
		return resultKind[history.HeapHistory]{fmt.Sprintf("histories%d.2", survived), (*history.HeapHistory).Pack,
			func(b []byte, h *history.HeapHistory) error { return h.Unpack(b) }}
	}
)

const (
	// maxIndexed is the largest size of one file of the index in bytes, and keepIndexed their largest number.
	maxIndexed  = 64 << 20
	keepIndexed = 64
	// indexEnd is how many bytes of each end of a file are part of the key.
	indexEnd = 64 << 10
	// settled is how long a file must not have changed: results of a growing recording are not cached.
	settled = 2 * time.Second
)

// indexed gives the result of kind k for the recording at path (a file, or a folder of ring files), from the index or
// from makeIt. A failure of the index is not an error: then nothing is cached.
func indexed[T any](x readIndex, k resultKind[T], path string, makeIt func() (*T, error)) (*T, error) {
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
	newest, piece := time.Time{}, make([]byte, 32<<10) // for all files: a folder may have very many
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, st, err := openRegular(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if st.ModTime().After(newest) {
			newest = st.ModTime()
		}
		rel, err := filepath.Rel(path, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %d %d\n", rel, st.Size(), st.ModTime().UnixNano())
		for _, at := range []int64{0, max(0, st.Size()-indexEnd)} {
			if _, err := io.CopyBuffer(h, io.NewSectionReader(f, at, indexEnd), piece); err != nil {
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

// openRegular opens a file that is no device, folder or pipe.
func openRegular(name string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its other end
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, st, nil
}

// readIndexed reads the file with unpack, and says whether that succeeded.
func readIndexed(file string, unpack func([]byte) error) bool {
	f, st, err := openRegular(file)
	if err != nil {
		return false
	}
	defer f.Close()
	if st.Size() > maxIndexed {
		return false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxIndexed+1))
	if err != nil || len(b) > maxIndexed || unpack(b) != nil {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // sweep removes the least recently used
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

// files gives the paths of the cache's files that match a pattern. The folder's name is no part of it.
func (x readIndex) files(pattern string) (all []string) {
	names, _ := fs.Glob(os.DirFS(x.dir), pattern)
	for _, n := range names {
		all = append(all, filepath.Join(x.dir, n))
	}
	return all
}

// sweep removes the least recently used files.
func (x readIndex) sweep() {
	var all []string
	for _, pattern := range []string{"*.report.json", "*.histories*", "*.advice.json", "*.dead*.json"} {
		all = append(all, x.files(pattern)...)
	}
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
