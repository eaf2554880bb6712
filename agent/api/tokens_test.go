package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	good := strings.Repeat("t", minToken)
	for text, want := range map[string]string{
		"a status " + good + "\n# comment\n\nb pull,status " + good + "b\n": "",
		"a status short\n":                      "at least",
		"a everything " + good:                  "scope",
		"a status":                              "a line is",
		"a status " + good + "\na pull " + good: "twice",
		"a status " + good + "\nb pull " + good: "twice",
		"# nothing\n":                           "no token",
		"a attach " + good:                      "scope",
	} {
		f := filepath.Join(t.TempDir(), "tokens")
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ts, err := readTokens(f)
		if want == "" && (err != nil || len(ts) != 2) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v %v", text, ts, err)
		}
		if err != nil && strings.Contains(err.Error(), good) {
			t.Errorf("the error tells a token: %v", err)
		}
	}
}
