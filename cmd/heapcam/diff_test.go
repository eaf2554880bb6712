//go:build unix

package main

import (
	"strings"
	"testing"
)

// TestDiffOutside: a collection that is not in the recording is named as such, with the collections that it has, on
// both sides. The message does not say: exchange it with another one.
func TestDiffOutside(t *testing.T) {
	const file = "../../web/testdata/window.heapcam"
	for args, want := range map[string]string{
		"--from 64":           "collection 64 is not in the recording, which has collections 1 to 63",
		"--to 64":             "collection 64 is not in the recording, which has collections 1 to 63",
		"--from last --to 64": "collection 64 is not in the recording, which has collections 1 to 63",
		"--to 0":              "collection 0 is not in the recording, which has collections 1 to 63",
		"--from 9 --to 7":     "--from is collection 9, which is after --to, collection 7: exchange them",
	} {
		out, code := heapcam(append([]string{"diff", file}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(out, want) ||
			strings.Contains(out, "exchange") != strings.Contains(want, "exchange") {
			t.Errorf("diff %s: status %d, want %q:\n%s", args, code, want, out)
		}
	}
}
