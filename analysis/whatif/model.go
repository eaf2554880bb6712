package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/trace"
)

// Model predicts the collections of one recorded program. New makes one.
type Model struct {
	// Recorded is the heap of the recording: sizes as they were in most of it.
	Recorded Config
	Pauses   *PauseModel
	// Doubts are reasons why the recording does not have what the model assumes.
	Doubts []string
	// Workers is how many simulations run at a time; 0: one for each processor.
	Workers int
	// Known says that full collections were recorded: then it is known when objects in old space died.
	Known bool

	tape  *lifetimes.Tape
	curve *lifetimes.Curve
	shape shape
}

// shape is how a configuration follows from sizes.
type shape struct {
	align, ratio uint64 // words; eden : survivor space
	threshold    int
}

// Errors of New.
var (
	ErrCollector = errors.New("heapcam whatif needs a recording of the Serial, the Parallel or the G1 collector: " +
		"record with -XX:+UseParallelGC")
	ErrNoConfig = errors.New("none of these sizes makes a heap: eden and two survivor spaces have to fit in --young, " +
		"and " +
		"--young in --heap")
	// ErrG1 is for what cannot be asked of G1.
	ErrG1 = errors.New("G1 has no fixed old space, and the mode probabilities does not know it: ask for --heap, with " +
		"another mode")
	ErrNoYoung = errors.New("the recording has no young collection with object data")
	// ErrImplausible is for what no JVM does: a damaged recording, or one that was made up.
	ErrImplausible = errors.New("the recording contradicts itself: it has far fewer collections than its allocations " +
		"need")
)

// Limits of what is simulated. A program that fills eden more often than it collects does not exist; JVMs that change
// eden's size come near.
const (
	mostAllocated = 1 << 50 // words
	mostPerEpoch  = 64
)

// New fits a model on the lifetimes of a recording.
func New(t *lifetimes.Tape) (*Model, error) {
	if _, known := collectors[t.JVM.Collector]; !known {
		return nil, ErrCollector
	}
	if len(t.Epochs) == 0 {
		return nil, ErrNoYoung
	}
	m := &Model{tape: t, curve: t.All.Curve(), Pauses: FitPauses(t)}
	var edens, survivors, olds []uint64
	causes := map[string]int{}
	for i := range t.Epochs {
		e := &t.Epochs[i]
		if e.Eden > 0 && e.Old > 0 {
			edens, survivors, olds = append(edens, e.Eden), append(survivors, e.Survivor), append(olds, e.Old)
		}
		m.Known = m.Known || e.Kind == trace.PauseFull || e.Kind == trace.PauseMixed
		switch e.Cause {
		case "Allocation Failure", "Ergonomics", "", "G1 Evacuation Pause", "G1 Humongous Allocation",
			"G1 Compaction Pause", "G1 Preventive Collection":
		default:
			causes[e.Cause]++
		}
	}
	if t.JVM.Collector == trace.CollectorG1 {
		return m, m.recordedG1(causes)
	}
	if len(edens) == 0 {
		return nil, ErrNoYoung
	}
	slices.Sort(edens)
	slices.Sort(survivors)
	slices.Sort(olds)
	mid := len(edens) / 2
	m.Recorded = Config{Collector: t.JVM.Collector, Eden: edens[mid], Survivor: survivors[mid], Old: olds[mid]}
	if all := t.End() + t.Tail; all > mostAllocated || all/m.Recorded.Eden > mostPerEpoch*uint64(len(t.Epochs)+1) {
		return nil, ErrImplausible
	}
	m.Recorded.Follow = follows(t.JVM)
	m.shape = shape{align: 512 << 10 / 8, threshold: m.threshold()}
	if t.JVM.Collector == trace.CollectorSerial {
		m.shape.align = 64 << 10 / 8
	}
	m.shape.ratio = m.Recorded.ratio()
	m.Recorded.Threshold = m.shape.threshold
	m.doubt(edens, olds, causes)
	return m, nil
}

// threshold gives the tenuring threshold of the recorded JVM: the lowest age at which objects were promoted and none
// stayed in young space. Younger ones are promoted, too, where they do not fit. A recording that shows none has the
// JVM's default. The share allows for objects that were taken for older ones after a full collection.
func (m *Model) threshold() int {
	const few, wrong = 128, 0.01 // words; share
	t := m.tape
	if t.JVM.Collector != trace.CollectorParallel {
		return 15
	}
	for age, n := range t.Tenured {
		if n >= few && float64(t.Kept[age]) <= wrong*float64(n) {
			return age
		}
	}
	return 15
}

// doubt notes what the model does not cover.
func (m *Model) doubt(edens, olds []uint64, causes map[string]int) {
	n := len(edens)
	if n > 0 && (edens[n-1]-edens[0] > edens[n-1]/20 || olds[n-1]-olds[0] > olds[n-1]/20) {
		m.Doubts = append(m.Doubts, "the JVM changed the sizes of its spaces (adaptive sizing); record with "+
			"-XX:-UseAdaptiveSizePolicy, -Xms equal to -Xmx, and -Xmn")
	}
	var names []string
	for c := range causes {
		names = append(names, c)
	}
	slices.Sort(names)
	for _, c := range names {
		m.Doubts = append(m.Doubts, fmt.Sprintf("%d collections had a cause that does not depend on the heap's size: "+
			"%s",
			causes[c], c))
	}
	if m.tape.Lost > 0 {
		m.Doubts = append(m.Doubts, fmt.Sprintf("data is missing: nothing more is known of %d objects", m.tape.Lost))
	}
}

// Sized gives the configuration of a young generation and an old space of so many bytes, as the JVM divides them.
// ratio is eden's size in survivor spaces, 0 for the recorded one; threshold is negative for the recorded one.
func (m *Model) Sized(collector, young, old, ratio uint64, threshold int) Config {
	a := m.shape.align
	if collector == trace.CollectorSerial {
		a = 64 << 10 / 8
	}
	if ratio == 0 {
		ratio = m.shape.ratio
	}
	if threshold < 0 {
		threshold = m.shape.threshold
		if collector != m.tape.JVM.Collector {
			threshold = 15
		}
	}
	y := young / 8 / a * a
	survivor := max(a, y/(ratio+2)/a*a)
	return Config{Collector: collector, Eden: y - min(y, 2*survivor), Survivor: survivor, Old: old / 8 / a * a,
		Threshold: threshold, Follow: collector == trace.CollectorParallel && follows(m.tape.JVM)}
}

// follows says whether a JVM has the rule of Config.Follow. Logs of JDK 17 show that it has not.
func follows(j trace.JVM) bool {
	return j.Collector == trace.CollectorParallel && j.Major > 0 && j.Major < 17
}

// Span is a predicted value and the interval that it lies in.
type Span struct {
	Value float64 `json:"value"` // with the deaths that are likeliest
	Low   float64 `json:"low"`   // end of the interval
	High  float64 `json:"high"`  // end of the interval
}

// figures are what one simulation gives, or what was measured.
type figures struct {
	minor, full, seconds, share, longest, copied, promoted, oldMost, live float64
	exhausted                                                             bool
}

// program gives how long the program itself ran, in seconds, up to the end of the input.
func (m *Model) program() float64 {
	ns, last := 0.0, m.tape.End()
	for i := range m.tape.Epochs {
		ns += float64(m.tape.Epochs[i].Mutator)
	}
	if last > 0 {
		ns *= float64(last+m.tape.Tail) / float64(last)
	}
	return ns / 1e9
}

func (m *Model) figures(o *Outcome) figures {
	total, longest := m.Pauses.Total(o)
	f := figures{minor: float64(o.Minor), full: float64(o.Full), seconds: total, longest: longest,
		copied: 8 * float64(o.Copied), promoted: 8 * float64(o.Promoted), oldMost: 8 * float64(o.OldMost),
		live: 8 * float64(o.LiveMost), exhausted: o.Exhausted != Never}
	f.share = total / max(1e-9, total+m.program())
	return f
}

// How says what a prediction is made from.
type How struct {
	Mode  Mode // "": observed
	Seeds int  // inputs that are drawn; 0: 3 if observed, else 5
	Given Probabilities
}

// fill sets defaults.
func (h How) fill() How {
	if h.Mode == "" {
		h.Mode = ModeObserved
	}
	if h.Seeds <= 0 {
		h.Seeds = 5
		if h.Mode == ModeObserved {
			h.Seeds = 3
		}
	}
	return h
}

// runs is how many inputs a prediction is made of: so many with deaths drawn, and with mode observed one with the
// earliest and one with the latest deaths.
func (h How) runs() int {
	if h.Mode == ModeObserved {
		return h.Seeds + 2
	}
	return h.Seeds
}

// simulation gives run k of a prediction: a function that simulates a configuration.
func (m *Model) simulation(h How, k int, grain uint64) func(c Config) *Outcome {
	seed := uint64(k + 1)
	var in *Input
	switch {
	case h.Mode == ModeProbabilities:
		s, initial := m.shares(h.Given), uint64(0)
		for i, before := range m.tape.Unknown {
			if before {
				initial += uint64(m.tape.Words[i])
			}
		}
		return func(c Config) *Outcome {
			return simulateShares(s, c, initial, m.tape.End()+m.tape.Tail, m.survivorWords(), seed)
		}
	case h.Mode == ModeGenerated:
		in = m.generated(grain, seed)
	case h.Mode == ModeLifetimes:
		in = shuffled(Observed(m.tape, m.curve, Drawn, grain, seed), seed)
	case k < h.Seeds:
		in = Observed(m.tape, m.curve, Drawn, grain, seed)
	default:
		in = Observed(m.tape, m.curve, []Deaths{Earliest, Latest}[k-h.Seeds], grain, seed)
	}
	return func(c Config) *Outcome { return Simulate(in, c, seed) }
}

// survivorWords is the mean size of an object that young collections copied.
func (m *Model) survivorWords() float64 {
	words, objects := 0.0, 0.0
	for i := range m.tape.Epochs {
		e := &m.tape.Epochs[i]
		words, objects = words+float64(e.Copied+e.Promoted), objects+float64(e.Survivors)
	}
	if objects == 0 {
		return usualWords
	}
	return words / objects
}

// Predict simulates all configurations, in parallel, with several inputs, and gives a prediction for each. done, if it
// is not nil, is called as work proceeds with the share that is done. The error is that of ctx.
func (m *Model) Predict(ctx context.Context, h How, configs []Config, done func(share float64)) ([]Prediction, error) {
	h = h.fill()
	smallest := ^uint64(0)
	for _, c := range configs {
		smallest = min(smallest, c.Eden)
		if c.regional() {
			smallest = min(smallest, c.Least)
		}
	}
	grain := max(2048, smallest/2048)
	runs := make([][]figures, len(configs))
	for i := range runs {
		runs[i] = make([]figures, h.runs())
	}
	steps := make([][]Step, len(configs))
	var mu sync.Mutex
	n := 0
	for k := range h.runs() {
		simulate := m.simulation(h, k, grain)
		var wg sync.WaitGroup
		room := make(chan struct{}, cmp.Or(m.Workers, runtime.GOMAXPROCS(0)))
		for i := range configs {
			if ctx.Err() != nil {
				break
			}
			room <- struct{}{}
			wg.Add(1)
			go func() {
				defer func() { <-room; wg.Done() }()
				o := simulate(configs[i])
				runs[i][k] = m.figures(o)
				mu.Lock()
				defer mu.Unlock()
				if k == 0 {
					steps[i] = o.Steps
				}
				n++
				if done != nil {
					done(float64(n) / float64(len(configs)*h.runs()))
				}
			}()
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	out := make([]Prediction, len(configs))
	for i := range configs {
		out[i] = m.prediction(configs[i], runs[i], h.Seeds)
		out[i].steps = steps[i]
	}
	return out, nil
}

// collectors are the names of the collectors that can be simulated.
var collectors = map[uint64]string{trace.CollectorSerial: "Serial", trace.CollectorParallel: "Parallel",
	trace.CollectorG1: "G1"}
