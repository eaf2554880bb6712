package leak

import "math"

// onset gives the times between which a series that never falls began to grow: when it had hardly any of its growth,
// and when it had a twentieth.
func onset(t, low []float64) (x [2]float64) {
	first, grown := low[0], low[len(low)-1]-low[0]
	x = [2]float64{t[0], t[len(t)-1]}
	for i := range t {
		if low[i]-first > 0.05*grown {
			x[1] = t[i]
			break
		}
		if low[i]-first <= 0.005*grown {
			x[0] = t[i]
		}
	}
	if from, to, ok := bend(t, low); ok && from > x[0] {
		x = [2]float64{from, max(x[1], to)}
	}
	return x
}

// bend finds where a series that was nearly flat begins to grow steadily: one early sample may stand for many objects,
// and would be taken for the onset. It fits a flat part and a line from each point on, and wants the best to be much
// better than one line, with hardly any growth before.
func bend(t, low []float64) (from, to float64, ok bool) {
	if step := len(t) / bendPoints; step > 1 {
		var some [2][]float64
		for i := 0; i < len(t)-1; i += step {
			some[0], some[1] = append(some[0], t[i]), append(some[1], low[i])
		}
		t, low = append(some[0], t[len(t)-1]), append(some[1], low[len(t)-1])
	}
	n := len(t)
	if n < fewestPoints {
		return 0, 0, false
	}
	first, last := low[0], low[n-1]
	best, line, at := math.Inf(1), 0.0, 0
	for k := 0; k < n-2; k++ {
		base := low[k]
		if base-first > bendBefore*(last-first) {
			break
		}
		slope, sum := (last-base)/max(t[n-1]-t[k], 1e-9), 0.0
		for i := range t {
			d := low[i] - base
			if i > k {
				d -= slope * (t[i] - t[k])
			}
			sum += d * d
		}
		if k == 0 {
			line = sum
		}
		if sum < best {
			best, at = sum, k
		}
	}
	return t[at], t[at+1], at > 0 && best < bendBetter*line
}

const (
	bendPoints = 64   // of a series that are looked at
	bendBefore = 0.15 // share of the growth that comes before a bend at most
	bendBetter = 0.25 // share of the squared error of one line that is left with a bend
)
