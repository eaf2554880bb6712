package place

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// libraryName names a library by its content.
func libraryName(b []byte) string {
	sum := sha256.Sum256(b)
	return "libheapcam-" + hex.EncodeToString(sum[:8]) + ".so"
}

// holds says whether r gives b and nothing else; it reads no more than needed to tell.
func holds(r io.Reader, b []byte) bool {
	have, err := io.ReadAll(io.LimitReader(r, int64(len(b))+1))
	return err == nil && bytes.Equal(have, b)
}
