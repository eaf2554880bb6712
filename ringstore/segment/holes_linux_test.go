package segment

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestHole: what a file system knows to be a hole is not read. A file that was extended to a terabyte is one that was
// cut off.
func TestHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "00000001"+Suffix)
	head := Header{Session: "00112233445566778899aabbccddeeff", Number: 1}
	raw := append(head.Encode(), make([]byte, FrameSize)...)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip("not run: files with holes:", err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for _, err := range f.Headers() {
		if n++; !errors.Is(err, ErrTorn) {
			t.Errorf("%v, want a torn file", err)
		}
	}
	if n != 1 {
		t.Errorf("%d pieces of damage", n)
	}
}
