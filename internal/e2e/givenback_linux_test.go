package e2e

import "testing"

// TestGivenBack: Parallel makes its young generation smaller in a pause, and gives the memory back in which survivors
// were. No read of the probe faults there: such a pause has a listing in the place of moves, and the state is known
// after each collection.
func TestGivenBack(t *testing.T) {
	t.Parallel()
	for _, major := range parts(t, 17, 25) {
		p := program{major: major, gc: "Parallel", heap: "512m", main: "KeptSessions", args: []string{"8", "0"},
			limit: "64MiB"}
		r := p.start(t)
		r.finish(t)
		dir := r.recorded(t).dir
		if n := faults(dir); n > 0 {
			t.Errorf("JDK %d: %d pauses could not be read", major, n)
		}
		t.Logf("JDK %d: %d listings", major, len(listings(dir)))
		verify(t, dir, 0)
	}
}
