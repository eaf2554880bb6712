package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// TrendReport is the whole of `heapcam trend`: one grouping over all collections of the window.
type TrendReport struct {
	Schema      string       `json:"schema"`
	By          []string     `json:"by"`
	Where       []string     `json:"where,omitempty"`
	Collections []TrendPoint `json:"collections"` // after which the state is known
	Unknown     int          `json:"unknown"`     // the others of the window
	Exact       bool         `json:"exact"`
	MayFill     bool         `json:"may_fill,omitempty"` // as in Diff
	Rows        []TrendRow   `json:"rows"`               // what changes steadily and much first
	Left        int          `json:"left_out,omitempty"`
}

// TrendPoint is a collection of a trend.
type TrendPoint struct {
	Moment
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// TrendRow has a figure of one group for each collection.
type TrendRow struct {
	Path      []string `json:"path"`
	Estimated bool     `json:"estimated,omitempty"`
	First     uint64   `json:"first_bytes"`
	Last      uint64   `json:"last_bytes"`
	Peak      uint64   `json:"peak_bytes"`
	PeakGC    uint64   `json:"peak_gc"`
	// Slope is how fast the group changes; absent: nobody computed it, because it changed less than many others.
	Slope   *Slope   `json:"slope,omitempty"`
	Objects []uint64 `json:"objects"`
	Bytes   []uint64 `json:"bytes"`
	// Objects that are in this group because their callers were drawn (recorded with --sites exact), after each
	// collection; absent: none is.
	Drawn []uint64 `json:"callers_drawn,omitempty"`
	// Share of the objects with drawn callers that is in this group, after the newest collection with any.
	Share float64 `json:"callers_share,omitempty"`
	// Least bytes then: the bounds allow any other callers.
	Low *uint64 `json:"drawn_low,omitempty"`
	// Most bytes then.
	High *uint64 `json:"drawn_high,omitempty"`
}

// Slope is the median of the slopes between all pairs of points (Sen), bytes per second, with its 95 % interval. If the
// interval contains 0, the group goes up and down, or stays.
type Slope struct {
	PerSecond float64 `json:"bytes_per_second"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
}

// Steady says that the interval of the slope does not contain 0, and that the group changed in the same direction from
// the first collection to the last one: what grows at once and then shrinks slowly has no steady change.
func (r *TrendRow) Steady() bool {
	s := r.Slope
	return s != nil && (s.Low > 0 && r.Last > r.First || s.High < 0 && r.Last < r.First)
}

// least is how fast the group changes at least, bytes per second; 0: it does not change steadily.
func (r *TrendRow) least() float64 {
	if !r.Steady() {
		return 0
	}
	return min(math.Abs(r.Slope.Low), math.Abs(r.Slope.High))
}

// Slopes are computed of the groups that moved most, from points that are evenly chosen.
const (
	slopedRows   = 500
	slopedPoints = 48
	leastPoints  = 5
)

// maxTrendRows bounds the groups that a trend follows.
const maxTrendRows = 100_000

// Trend groups the state after each collection of r. again gives classifiers and filters anew for each state; most
// bounds the rows (0: no bound). Its errors are those of Group and of the replay, and ErrTrend.
func Trend(r *heap.Replay, again func() ([]classify.Classifier, []classify.Filter), most int) (*TrendReport, error) {
	return TrendWithin(r, func(time.Time) bool { return true }, again, most)
}

// TrendWithin is Trend of the states after collections that ended within a time.
func TrendWithin(
	r *heap.Replay,
	within func(time.Time) bool,
	again func() ([]classify.Classifier, []classify.Filter),
	most int,
) (*TrendReport, error) {
	t, err := newTrend(again())
	if err != nil {
		return nil, err
	}
	by, filters := again()
	a, _ := classify.Needs(by, filters)
	var callers sites.Callers
	return t.report(collection.Each(r, func(c *heap.Collection) bool {
		callers.Follow(&r.Cursor)
		if c.Known && !within(collection.Wall(r.Symbols, c.End())) {
			return true
		}
		var from *sites.Callers
		if c.Known && a&classify.AttrSite != 0 {
			from = callers.Frozen()
		}
		return t.group(r.View(), c, from, again)
	}), most)
}

func needsRefs(by []classify.Classifier, filters []classify.Filter) bool {
	a, _ := classify.Needs(by, filters)
	return a&classify.AttrRefs != 0
}

// TrendStates is Trend of the states that each passes to its function, in order, until the function returns false. All
// states share their names and samples. So a classifier that looks only at types and samples is asked once for each of
// them, and not once for each state. from is as of DrawCallers: with it each state is grouped alone.
func TrendStates(
	samples *heap.Sampling,
	from *sites.Callers,
	each func(func(*heap.View, *heap.Collection) bool) error,
	again func() ([]classify.Classifier, []classify.Filter),
	most int,
) (*TrendReport, error) {
	t, err := newTrend(again())
	if err != nil {
		return nil, err
	}
	by, filters := again()
	a, _ := classify.Needs(by, filters)
	if alone := from != nil && a&classify.AttrSite != 0; !alone && grouping.Outlines(by, filters) {
		t.outline, t.sampling = grouping.NewOutline(by, filters), samples
		t.sites = a&classify.AttrSite != 0
	}
	if t.outline != nil {
		return t.report(t.outlined(each), most)
	}
	return t.report(each(func(r *heap.View, c *heap.Collection) bool { return t.group(r, c, from, again) }), most)
}

// outlined takes in all states by the outline: one is summed up while the groups of the one before are counted.
func (t *trending) outlined(each func(func(*heap.View, *heap.Collection) bool) error) error {
	summed, over := make(chan *sums), make(chan struct{})
	free := make(chan *sums, 2)
	free <- &sums{}
	free <- &sums{}
	go func() {
		defer close(over)
		for s := range summed {
			t.count(s)
			if t.failed != nil {
				return
			}
			free <- s
		}
	}()
	err := each(func(r *heap.View, c *heap.Collection) bool {
		var s *sums
		select {
		case s = <-free:
		case <-over:
			return false
		}
		t.sum(s, r, c)
		select {
		case summed <- s:
			return true
		case <-over:
			return false
		}
	})
	close(summed)
	<-over
	return err
}

// sums are the tuples of a state.
type sums struct {
	r    *heap.View
	c    *heap.Collection
	rest []classify.Tuple // without a sample
	grouping.Sampled
	at  []int32 // by kind: 1 + its place in Seen
	err error
}

// trending is a trend that is being made.
type trending struct {
	rep    *TrendReport
	rows   map[string]*TrendRow
	failed error

	outline  *grouping.Outline // or nil
	groups   []*TrendRow       // of the outline
	sites    bool              // it looks at samples
	sampling *heap.Sampling
}

// newTrend fails with ErrRefs where by or filters look at references.
func newTrend(by []classify.Classifier, filters []classify.Filter) (*trending, error) {
	if needsRefs(by, filters) {
		return nil, ErrRefs
	}
	rep := &TrendReport{Schema: "heapcam.trend/1", Collections: []TrendPoint{}, Exact: true, Rows: []TrendRow{}}
	for _, b := range by {
		rep.By = append(rep.By, b.Name)
	}
	for _, f := range filters {
		rep.Where = append(rep.Where, f.Name)
	}
	return &trending{rep: rep, rows: map[string]*TrendRow{}}, nil
}

// group takes in a state. from is as of DrawCallers.
func (t *trending) group(
	r *heap.View,
	c *heap.Collection,
	from *sites.Callers,
	again func() ([]classify.Classifier, []classify.Filter),
) bool {
	if !c.Known {
		t.rep.Unknown++
		return true
	}
	by, filters := again()
	w, spaces := World(r, c)
	DrawCallers(w, r, from)
	g, err := Group(r, c, w, spaces, by, filters)
	if err != nil {
		t.failed = fmt.Errorf("collection %d: %w", c.GC, err)
		return false
	}
	t.point(r.Symbols, c, g.Objects, g.Bytes, g.Exact)
	g.Tree.Walk(func(path []string, x *grouping.Node) bool {
		if len(path) == 0 {
			return true
		}
		id := strings.Join(path, "\x00") + fmt.Sprint("\x00", x.Level)
		row := t.rows[id]
		if row == nil {
			if row = t.row(slices.Clone(path)); row == nil {
				return false
			}
			t.rows[id] = row
		}
		t.add(row, c, x.Objects, x.Bytes, x.Estimated)
		row.draw(x, len(row.Bytes))
		return true
	})
	return t.failed == nil
}

// count is group by the outline.
func (t *trending) count(s *sums) {
	if !s.c.Known {
		t.rep.Unknown++
		return
	}
	if s.err == nil {
		w, _ := World(s.r, s.c)
		var fs []grouping.GroupFigure
		if fs, s.err = t.outline.Figures(w, s.rest, &s.Sampled); s.err == nil {
			t.figures(s.r.Symbols, s.c, fs)
			return
		}
	}
	t.failed = fmt.Errorf("collection %d: %w", s.c.GC, s.err)
}

// sum sums up a state.
func (t *trending) sum(s *sums, r *heap.View, c *heap.Collection) {
	for _, k := range s.Seen {
		s.at[k] = 0
	}
	s.r, s.c, s.rest, s.Seen, s.Sums = r, c, s.rest[:0], s.Seen[:0], s.Sums[:0]
	switch {
	case !c.Known:
		return
	case !t.sites:
		s.rest, s.err = Tuples(r, &classify.World{GC: c.GC}, nil, 0, 8, nil)
		return
	}
	var rest []heap.Folded
	rest, s.err = t.sampling.Fold(r, func(k int32, bytes, size uint64, weight, missed float64) {
		if grow := int(k) + 1 - len(s.at); grow > 0 {
			s.at = append(s.at, make([]int32, grow)...)
		}
		if s.at[k] == 0 {
			s.Seen, s.Sums = append(s.Seen, k), append(s.Sums, grouping.SampledSum{})
			s.at[k] = int32(len(s.Seen))
		}
		x := &s.Sums[s.at[k]-1]
		x.Objects++
		x.Bytes += bytes
		x.WObjects.Draw(1, weight, missed)
		x.WBytes.Draw(float64(size), weight, missed)
	})
	for _, f := range rest {
		s.rest = append(s.rest,
			classify.Tuple{Type: f.Type, Birth: f.Birth, AtLeast: f.AtLeast, Space: -1, Objects: f.Objects,
				Bytes: f.Bytes})
	}
	kinds, bases, places := t.sampling.Kinds()
	s.Kinds, s.Bases = kinds, len(bases)
	s.Describe = func(base, place int32) classify.Tuple {
		b := bases[base]
		d := classify.Tuple{Type: b.Type, Birth: b.Birth, AtLeast: b.AtLeast, Space: -1, Sampled: true}
		if place >= 0 {
			d.Frame, d.Thread = places[place].Frame, places[place].Thread
		}
		return d
	}
}

// figures takes in what the groups of the outline have.
func (t *trending) figures(r *heap.Symbols, c *heap.Collection, fs []grouping.GroupFigure) {
	exact := true
	for _, f := range fs {
		exact = exact && !f.Estimated
	}
	t.point(r, c, fs[0].Objects, fs[0].Bytes, exact)
	for g := 1; g < len(fs); g++ {
		if g > len(t.groups) {
			row := t.row(t.outline.Path(int32(g)))
			if row == nil {
				return
			}
			t.groups = append(t.groups, row)
		}
		if fs[g].There {
			t.add(t.groups[g-1], c, fs[g].Objects, fs[g].Bytes, fs[g].Estimated)
		}
	}
}

// point adds a collection.
func (t *trending) point(r *heap.Symbols, c *heap.Collection, objects, bytes uint64, exact bool) {
	t.rep.Exact, t.rep.MayFill = t.rep.Exact && exact, fills(r)
	t.rep.Collections = append(t.rep.Collections, TrendPoint{momentOf(r, c), objects, bytes})
}

// row makes a row, unless there are too many.
func (t *trending) row(path []string) *TrendRow {
	if len(t.rows)+len(t.groups) == maxTrendRows {
		t.failed = ErrTrend
		return nil
	}
	return &TrendRow{Path: path}
}

// add gives a row the figures of the newest collection.
func (t *trending) add(row *TrendRow, c *heap.Collection, objects, bytes uint64, estimated bool) {
	row.fill(len(t.rep.Collections) - 1)
	row.Bytes, row.Objects = append(row.Bytes, bytes), append(row.Objects, objects)
	row.Estimated = row.Estimated || estimated
	if bytes > row.Peak {
		row.Peak, row.PeakGC = bytes, c.GC
	}
}

// draw takes in how many objects of a group have drawn callers after the newest of so many collections.
func (r *TrendRow) draw(x *grouping.Node, collections int) {
	if x.Drawn == 0 {
		return
	}
	r.Drawn = append(append(r.Drawn, make([]uint64, collections-1-len(r.Drawn))...), x.Drawn)
	r.Share, r.Low, r.High = x.Share, x.BytesLow, x.BytesHigh
}

// fill makes n points of a row, 0 where there were none.
func (r *TrendRow) fill(n int) {
	for len(r.Bytes) < n {
		r.Bytes, r.Objects = append(r.Bytes, 0), append(r.Objects, 0)
	}
	if r.Drawn != nil {
		r.Drawn = append(r.Drawn, make([]uint64, n-len(r.Drawn))...)
	}
}

// report makes the report of all states, unless there was an error.
func (t *trending) report(err error, most int) (*TrendReport, error) {
	if err = cmp.Or(err, t.failed); err != nil {
		return nil, err
	}
	rep := t.rep
	n := len(rep.Collections)
	for _, row := range slices.AppendSeq(t.groups, maps.Values(t.rows)) {
		row.fill(n)
		row.First, row.Last = row.Bytes[0], row.Bytes[n-1]
		rep.Rows = append(rep.Rows, *row)
	}
	rep.rank()
	if most > 0 && len(rep.Rows) > most {
		rep.Left = len(rep.Rows) - most
		rep.Rows = rep.Rows[:most]
	}
	return rep, nil
}

// rank puts what changes steadily and much first.
func (t *TrendReport) rank() {
	slices.SortFunc(t.Rows, func(x, y TrendRow) int {
		return cmp.Or(cmp.Compare(y.moved(), x.moved()), cmp.Compare(y.Peak, x.Peak), slices.Compare(x.Path, y.Path))
	})
	t.slopes()
}

// Within gives the trend of the collections of an exact trend that ended within a time, as if no others were read. All
// its rows must be there.
func (t *TrendReport) Within(within func(time.Time) bool) *TrendReport {
	out := *t
	out.Collections, out.Rows = []TrendPoint{}, []TrendRow{}
	from := slices.IndexFunc(t.Collections, func(p TrendPoint) bool { return within(p.Time) })
	if from < 0 {
		return &out
	}
	to := from
	for to < len(t.Collections) && within(t.Collections[to].Time) {
		to++
	}
	out.Collections = t.Collections[from:to]
	for _, r := range t.Rows {
		r.Slope, r.Peak, r.PeakGC = nil, 0, 0
		r.Bytes, r.Objects = r.Bytes[from:to], r.Objects[from:to]
		r.First, r.Last = r.Bytes[0], r.Bytes[to-from-1]
		for i, b := range r.Bytes {
			if b > r.Peak {
				r.Peak, r.PeakGC = b, out.Collections[i].GC
			}
		}
		if r.Peak > 0 {
			out.Rows = append(out.Rows, r)
		}
	}
	out.rank()
	return &out
}

// slopes computes slopes, and ranks by them: first what certainly changes, the fastest first, then the rest as it was.
func (t *TrendReport) slopes() {
	n := len(t.Collections)
	if n < leastPoints {
		return
	}
	points := min(n, slopedPoints)
	at, times := make([]int, points), make([]float64, points)
	for i := range at {
		at[i] = i * (n - 1) / (points - 1)
		times[i] = t.Collections[at[i]].Time.Sub(t.Collections[0].Time).Seconds()
	}
	v := make([]float64, points)
	for i := range t.Rows[:min(len(t.Rows), slopedRows)] {
		row := &t.Rows[i]
		for k, j := range at {
			v[k] = float64(row.Bytes[j])
		}
		s := &Slope{}
		s.PerSecond, s.Low, s.High = stats.Sen(times, v)
		row.Slope = s
	}
	slices.SortStableFunc(t.Rows, func(x, y TrendRow) int { return cmp.Compare(y.least(), x.least()) })
}

// ErrTrend says that a trend has too many groups.
var ErrTrend = fmt.Errorf(
	"the trend has more than %d groups: take fewer or coarser classifiers, or a filter",
	maxTrendRows,
)

// moved is how far the row went from first to last, in bytes.
func (r *TrendRow) moved() uint64 { return max(r.First, r.Last) - min(r.First, r.Last) }

// Spark draws the curve of the row's bytes from 0 on.
func (r *TrendRow) Spark(width int) string {
	v := make([]float64, len(r.Bytes))
	for i, b := range r.Bytes {
		v[i] = float64(b)
	}
	return ui.SparkFrom(0, v, width)
}
