//go:build unix

package main

import (
	"slices"
	"testing"
)

// TestHostileArguments gives each verb that starts nothing words and flags that would act on a terminal: somebody's
// file names and links get there.
func TestHostileArguments(t *testing.T) {
	t.Chdir(t.TempDir())
	code := "\x1b]0;x\x07\x1b[31m"
	for _, name := range []string{"HEAPCAM_CONFIG", "COLUMNS", "TERM", "NO_COLOR"} {
		t.Setenv(name, code)
	}
	n := 0
	for _, c := range append(newRoot().Commands(), newHelpCmd()) {
		if slices.Contains([]string{"run", "record", "agent", "view", "service"}, c.Name()) {
			continue
		}
		for _, arg := range []string{code, "--" + code, "--" + code + "=1", "-\u202e", evil + "\n" + evil,
			"--out=" + code + "\n" + evil, "--socket=" + code, "\xff\xfe"} {
			out, errs := talk(t, func() { run([]string{c.Name(), arg}) })
			harmless(t, c.Name(), slices.Concat(out, errs))
			n++
		}
	}
	for _, args := range [][]string{{code}, {evil + "\n" + evil}, {"help", code}, {"__complete", code},
		{"__complete", "report", "--" + code}, {"--" + code}} {
		out, errs := talk(t, func() { run(args) })
		harmless(t, args[0], slices.Concat(out, errs))
		n++
	}
	t.Logf("%d command lines", n)
}
