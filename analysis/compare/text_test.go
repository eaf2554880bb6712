package compare

import (
	"strings"
	"testing"
)

// TestRate: what rounds to nothing has no sign.
func TestRate(t *testing.T) {
	for x, want := range map[float64]string{-0.4: "0 B", 0.4: "0 B", -2: "−2 B", 2048: "2.0 KiB"} {
		if got := string(rate(x)); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

// TestSentence: the verdict is about how much of the growth is left, and not only whether some certainly is.
func TestSentence(t *testing.T) {
	for want, s := range map[string][2]Slope{
		"the growth is gone: ":                        {{2.6e6, 2.5e6, 2.7e6}, {36, -10, 80}},
		"gone but for a remainder of less than 1 %: ": {{2.6e6, 2.5e6, 2.7e6}, {36, 20, 50}},
		"the heap grows less: ":                       {{2.6e6, 2.5e6, 2.7e6}, {36e3, 20e3, 50e3}},
		"cannot be told apart: ":                      {{2.6e6, 2.5e6, 2.7e6}, {2.5e6, 2.4e6, 2.6e6}},
		"the heap grows more: ":                       {{36, 20, 50}, {2.6e6, 2.5e6, 2.7e6}},
	} {
		d := Report{Before: Window{Collections: 9}, After: Window{Collections: 9}}
		d.Live.Before, d.Live.After = s[0], s[1]
		if got := string(d.sentence()); !strings.Contains(got, want) {
			t.Errorf("%v: %s", s, got)
		}
	}
}
