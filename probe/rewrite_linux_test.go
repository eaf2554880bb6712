package probe

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestRewrite rewrites the classes of the jars that are here, and 100,000 that were changed, under AddressSanitizer.
func TestRewrite(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: rewriting classes (there is no gcc)")
	}
	most, mutations := 64<<20, "100000"
	switch {
	case tiers.Short():
		most, mutations = 8<<20, "10000"
		t.Log("not run: 20,000 more damaged classes (HEAPCAM_GATE=1, as .ci/run sets it)")
	case !tiers.Full():
		mutations = "30000"
		t.Log("not run: 70,000 more damaged classes (make test-full)")
	}
	var in bytes.Buffer
	jars, _ := filepath.Glob("/usr/share/java/*.jar")
	for _, jar := range jars {
		if in.Len() > most {
			break
		}
		addClasses(&in, jar)
	}
	if in.Len() == 0 {
		t.Skip("not run: rewriting classes (there are no jars in /usr/share/java)")
	}
	bin := filepath.Join(t.TempDir(), "rewrite")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror", "-Isrc", "testdata/rewrite.c", "src/rewrite.c",
		"src/rewritecode.c", "src/rewritemade.c", "src/rewriteuse.c", "src/rewriteflow.c", "src/bytecode.c", "-o",
		bin).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"all"}, {"mutate", mutations}, {"uses", "all"},
		{"uses", "mutate", mutations}} {
		c := exec.Command(bin, args...)
		var said bytes.Buffer
		c.Stdin, c.Stderr = bytes.NewReader(in.Bytes()), &said
		if err := c.Run(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, said.Bytes())
		}
		t.Log(strings.TrimSpace(said.String()))
	}
}

func addClasses(to *bytes.Buffer, jar string) {
	z, err := zip.OpenReader(jar)
	if err != nil {
		return
	}
	defer z.Close()
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".class") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			continue
		}
		b, err := io.ReadAll(r)
		_ = r.Close()
		if err == nil {
			_ = binary.Write(to, binary.BigEndian, uint32(len(b)))
			to.Write(b)
		}
	}
}
