package history

import (
	"math"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// living is what a summary says that lives of a class or site.
type living struct {
	objects, bytes uint64
	samples        int64
}

func (l living) plus(objects, bytes, samples uint64) living {
	return living{l.objects + objects, l.bytes + bytes, l.samples + int64(samples)}
}

// change adds what lives after the collection at place i, if that is a change.
func (x *History) change(i int32, n living) {
	m := len(x.At)
	if m == 0 && n == (living{}) ||
		m > 0 && x.Objects[m-1] == n.objects && x.Bytes[m-1] == n.bytes &&
			(x.Site == nil || x.Samples[m-1] == n.samples) {
		return
	}
	x.At, x.Objects, x.Bytes = append(x.At, i), append(x.Objects, n.objects), append(x.Bytes, n.bytes)
	if x.Site != nil {
		x.Samples = append(x.Samples, n.samples)
	}
}

// summaryFit is by what the figures of the sites of a type are multiplied.
type summaryFit struct{ objects, bytes float64 }

// fitsOf lets the sites of a type have no more than the type. A summary has what samples stand for, and not their
// sizes, so that figures are nearly those of a replay (sites.State).
func fitsOf(s *trace.Summary) map[uint64]summaryFit {
	sum := map[uint64]living{}
	for _, t := range s.Sites {
		sum[t.Type] = sum[t.Type].plus(t.Objects, t.Bytes, 0)
	}
	fits := map[uint64]summaryFit{}
	for typ := range sum {
		fits[typ] = summaryFit{1, 1}
	}
	for _, t := range s.Types {
		if x := sum[t.Type]; x.objects > 0 && x.bytes > 0 {
			fits[t.Type] = summaryFit{min(1, float64(t.Objects)/float64(x.objects)),
				min(1, float64(t.Bytes)/float64(x.bytes))}
		}
	}
	return fits
}

// AtSyncPoints gives the histories of classes and sites at sync points alone, from the summaries that the recorder
// wrote. r needs to hold no more than definitions and summaries; without any the histories have no collections. What
// was too small to be in a summary counts as nothing there.
func AtSyncPoints(r *heap.Replay) (*HeapHistory, error) {
	out := &HeapHistory{Schema: "heapcam.history/1", Collections: []uint64{}, Seconds: []float64{},
		Classes: []History{}, Sites: []History{}, SyncPoints: true}
	var all []*trace.Summary
	r.OnSummary = func(s *trace.Summary) {
		if s.At != 0 && len(s.Collections) > 0 && (len(all) == 0 || s.At > all[len(all)-1].At) {
			all = append(all, s)
		}
	}
	if err := collection.Each(r, func(*heap.Collection) bool { return true }); err != nil {
		return nil, err
	}
	begin := 0.0
	classes, bySite := map[sites.Class]*History{}, map[sites.Key]*History{}
	for i, s := range all {
		c := s.Collections[len(s.Collections)-1]
		end := float64(c.Start+c.Dur) / 1e9
		out.Collections = append(out.Collections, s.At)
		if i == 0 {
			begin = end
		}
		out.Seconds = append(out.Seconds, max(end-begin, 0))
		out.Last, out.To = s.At, collection.Wall(r.Symbols, c.Start+c.Dur)
		if i == 0 {
			out.From = out.To
		}
		now := map[*History]living{}
		for _, t := range s.Types {
			k := sites.ClassOf(r.Symbols, uint32(t.Type)).Folded()
			x := classes[k]
			if x == nil {
				x = &History{Class: k.Name}
				classes[k] = x
			}
			x.Born += t.Born
			x.Died += t.Died
			now[x] = now[x].plus(t.Objects, t.Bytes, 0)
		}
		fits := fitsOf(s)
		for _, t := range s.Sites {
			k := sites.Key{Frame: r.Site(t.Frame), Class: sites.ClassOf(r.Symbols, uint32(t.Type)).Folded()}
			x := bySite[k]
			if x == nil {
				x = &History{Class: k.Class.Name, Site: sites.Stack(r.Symbols, k.Frame, sites.MaxFrames)}
				bySite[k] = x
			}
			f := fits[t.Type]
			now[x] = now[x].plus(uint64(math.Round(f.objects*float64(t.Objects))),
				uint64(math.Round(f.bytes*float64(t.Bytes))), t.Samples)
		}
		for _, x := range classes {
			x.change(int32(i), now[x])
		}
		for _, x := range bySite {
			x.change(int32(i), now[x])
		}
	}
	var names []sites.Class
	for k := range classes {
		names = append(names, k)
	}
	for k := range bySite {
		names = append(names, k.Class)
	}
	shared := sites.Loaders(r.Symbols, names)
	for k, x := range classes {
		x.Loader = shared[k]
		out.Classes = append(out.Classes, *x)
	}
	for k, x := range bySite {
		x.Loader = shared[k.Class]
		out.Sites = append(out.Sites, *x)
	}
	out.sort()
	return out, nil
}
