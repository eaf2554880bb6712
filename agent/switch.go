package agent

import (
	"context"
	"os"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
)

// switchEvery is how often the agent polls the host's switch. Probes that see the same file poll it by themselves,
// twice a second.
const switchEvery = 250 * time.Millisecond

// heedSwitch pauses every session while the host's switch is set, until ctx is done.
func (a *Agent) heedSwitch(ctx context.Context) {
	t := time.NewTicker(switchEvery)
	defer t.Stop()
	for {
		// A switch that cannot be read counts as not set: a fault must not end recordings.
		_, err := os.Stat(a.cfg.Switch)
		if on := err == nil; on != a.off.Load() {
			a.off.Store(on)
			if on {
				logs.Write(&a.cfg.Log, logs.SwitchSet, logs.Path.Of(a.cfg.Switch))
			} else {
				logs.Write(&a.cfg.Log, logs.SwitchRemoved, logs.Path.Of(a.cfg.Switch))
			}
			if _, err := a.eachOf(operator, "", func(s *session.Session) error {
				return s.SetPause(shmring.PauseSwitch, on)
			}); err != nil {
				logs.Write(&a.cfg.Log, logs.SwitchNotPassed, logs.Err.Of(err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Off says whether the host's switch is set: nothing may be attached to.
func (a *Agent) Off() bool { return a.off.Load() }
