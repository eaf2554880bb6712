package whatif

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Goal is what a heap shall keep to; 0 means no limit.
type Goal struct {
	Pause float64 // longest pause, seconds
	GC    float64 // share of the time in collections
}

// ParseGoal reads "pause=50ms,gc=2%".
func ParseGoal(text string) (Goal, error) {
	var g Goal
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		switch key {
		case "pause":
			var d time.Duration
			if d, err = time.ParseDuration(value); err == nil && d <= 0 {
				err = strconv.ErrRange
			}
			g.Pause = d.Seconds()
		case "gc":
			var p ui.Percent
			if err = p.Set(value); err == nil && p == 0 {
				err = strconv.ErrRange
			}
			g.GC = float64(p)
		default:
			err = strconv.ErrSyntax
		}
		if err != nil {
			return Goal{}, fmt.Errorf("%q is not a goal (like pause=50ms,gc=2%%)", text)
		}
	}
	return g, nil
}

// meets says whether a prediction keeps to the goal at the upper end of its interval.
func (g Goal) meets(p *Prediction) bool {
	return !p.TooSmall && !p.MayBeSmall && (g.Pause == 0 || p.Longest.High <= g.Pause) &&
		(g.GC == 0 || p.GCShare.High <= g.GC)
}

// GoalAnswer is the smallest heap that meets a goal.
type GoalAnswer struct {
	Pause float64 `json:"pause_seconds,omitempty"` // longest pause asked for
	GC    float64 `json:"gc_share,omitempty"`      // share of the time in collections asked for
	Met   bool    `json:"met"`                     // some configuration meets the goal
	// the smallest that meets it; else the one with the least time in collections
	Best  *Prediction `json:"best"`
	Flags string      `json:"flags"` // of the JVM, for the best
	Tried int         `json:"tried"` // configurations
}

// Answer finds the smallest heap of ps that meets the goal.
func (g Goal) Answer(ps []Prediction) *GoalAnswer {
	a := &GoalAnswer{Pause: g.Pause, GC: g.GC, Tried: len(ps)}
	for i := range ps {
		p := &ps[i]
		if p.TooSmall {
			continue
		}
		switch met := g.meets(p); {
		case a.Best == nil, met && !a.Met:
			a.Best, a.Met = p, met
		case met != a.Met:
		case met && (p.Heap < a.Best.Heap || p.Heap == a.Best.Heap && p.GCSeconds.Value < a.Best.GCSeconds.Value):
			a.Best = p
		case !met && p.GCSeconds.Value < a.Best.GCSeconds.Value:
			a.Best = p
		}
	}
	if a.Best != nil {
		a.Flags = a.Best.config.Flags()
	}
	return a
}

// Flags gives a configuration as flags of the JVM.
func (c *Config) Flags() string {
	if c.regional() {
		flags := fmt.Sprintf("-XX:+UseG1GC -Xms%dk -Xmx%dk -XX:G1HeapRegionSize=%dk", c.heap()*8>>10, c.heap()*8>>10,
			c.Region*8>>10)
		if c.Least == c.Eden {
			flags += fmt.Sprintf(" -Xmn%dk", c.Eden*8>>10)
		}
		return flags
	}
	name := "-XX:+UseSerialGC"
	if c.Collector == trace.CollectorParallel {
		name = "-XX:+UseParallelGC -XX:-UseAdaptiveSizePolicy"
	}
	kib := func(words uint64) uint64 { return words * 8 >> 10 }
	return fmt.Sprintf("%s -Xms%dk -Xmx%dk -Xmn%dk -XX:SurvivorRatio=%d -XX:InitialTenuringThreshold=%d "+
		"-XX:MaxTenuringThreshold=%d", name, kib(c.Young()+c.Old), kib(c.Young()+c.Old), kib(c.Young()),
		c.ratio(), c.Threshold, c.Threshold)
}

// ratio gives the SurvivorRatio from which the JVM makes the survivor spaces as large as they are.
func (c *Config) ratio() uint64 {
	return max(1, c.Young()/max(1, c.Survivor)-min(2, c.Young()/max(1, c.Survivor)))
}

func (a *GoalAnswer) writeText(w io.Writer) {
	ui.Section(w, "Goal")
	switch {
	case a.Best == nil:
		ui.Paragraph(w, "", 0, ui.Flowf("None of %d configurations can hold the program's objects.", a.Tried))
		return
	case a.Met:
		ui.Paragraph(w, "", 0, ui.Flowf("The smallest of %d heaps that meets the goal has %s: %s of the time in "+
			"collections "+
			"(%s to %s), the longest pause %s (%s to %s).", a.Tried, bytes(a.Best.Heap), share(a.Best.GCShare.Value),
			share(a.Best.GCShare.Low), share(a.Best.GCShare.High), seconds(a.Best.Longest.Value),
			seconds(a.Best.Longest.Low), seconds(a.Best.Longest.High)))
	default:
		ui.Paragraph(w, "", 0, ui.Flowf("None of %d heaps meets the goal. The one with the least time in collections "+
			"has "+
			"%s: %s of the time, the longest pause %s.", a.Tried, bytes(a.Best.Heap), share(a.Best.GCShare.Value),
			seconds(a.Best.Longest.Value)))
	}
	ui.Fprintf(w, "\n  %s\n", ui.Text(a.Flags))
}

func share(x float64) ui.Flow   { return ui.Flow(ui.Share(x)) }
func seconds(x float64) ui.Flow { return ui.Flow(ui.Seconds(x)) }

// Advice is a heap that halves the time in collections.
type Advice struct {
	Heap   uint64  `json:"heap"`           // bytes
	Before float64 `json:"before_seconds"` // measured time in collections
	After  Span    `json:"after_seconds"`  // predicted
	Flags  string  `json:"flags"`          // of the JVM
}

// worth is the share of the time in collections below which no advice is given.
const worth = 0.02

// advice gives the smallest predicted heap that at the upper end of its interval halves the measured time in
// collections; nil if there is none, if that time is short, or if the model does not fit.
func (m *Model) advice(r *Report) *Advice {
	before := m.measured().seconds
	if !r.Check.Fits || before < worth*r.Seconds {
		return nil
	}
	var best *Prediction
	for i := range r.Configurations {
		p := &r.Configurations[i]
		if p.TooSmall || p.MayBeSmall || p.GCSeconds.High > before/2 {
			continue
		}
		if best == nil || p.Heap < best.Heap {
			best = p
		}
	}
	if best == nil {
		return nil
	}
	return &Advice{best.Heap, before, best.GCSeconds, best.config.Flags()}
}
