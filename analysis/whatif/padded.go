package whatif

// paddedAverage is HotSpot's AdaptivePaddedNoZeroDevAverage with its default weight and padding: how much young
// collections promoted recently, and three deviations on top.
type paddedAverage struct {
	n                          int
	average, deviation, padded float64
}

// sample takes in what one collection promoted.
func (a *paddedAverage) sample(x float64) {
	a.n++
	weight := 10.0
	if a.n < 100 {
		weight = max(weight, float64(100/a.n))
	}
	a.average = (100-weight)/100*a.average + weight/100*x
	if x != 0 {
		d := x - a.average
		if d < 0 {
			d = -d
		}
		a.deviation = (100-weight)/100*a.deviation + weight/100*d
	}
	a.padded = a.average + 3*a.deviation
}
