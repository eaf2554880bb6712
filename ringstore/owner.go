package ringstore

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

// OwnerOf gives the user whose recording the folder dir, a ring or an incident, holds. Recordings that are older than this are root's (0).
func OwnerOf(dir string) (int, error) {
	b, err := readSmall(OS, filepath.Join(dir, RecordingName))
	if err != nil {
		return -1, err
	}
	var r struct {
		Schema string `json:"schema"`
		UID    int    `json:"uid"`
	}
	if err := json.Unmarshal(b, &r); err != nil || r.Schema != "heapcam.recording/1" {
		return -1, fmt.Errorf("%s: not a description of a recording (%v)", filepath.Join(dir, RecordingName), err)
	}
	return r.UID, nil
}
