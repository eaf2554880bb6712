package agent

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
)

// TestSpoolLogBounded: who may put files into the spool folder cannot fill the log with their names.
func TestSpoolLogBounded(t *testing.T) {
	var b bytes.Buffer
	a := &Agent{cfg: Config{Log: zerolog.New(&b)}}
	c := a.spoolConfig()
	for range 10_000 {
		logs.Write(&c.Log, logs.SpoolLeft, logs.Path.Of("x"))
	}
	if n := strings.Count(b.String(), "\n"); n < 10 || n > 200 || !strings.Contains(b.String(), logs.LogBounded.ID) {
		t.Errorf("%d lines", n)
	}
}
