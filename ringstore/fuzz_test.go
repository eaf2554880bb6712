package ringstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// FuzzPlace: a document is whole, damaged or too new, whatever it holds, and one that we make of its fields is whole
// and no longer so when a byte of it changes; a file's name gives a number only as we write it; the session of files
// that vote is one of theirs, in whatever order they come.
func FuzzPlace(f *testing.F) {
	f.Add([]byte(`{"schema":"heapcam.recording/1","session":"00112233445566778899aabbccddeeff"}`), "00000001.hcr",
		uint16(3))
	f.Add([]byte("{\n  \"a\": 1,\n  \"crc32c\": \"00000000\"\n}"), "x.tar:00000001.hcr", uint16(0))
	f.Add([]byte(`{"crc32c":"","CRC32C":[[[[]]]],"schema":1e99}`), "+0000001.hcr", uint16(9))
	f.Fuzz(func(t *testing.T, b []byte, name string, at uint16) {
		folder.CheckDocument(name, b)
		folder.CheckKind(name, b, "recording")
		var m map[string]any
		if json.Unmarshal(b, &m) == nil && len(m) > 0 {
			d, err := folder.EncodeDocument(m)
			if err != nil || folder.CheckDocument(name, d) != nil {
				t.Fatalf("our own document: %v, %v: %s", err, folder.CheckDocument(name, d), d)
			}
			d[int(at)%len(d)] ^= 1 << (at % 7)
			if folder.CheckDocument(name, d) == nil {
				t.Fatalf("damaged at %d and whole: %s", int(at)%len(d), d)
			}
		}
		if n, ok := segment.ParseName(name); ok && !strings.Contains(name, fmt.Sprint(n)) {
			t.Fatalf("%q is number %d", name, n)
		}
		var hs []folder.Origin
		for i := 0; i+2 <= len(b) && i < 64; i += 2 {
			hs = append(hs, folder.Origin{Session: strings.Repeat(string(rune('a'+b[i]%6)), 32),
				Created: uint64(b[i+1])})
		}
		own := folder.OwnSession("", hs)
		for i, j := 0, len(hs)-1; i < j; i, j = i+1, j-1 {
			hs[i], hs[j] = hs[j], hs[i]
		}
		if again := folder.OwnSession("", hs); again != own || len(hs) > 0 && !folder.IsSession(own) {
			t.Fatalf("session %q, and %q in another order", own, again)
		}
	})
}
