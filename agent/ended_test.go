package agent

import (
	"strconv"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

// TestEndedOnce: a JVM that ends while its ring grows leaves two rings, and so two sessions of one recording. Status,
// and what `run` says at its end, name it once, with the losses of both.
func TestEndedOnce(t *testing.T) {
	t.Parallel()
	st := func(id, dir string, lost uint64) session.Status {
		return session.Status{Session: id, Dir: dir, Dropped: session.Drops{RingEpochs: lost}}
	}
	var all []session.Status
	for _, s := range []session.Status{st("1", "a", 4), st("2", "b", 0), st("1", "a", 5), st("", "", 0),
		st("", "", 0)} {
		all = withEnded(all, s)
	}
	if len(all) != 4 || all[1].Dir != "a" || all[1].Dropped.RingEpochs != 5 {
		t.Errorf("%+v", all)
	}
	for i := range 2 * maxEnded {
		all = withEnded(all, st(strconv.Itoa(i), "c", 0))
	}
	if len(all) != maxEnded {
		t.Errorf("%d are kept, want %d", len(all), maxEnded)
	}
}
