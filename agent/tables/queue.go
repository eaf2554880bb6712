package tables

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/ringstore"
)

const (
	// Folder is the folder of files that wait, in the folder for recordings.
	Folder = ".tables"
	// MaxQueue bounds what waits, bytes. maxFiles bounds how many.
	MaxQueue = 64 << 20
	maxFiles = 10_000

	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
)

// queue keeps files on disk until the bucket has them.
type queue struct {
	cfg  Config
	dir  string
	wait func(ctx context.Context, d time.Duration) // of tests
	wake chan struct{}

	mu     sync.Mutex
	files  []waiting // oldest first
	bytes  int64
	st     Status
	full   bool   // the log says that the queue is
	logged string // the error that the log has; of run
}

type waiting struct {
	key  string
	size int64
}

func newQueue(cfg Config) *queue {
	return &queue{cfg: cfg, dir: filepath.Join(cfg.Out, Folder), wait: pause, wake: make(chan struct{}, 1)}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (q *queue) status() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	st := q.st
	st.Pending = len(q.files)
	return st
}

func (q *queue) path(key string) string { return filepath.Join(q.dir, filepath.FromSlash(key)) }

// load finds what an earlier agent has left.
func (q *queue) load() {
	type found struct {
		waiting
		at time.Time
	}
	var all []found
	err := filepath.WalkDir(q.dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		key, rerr := filepath.Rel(q.dir, p)
		st, serr := e.Info()
		if rerr != nil || serr != nil || !strings.HasSuffix(key, ".parquet") { // unfinished
			_ = os.Remove(p)
			return nil
		}
		all = append(all, found{waiting{filepath.ToSlash(key), st.Size()}, st.ModTime()})
		return nil
	})
	if err != nil {
		return
	}
	slices.SortFunc(all, func(a, b found) int { return a.at.Compare(b.at) })
	q.mu.Lock()
	var old []waiting
	for _, f := range all {
		old = append(old, f.waiting)
		q.bytes += f.size
	}
	q.files = append(old, q.files...)
	q.mu.Unlock()
	q.bound()
}

// put keeps a file until the bucket has it. The oldest ones make room.
func (q *queue) put(key string, b []byte) error {
	p := q.path(key)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		return err
	}
	if err := ringstore.OS.WriteFile(p, b); err != nil {
		return err
	}
	q.mu.Lock()
	q.files = append(q.files, waiting{key, int64(len(b))})
	q.bytes += int64(len(b))
	q.mu.Unlock()
	q.bound()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

// bound drops the oldest files that exceed the bounds.
func (q *queue) bound() {
	q.mu.Lock()
	var drop []waiting
	for q.bytes > MaxQueue || len(q.files) > maxFiles {
		drop = append(drop, q.files[0])
		q.bytes -= q.files[0].size
		q.files = q.files[1:]
	}
	q.st.Dropped += uint64(len(drop))
	news := len(drop) > 0 && !q.full
	q.full = q.full || len(drop) > 0
	q.mu.Unlock()
	for _, f := range drop {
		q.remove(f.key)
	}
	if news {
		logs.Write(&q.cfg.Log, logs.TablesDropped)
	}
}

// remove removes a file, and the folders that are empty then.
func (q *queue) remove(key string) {
	_ = os.Remove(q.path(key))
	for d := path.Dir(key); d != "." && os.Remove(q.path(d)) == nil; d = path.Dir(d) {
	}
}

// oldest gives the file that waits longest.
func (q *queue) oldest() (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.files) == 0 {
		return waiting{}, false
	}
	return q.files[0], true
}

// done takes a file out of the queue, unless it has made room meanwhile.
func (q *queue) done(f waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.st.Uploaded++
	if len(q.files) > 0 && q.files[0] == f {
		q.files = q.files[1:]
		q.bytes -= f.size
	} else {
		q.st.Dropped-- // it was counted so
	}
	q.full = q.full && len(q.files) > 0
}

// run uploads until ctx is done.
func (q *queue) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		f, ok := q.oldest()
		if !ok {
			select {
			case <-ctx.Done():
			case <-q.wake:
			}
			continue
		}
		err := q.upload(ctx, f)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			q.done(f)
			q.remove(f.key)
			q.logged, retry = "", firstRetry
			continue
		case errors.Is(err, fs.ErrNotExist) && q.gone(f):
			continue
		}
		q.failed(err)
		q.wait(ctx, retry+rand.N(retry/4+1)) // not all agents at once
		retry = min(2*retry, lastRetry)
	}
}

// gone forgets a file that somebody has removed.
func (q *queue) gone(f waiting) bool {
	if _, err := os.Stat(q.path(f.key)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.files) > 0 && q.files[0] == f {
		q.files = q.files[1:]
		q.bytes -= f.size
		q.st.Dropped++
	}
	return true
}

func (q *queue) failed(err error) {
	q.mu.Lock()
	q.st.Failed++
	q.mu.Unlock()
	if text := err.Error(); text != q.logged {
		q.logged = text
		logs.Write(&q.cfg.Log, logs.TablesNotUploaded, logs.Err.Of(err))
	}
}

// upload has the bucket have a file. One that it has already, of an earlier try whose answer was lost, is this one: its
// key has the time and the recording.
func (q *queue) upload(ctx context.Context, f waiting) error {
	b, err := os.ReadFile(q.path(f.key))
	if err != nil {
		return err
	}
	_, err = q.cfg.Bucket.Put(ctx, path.Join(q.cfg.To.Key, f.key), func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(b))
		return err
	}, bucket.Put{Type: "application/vnd.apache.parquet"})
	if errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return err
}
