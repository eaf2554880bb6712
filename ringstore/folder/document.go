package folder

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/ringstore/segment"
)

// Documents (recording.json, incident.json, a container's manifest.json) are JSON objects, indented. The last line of
// each holds the checksum of what is before its digits; part of the format (docs/format/ring-file.md). Those of
// earlier versions have none, and are believed.
const (
	sumBefore = ",\n  \"crc32c\": \""
	sumAfter  = "\"\n}"
	sumLine   = len(sumBefore) + 8 + len(sumAfter)

	// sumAlike is how many bytes of a last line, its digits apart, make it one that holds a checksum: one that is
	// damaged is not taken for none.
	sumAlike = len(sumBefore) + len(sumAfter) - 2
)

// EncodeDocument makes v, an object with members, a document.
func EncodeDocument(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-len("\n}")], sumBefore...)
	b = fmt.Appendf(b, "%08x", segment.Checksum(b))
	return append(b, sumAfter...), nil
}

// CheckDocument says whether b, read from path, is what was written: a *DamageError if not. What it means is not looked
// at.
func CheckDocument(path string, b []byte) error {
	if !json.Valid(b) {
		return segment.Corrupt(path, 0, "it is not a whole JSON document")
	}
	if len(b) < sumLine {
		return nil
	}
	at := len(b) - sumLine
	digits := at + len(sumBefore)
	alike := 0
	for i := range sumLine {
		switch {
		case i < len(sumBefore) && b[at+i] == sumBefore[i]:
			alike++
		case i >= len(sumBefore)+8 && b[at+i] == sumAfter[i-len(sumBefore)-8]:
			alike++
		}
	}
	if alike < sumAlike {
		return nil
	}
	if string(b[at:]) != fmt.Sprintf("%s%08x%s", sumBefore, segment.Checksum(b[:digits]), sumAfter) {
		return segment.Corrupt(path, 0, "the checksum of the document is wrong")
	}
	return nil
}

// documentVersion is the newest version of each kind of document.
const documentVersion = 1

// CheckKind is CheckDocument, and the schema must be that of kind. Errors: *DamageError, *TooNewError.
func CheckKind(path string, b []byte, kind string) error {
	if err := CheckDocument(path, b); err != nil {
		return err
	}
	var d struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return segment.Corrupt(path, 0, err.Error())
	}
	v, ok := strings.CutPrefix(d.Schema, "heapcam."+kind+"/")
	n, err := strconv.ParseUint(v, 10, 32)
	switch {
	case !ok || err != nil || n == 0:
		return segment.Corrupt(path, 0, fmt.Sprintf("schema %q is not heapcam.%s/%d", d.Schema, kind, documentVersion))
	case n > documentVersion:
		return &segment.TooNewError{File: path, Version: uint32(n), Reads: documentVersion}
	}
	return nil
}
