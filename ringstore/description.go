package ringstore

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// description is recording.json: whose recording the folder holds, and what the recorder counts.
//
// Owner: a store. Concurrency: one goroutine; text is a copy that another one may write.
type description struct {
	fs       vfs.FS
	dir      string
	id       folder.Identity
	counters json.RawMessage
	stale    bool // it is still to be written
}

// maxCounters bounds what KeepCounters takes, bytes: recording.json stays within its block.
const maxCounters = 2048

// keep takes the counters of the recorder, which are written with the next sync.
func (d *description) keep(b []byte) error {
	if len(b) > maxCounters || !json.Valid(b) {
		return fmt.Errorf("counters of %d bytes: a JSON document of at most %d", len(b), maxCounters)
	}
	d.counters = append(json.RawMessage(nil), b...)
	d.stale = true
	return nil
}

// recall reads the counters that a recorder before has kept.
func (d *description) recall() {
	b, err := vfs.ReadSmall(d.fs, filepath.Join(d.dir, folder.RecordingName))
	if err != nil {
		return
	}
	var r struct {
		Session  string          `json:"session"`
		Counters json.RawMessage `json:"counters"`
	}
	if folder.CheckDocument(d.dir, b) == nil && json.Unmarshal(b, &r) == nil && r.Session == d.id.Session &&
		len(r.Counters) <= 2*maxCounters { // indented
		d.counters = r.Counters
	}
}

// text gives what the file is to hold.
func (d *description) text() ([]byte, error) { return folder.Describe(d.id, d.counters) }

// write writes it if that is still to be done.
func (d *description) write() error {
	if !d.stale {
		return nil
	}
	b, err := d.text()
	if err == nil {
		err = d.fs.WriteFile(filepath.Join(d.dir, folder.RecordingName), b)
	}
	d.stale = err != nil
	return err
}
