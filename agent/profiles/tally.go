package profiles

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/heapcam/heapcam/agent/logs"
)

// TallyName is the file that counts what a killed agent loses, in the folder for recordings.
const TallyName = ".profiles.count"

// tallyForm has one size for all numbers, so that a write replaces all of it. A kill leaves the last one that was
// written, since the kernel has it; it is not synced.
const tallyForm = "heapcam.profiles/1 waiting=%020d pushed=%020d dropped=%020d\n"

// tally is what outlives an agent: how many profiles wait in its memory, and what agents have pushed and dropped.
//
// Owner: a pusher. It has a lock of its own, which is taken before the pusher's: status must not wait for a disk that
// hangs.
type tally struct {
	mu      sync.Mutex
	f       *os.File // nil: nothing is kept
	written string
	broken  bool // an error was logged
}

// open opens the file, and reads what the agent before has counted; ok: it has. Nobody but the agent writes in its
// folder, so the name leads nowhere else.
func (t *tally) open(out string) (waiting, pushed, dropped uint64, ok bool, err error) {
	if out == "" {
		return 0, 0, 0, false, nil
	}
	f, err := os.OpenFile(filepath.Join(out, TallyName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, 0, 0, false, err
	}
	t.f = f
	b := make([]byte, len(fmt.Sprintf(tallyForm, 0, 0, 0)))
	n, _ := f.ReadAt(b, 0)
	if _, err := fmt.Sscanf(string(b[:n]), tallyForm, &waiting, &pushed, &dropped); err != nil ||
		string(b) != fmt.Sprintf(tallyForm, waiting, pushed, dropped) {
		return 0, 0, 0, false, nil
	}
	return waiting, pushed, dropped, true, nil
}

// write writes the numbers, if they are others than before.
func (t *tally) write(waiting, pushed, dropped uint64) error {
	text := fmt.Sprintf(tallyForm, waiting, pushed, dropped)
	if t.f == nil || text == t.written {
		return nil
	}
	if _, err := t.f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	t.written = text
	return nil
}

// note writes how the queue stands. The caller holds no lock.
func (p *pusher) note() {
	t := &p.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	p.mu.Lock()
	waiting, pushed, dropped := uint64(len(p.queue)), p.st.Pushed, p.st.Dropped
	p.mu.Unlock()
	err := t.write(waiting, pushed, dropped)
	if err != nil && !t.broken {
		logs.Write(&p.cfg.Log, logs.ProfilesNotCounted, logs.Err.Of(err))
	}
	t.broken = err != nil
}

// end closes the file, behind keep.
func (p *pusher) end() {
	p.tally.mu.Lock()
	defer p.tally.mu.Unlock()
	if p.tally.f != nil {
		p.tally.f.Close()
		p.tally.f = nil
	}
}

// recount takes over what agents before have counted, and counts what the last one had and did not keep: kept profiles
// are in the file.
func (p *pusher) recount(kept int) {
	p.tally.mu.Lock()
	waiting, pushed, dropped, ok, err := p.tally.open(p.cfg.Out)
	p.tally.mu.Unlock()
	if err != nil {
		logs.Write(&p.cfg.Log, logs.ProfilesNotCounted, logs.Err.Of(err))
	}
	lost := uint64(0)
	if ok && waiting > uint64(kept) {
		lost = waiting - uint64(kept)
		logs.Write(&p.cfg.Log, logs.ProfilesLost, logs.Profiles.Of(lost))
	}
	p.mu.Lock()
	p.st.Pushed += pushed
	p.st.Dropped += dropped + lost
	p.mu.Unlock()
	p.note()
}
