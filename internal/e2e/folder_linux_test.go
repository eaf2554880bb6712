package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestFolderGone removes the ring folder, or moves the folder of --out, under a `heapcam record`. It says so, goes on
// in a new folder, and counts what that lacks. What was moved away is whole.
func TestFolderGone(t *testing.T) {
	tiers.Gate(t, "folders that vanish while heapcam records into them")
	for name, vanish := range map[string]func(out, dir, aside string) error{
		"removed": func(_, dir, _ string) error { return os.RemoveAll(dir) },
		"moved":   func(out, _, aside string) error { return os.Rename(out, aside) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program{major: 17, gc: "Serial", heap: "64m", main: "Steady", args: []string{"3000000", "20000"}}
			r := p.plain(t)
			out, aside := filepath.Join(t.TempDir(), "rec"), filepath.Join(t.TempDir(), "aside")
			time.Sleep(time.Second)
			c := exec.Command(tool, "record", "--for", "8s", "--out", out, strconv.Itoa(r.cmd.Process.Pid))
			var said strings.Builder
			c.Stderr = &said
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			files := func() []string { f, _ := filepath.Glob(filepath.Join(out, "*", "*.hcr")); return f }
			await(t, "a recording", func() bool { return len(files()) == 1 })
			time.Sleep(2 * time.Second)
			dir := filepath.Dir(files()[0])
			if err := vanish(out, dir, aside); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			if !strings.Contains(said.String(), "was removed or moved while it was written") {
				t.Errorf("it says nothing: %s", said.String())
			}
			if left := files(); len(left) == 0 || filepath.Base(left[0]) == "00000001.hcr" {
				t.Fatalf("after that: %v", left)
			}
			verify(t, dir, 1)
			if name == "moved" {
				var rep struct {
					Lost uint64 `json:"lost_epochs"`
				}
				heapcamJSON(t, &rep, "report", filepath.Join(aside, filepath.Base(dir)))
				if rep.Lost != 0 {
					t.Errorf("what was moved lacks %d collections", rep.Lost)
				}
			}
		})
	}
}

// TestTotalOnlyWhenNeeded records one program after another into one folder. Recordings of ended JVMs stay as long as
// --max-total-size has room for all; then the oldest is removed, and no other.
func TestTotalOnlyWhenNeeded(t *testing.T) {
	tiers.Gate(t, "which recordings make room")
	const each, total, file = 2 << 20, 9 << 20, 1 << 20
	out := filepath.Join(t.TempDir(), "rec")
	var all []string // oldest first
	size := map[string]int64{}
	gone := 0
	for range 6 {
		_, errs, code := heapcam(t, "run", "--out", out, "--max-trace-size", strconv.Itoa(each), "--max-total-size",
			strconv.Itoa(total), "--", filepath.Join(jdk(t, 17), "bin", "java"), "-Xmx48m", "-XX:+UseSerialGC", "-cp",
			classPath(t), "Steady", "90000", "20000")
		if code != 0 {
			t.Fatalf("status %d: %s", code, errs)
		}
		dirs, _ := filepath.Glob(filepath.Join(out, "Steady-*"))
		sum := int64(0)
		for _, d := range dirs {
			if size[d] == 0 {
				all = append(all, d)
			}
			files, _ := filepath.Glob(filepath.Join(d, "*"))
			size[d] = 0
			for _, f := range files {
				if st, err := os.Stat(f); err == nil {
					size[d] += st.Size()
				}
			}
			sum += size[d]
		}
		for ; gone < len(all) && !slices.Contains(dirs, all[gone]); gone++ {
			// Room is made ahead: for three quarters of the recording, which may have been a file larger.
			if sum+size[all[gone]] <= total-file-size[all[len(all)-1]]*3/4 {
				t.Errorf("%s was removed, though it fits: %d and %d bytes", all[gone], sum, size[all[gone]])
			}
		}
		if slices.Sort(dirs); sum > total || !slices.Equal(dirs, slices.Sorted(slices.Values(all[gone:]))) {
			t.Errorf("%d bytes in %v, of %v", sum, dirs, all)
		}
	}
	if gone == 0 {
		t.Error("no recording had to be removed")
	}
}
