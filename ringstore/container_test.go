package ringstore

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// anew writes a file that may be there: file systems flush one that is truncated and written again, which takes a hundred times as long.
func anew(p string, b []byte) error {
	os.Remove(p)
	return os.WriteFile(p, b, 0o600)
}

// FuzzContainer opens whatever it is given as a recording and reads all of it.
func FuzzContainer(f *testing.F) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	h := Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	file := encodeFrame(h.Encode(), Frame{Raw: 16}, make([]byte, 16))
	m := []byte(`{"schema":"heapcam.manifest/1"}`)
	for name, c := range map[string][]byte{"00000001.hcr": file, manifestName: m} {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(c))})
		t.Write(c)
	}
	t.Close()
	f.Add(b.Bytes())
	f.Add(file)
	f.Add(m)
	p := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		decodeManifest("x", b)
		r, err := OpenRecording(p)
		if err != nil {
			return
		}
		defer r.Close()
		for _, f := range r.Files {
			for _, err := range f.Blocks() {
				_ = err
			}
		}
		r.Check()
	})
}

// FuzzPart goes on with whatever an interrupted pull is said to have left.
func FuzzPart(f *testing.F) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	h := Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	file := encodeFrame(h.Encode(), Frame{Raw: 16}, make([]byte, 16))
	for _, name := range []string{"00000001.hcr", "00000002.hcr"} {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(file))})
		t.Write(file)
	}
	t.Flush()
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-100])
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00000001.hcr"), file, 0o600); err != nil {
		f.Fatal(err)
	}
	names, err := ringFilesIn(OS, dir)
	if err != nil {
		f.Fatal(err)
	}
	p := filepath.Join(f.TempDir(), "x.part")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		part, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Close()
		got, err := ReadPart(part)
		if err != nil {
			return
		}
		if at := got.Trim(dir, OS); at < 0 || at > int64(len(b)) {
			t.Fatalf("cut at %d of %d", at, len(b))
		}
		(&puller{m: &Manifest{}, opt: PullOptions{Part: got}}).resume(names)
	})
}

// FuzzDescriptions reads what stands beside ring files: incident.json and recording.json.
func FuzzDescriptions(f *testing.F) {
	f.Add([]byte(`{"schema":"heapcam.incident/1","id":"x","jvm":"y","created":"2026-01-02T03:04:05Z","auto":true,"files":1,"bytes":2}`))
	f.Add([]byte(`{"schema":"heapcam.recording/1","session":"00112233445566778899aabbccddeeff","counters":{"a":1},"uid":-1}`))
	dir := f.TempDir()
	one, rec := filepath.Join(dir, "incidents", "y-20260102T030405Z"), filepath.Join(dir, "rec")
	for _, d := range []string{one, rec} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range []string{filepath.Join(one, incidentName), filepath.Join(rec, RecordingName)} {
			if err := anew(p, b); err != nil {
				t.Fatal(err)
			}
		}
		n := &Incidents{Dir: filepath.Join(dir, "incidents"), Max: 1 << 20}
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
		OwnerOf(rec)
		d := &description{fs: OS, dir: rec, id: Identity{Session: "00112233445566778899aabbccddeeff"}}
		d.recall()
		if len(d.counters) > 2*maxCounters {
			t.Fatalf("%d bytes of counters", len(d.counters))
		}
	})
}
