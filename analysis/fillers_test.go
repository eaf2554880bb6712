package analysis

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestFillers: int[] and Object of G1 before JDK 20 grow by what samples show, the rest may be fillers. Other classes,
// collectors and versions have all of their growth.
func TestFillers(t *testing.T) {
	for _, c := range []struct {
		major, collector uint64
		class            string
		grown, fillers   int64
	}{
		{17, trace.CollectorG1, "[I", 600, 400}, {17, trace.CollectorG1, "java/lang/Object", 600, 400},
		{17, trace.CollectorG1, "[J", 1000, 0}, {21, trace.CollectorG1, "[I", 1000, 0},
		{17, trace.CollectorParallel, "[I", 1000, 0},
	} {
		r := heap.NewReplay(&analysistest.Source{})
		r.JVM.Major, r.JVM.Collector = c.major, c.collector
		r.Types[1] = trace.Type{ID: 1, Name: c.class}
		if want := c.major < 20 && c.collector == trace.CollectorG1; fills(r.Symbols) != want {
			t.Errorf("%+v: fills is %v", c, !want)
		}
		rep, k := &Report{}, sites.ClassOf(r.Symbols, 1)
		now := []heap.Count{{}, {Objects: 10, Bytes: 1000}}
		rep.grown(r.Symbols, nil, now, map[sites.Class]grownSamples{k: {6, 600}})
		fillers := Fillers{}
		if rep.Fillers != nil {
			fillers = *rep.Fillers
		}
		if len(rep.Grown) != 1 || rep.Grown[0].Bytes != c.grown || fillers.Bytes != c.fillers ||
			rep.Grown[0].Objects+fillers.Objects != 10 {
			t.Errorf("%+v: %+v, fillers %+v", c, rep.Grown, fillers)
		}
	}
}
