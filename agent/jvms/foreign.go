package jvms

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
)

// Kinds of VM that are not HotSpot, as they are named to users.
const (
	openJ9      = "Eclipse OpenJ9"
	nativeImage = "a GraalVM native image"
)

// otherVM gives the kind of a VM by its java.vm.name; "": HotSpot, or not known.
func otherVM(name string) string {
	switch {
	case strings.Contains(name, "J9"):
		return openJ9
	case strings.HasPrefix(name, "Substrate VM"):
		return nativeImage
	}
	return ""
}

// releaseLine reads one line of the JDK's release file.
func (j *JVM) releaseLine(line string) {
	key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
	value = strings.Trim(value, `"`)
	switch {
	case key == "JAVA_VERSION" && !j.PerfData: // the counters say it better
		j.Version = clean(value)
		j.Major = major(j.Version)
	case key == "JVM_VARIANT" && strings.EqualFold(value, "openj9"):
		j.other = openJ9
	case key == "GRAALVM_VERSION", key == "IMPLEMENTOR" && strings.Contains(value, "GraalVM"):
		j.graal = true
	}
}

// What is read of a program's ELF file, at most.
const (
	maxSections     = 4096
	maxSectionNames = 1 << 20
)

// isNativeImage says whether an ELF file of 64 bits, little-endian, is a program that GraalVM has compiled: it holds
// its heap in a section of its own. The file is its user's, so every offset is checked: debug/elf is not made for
// hostile files.
func isNativeImage(f io.ReaderAt) bool {
	const (
		header, row                    = 64, 64 // bytes
		tableAt, widthAt, rowsAt       = 40, 58, 60
		namesAt                        = 62
		rowNameAt, rowPlaceAt, rowSize = 0, 24, 32
	)
	le := binary.LittleEndian
	h := make([]byte, header)
	if _, err := f.ReadAt(h, 0); err != nil || !bytes.HasPrefix(h, []byte("\x7fELF\x02\x01")) {
		return false
	}
	table, rows, names := le.Uint64(h[tableAt:]), int(le.Uint16(h[rowsAt:])), int(le.Uint16(h[namesAt:]))
	if le.Uint16(h[widthAt:]) != row || rows > maxSections || names >= rows || table > 1<<62 {
		return false
	}
	t := make([]byte, rows*row)
	if _, err := f.ReadAt(t, int64(table)); err != nil {
		return false
	}
	place, size := le.Uint64(t[names*row+rowPlaceAt:]), le.Uint64(t[names*row+rowSize:])
	if place > 1<<62 || size > maxSectionNames {
		return false
	}
	text := make([]byte, size)
	if _, err := f.ReadAt(text, int64(place)); err != nil {
		return false
	}
	for i := range rows {
		at := uint64(le.Uint32(t[i*row+rowNameAt:]))
		if at < size && bytes.HasPrefix(text[at:], []byte(".svm_heap\x00")) {
			return true
		}
	}
	return false
}
