package leak

import "testing"

// TestLiveSamples: a structure has the live samples of its members, also where the sampling interval changed and
// its growth counts samples of one weight.
func TestLiveSamples(t *testing.T) {
	s := &structure{growth: growth{samples: 110}, members: []*part{{samples: 351}, {samples: 21}}}
	if n := s.liveSamples(); n != 372 {
		t.Errorf("%d", n)
	}
}
