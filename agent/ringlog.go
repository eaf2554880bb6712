package agent

import (
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
)

// ringLog is for what is logged of rings that are not recorded; bounded for each folder.
func (a *Agent) ringLog(path string) *zerolog.Logger {
	dir := filepath.Dir(path)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.ringLogs[dir]
	if l == nil {
		made := session.BoundLog(logs.With(a.cfg.Log, logs.Rings.Of(dir)))
		l = &made
		a.ringLogs[dir] = l
	}
	return l
}
