package resource

import (
	"archive/zip"
	"bufio"
	"errors"
	"io"
	"strings"
)

const (
	maxJar      = 2 << 30  // bytes of an archive that is looked into
	maxJarRead  = 16 << 20 // bytes that are read of it: its directory, and two small files
	maxManifest = 64 << 10
)

// identity is what an archive says of itself.
type identity struct{ name, version string }

// limited reads at most a number of bytes of a file: a hostile directory could have all of it read.
type limited struct {
	r    io.ReaderAt
	left int64
}

var errMuch = errors.New("the archive's directory is too large")

func (l *limited) ReadAt(b []byte, at int64) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, errMuch
	}
	return l.r.ReadAt(b, at)
}

// ofJar reads Spring Boot's application.properties and the manifest of a jar; file is its name.
func ofJar(r io.ReaderAt, size int64, file string) (id identity) {
	if size > maxJar {
		return id
	}
	z, err := zip.NewReader(&limited{r, maxJarRead}, size)
	if err != nil {
		return id
	}
	properties := fields(z, "BOOT-INF/classes/application.properties", "=")
	id.name = properties["spring.application.name"]
	if strings.Contains(id.name, "${") {
		id.name = ""
	}
	m := fields(z, "META-INF/MANIFEST.MF", ":")
	for _, k := range []string{"Implementation-Title", "Bundle-SymbolicName", "Specification-Title"} {
		if id.name == "" {
			id.name = m[k]
		}
	}
	for _, k := range []string{"Implementation-Version", "Bundle-Version"} {
		if id.version == "" {
			id.version = m[k]
		}
	}
	if id.version == "" {
		_, id.version = cutVersion(strings.TrimSuffix(strings.TrimSuffix(file, ".jar"), ".war"))
	}
	return id
}

// fields reads lines KEY sep VALUE of a member.
func fields(z *zip.Reader, name, sep string) map[string]string {
	out := map[string]string{}
	for _, m := range z.File {
		if m.Name != name {
			continue
		}
		f, err := m.Open()
		if err != nil {
			return out
		}
		defer f.Close()
		last := ""
		for s := bufio.NewScanner(io.LimitReader(f, maxManifest)); s.Scan(); {
			if cont, ok := strings.CutPrefix(s.Text(), " "); ok && sep == ":" && last != "" { // a long line goes on
				out[last] += cont
				continue
			}
			if k, v, ok := strings.Cut(s.Text(), sep); ok {
				last = strings.TrimSpace(k)
				if _, again := out[last]; !again {
					out[last] = strings.TrimSpace(v)
				}
			}
		}
		return out
	}
	return out
}
