package web

import (
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
)

// growing makes reports of a recording that grows: each reads what was added since the one before. The reading begins
// anew when the ring has evicted a file. A recording with reference listings is read as a whole each time, because a
// listing changes what is known of collections that were read before.
type growing struct {
	mu      sync.Mutex // guards the fields below, and the replays while they read
	counts  *reading   // nil: nothing was read
	objects *reading   // a replay of all objects; nil: counts were enough so far
}

// reading is a replay of a recording that grows.
type reading struct {
	*analysis.Reporter
	in     *Input
	unsure func() bool // the counts contradict each other
	took   *cost.Cost
	refs   int    // blocks of reference listings that were read
	oldest uint64 // the first collection of the recording when it was opened
	over   bool   // it does not grow any more
}

// report returns the report of what is recorded now; nil: the whole recording must be read for it.
func (g *growing) report(s *Server) (*analysis.Report, error) {
	_, over := s.version()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts.evicted() || g.objects.evicted() {
		g.close()
	}
	if s.cfg.FollowCensus == nil || over && g.counts == nil || g.counts != nil && g.counts.refs > 0 {
		return nil, nil
	}
	select {
	case s.data.slots <- struct{}{}:
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	defer func() { <-s.data.slots }()
	rep, err := g.read(s, over)
	if err != nil || over {
		g.close()
	}
	return rep, err
}

// read makes the report: by counting objects if that is enough, else with a replay that follows each of them.
func (g *growing) read(s *Server, over bool) (*analysis.Report, error) {
	if err := s.more(&g.counts, over, true); err != nil || g.counts.refs > 0 {
		return nil, err
	}
	g.counts.took.Close()
	rep := g.counts.Report()
	if unsure := g.counts.unsure(); unsure || rep.Open {
		if !unsure {
			s.hub.send("likely", likely(rep), true)
			defer s.hub.send("likely", []Headline{}, true)
		}
		if err := s.more(&g.objects, over, false); err != nil || g.objects.refs > 0 {
			return nil, err
		}
		rep = g.objects.Report()
	}
	rep.Account(g.counts.took)
	return rep, nil
}

func (g *growing) close() {
	for _, r := range []*reading{g.counts, g.objects} {
		if r != nil {
			r.in.Close()
		}
	}
	g.counts, g.objects = nil, nil
}

// evicted says that the recording has lost collections that were read.
func (r *reading) evicted() bool { return r != nil && r.in.Oldest != nil && r.in.Oldest() != r.oldest }

// more reads what was added to the recording since. It opens the recording if *to is nil.
func (s *Server) more(to **reading, over, counts bool) error {
	report := s.hub.progress("Reading the recording", "")
	defer report(1, 1)
	if *to == nil {
		open := s.cfg.Follow
		if counts {
			open = s.cfg.FollowCensus
		}
		in, err := open(report)
		if err != nil {
			return err
		}
		r := &reading{in: in, took: cost.New(), unsure: func() bool { return false }}
		if in.Oldest != nil {
			r.oldest = in.Oldest()
		}
		// A reading that was cancelled looks complete. So only the end of the server cancels it.
		src := &stoppable{s.ctx, &metered{&paused{in.Source, &r.over}, r.took, &r.refs}}
		var from heap.Reader = heap.NewReplay(src)
		if counts {
			c := heap.NewCensus(src)
			from, r.unsure = c, func() bool { return c.Unsure }
		}
		p := from.Position()
		p.Damage = append(p.Damage, in.Problems...)
		r.Reporter = analysis.NewReporter(from, leak.Options{MinGrowth: leak.DefaultMinGrowth})
		*to = r
	}
	(*to).over = over
	if err := (*to).Read(); err != nil {
		return err
	}
	return s.ctx.Err()
}
