//go:build unix

package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestVerdicts: verify says of a damaged recording what is wrong with it, in its headline, by its exit status and by
// the next command; and no verb waits for what is no file.
func TestVerdicts(t *testing.T) {
	t.Chdir(t.TempDir())
	const dir, second, last = "rec/odd-1-a", "rec/odd-1-a/00000002.hcr", "rec/odd-1-a/00000003.hcr"
	change := func(name string, f func(b []byte) []byte) {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)/3] ^= 1; return b }
	newer := func(b []byte) []byte { b[8], b[100] = 99, 1; return b }
	const torn, middle = "The recording was cut off after collection ", "Collections may be missing: "
	const bad = "--salvage -o salvaged"
	for name, c := range map[string]struct {
		change   func()
		headline string
		code     int
		next     string
	}{
		"sound":          {func() {}, "The recording is undamaged: ", 0, "report"},
		"end torn":       {func() { change(last, half) }, torn, 0, "report"},
		"end empty":      {func() { change(last, func([]byte) []byte { return nil }) }, torn, 0, "report"},
		"middle torn":    {func() { change(second, half) }, middle, 0, "report"},
		"middle empty":   {func() { change(second, func([]byte) []byte { return nil }) }, middle, 0, "report"},
		"middle missing": {func() { os.Remove(second) }, "1 ring file missing, ", 0, "report"},
		"middle is a pipe": {func() { os.Remove(second); syscall.Mkfifo(second, 0o600) },
			"1 ring file missing, ", 0, "report"},
		"corrupt": {func() { change(second, flip) }, "1 ring file cannot be read wholly. ", exitDamaged, bad},
		"corrupt and torn": {func() { change(second, flip); change(last, half) }, "1 ring file cannot be read wholly. ",
			exitDamaged, bad},
		"copied": {func() {
			change(last, bytes.Clone)
			b, _ := os.ReadFile(second)
			os.WriteFile("rec/odd-1-a/00000004.hcr", b, 0o600)
		}, "1 ring file of another recording, or under a wrong number, ", exitDamaged, bad},
		"too new": {func() { change(last, newer) }, "A newer heapcam wrote 1 ring file: ", exitTooNew, ""},
	} {
		t.Run(name, func(t *testing.T) {
			os.RemoveAll("rec")
			oddRing(t, dir, oddRecordings["as it is"])
			c.change()
			code := 0
			out, errs := talk(t, func() { code = run([]string{"verify", dir}) })
			next := ""
			if _, after, ok := strings.Cut(string(out), "Next:\n"); ok {
				next = after
			}
			if code != c.code || !strings.HasPrefix(string(out), c.headline) || !strings.Contains(next, c.next) ||
				(next == "") != (c.next == "") {
				t.Errorf("exit status %d: %.300s%s%s", code, out, next, errs)
			}
			for _, verb := range []string{"report", "leaks", "coverage", "history", "cost"} {
				talk(t, func() { code = run([]string{verb, dir}) })
				if !slices.Contains([]int{0, exitDamaged, exitTooNew}, code) {
					t.Errorf("%s: exit status %d", verb, code)
				}
			}
		})
	}
	syscall.Mkfifo("pipe.heapcam", 0o600)
	for _, verb := range []string{"report", "verify"} {
		if code := quietly(t, verb, "pipe.heapcam"); code == 0 {
			t.Errorf("%s reads a pipe", verb)
		}
	}
}

// TestSalvageOverSource: salvage does not replace what it reads.
func TestSalvageOverSource(t *testing.T) {
	t.Chdir(t.TempDir())
	oddRing(t, "rec/odd-1-a", oddRecordings["as it is"])
	if code := quietly(t, "pull", "-o", "salvaged.heapcam", "rec/odd-1-a"); code != 0 {
		t.Fatal(code)
	}
	b, err := os.ReadFile("salvaged.heapcam")
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	os.WriteFile("salvaged.heapcam", b, 0o600)
	os.Symlink("salvaged.heapcam", "link.heapcam")
	out, _ := talk(t, func() { run([]string{"verify", "salvaged.heapcam"}) })
	if !bytes.Contains(out, []byte("-o salvaged2.heapcam salvaged.heapcam\n")) {
		t.Errorf("%s", out)
	}
	for _, source := range []string{"salvaged.heapcam", "./salvaged.heapcam", "link.heapcam"} {
		if code := quietly(t, "verify", "--salvage", "-o", "salvaged.heapcam", source); code != exitUsage {
			t.Errorf("%s: exit status %d", source, code)
		}
		if now, err := os.ReadFile("salvaged.heapcam"); err != nil || !bytes.Equal(now, b) {
			t.Fatal("salvage replaced what it reads", err)
		}
	}
}
