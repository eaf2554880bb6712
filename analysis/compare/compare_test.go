package compare

import (
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTwo: a leak of a known rate that a fix has stopped, with noise; lines have moved. The intervals hold the true
// slopes.
func TestTwo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	growth := func(rate float64, line int) *Growth {
		g := &Growth{Collections: 100, Seconds: 99, chains: map[string]*history.Series{},
			frames: map[string][]sites.StackFrame{}, class: map[string]string{}}
		s := &history.Series{}
		for i := range 100 {
			v := rate*float64(i) + 1e6 + rng.NormFloat64()*2e4
			g.times, g.alloc = append(g.times, float64(i)), append(g.alloc, float64(i)*1e7)
			g.live = append(g.live, v+5e6)
			s.Add(int32(i), 1, v-s.LiveBytes)
		}
		g.chains["x"], g.class["x"] = s, "shop.Cart"
		g.frames["x"] = []sites.StackFrame{{Class: "shop.Cart", Method: "add", File: "Cart.java", Line: &line}}
		return g
	}
	d := Recordings(growth(1e5, 10), growth(0, 12))
	in := func(s Slope, v float64) bool {
		return s.Low <= v && v <= s.High && s.Low <= s.Value && s.Value <= s.High
	}
	if !in(d.Live.Before, 1e5) || !in(d.Live.After, 0) || !in(d.Sites[0].Before, 1e5) ||
		!in(d.Live.BeforeShare, 0.01) || d.SitesShared != 1 ||
		*d.Sites[0].Site[0].Line != 12 {
		t.Fatalf("%+v", d)
	}
	if !strings.Contains(string(d.Sentence), "the growth is gone") ||
		!strings.Contains(string(d.Sentence), "shop.Cart.add(Cart.java:12)") {
		t.Fatal(d.Sentence)
	}
	if d = Recordings(growth(1e5, 1), growth(1e5, 1)); !strings.Contains(string(d.Sentence), "cannot be told apart") {
		t.Fatal(d.Sentence)
	}
	var b strings.Builder
	d.WriteText(&b)
	if d = Recordings(&Growth{}, &Growth{}); !strings.Contains(string(d.Sentence), "fewer than") || b.Len() == 0 {
		t.Fatal(d.Sentence)
	}
}
