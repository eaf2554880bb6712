package folder

import (
	"encoding/json"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/vfs"
	"github.com/heapcam/heapcam/trace"
)

// Identity is whose recording a folder holds. PID is the agent's view, NSPID the JVM's own.
type Identity struct {
	Session    string // 32 hex digits
	Name       string
	PID        int
	UID        int // who may see it, beside root
	NSPID      uint32
	StartTicks uint64
	VM, Probe  string
	Resource   trace.Resource // nil: not known
}

// Describe is what recording.json holds.
func Describe(id Identity, counters json.RawMessage) ([]byte, error) {
	m := map[string]any{
		"schema": "heapcam.recording/1", "session": id.Session, "name": id.Name, "uid": id.UID,
		"pid": id.PID, "nspid": id.NSPID, "start_ticks": id.StartTicks, "vm": id.VM, "probe": id.Probe,
	}
	if len(id.Resource) > 0 {
		m["resource"] = id.Resource
	}
	if counters != nil {
		m["counters"] = counters
	}
	return EncodeDocument(m)
}

// RecordingName is the file of a ring folder that says whose it is (heapcam.recording/1), for people and for status.
const RecordingName = "recording.json"

// IncidentName is the file of an incident's folder that says what was kept, and why (heapcam.incident/1).
const IncidentName = "incident.json"

// ReadCounters gives what the recorder of a folder has counted, a JSON document; nil: nothing.
func ReadCounters(fs vfs.FS, dir string) []byte {
	path := filepath.Join(dir, RecordingName)
	b, err := vfs.ReadSmall(fs, path)
	var m struct {
		Counters json.RawMessage `json:"counters"`
	}
	if err != nil || CheckDocument(path, b) != nil || json.Unmarshal(b, &m) != nil {
		return nil
	}
	return m.Counters
}

// ReadResource gives the attributes that recording.json of a folder holds; nil: none.
func ReadResource(fs vfs.FS, dir string) trace.Resource {
	path := filepath.Join(dir, RecordingName)
	b, err := vfs.ReadSmall(fs, path)
	var m struct {
		Resource trace.Resource `json:"resource"`
	}
	if err != nil || CheckDocument(path, b) != nil || json.Unmarshal(b, &m) != nil {
		return nil
	}
	return m.Resource.Clean()
}
