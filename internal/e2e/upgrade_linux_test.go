package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/heapcam/heapcam/agent/session"
)

// TestKeptProbes has today's agent record JVMs with probes of earlier builds. Each JVM is recorded, kept in its budget,
// paused, and reported as one with an old probe. A restarted agent continues, and the recording agrees with its sync
// points.
func TestKeptProbes(t *testing.T) {
	needReader(t)
	jdk(t, 17)
	files, err := filepath.Glob("testdata/probes/*.so.zst")
	if err != nil || len(files) == 0 {
		t.Fatalf("no probe is kept: %v", err)
	}
	unzip, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unzip.Close()
	if !full {
		files = files[3:] // the last one of ring ABI 1
	}
	for _, f := range files {
		commit := strings.TrimSuffix(filepath.Base(f), ".so.zst")
		t.Run(commit, func(t *testing.T) {
			b, err := os.ReadFile(f)
			if err == nil {
				b, err = unzip.DecodeAll(b, nil)
			}
			lib := filepath.Join(t.TempDir(), "libheapcam.so")
			if err == nil {
				err = os.WriteFile(lib, b, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			d := newDaemon(t, "--max-trace-size", "8MiB", "--overhead-cpu", "20%")
			d.start(t)
			dir := regexp.MustCompile(`dir=([^,]+)`).FindStringSubmatch(d.option(t))
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: 17, gc: "G1", heap: "32m", main: "Until", args: []string{file, "2000", "10"},
				opts: []string{"-agentpath:" + lib + "=dir=" + dir[1]}}
			r := p.plain(t)
			var s session.Status
			records := func(what string) {
				t.Helper()
				n := s.LastGC
				await(t, what, func() bool {
					if all := d.status(t).JVMs; len(all) == 1 {
						s = all[0]
					}
					return s.Phase == session.Recording && s.LastGC > n+3
				})
			}
			records("a recording")
			if s.Probe != "kept-"+commit || !s.Renew {
				t.Errorf("status: probe %q, to be renewed: %v", s.Probe, s.Renew)
			}
			if out, _, _ := heapcam(t, "status", "--socket", d.sock); !strings.Contains(out,
				"kept-"+commit+": restart this JVM to renew it") {
				t.Errorf("status: %s", out)
			}
			d.kill()
			d.start(t)
			records("another agent")
			if _, errs, code := heapcam(t, "pause", "--all", "--socket", d.sock); code != 0 {
				t.Errorf("pause: %d %s", code, errs)
			}
			await(t, "the pause", func() bool { return d.status(t).JVMs[0].Phase == session.Paused })
			heapcam(t, "resume", "--all", "--socket", d.sock)
			records("resume")
			r.end(t, file)
			d.stop(t)
			verify(t, s.Dir, 2)
		})
	}
}
