package session

import (
	"testing"
	"time"

	"github.com/heapcam/heapcam/shmring"
)

// fakeRing keeps the reasons for pausing.
type fakeRing struct {
	why    uint32
	writes int
}

func (r *fakeRing) Status() (shmring.Status, error) { return shmring.Status{PauseWhy: r.why}, nil }
func (r *fakeRing) SetPause(why uint32) error       { r.why = why; r.writes++; return nil }

// TestPauseReasons: each reason is added and taken away by itself, and the ring is not written to in vain.
func TestPauseReasons(t *testing.T) {
	var p pauseControl
	var r fakeRing
	for _, step := range []struct {
		why    uint32
		on     bool
		left   uint32
		writes int
	}{
		{shmring.PauseAsked, false, 0, 0},
		{shmring.PauseAsked, true, shmring.PauseAsked, 1},
		{shmring.PauseAsked, true, shmring.PauseAsked, 1},
		{shmring.PauseSwitch, true, shmring.PauseAsked | shmring.PauseSwitch, 2},
		{shmring.PauseAsked, false, shmring.PauseSwitch, 3},
		{shmring.PauseSwitch, false, 0, 4},
	} {
		if err := p.change(&r, step.why, step.on); err != nil || r.why != step.left || r.writes != step.writes {
			t.Errorf("%+v: %d after %d writes, %v", step, r.why, r.writes, err)
		}
	}
}

// TestPauseChanged: a pause is noted once the probe has obeyed, and once; a probe that pauses by itself sees the
// switch.
func TestPauseChanged(t *testing.T) {
	var p pauseControl
	for i, step := range []struct {
		state   shmring.State
		why     uint32
		want    uint32
		changed bool
	}{
		{shmring.StateRecording, 0, 0, false},
		{shmring.StateRecording, shmring.PauseAsked, shmring.PauseAsked, false}, // asked for
		{shmring.StatePaused, shmring.PauseAsked, shmring.PauseAsked, true},
		{shmring.StatePaused, shmring.PauseAsked, shmring.PauseAsked, false},
		{shmring.StatePaused, 0, 0, false}, // asked to resume, it obeys in a moment
		{shmring.StatePaused, 0, 0, false},
		{shmring.StatePaused, 0, shmring.PauseSwitch, true},
		{shmring.StateDetached, 0, 0, false},
		{shmring.StateRecording, 0, 0, true},
	} {
		at := time.Unix(1e9, 0).Add(time.Duration(i) * obeysWithin / 2)
		why, changed := p.changed(shmring.Status{State: step.state, PauseWhy: step.why}, at)
		if changed != step.changed || changed && why != step.want {
			t.Errorf("step %d: %d, changed %v", i, why, changed)
		}
	}
}
