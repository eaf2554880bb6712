package ringstore

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// sparse makes a container of n members that each store b and say that they are size bytes long.
func sparse(n, size int, b []byte) []byte {
	var out bytes.Buffer
	for i := range n {
		h := make([]byte, 512)
		copy(h, fmt.Sprintf("%08d.hcr", i+1))
		copy(h[100:], "0000600\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00", len(b)))
		h[156] = 'S'
		copy(h[257:], "ustar  \x00")
		copy(h[386:], fmt.Sprintf("%011o\x00%011o\x00", 0, len(b)))
		copy(h[483:], fmt.Sprintf("%011o\x00", size))
		copy(h[148:], "        ")
		sum := 0
		for _, c := range h {
			sum += int(c)
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		out.Write(h)
		out.Write(b)
		out.Write(make([]byte, (512-len(b)%512)%512))
	}
	return out.Bytes()
}

// FuzzImport takes in whatever it is given: what comes of it is sound and no larger than that, or nothing is there.
func FuzzImport(f *testing.F) {
	var whole bytes.Buffer
	t := tar.NewWriter(&whole)
	file := func(index uint64) []byte {
		h := segment.Header{Number: index, Session: "00112233445566778899aabbccddeeff"}
		return append(h.Encode(), make([]byte, segment.HeaderSize-len(h.Encode()))...)
	}
	m := []byte(`{"schema":"heapcam.manifest/1","name":"Shop-1-x"}`)
	add := func(name string, b []byte) {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b))})
		t.Write(b)
	}
	add("00000001.hcr", file(1))
	add("../../00000002.hcr", file(2))
	add(recording.ManifestName, m)
	t.Close()
	var over bytes.Buffer
	over.Write(sparse(8, 1<<20, file(3)))
	t = tar.NewWriter(&over)
	add(recording.ManifestName, m)
	t.Close()
	f.Add(whole.Bytes())
	f.Add(whole.Bytes()[:whole.Len()/2])
	f.Add(over.Bytes())
	f.Add(file(4))
	p := filepath.Join(f.TempDir(), "x")
	dir := filepath.Join(f.TempDir(), "taken")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		defer os.RemoveAll(dir)
		if _, err := pull.Import(context.Background(), []*os.File{in}, dir, 1000, int64(len(b))+vfs.Block); err != nil {
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Fatalf("it is there after an error: %v", err)
			}
			return
		}
		names, err := filepath.Glob(filepath.Join(dir, "*"+segment.Suffix))
		if err != nil {
			t.Fatal(err)
		}
		var size int64
		for _, n := range names {
			st, err := os.Stat(n)
			if err != nil {
				t.Fatal(err)
			}
			size += st.Size()
		}
		if uid, err := folder.OwnerOf(dir); err != nil || uid != 1000 || size > int64(len(b)) || len(names) == 0 {
			t.Fatalf("uid %d (%v), %d bytes of %d, %d files", uid, err, size, len(b), len(names))
		}
	})
}

// TestImportOverlap demands that members which claim each other's bytes are refused before anything is copied.
func TestImportOverlap(t *testing.T) {
	h := segment.Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	b := append(h.Encode(), make([]byte, 4096)...)
	p := filepath.Join(t.TempDir(), "x.heapcam")
	var out bytes.Buffer
	out.Write(sparse(8, 1<<20, b))
	w := tar.NewWriter(&out)
	m := []byte(`{"schema":"heapcam.manifest/1"}`)
	w.WriteHeader(&tar.Header{Name: recording.ManifestName, Mode: 0o600, Size: int64(len(m))})
	w.Write(m)
	w.Close()
	if err := os.WriteFile(p, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	_, err = pull.Import(context.Background(), []*os.File{in}, filepath.Join(t.TempDir(), "d"), 0, -1)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("larger than it is")) {
		t.Errorf("%v", err)
	}
}
