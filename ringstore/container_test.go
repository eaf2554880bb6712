package ringstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// anew3 writes a file that may be there: file systems flush one that is truncated and written again, which takes a
// hundred times as long.
func anew(p string, b []byte) error {
	os.Remove(p)
	return os.WriteFile(p, b, 0o600)
}

// FuzzDescriptions reads what is beside ring files: incident.json and recording.json.
func FuzzDescriptions(f *testing.F) {
	f.Add([]byte(`{"schema":"heapcam.incident/1","id":"x","jvm":"y","created":"2026-01-02T03:04:05Z",` +
		`"auto":true,"files":1,"bytes":2}`))
	f.Add([]byte(`{"schema":"heapcam.recording/1","session":"00112233445566778899aabbccddeeff",` +
		`"counters":{"a":1},"uid":-1}`))
	dir := f.TempDir()
	one, rec := filepath.Join(dir, "incidents", "y-20260102T030405Z"), filepath.Join(dir, "rec")
	for _, d := range []string{one, rec} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range []string{filepath.Join(one, folder.IncidentName), filepath.Join(rec, folder.RecordingName)} {
			if err := anew(p, b); err != nil {
				t.Fatal(err)
			}
		}
		n := &incident.Incidents{Dir: filepath.Join(dir, "incidents"), Max: 1 << 20}
		all, err := n.List()
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range all {
			if i.ID != filepath.Base(one) {
				t.Fatalf("an incident may not name itself: %q", i.ID)
			}
		}
		n.Find("y")
		folder.OwnerOf(rec)
		d := &description{fs: vfs.OS, dir: rec, id: folder.Identity{Session: "00112233445566778899aabbccddeeff"}}
		d.recall()
		if len(d.counters) > 2*maxCounters {
			t.Fatalf("%d bytes of counters", len(d.counters))
		}
	})
}
