package place

import (
	"bytes"
	"testing"
	"testing/iotest"
)

// TestHolds: a file is the library if all of it is, in whatever pieces it comes.
func TestHolds(t *testing.T) {
	lib := bytes.Repeat([]byte("library "), 20_000)
	changed := bytes.Clone(lib)
	changed[len(changed)-1] ^= 1
	for name, c := range map[string]struct {
		file []byte
		want bool
	}{
		"the library": {lib, true}, "nothing": {nil, false}, "less": {lib[:len(lib)-1], false},
		"more": {append(bytes.Clone(lib), 'x'), false}, "another last byte": {changed, false},
	} {
		if got := holds(bytes.NewReader(c.file), lib); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if got := holds(iotest.DataErrReader(iotest.HalfReader(bytes.NewReader(c.file))), lib); got != c.want {
			t.Errorf("%s, in pieces: %v", name, got)
		}
	}
	if holds(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(lib))), lib) {
		t.Error("a file that cannot be read is the library")
	}
}
