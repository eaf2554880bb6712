package compare

import "testing"

// TestRate: what rounds to nothing has no sign.
func TestRate(t *testing.T) {
	for x, want := range map[float64]string{-0.4: "0 B", 0.4: "0 B", -2: "−2 B", 2048: "2.0 KiB"} {
		if got := string(rate(x)); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}
