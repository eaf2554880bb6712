//go:build unix

package ringstore

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/recording"
)

// TestForeignMember: members of another recording in a container, as operators make one of two.
func TestForeignMember(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	ring(t, a, session, "a", 2, 1000)
	ring(t, b, other, "b", 3, 2000)
	var whole bytes.Buffer
	if _, err := pull.Pull(context.Background(), a, &whole, pull.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, manifest := range []bool{true, false} {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		alien, _ := os.ReadFile(filepath.Join(b, "00000003.hcr"))
		w.WriteHeader(&tar.Header{Name: "00000003.hcr", Mode: 0o600, Size: int64(len(alien))})
		w.Write(alien)
		r := tar.NewReader(bytes.NewReader(whole.Bytes()))
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			m, _ := io.ReadAll(r)
			if h.Name != recording.ManifestName || manifest {
				w.WriteHeader(h)
				w.Write(m)
			}
		}
		w.Close()
		p := filepath.Join(t.TempDir(), "x.heapcam")
		os.WriteFile(p, out.Bytes(), 0o600)
		if got := texts(t, p); got != "a1,a2" {
			t.Errorf("readers get %s", got)
		}
		if v := verdictOf(t, p, "00000003.hcr"); v.State != "foreign" || !strings.Contains(v.Why, session[:8]) ||
			!strings.Contains(v.Why, other[:8]) {
			t.Errorf("%+v", v)
		}
		in, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pull.Import(context.Background(), []*os.File{in}, filepath.Join(t.TempDir(), "d"), 0, -1)
		in.Close()
		var foreign *folder.ForeignError
		if manifest && !errors.As(err, &foreign) {
			t.Errorf("taken in: %v", err)
		}
	}
}

// TestMixedIncident: files of two incidents in one folder.
func TestMixedIncident(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	ring(t, a, session, "a", 2, 1000)
	ring(t, b, other, "b", 3, 2000)
	inc := &incident.Incidents{Dir: filepath.Join(t.TempDir(), "incidents"), Max: 1 << 20}
	i, err := inc.Freeze(a, incident.Asked, "x")
	if err != nil {
		t.Fatal(err)
	}
	ring(t, filepath.Join(t.TempDir(), "more"), session, "a", 3, 1000)
	dir := inc.Path(i.ID)
	copyFile(t, filepath.Join(b, "00000003.hcr"), filepath.Join(dir, "00000003.hcr"))
	if v := verdictOf(t, dir, "00000003.hcr"); v.State != "foreign" {
		t.Errorf("%+v", v)
	}
	os.Remove(filepath.Join(dir, "00000003.hcr"))
	more := filepath.Join(t.TempDir(), "more")
	ring(t, more, session, "a", 3, 1000)
	copyFile(t, filepath.Join(more, "00000003.hcr"), filepath.Join(dir, "00000003.hcr"))
	if v := verdictOf(t, dir, "00000003.hcr"); v.State != "misplaced" {
		t.Errorf("a file of another incident of the same recording: %+v", v)
	}
	os.Remove(filepath.Join(dir, "00000003.hcr"))
	os.Remove(filepath.Join(dir, "00000001.hcr"))
	if v := verdictOf(t, dir, "00000001.hcr"); v.State != recording.Corrupt {
		t.Errorf("a file of the incident is gone: %+v", v)
	}
	copyFile(t, filepath.Join(b, folder.RecordingName), filepath.Join(dir, folder.RecordingName))
	if vs, err := recording.CheckPath(dir); err != nil || recording.Worst(vs) == recording.Sound {
		t.Errorf("two descriptions that do not agree: %v %v", vs, err)
	}
}

// TestContainerOfBefore: a container that an earlier version has pulled, whose manifest has no checksum, or that
// another tar has packed anew.
func TestContainerOfBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	ring(t, dir, session, "a", 2, 1000)
	var whole, out bytes.Buffer
	if _, err := pull.Pull(context.Background(), dir, &whole, pull.Options{}); err != nil {
		t.Fatal(err)
	}
	w, r := tar.NewWriter(&out), tar.NewReader(&whole)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		m, _ := io.ReadAll(r)
		if h.Name == recording.ManifestName {
			m = append(m[:len(m)-checksumLine], "\n}"...)
		}
		w.WriteHeader(&tar.Header{Name: "./" + h.Name, Uid: 7, Mode: 0o644, Size: int64(len(m)), Format: tar.FormatGNU})
		w.Write(m)
	}
	w.Close()
	out.Write(make([]byte, 8192)) // as GNU tar fills up
	p := filepath.Join(t.TempDir(), "x.heapcam")
	os.WriteFile(p, out.Bytes(), 0o600)
	if vs, err := recording.CheckPath(p); err != nil || len(vs) != 2 || recording.Worst(vs) != recording.Sound {
		t.Errorf("%+v %v", vs, err)
	}
	rec, err := recording.Open(p)
	if err != nil || rec.Manifest == nil || len(rec.Problems) > 0 {
		t.Fatal(rec, err)
	}
	rec.Close()
}

// TestDamagedIncident: an incident whose incident.json is damaged is listed, and does not go to make room.
func TestDamagedIncident(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	ring(t, dir, session, "a", 2, 1000)
	inc := &incident.Incidents{Dir: filepath.Join(t.TempDir(), "incidents"), Max: 1 << 20}
	i, err := inc.Freeze(dir, incident.Storm, "x")
	if err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(inc.Path(i.ID), folder.IncidentName)
	b, _ := os.ReadFile(p)
	b[bytes.Index(b, []byte(`"auto"`))+8] ^= 1
	os.WriteFile(p, b, 0o600)
	all, err := inc.List()
	if err != nil || len(all) != 1 || all[0].ID != i.ID || all[0].Damaged == "" || all[0].Auto {
		t.Errorf("%+v %v", all, err)
	}
	inc.Max = 1 << 15
	if _, err := inc.Freeze(dir, incident.Storm, "y"); !errors.Is(err, incident.ErrRoom) {
		t.Error(err)
	}
	if _, err := os.Stat(p); err != nil {
		t.Error(err)
	}
}
