package whatif

import "context"

// MostAdvised is the most objects of a recording for which Advise predicts anything: then it takes a few seconds.
const MostAdvised = 1 << 21

// Advise gives a heap that halves the time in collections, with less work than Answer. It is nil if there is none, or
// if the model does not fit the program. The error is that of ctx.
func (m *Model) Advise(ctx context.Context) (*Advice, error) {
	seconds := m.measured().seconds
	if len(m.Doubts) > 0 || m.tape.Len() > MostAdvised || seconds < worth*(m.program()+seconds) {
		return nil, nil
	}
	configs := []Config{m.Recorded}
	live := m.live()
	for _, young := range []float64{1, 2, 4} {
		for _, old := range []float64{1.25, 2.5} {
			c := m.Sized(m.Recorded.Collector, uint64(8*young*float64(m.Recorded.Young())), uint64(old*live), 0, -1)
			if c.Eden > 0 && c.Old > 0 {
				configs = append(configs, c)
			}
		}
	}
	ps, err := m.Predict(ctx, How{Seeds: 1}, configs, nil)
	if err != nil {
		return nil, err
	}
	return m.advice(&Report{Seconds: m.program() + seconds, Check: m.compare(&ps[0]), Configurations: ps[1:]}), nil
}
