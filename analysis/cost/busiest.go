package cost

// Stretch is how long a Busiest is, ns: in a storm of full collections recording has a budget of so long.
const Stretch = uint64(10e9)

// Busiest is the stretch of time in which the probe stopped the application for the longest. Times are ns.
type Busiest struct {
	From    uint64 `json:"from_ns"` // since the probe began
	Span    uint64 `json:"span_ns"` // Stretch, or the whole window if that is shorter
	Stopped uint64 `json:"stopped_ns"`
}

// stop is a pause, and what the probe took of it; both in ns.
type stop struct{ at, took uint64 }

// recent has the stops of the newest Stretch, in the order of the stream.
type recent struct {
	stops   []stop
	gone    int // of stops: those before the stretch
	sum     uint64
	busiest Busiest
}

// add takes in that the probe took so long at a time. A time before the newest one counts as the newest.
func (r *recent) add(at, took uint64) {
	if took == 0 {
		return
	}
	if n := len(r.stops); n > 0 {
		at = max(at, r.stops[n-1].at)
	}
	for ; r.gone < len(r.stops) && at-r.stops[r.gone].at > Stretch; r.gone++ {
		r.sum -= r.stops[r.gone].took
	}
	if r.gone > len(r.stops)/2 {
		r.stops, r.gone = append(r.stops[:0], r.stops[r.gone:]...), 0
	}
	if n := len(r.stops); n > 0 && r.stops[n-1].at == at {
		r.stops[n-1].took += took
	} else {
		r.stops = append(r.stops, stop{at, took})
	}
	if r.sum += took; r.sum > r.busiest.Stopped {
		r.busiest = Busiest{From: r.stops[r.gone].at, Stopped: r.sum}
	}
}
