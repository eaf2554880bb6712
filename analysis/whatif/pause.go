package whatif

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/trace"
)

// PauseModel says how long a collection takes. Times are in seconds.
type PauseModel struct {
	// A young collection: Fixed (roots and the rest), and so much for each object and each byte that it copies.
	Fixed, PerObject, PerByte float64
	// A full collection: so much, and so much for each byte that it keeps.
	FullFixed, FullPerByte float64
	Young, Fulls           int // pauses that it was fitted on; without any full one it is a guess
	// Residuals are what the pauses of young collections took beyond the model, sorted; of full ones FullResiduals.
	Residuals, FullResiduals []float64
	// Warm is what the first collection took beyond the model.
	Warm float64
}

// fullPerYoung is how much longer a full collection is assumed to take for a byte than a young one, if the recording
// has no full collection to learn from.
const fullPerYoung = 3

// FitPauses fits a model on the pauses of a recording, without the probe's part of them. The first one is left out: it
// warms up.
func FitPauses(t *lifetimes.Tape) *PauseModel {
	m := &PauseModel{}
	var x, later [][3]float64
	var y, laterY []float64
	objects, bytes := 1.0, 8.0*usualWords // that exact pauses copied
	var fx [][3]float64
	var fy []float64
	for i := range t.Epochs {
		e := &t.Epochs[i]
		seconds := float64(e.Pause) / 1e9
		switch {
		case e.Kind == trace.PauseFull:
			fx, fy = append(fx, [3]float64{1, 0, 8 * float64(e.EdenAfter+e.SurvivorAfter+e.OldAfter)}), append(fy,
				seconds)
		case collected(e.Kind) && e.Exact && i > 0:
			x = append(x, [3]float64{1, float64(e.Survivors), 8 * float64(e.Copied+e.Promoted)})
			y = append(y, seconds)
			objects, bytes = objects+float64(e.Survivors), bytes+8*float64(e.Copied+e.Promoted)
		case collected(e.Kind) && i > 0: // after a full one: how many objects it copied is not recorded
			n := 8 * float64(e.SurvivorAfter+e.OldAfter-min(e.OldAfter, e.OldBefore))
			later, laterY = append(later, [3]float64{1, 0, n}), append(laterY, seconds)
		}
	}
	m.Young, m.Fulls = len(y), len(fy)
	a := leastSquares(x, y)
	m.Fixed, m.PerObject, m.PerByte = a[0], a[1], a[2]
	for i := range later {
		later[i][1] = later[i][2] * objects / bytes
	}
	if f := balance(append(later, x...), append(laterY, y...), a); f > 0 {
		m.Fixed, m.PerObject, m.PerByte = f*a[0], f*a[1], f*a[2]
	}
	for i := range x {
		m.Residuals = append(m.Residuals, y[i]-m.young(x[i][1], x[i][2]))
	}
	if len(fy) > 0 {
		f := leastSquares(fx, fy)
		m.FullFixed, m.FullPerByte = f[0], f[2]
		for i := range fx {
			m.FullResiduals = append(m.FullResiduals, fy[i]-m.full(fx[i][2]))
		}
	} else {
		m.FullFixed, m.FullPerByte = m.Fixed, fullPerYoung*(m.PerByte+m.PerObject/40)
	}
	if e := &t.Epochs[0]; len(y) > 0 && e.Kind == trace.PauseYoung {
		bytes := 8 * float64(e.SurvivorAfter+e.OldAfter-min(e.OldAfter, e.OldBefore))
		m.Warm = max(0, float64(e.Pause)/1e9-m.young(bytes/40, bytes))
	}
	slices.Sort(m.Residuals)
	slices.Sort(m.FullResiduals)
	return m
}

// collected says whether a collection is one of young space, or of more without all of it.
func collected(kind uint64) bool { return kind == trace.PauseYoung || kind == trace.PauseMixed }

func (m *PauseModel) young(objects, bytes float64) float64 {
	return m.Fixed + m.PerObject*objects + m.PerByte*bytes
}

func (m *PauseModel) full(bytes float64) float64 { return m.FullFixed + m.FullPerByte*bytes }

// Total gives how long all collections of a simulation take, and the longest one. u, from 0 to 1, picks the residuals
// that the longest one may have.
func (m *PauseModel) Total(o *Outcome) (total, longest float64) {
	add := func(seconds float64, residuals []float64) {
		total += seconds
		if n := len(residuals); n > 0 {
			seconds += residuals[min(n-1, int(0.95*float64(n)))]
		}
		longest = max(longest, seconds)
	}
	for i := range o.Steps {
		s := &o.Steps[i]
		if i == 0 {
			add(m.Warm, nil)
			longest += m.young(float64(s.Objects), 8*float64(s.Copied+s.Promoted))
		}
		if s.Full {
			add(m.full(8*float64(s.Live)), m.FullResiduals)
		} else {
			add(m.young(float64(s.Objects), 8*float64(s.Copied+s.Promoted)), m.Residuals)
		}
	}
	return total, longest
}

// balance gives the factor that makes the model's total that of y: squares alone follow a few long pauses.
func balance(x [][3]float64, y []float64, c [3]float64) float64 {
	model, all := 0.0, 0.0
	for i := range x {
		model += c[0]*x[i][0] + c[1]*x[i][1] + c[2]*x[i][2]
		all += y[i]
	}
	if model <= 0 {
		return 0
	}
	return all / model
}

// leastSquares gives the coefficients, none negative, of the columns of x that fit y best. The first column is of ones.
func leastSquares(x [][3]float64, y []float64) (best [3]float64) {
	least := math.Inf(1)
	for used := 1; used < 8; used++ {
		c, ok := solve(x, y, used)
		if !ok {
			continue
		}
		sum := 0.0
		for i := range x {
			d := y[i] - c[0]*x[i][0] - c[1]*x[i][1] - c[2]*x[i][2]
			sum += d * d
		}
		if sum < least*(1-1e-9) {
			least, best = sum, c
		}
	}
	return best
}

// solve gives the least squares on the columns in used, a bit set; false if a coefficient is negative or not
// determined.
func solve(x [][3]float64, y []float64, used int) (c [3]float64, ok bool) {
	var a [3][4]float64
	var scale [3]float64
	for j := range 3 {
		for i := range x {
			scale[j] = max(scale[j], math.Abs(x[i][j]))
		}
		if scale[j] == 0 {
			if used&(1<<j) != 0 {
				return c, false
			}
			scale[j] = 1
		}
	}
	for i := range x {
		for j := range 3 {
			for k := range 3 {
				a[j][k] += x[i][j] / scale[j] * x[i][k] / scale[k]
			}
			a[j][3] += x[i][j] / scale[j] * y[i]
		}
	}
	for j := range 3 {
		if used&(1<<j) == 0 {
			a[j] = [4]float64{}
			for k := range 3 {
				a[k][j] = 0
			}
			a[j][j] = 1
		}
	}
	for j := range 3 { // Gauss and Jordan; the matrix is positive
		if a[j][j] < 1e-9*float64(len(x)+1) && used&(1<<j) != 0 {
			return c, false
		}
		for k := range 3 {
			if k != j {
				f := a[k][j] / a[j][j]
				for l := range 4 {
					a[k][l] -= f * a[j][l]
				}
			}
		}
	}
	for j := range 3 {
		if c[j] = a[j][3] / a[j][j] / scale[j]; c[j] < 0 {
			return c, false
		}
	}
	return c, true
}
