package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
)

// TestForgedLog: whatever a JVM is called, it is a quoted value of its line of the log, and begins none.
func TestForgedLog(t *testing.T) {
	for _, name := range []string{"a\n12:00:00 ERR EVIL id=EVIL", "a\rEVIL", "\x1b[2JEVIL", "a id=EVIL error=EVIL",
		"a\u2028EVIL", "a\u202eEVIL", "a\" id=EVIL", strings.Repeat("EVIL ", 2_000)} {
		var b bytes.Buffer
		log := newLog(&b, zerolog.DebugLevel)
		for _, m := range logs.All() {
			logs.Write(&log, m, logs.JVM.Of(name), logs.Rings.Of([]string{name, name}), logs.Recording.Of(name))
		}
		harmlessLog(t, b.String(), len(logs.All()))
	}
}

func harmlessLog(t *testing.T, text string, lines int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n != lines {
		t.Errorf("%d lines, want %d: %.300q", n, lines, text)
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		unquoted := 0 // a field outside of quotes
		quoted := false
		for i := range len(line) {
			switch {
			case line[i] == '"' && (i == 0 || line[i-1] != '\\'):
				quoted = !quoted
			case !quoted && strings.HasPrefix(line[i:], " id="):
				unquoted++
			}
		}
		if unquoted != 1 || strings.ContainsAny(line, "\x1b\r\u2028\u202e") {
			t.Errorf("%d ids: %.400q", unquoted, line)
			return
		}
	}
}
