package main

import (
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
)

// reportIndex keeps reports, so that a recording that was read once opens at once. It lies in a folder of the reader's own: a recording may be where
// nobody may write, and what lies beside one could be anybody's. A report is found by what its recording is (names, sizes, times and both ends
// of its files) and by the program that made it, so what is stale is never found.
type reportIndex struct {
	dir     string // made if need be; "": nothing is kept
	program string // whose reports are as good as one's own
}

const (
	// maxIndexed bounds one report on disk, bytes, and keepIndexed their number.
	maxIndexed  = 64 << 20
	keepIndexed = 64
	// indexEnd is what of each end of a file tells it from others, bytes.
	indexEnd = 64 << 10
	// settled is how long a file must have been left alone: a recording that grows is not kept.
	settled = 2 * time.Second
)

// report gives the report of the recording at path (a file, or a folder of ring files) as makeReport would make it. What goes wrong with the
// index is no error: then nothing is kept.
func (x reportIndex) report(path string, makeReport func() (*analysis.Report, error)) (*analysis.Report, error) {
	key, ok := x.key(path)
	if !ok {
		return makeReport()
	}
	file := filepath.Join(x.dir, key+".report.json")
	if rep := readIndexed(file); rep != nil {
		return rep, nil
	}
	rep, err := makeReport()
	if err != nil {
		return nil, err
	}
	if again, ok := x.key(path); ok && again == key {
		_ = x.write(file, rep)
	}
	return rep, nil
}

func (x reportIndex) key(path string) (string, bool) {
	if x.dir == "" {
		return "", false
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", analysis.ReportSchema, x.program)
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

func readIndexed(file string) *analysis.Report {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIndexed+1))
	if err != nil || len(b) > maxIndexed {
		return nil
	}
	rep := &analysis.Report{}
	if json.Unmarshal(b, rep) != nil || rep.Schema != analysis.ReportSchema {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // those that are used stay
	return rep
}

func (x reportIndex) write(file string, rep *analysis.Report) error {
	b, err := json.Marshal(rep)
	if err != nil || len(b) > maxIndexed {
		return err
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

// sweep removes the reports that were not used for longest.
func (x reportIndex) sweep() {
	all, _ := filepath.Glob(filepath.Join(x.dir, "*.report.json"))
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
func ownIndex() reportIndex {
	dir, err := os.UserCacheDir()
	if err != nil {
		return reportIndex{}
	}
	me, err := os.Executable()
	if err != nil {
		return reportIndex{}
	}
	st, err := os.Stat(me)
	if err != nil {
		return reportIndex{}
	}
	return reportIndex{filepath.Join(dir, "heapcam"), fmt.Sprintf("%s %d %d", version, st.Size(), st.ModTime().UnixNano())}
}
