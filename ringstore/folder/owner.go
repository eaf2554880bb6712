package folder

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// OwnerOf gives the user whose recording the folder dir, a ring or an incident, holds. Recordings that are older than
// this are root's (0).
func OwnerOf(dir string) (int, error) {
	b, err := vfs.ReadSmall(vfs.OS, filepath.Join(dir, RecordingName))
	if err != nil {
		return -1, err
	}
	var r struct {
		UID int `json:"uid"`
	}
	err = CheckKind(filepath.Join(dir, RecordingName), b, "recording")
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return -1, fmt.Errorf("not a description of a recording: %w", err)
	}
	return r.UID, nil
}
