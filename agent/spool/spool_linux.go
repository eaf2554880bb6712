package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
)

const (
	// scanEvery is how often the spool folder is read when no file notification comes.
	scanEvery = time.Second
	// spoolSettles is how long a file must stay as it is to be taken for whole: somebody may be copying it there.
	spoolSettles = 3 * time.Second
	// spoolAgain is when what the disk refused is tried again.
	spoolAgain = time.Minute
	// maxSpool bounds the names that are read, maxDropped the files of one folder in the spool folder.
	maxSpool   = 4096
	maxDropped = 4096
	// takingName begins the name of the folder, below Out, of a recording that is being taken.
	takingName = ".taking-"
)

// New checks cfg, and removes what an agent that was killed has left below Out. Errors: Dir is not absolute, or Out;
// those of the disk.
func New(cfg Config) (*Spool, error) {
	if !filepath.IsAbs(cfg.Dir) {
		return nil, fmt.Errorf("spool folder %s: not an absolute path", cfg.Dir)
	}
	cfg.Dir = filepath.Clean(cfg.Dir)
	if cfg.Out == cfg.Dir {
		return nil, fmt.Errorf("spool folder %s: it must not be the folder for recordings", cfg.Dir)
	}
	old, _ := fs.Glob(os.DirFS(cfg.Out), takingName+"*") // the name of the folder is no pattern
	for _, name := range old {                           // of an agent that was killed
		if err := os.RemoveAll(filepath.Join(cfg.Out, name)); err != nil {
			return nil, fmt.Errorf("cannot remove an unfinished recording: %w", err)
		}
	}
	return &Spool{cfg: cfg}, nil
}

// diskError says that the disk has no room, or fails: the same is tried again.
type diskError struct {
	dir string
	err error
}

func (e *diskError) Error() string { return fmt.Sprintf("recording %s: %v", e.dir, e.err) }
func (e *diskError) Unwrap() error { return e.err }

// drop is a name in the spool folder.
type drop struct {
	mark   string // of all that belongs to it: what has another one is still being written
	since  time.Time
	again  time.Time // not before
	bad    string    // why it is not taken, as long as mark holds
	logged string
}

// spooler takes what lies in the spool folder. It belongs to one goroutine.
type spooler struct {
	p     *Spool
	dir   string
	fd    int // O_PATH of dir
	drops map[string]*drop
	busy  bool // a recording is being taken; rings do not wait for that
	done  chan taking
}

// taking is a recording that was taken, or why it was not.
type taking struct {
	name string
	uid  int
	d    *drop
	err  error
}

// Watch takes what is in the spool folder until ctx is done. A folder that hangs keeps nothing else from going on.
func (p *Spool) Watch(ctx context.Context) {
	defer p.wg.Wait()
	s := &spooler{p: p, dir: p.cfg.Dir, drops: map[string]*drop{}, done: make(chan taking, 1)}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		w = &fsnotify.Watcher{} // looking once a second does
	} else {
		defer w.Close()
	}
	logged, watched := "", false
	for {
		err := s.scan(ctx)
		now := p.fails(err)
		if now != logged {
			if logged = now; err != nil {
				logs.Write(&p.cfg.Log, logs.SpoolUnreadable, logs.Err.Of(err), logs.Path.Of(s.dir))
			}
		}
		if err != nil {
			watched = false
		} else if !watched && w.Events != nil {
			watched = w.Add(s.dir) == nil
		}
		if !s.wait(ctx, w) {
			return
		}
	}
}

// fails puts into the status why the folder cannot be read, "": it can, and returns that.
func (p *Spool) fails(err error) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Error = ""
	if err != nil {
		p.status.Error = err.Error()
	}
	return p.status.Error
}

// wait waits until it is time to look again; false: ctx is done. A write to a file is no
// reason.
func (s *spooler) wait(ctx context.Context, w *fsnotify.Watcher) bool {
	soon := time.NewTimer(scanEvery)
	defer soon.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-w.Errors:
		case e := <-w.Events:
			// or renamed to here; a ring is recorded at once, since its lock shows that it is one
			if e.Has(fsnotify.Create) {
				return true
			}
		case t := <-s.done:
			s.busy = false
			if ctx.Err() == nil {
				s.judge(t)
			}
			return true
		case <-soon.C:
			return true
		}
	}
}

// scan reads the folder once.
func (s *spooler) scan(ctx context.Context) error {
	fd, err := unix.Open(s.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: s.dir, Err: err}
	}
	defer unix.Close(fd)
	s.fd = fd
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(maxSpool)
	d.Close()
	if err != nil && len(names) == 0 && !errors.Is(err, io.EOF) {
		return err
	}
	var left []Item
	seen := map[string]bool{}
	for _, name := range names {
		if ctx.Err() != nil {
			return nil
		}
		var st unix.Stat_t
		if strings.HasPrefix(name, ".") || unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		seen[name] = true
		why := ""
		if _, _, ring := shmring.ParseName(name); ring {
			why = s.ring(ctx, name, &st)
		} else {
			why = s.drop(ctx, name, &st)
		}
		if why != "" {
			left = append(left, Item{Name: printable(name), UID: int(st.Uid), Bytes: st.Size, Reason: why})
		}
	}
	if len(names) == maxSpool {
		left = append(left, Item{Name: "…", Reason: fmt.Sprintf("only the first %d names are read", maxSpool)})
	}
	for name := range s.drops {
		if !seen[name] {
			delete(s.drops, name)
		}
	}
	s.p.mu.Lock()
	s.p.status.Left = left
	s.p.mu.Unlock()
	s.p.cfg.Forget(func(name string) bool { return seen[name] })
	return nil
}

// ring records a ring; why says what keeps it from being recorded, "" if nothing does.
func (s *spooler) ring(ctx context.Context, name string, st *unix.Stat_t) (why string) {
	path := filepath.Join(s.dir, name)
	settled := s.settled(name, markOf(st))
	err := s.p.cfg.Record(ctx, path, func() (*shmring.Ring, error) {
		r, err := shmring.Open(path, shmring.Options{MaxCapacity: s.p.cfg.MaxRing, Away: true})
		if err == nil {
			if held, err := r.Held(); err == nil && held { // by a probe, which makes it whole before it says so
				return r, nil
			}
		}
		if !settled { // it may be in the making
			if err == nil {
				r.Close()
			}
			return nil, shmring.ErrNotReady
		}
		return r, err
	})
	if err != nil {
		return printable(err.Error())
	}
	return ""
}

// markOf changes when the file does.
func markOf(st *unix.Stat_t) string {
	return fmt.Sprint(st.Dev, st.Ino, st.Size, st.Mtim, st.Nlink, st.Mode)
}

// settled says that mark has been the same for a while.
func (s *spooler) settled(name, mark string) bool {
	d := s.drops[name]
	if d == nil || d.mark != mark {
		s.drops[name] = &drop{mark: mark, since: time.Now()}
		return false
	}
	return time.Since(d.since) >= spoolSettles
}

// drop takes a recording; why says what keeps it from being taken.
func (s *spooler) drop(ctx context.Context, name string, st *unix.Stat_t) (why string) {
	files, mark, err := s.open(name, st)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	settled := s.settled(name, mark)
	d := s.drops[name]
	switch {
	case !settled, time.Now().Before(d.again):
		return d.bad
	case d.bad != "" && d.again.IsZero():
		return d.bad
	case err != nil:
		s.judge(taking{name, int(st.Uid), d, err})
	case !s.busy:
		t, in := taking{name, int(st.Uid), d, nil}, files
		files, s.busy = nil, true
		s.p.wg.Go(func() {
			t.err = s.takeAlone(ctx, t, in, mark)
			for _, f := range in {
				f.Close()
			}
			s.done <- t
		})
	}
	return d.bad
}

// judge notes the result of taking a recording.
func (s *spooler) judge(t taking) {
	if t.err == nil {
		delete(s.drops, t.name)
		return
	}
	d := t.d
	d.bad, d.again = printable(t.err.Error()), time.Time{}
	var disk *diskError
	if errors.As(t.err, &disk) || errors.Is(t.err, ringstore.ErrTorn) { // room may come, and the rest of the file
		d.again = time.Now().Add(spoolAgain)
	}
	if d.logged != d.bad {
		d.logged = d.bad
		logs.Write(&s.p.cfg.Log, logs.SpoolLeft, logs.Err.Of(t.err), logs.Path.Of(s.shown(t.name)),
			logs.UID.Of(t.uid))
	}
}

// takeAlone takes a recording while another goroutine reads the folder.
func (s *spooler) takeAlone(ctx context.Context, t taking, files []*os.File, mark string) error {
	fd, err := unix.Open(s.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &diskError{s.dir, err}
	}
	defer unix.Close(fd)
	return (&spooler{p: s.p, dir: s.dir, fd: fd}).take(ctx, t.name, t.uid, files, mark)
}

// take copies what was dropped to the folder for recordings, and removes it where it was.
func (s *spooler) take(ctx context.Context, name string, uid int, files []*os.File, mark string) error {
	var size int64
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		size += st.Size() + 8<<10
	}
	out := s.p.cfg.Out
	if free, err := ringstore.OS.Free(out); err == nil && free >= 0 && size > (free-s.p.cfg.KeepFree)/2 {
		return &diskError{out, fmt.Errorf("its %d bytes are more than half of the free space", size)}
	}
	if !s.p.cfg.Disk.Reserve(size) {
		return &diskError{out, fmt.Errorf("max_total_size leaves no room for %d bytes", size)}
	}
	defer s.p.cfg.Disk.Unreserve()
	tmp := filepath.Join(out, takingName+strconv.Itoa(os.Getpid()))
	id, err := ringstore.Import(ctx, files, tmp, uid, size)
	if err != nil {
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EIO) ||
			errors.Is(err, unix.EROFS) {
			err = &diskError{out, err}
		}
		return err
	}
	if id == "" {
		id = strings.TrimSuffix(strings.TrimSuffix(name, ".heapcam"), ".hcr")
	}
	to, err := s.place(tmp, recordingName(id))
	if err != nil {
		os.RemoveAll(tmp)
		return &diskError{out, err}
	}
	s.p.mu.Lock()
	s.p.status.Taken++
	s.p.mu.Unlock()
	logs.Write(&s.p.cfg.Log, logs.SpoolTaken, logs.Path.Of(s.shown(name)), logs.UID.Of(uid), logs.Bytes.Of(size),
		logs.Target.Of(to))
	if err := s.remove(name, mark); err != nil {
		logs.Write(&s.p.cfg.Log, logs.SpoolNotRemoved, logs.Err.Of(err), logs.Path.Of(s.shown(name)))
		return fmt.Errorf("taken as %s, but cannot be removed here: %w", filepath.Base(to), err)
	}
	return nil
}

// shown returns the path of a name in the spool folder, for the log.
func (s *spooler) shown(name string) string { return filepath.Join(s.dir, printable(name)) }

// place gives a recording that was taken its name, or the next one that is free.
func (s *spooler) place(tmp, id string) (string, error) {
	for i := 1; ; i++ {
		to := filepath.Join(s.p.cfg.Out, id)
		if i > 1 {
			to += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := os.Rename(tmp, to); err != nil {
			return "", err
		}
		return to, ringstore.OS.SyncDir(s.p.cfg.Out)
	}
}

// remove removes what was taken, if it still is that.
func (s *spooler) remove(name, mark string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(s.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	files, now, err := s.open(name, &st)
	for _, f := range files {
		defer f.Close()
	}
	if err != nil || now != mark {
		return errors.New("it has changed since")
	}
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		return unix.Unlinkat(s.fd, name, 0)
	}
	dir, err := unix.Openat(s.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(dir), name)
	defer d.Close()
	names, _ := d.Readdirnames(maxDropped + 1)
	for _, n := range names {
		if strings.HasSuffix(n, ".hcr") || strings.HasPrefix(n, ringstore.RecordingName) {
			if err := unix.Unlinkat(dir, n, 0); err != nil {
				return err
			}
		}
	}
	_ = unix.Unlinkat(dir, ".pull", unix.AT_REMOVEDIR)
	return unix.Unlinkat(s.fd, name, unix.AT_REMOVEDIR)
}

// recordingName makes a text from elsewhere the name of a recording: no other thing below Out is called so.
func recordingName(id string) string {
	parts := strings.Split(id, "-")
	for i := range parts {
		parts[i] = session.CleanName(parts[i])
	}
	id = strings.Join(parts, "-")
	if len(id) > 2*session.MaxName {
		id = id[len(id)-2*session.MaxName:]
	}
	if id = strings.TrimLeft(id, ".-"); id == "" || id == quota.IncidentsName {
		return "recording"
	}
	return id
}

// printable makes a text from elsewhere one line that may go to a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
