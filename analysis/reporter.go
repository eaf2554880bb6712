package analysis

import (
	"io"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// Reporter makes reports of a recording that grows: Read takes in what has been added, and Report is about all that was
// read. It belongs to one goroutine.
type Reporter struct {
	from  heap.Reader
	sums  *Report // figures that are sums over the collections
	leaks *leak.Detector
	// by type and by site, after the first collection whose state is known; nil: there is none
	first      []heap.Count
	firstSites map[sites.Key]*sites.Tally
	last       []heap.Count // by type, after the last one
	alive      *living      // after the last one
	known      sites.CoverageFollower
	watched    watchedFollower
}

// NewReporter makes a reporter of from, which has read nothing. o is what the leak detector gets.
func NewReporter(from heap.Reader, o leak.Options) *Reporter {
	p := &Reporter{from: from, sums: newReport(), leaks: leak.NewDetector(), alive: newLiving(from.Position().Symbols)}
	p.leaks.Options = o
	return p
}

// Read reads up to the end of what is recorded.
func (p *Reporter) Read() error {
	r := p.from.Position()
	for {
		c, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		p.collection(r, c)
	}
}

func (p *Reporter) collection(r *heap.Cursor, c *heap.Collection) {
	rep := p.sums
	row := rep.collection(r.Symbols, c)
	p.leaks.Collection(r, c)
	p.known.Follow(r)
	p.watched.follow(r, c)
	p.alive.follow(r, c.Known)
	if c.Known {
		p.last = append(p.last[:0], r.Totals.PerType()...)
		if p.first == nil {
			p.first = append([]heap.Count{}, p.last...)
		}
		if p.alive.Types = p.last; p.firstSites == nil {
			p.alive.Samples = slices.Collect(p.alive.by.Values())
			p.alive.Callers = p.known.CallersAmong(r.Symbols, p.alive.Samples)
			p.firstSites = p.alive.Tallies()
		}
		q := p.known.Quality(r)
		row.Quality, rep.Quality = q, q
		if rep.CompleteAfter == 0 && rep.PartialGCs > 0 {
			rep.CompleteAfter = c.GC
		}
	} else if c.Partial {
		rep.PartialGCs++
	} else {
		rep.UnknownGCs++
	}
	rep.Collections = append(rep.Collections, row)
}

// Report makes the report of what was read.
func (p *Reporter) Report() *Report {
	r := p.from.Position()
	rep := *p.sums
	rep.Collections = slices.Clip(rep.Collections)
	rep.ending(r)
	rep.Process = process(r, p.first, p.last)
	alive := p.alive
	alive.Samples = slices.Collect(alive.by.Values())
	alive.Before, alive.Lost = p.known.Before, sites.LostMany(r)
	alive.Callers = p.known.CallersAmong(r.Symbols, alive.Samples)
	alive.FromFew = func(typ uint32) sites.FromFew { return p.known.FromFew(r.Symbols, typ) }
	tallies, rows := alive.All()
	rep.grown(r.Symbols, p.first, p.last, sampledGrowth(p.firstSites, tallies))
	rep.GrownSites = sites.GrownSites(r.Symbols, p.firstSites, tallies, p.first, p.last, 20)
	rep.Sites = rows[:min(len(rows), 50)]
	p.watched.done(&rep, r)
	h := p.leaks
	rep.OldCollections = h.Full + h.Mixed + h.Major
	found := h.Report(r)
	if len(rep.Collections) > 0 { // as the verdicts have it: from the start of the first phase on
		rep.From, rep.WindowNS = collection.Wall(r.Symbols, uint64(h.From*1e9)), uint64(found.Window*1e9)
	}
	if rep.Open = h.Open; rep.Open {
		rep.Likely = found.Verdicts
		found = &leak.Report{Verdicts: []leak.Verdict{}, Misses: []leak.Miss{}}
	}
	rep.Settle(found)
	return &rep
}
