package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
)

// whoHolds gives what heapcam prints of the references of a recording.
func whoHolds(t *testing.T, dir string) (given [][]byte) {
	for _, verb := range [][]string{{"holders", "--class", "Secrets", dir}, {"dominators", dir},
		{"paths", "--class", "Secrets", dir}} {
		out, errs, code := heapcam(t, verb...)
		if code != 0 {
			t.Errorf("%v: status %d: %s", verb, code, errs)
		}
		given = append(given, []byte(out), []byte(errs))
	}
	return given
}

// TestSecrets plants secrets in field values, strings, arrays, environment, system properties, arguments and the name
// of a thread of a program that is recorded with every object and every allocation, and looks for them in all that
// heapcam keeps and tells: the recording with a reference listing as it is stored and decompressed, the shared ring,
// the agent's folder, log and status, a support bundle, and who holds the objects.
func TestSecrets(t *testing.T) {
	needReader(t)
	for _, names := range []string{"folded", "off", "full"} {
		t.Run(names, func(t *testing.T) {
			d := newDaemon(t, "--depth", "full", "--sampling", "0", "--thread-names", names, "-v")
			d.start(t)
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: 17, gc: "Serial", heap: "48m", main: "Secrets",
				args: []string{file, "secret-argument-7f3a"},
				opts: []string{"-Dhc.secret=secret-property-7f3a", "-Dsecret-name-7f3a=x"}}
			t.Setenv("HC_SECRET", "secret-environment-7f3a")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=visible-7f3a,card=secret-environment-7f3a")
			r := p.plain(t)
			await(t, "pid", func() bool { return r.pid() > 0 })
			if errs, code := d.attach(t, r.pidText()); code != 0 {
				t.Fatalf("attach: status %d: %s", code, errs)
			}
			var s session.Status
			await(t, "a recording", func() bool {
				for _, s = range d.status(t).JVMs {
					if s.LastGC > 3 && s.SyncPoints > 0 {
						return true
					}
				}
				return false
			})
			var given [][]byte
			var listing referencesReply
			heapcamJSON(t, &listing, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
			rings, _ := filepath.Glob(filepath.Join(d.rings, "*", "*.ring"))
			for _, ring := range rings {
				b, err := os.ReadFile(ring)
				if err != nil {
					t.Fatal(err)
				}
				given = append(given, b)
			}
			for _, verb := range [][]string{
				{"status", "--json", "--socket", d.sock}, {"status", "--socket", d.sock},
				{"doctor", "--json"}, {"doctor"}} {
				out, errs, _ := heapcam(t, verb...)
				given = append(given, []byte(out), []byte(errs))
			}
			bundle := filepath.Join(t.TempDir(), "b.tar.gz")
			if _, errs, code := heapcam(t, "support-bundle", "--socket", d.sock, "-o", bundle); code != 0 {
				t.Fatal(errs)
			}
			r.end(t, file)
			d.stop(t)
			given = append(given, []byte(d.stderr.String()), unpacked(t, bundle))
			given = append(given, whoHolds(t, s.Dir)...)
			decoded := []byte(nil)
			rec, err := ringstore.OpenRecording(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			defer rec.Close()
			for _, f := range rec.Files {
				for b, err := range f.Blocks() {
					if err != nil {
						t.Fatal(err)
					}
					decoded = append(decoded, b.Payload...)
				}
			}
			given = append(given, decoded)
			err = filepath.WalkDir(d.out, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				given = append(given, b, []byte(path))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			// What must be there, or nothing is looked through at all.
			for _, want := range []string{"LSecrets;", "Secrets.java", "visible-7f3a", "kept", "elementData"} {
				if !bytes.Contains(decoded, []byte(want)) {
					t.Errorf("the recording has no %s", want)
				}
			}
			thread := map[string]string{"folded": "card # of user-#", "full": "card 4929123456781234 of user-55512345",
				"off": ""}[names]
			if !bytes.Contains(decoded, []byte(thread)) {
				t.Errorf("the recording has no thread %q", thread)
			}
			secrets := []string{"secret-literal-", "secret-chars-", "secret-bytes-", "secret-argument-",
				"secret-property-",
				"secret-name-", "secret-environment-"}
			if names != "full" {
				secrets = append(secrets, "4929123456781234", "55512345")
			}
			if names == "off" {
				secrets = append(secrets, "card ")
			}
			numbers := []uint64{0x5345435245544C4E, 0x5345435245544442}
			for i, b := range given {
				for _, s := range secrets {
					wide := new(bytes.Buffer)
					binary.Write(wide, binary.LittleEndian, utf16.Encode([]rune(s)))
					if bytes.Contains(b, []byte(s)) || bytes.Contains(b, wide.Bytes()) {
						t.Errorf("%q is in what is kept or printed (%d of %d)", s, i, len(given))
					}
				}
				for _, n := range numbers {
					if bytes.Contains(b, binary.LittleEndian.AppendUint64(nil, n)) ||
						bytes.Contains(b, binary.BigEndian.AppendUint64(nil, n)) {
						t.Errorf("the number %x is in what is kept or printed (%d of %d)", n, i, len(given))
					}
				}
			}
			if strings.Contains(string(decoded), filepath.Dir(file)) {
				t.Error("the program's argument, a path, is in the recording")
			}
		})
		if !full {
			break
		}
	}
}

// unpacked gives the names and contents of a tar.gz.
func unpacked(t *testing.T, file string) (all []byte) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for tr := tar.NewReader(zip); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, h.Name...), b...)
	}
}
