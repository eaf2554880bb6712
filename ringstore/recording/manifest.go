package recording

import (
	"encoding/json"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

const ManifestName = "manifest.json"

// Manifest is the last member of a container: what it holds.
type Manifest struct {
	Schema  string    `json:"schema"` // heapcam.manifest/1
	Created time.Time `json:"created"`
	Host    string    `json:"host,omitempty"`
	Name    string    `json:"name"`
	Session string    `json:"session"`
	PID     uint32    `json:"pid"`
	FirstGC uint64    `json:"first_gc"`
	LastGC  uint64    `json:"last_gc"`
	FromNS  uint64    `json:"from_ns"` // times of the stream
	ToNS    uint64    `json:"to_ns"`
	// ZeroUnixNS is the Unix time of the stream's zero, ns, where instants were asked for. Exact: it was cut at
	// collections.
	ZeroUnixNS int64 `json:"zero_unix_ns,omitempty"`
	Exact      bool  `json:"exact,omitempty"`

	Files   []ManifestFile `json:"files"`
	Dropped []string       `json:"dropped,omitempty"` // files that the ring evicted while they were pulled
	// numbers between the first and the last file that are in no file
	Missing []uint64 `json:"missing,omitempty"`
	// files that were copied as they are since they cannot be read whole
	Damaged  []string `json:"damaged,omitempty"`
	Redacted bool     `json:"redacted,omitempty"`
	// Incident says that it is of an incident, which was kept for Reason; Ended: its JVM had ended.
	Incident bool   `json:"incident,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Ended    bool   `json:"ended,omitempty"`
	// Foreign are files of other recordings that lay in the folder. They were not pulled.
	Foreign []ForeignFile `json:"foreign,omitempty"`
	// Resource says whose JVM it was.
	Resource trace.Resource `json:"resource,omitempty"`
}

// ForeignFile is a ring file of another recording.
type ForeignFile struct {
	Name    string `json:"name"`
	Session string `json:"session"`
}

// ManifestFile is one member.
type ManifestFile struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	FirstGC uint64 `json:"first_gc,omitempty"`
	LastGC  uint64 `json:"last_gc,omitempty"`
}

// decodeManifest reads a manifest; path is for errors: *DamageError, *TooNewError.
func decodeManifest(path string, b []byte) (*Manifest, error) {
	if err := folder.CheckKind(path, b, "manifest"); err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, segment.Corrupt(path, 0, err.Error())
	}
	m.Resource = m.Resource.Clean()
	return &m, nil
}

// Add counts a file in.
func (m *Manifest) Add(f *segment.File, w segment.FrameInfo) {
	if w.FirstGC > 0 && (m.FirstGC == 0 || w.FirstGC < m.FirstGC) {
		m.FirstGC = w.FirstGC
	}
	m.LastGC = max(m.LastGC, w.LastGC)
	if w.T1 > 0 {
		if m.ToNS == 0 || w.T0 < m.FromNS {
			m.FromNS = w.T0
		}
		m.ToNS = max(m.ToNS, w.T1)
	}
	m.Session, m.PID = f.Session, f.PID()
}
