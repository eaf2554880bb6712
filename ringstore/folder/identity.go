package folder

import "encoding/json"

// Identity is whose recording a folder holds. PID is the agent's view, NSPID the JVM's own.
type Identity struct {
	Session    string // 32 hex digits
	Name       string
	PID        int
	UID        int // who may see it, beside root
	NSPID      uint32
	StartTicks uint64
	VM, Probe  string
}

// Describe is what recording.json holds.
func Describe(id Identity, counters json.RawMessage) ([]byte, error) {
	m := map[string]any{
		"schema": "heapcam.recording/1", "session": id.Session, "name": id.Name, "uid": id.UID,
		"pid": id.PID, "nspid": id.NSPID, "start_ticks": id.StartTicks, "vm": id.VM, "probe": id.Probe,
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
