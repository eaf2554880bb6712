package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// recordings lists the ring folders below dirs, newest first within each, with what is known without a replay.
func recordings(dirs []string) ([]session.Status, error) {
	var out []session.Status
	at := jvms.Recorders()
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) && len(dirs) > 1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			if s, ok := onDisk(filepath.Join(d, e.Name())); ok {
				if who := at.Of(s.Dir); who != "" {
					s.Phase, s.Reason = session.Recording, who
				}
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// closedTo gives the first folder in which verbs look for recordings and that this user may not read, or "".
func closedTo(out string) string {
	for _, d := range outDirs(out) {
		if _, err := os.ReadDir(d); errors.Is(err, os.ErrPermission) {
			return d
		}
	}
	return ""
}

// mayRead says that this user may read the folder dir, as far as is known before the disk answers.
func mayRead(dir string) bool {
	if os.Geteuid() == 0 {
		return true
	}
	err, answered := untilStuck(diskWait, func(func()) error {
		_, err := os.ReadDir(dir)
		return err
	})
	return !answered || !errors.Is(err, os.ErrPermission)
}

// orDenied replaces the error that there is no such recording where it may be in a folder that the user may not read.
func orDenied(err error, out string, ref ...string) error {
	d := closedTo(out)
	if d == "" || exitCode(err) != exitNotFound {
		return err
	}
	if len(ref) == 0 {
		return withCode(exitDenied, "you may not read %s: copy a recording with `heapcam pull JVM -o FILE` and read "+
			"FILE, or run this command as root", d)
	}
	return withCode(exitDenied, "%q: there is no such file, and you may not read %s: copy the recording with `heapcam "+
		"pull %s -o FILE` and read FILE, or run this command as root", ref[0], d, ui.ShellWord(ref[0]))
}

// allRecordings lists the recordings below out. Without out it adds those that the agent reports, in any folder.
func allRecordings(out string) ([]session.Status, error) {
	recs, err := recordings(outDirs(out))
	if err != nil || out != "" {
		return recs, err
	}
	known := map[string]bool{}
	for _, s := range recs {
		known[s.Dir] = true
	}
	st, _ := agentStatus()
	for _, s := range st.JVMs {
		if !known[s.Dir] && isRecording(s.Dir) {
			recs = append(recs, s)
		}
	}
	return recs, nil
}

// agentStatus asks the agent of this host, if one answers.
func agentStatus() (st api.StatusReply, ok bool) {
	cl, err := dialAgent("")
	if err != nil {
		return st, false
	}
	ctx, stop := context.WithTimeout(context.Background(), diskWait)
	defer stop()
	if st, err = cl.Status(ctx); err != nil {
		return api.StatusReply{}, false
	}
	return st, true
}

// ringFiles gives the ring files of a folder, by name. (filepath.Glob would read the folder's name as a pattern.)
func ringFiles(dir string) (files []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".hcr") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}

// incidentTime ends the ID of an incident, after that of its recording.
var incidentTime = regexp.MustCompile(`-\d{8}T\d{6}Z(-\d+)?$`)

// splitID gives name and pid of NAME-PID-START[-SESSION], or of an incident of that recording.
func splitID(id string) (name string, pid int) {
	parts := strings.Split(incidentTime.ReplaceAllString(id, ""), "-")
	for i := len(parts) - 2; i > 0; i-- {
		if n, err := strconv.Atoi(parts[i]); err == nil && n > 0 {
			return strings.Join(parts[:i], "-"), n
		}
	}
	return id, 0
}

// setAside says that a verb read a recording without files of another one that lay in its folder: it then ends with
// exitDamaged, since who put them there may have meant something else.
var setAside atomic.Bool

// openRecording opens the recording that a FILE argument names. A folder that contains exactly one ring folder stands
// for that one. Damaged files are left out, and reported on stderr.
func openRecording(path string) (*ringstore.Recording, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if _, ok := onDisk(path); !ok {
			if path, err = onlyBelow(path); err != nil {
				return nil, err
			}
		}
	}
	r, err := openStored(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		return nil, fmt.Errorf("cannot open %s: %w", at.Path, at.Err)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range r.Problems {
		what := "left out"
		switch {
		case errors.Is(p, ringstore.ErrTorn):
			what = "incomplete"
		case !ringstore.LeftOut(p):
			what = "warning"
		}
		ui.Fprintf(ui.Stderr, "heapcam: %s: %v\n", what, p)
		var foreign *ringstore.ForeignError
		if errors.As(p, &foreign) {
			setAside.Store(true)
		}
	}
	if len(r.Files) == 0 {
		r.Close()
		return nil, withCode(exitDamaged, "%s: heapcam cannot read any of its files; `heapcam verify` says what "+
			"is wrong", path)
	}
	if ui.IsTerminal(ui.RawStderr()) {
		total, done := int64(0), int64(0)
		for _, f := range r.Files {
			total += f.Size
		}
		p := ui.NewProgress("reading")
		var mu sync.Mutex     // a source that is no longer used may still read ahead
		r.Watch(func(n int) { // some verbs read twice
			mu.Lock()
			defer mu.Unlock()
			done += int64(n)
			p.At(done, ((done-1)/total+1)*total)
			if done%total < int64(n) {
				p.Done()
			}
		})
	}
	return r, nil
}

// onlyBelow gives the only ring folder in dir. Of several it lists all.
func onlyBelow(dir string) (string, error) {
	recs, err := recordings([]string{dir})
	switch {
	case err != nil:
		return "", err
	case len(recs) == 1:
		return recs[0].Dir, nil
	case len(recs) > 1:
		listRecordings(recs)
		return "", usage("%s contains %d recordings: name one of them, such as %s", dir, len(recs),
			filepath.Join(dir, recs[0].ID))
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if below := filepath.Join(dir, e.Name()); e.IsDir() && len(ringFolders(below)) > 0 {
			return "", withCode(exitNotFound, "%s contains no recording; %s does: name that folder", dir, below)
		}
	}
	return "", withCode(exitNotFound, "%s contains no recording (no ring files, *.hcr; symbolic links do not count)",
		dir)
}

// listRecordings prints the recordings of which the user must name one.
func listRecordings(recs []session.Status) {
	for _, r := range recs {
		ui.Fprintf(ui.Stderr, "  %s  %s, last data after collection %d\n", r.ID, ui.Bytes(r.TraceBytes), r.LastGC)
	}
}

func ringFolders(dir string) []string {
	recs, err := recordings([]string{dir})
	if err != nil {
		return nil
	}
	var out []string
	for _, s := range recs {
		out = append(out, s.Dir)
	}
	return out
}

// readAhead is how many bytes a source decompresses in advance, plus at most one frame. censusReadAhead is the same
// for a source without tokens, which takes little time.
const (
	readAhead       = 32 << 20
	censusReadAhead = 2 << 20
)

// source gives the blocks of files in order; see heap.BlockSource. It reads and decompresses in advance, in a
// goroutine of its own. Close it before the files.
type source struct {
	files []*ringstore.File
	of    func(*ringstore.File) iter.Seq2[trace.Block, error]
	most  int // bytes to decompress in advance
	out   chan unpacked
	room  chan int // bytes that the reader has received
	quit  chan struct{}
	ended chan struct{} // closed when the goroutine has ended
	watch func(trace.Block)
	damageLog
}

// damageLog is what a reader of blocks finds damaged.
type damageLog struct {
	// Damage has an error for each damaged section.
	Damage []error

	epoch  trace.Block // the newest
	after  uint64      // collection before the first damage, 0: none
	behind bool        // blocks follow the newest damage
}

// see takes in what was read.
func (d *damageLog) see(b trace.Block, err error) {
	switch {
	case err == nil:
		if d.behind = true; b.Kind == trace.KindEpoch && len(d.Damage) == 0 {
			d.epoch = b
		}
		return
	case len(d.Damage) == 0:
		if d.epoch.Kind == trace.KindEpoch {
			if e, err := trace.DecodeEpoch(d.epoch); err == nil {
				d.after = e.Pause.GC
			}
		}
		d.epoch = trace.Block{}
	}
	d.Damage, d.behind = append(d.Damage, err), false
}

// warn says in one line what is damaged in rec, nothing if nothing is. Each verb that reads prints it before its
// output.
func (d *damageLog) warn(rec *ringstore.Recording) {
	if len(d.Damage) == 0 {
		return
	}
	where, name := "", rec.Path
	var at *ringstore.DamageError
	if errors.As(d.Damage[0], &at) {
		where, name = fmt.Sprintf(" at byte %d", at.Offset), at.File
	}
	if n := len(d.Damage) - 1; n > 0 {
		where += fmt.Sprintf(" and at %s", ui.Plural(uint64(n), "more place"))
	}
	what := "is damaged"
	if len(d.Damage) == 1 && errors.Is(d.Damage[0], ringstore.ErrTorn) {
		what = "is cut off"
	}
	then := "No collection can be read before that."
	if d.after > 0 {
		then = fmt.Sprintf("After collection %d the heap state is unknown until the next sync point.", d.after)
		if !d.behind {
			then = fmt.Sprintf("Nothing after collection %d can be read.", d.after)
		}
	}
	ui.Fprintf(ui.Stderr, "heapcam: %s %s%s. %s `heapcam verify %s` shows what is lost.\n", ui.Path(name),
		ui.Text(what), ui.Text(where), ui.Text(then), ui.ShellWord(rec.Path))
}

// unpacked is a block, or the error that was found instead.
type unpacked struct {
	b   trace.Block
	err error
}

// newSource gives what a replay reads: all blocks, but not all parts of reference listings.
func newSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).BlocksWithoutReferences, most: readAhead}
}

// newWholeSource gives all blocks: for who checks a recording.
func newWholeSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).Blocks, most: readAhead}
}

// newCensusSource gives the blocks of newSource, with epochs without their tokens: for a counting replay.
func newCensusSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).BlocksWithoutTokens, most: censusReadAhead}
}

// newPauseSource gives what the collections took, without listings.
func newPauseSource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).Pauses, most: censusReadAhead}
}

// countFirst calls f with a counting replay of rec. If f says that this is not enough, it calls f with a replay that
// follows objects. Then it warns of damage.
func countFirst(rec *ringstore.Recording, f func(r heap.Reader) (enough bool, err error)) error {
	return countWatched(rec, nil, f)
}

// countWatched is countFirst for who looks at the blocks of the first replay.
func countWatched(
	rec *ringstore.Recording,
	watch func(trace.Block),
	f func(r heap.Reader) (enough bool, err error),
) error {
	for _, counts := range [...]bool{true, false} {
		src, reader := newSource(rec.Files...), replayOf
		if counts {
			src, reader = newCensusSource(rec.Files...), censusOf
			src.watch = watch
		}
		enough, err := f(reader(src))
		src.Close()
		if enough || err != nil {
			src.warn(rec)
			return err
		}
	}
	return nil
}

func replayOf(src heap.BlockSource) heap.Reader { return heap.NewReplay(src) }
func censusOf(src heap.BlockSource) heap.Reader { return heap.NewCensus(src) }

// ifNot gives err, but nil if err is what.
func ifNot(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

// newSummarySource gives only definitions and summaries.
func newSummarySource(files ...*ringstore.File) *source {
	return &source{files: files, of: (*ringstore.File).Summaries, most: readAhead}
}

// Next gives the next block, or the error of a damaged section, which it also adds to Damage.
func (s *source) Next() (trace.Block, error) {
	if s.out == nil {
		if s.files == nil {
			return trace.Block{}, io.EOF
		}
		s.out, s.room, s.quit, s.ended = make(chan unpacked, 256), make(chan int, 256), make(chan struct{}),
			make(chan struct{})
		go s.read(s.files)
	}
	u, ok := <-s.out
	if !ok {
		return trace.Block{}, io.EOF
	}
	select {
	case s.room <- len(u.b.Payload):
	case <-s.ended:
	}
	if s.see(u.b, u.err); s.watch != nil && u.err == nil {
		s.watch(u.b)
	}
	return u.b, u.err
}

func (s *source) read(files []*ringstore.File) {
	defer close(s.ended)
	defer close(s.out)
	ahead := 0
	for _, f := range files {
		for b, err := range s.of(f) {
			for sent := false; !sent; {
				out := s.out
				if ahead > s.most {
					out = nil
				}
				select {
				case out <- unpacked{b, err}:
					ahead += len(b.Payload)
					sent = true
				case n := <-s.room:
					ahead -= n
				case <-s.quit:
					return
				}
			}
		}
	}
}

// Close ends the goroutine.
func (s *source) Close() {
	if s.out != nil {
		close(s.quit)
		<-s.ended
	}
	s.out, s.files = nil, nil
}
