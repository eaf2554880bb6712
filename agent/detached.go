package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/ringstore"
)

// DetachedBy says who had an agent detach from the JVM of user uid, "": nobody, or it was attached to again. It is not
// to be attached to unasked. What a recording of another user says of a pid and start is that user's word: it does not
// count; root's does, since a JVM may have changed its user.
func (a *Agent) DetachedBy(pid int, startTicks uint64, uid int) (who string) {
	folders, _ := os.ReadDir(a.cfg.Out)
	var newest time.Time
	for _, f := range folders {
		if !f.IsDir() || !strings.Contains(f.Name(), "-"+jvms.ID(pid, startTicks)) {
			continue
		}
		name := filepath.Join(a.cfg.Out, f.Name(), ringstore.RecordingName)
		st, err := os.Stat(name)
		if err != nil || st.ModTime().Before(newest) {
			continue
		}
		var r struct {
			whose
			Counters json.RawMessage `json:"counters"`
		}
		b, err := os.ReadFile(name)
		if err != nil || ringstore.CheckDocument(name, b) != nil || json.Unmarshal(b, &r) != nil || r.PID != pid ||
			r.StartTicks != startTicks {
			continue
		}
		if r.UID > 0 && r.UID != uid {
			continue
		}
		by, err := session.DetachedBy(r.Counters)
		if err != nil {
			continue
		}
		newest, who = st.ModTime(), by
	}
	return who
}
