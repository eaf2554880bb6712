package tools_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestFuzzEnded shows that tools/fuzz-ended excuses the known fault of Go's fuzzer, and nothing else.
func TestFuzzEnded(t *testing.T) {
	const elapsed = "fuzz: elapsed: 5s, execs: 8123 (1602/sec), new interesting: 3 (total: 40)\n"
	const verdict = "--- FAIL: FuzzBlock (5.02s)\n"
	const deadline = "    context deadline exceeded\n"
	for name, c := range map[string]struct {
		output  string
		excused bool
	}{
		"deadline": {elapsed + verdict + deadline + "FAIL\n", true},
		"failing input": {elapsed + verdict + deadline +
			"\n    Failing input written to testdata/fuzz/FuzzBlock/582528ddfad69eb5\nFAIL\n", false},
		"panic":          {elapsed + "panic: index out of range [3]\n" + verdict + deadline + "FAIL\n", false},
		"another reason": {elapsed + verdict + "    decode_test.go:12: size differs\nFAIL\n", false},
		"with a message": {elapsed + verdict + "    decode_test.go:12: size differs\n" + deadline + "FAIL\n", false},
		"worker died":    {elapsed + verdict + "    fuzzing process hung or terminated unexpectedly\nFAIL\n", false},
		"no verdict":     {elapsed + "FAIL\n", false},
		"nothing":        {"", false},
	} {
		cmd := exec.Command("./fuzz-ended")
		cmd.Stdin = strings.NewReader(c.output)
		if out, err := cmd.CombinedOutput(); (err == nil) != c.excused {
			t.Errorf("%s: excused %t, want %t (%v %s)", name, err == nil, c.excused, err, out)
		}
	}
}
