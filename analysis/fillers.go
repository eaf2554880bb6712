package analysis

import (
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Fillers is what classes gained that the collector may have put into gaps.
type Fillers struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// namedFillers is the first version of Java whose fillers have a class of their own.
const namedFillers = 20

// mayFill says whether objects of a class may be fillers: before JDK 20 G1 fills the gaps that it leaves with int[] and
// java.lang.Object, which nothing tells from those of the program. But only the program's are sampled.
func mayFill(r *heap.Symbols, c sites.Class) bool {
	return fills(r) && (c.Name == "int[]" || c.Name == "java.lang.Object")
}

// fills says whether the collector fills gaps with objects of such classes.
func fills(r *heap.Symbols) bool {
	return r.JVM.Collector == trace.CollectorG1 && r.JVM.Major < namedFillers
}

// grownSamples is by how much the samples of a class stand for more.
type grownSamples struct{ objects, bytes float64 }

// sampledGrowth gives by how much the samples of each class stand for more after the last state than after the first.
func sampledGrowth(first, last map[sites.Key]*sites.Tally) map[sites.Class]grownSamples {
	out := map[sites.Class]grownSamples{}
	add := func(all map[sites.Key]*sites.Tally, sign float64) {
		for k, t := range all {
			objects, bytes := t.Stood()
			g := out[k.Class]
			out[k.Class] = grownSamples{g.objects + sign*objects, g.bytes + sign*bytes}
		}
	}
	add(first, -1)
	add(last, 1)
	return out
}

// fillers takes off from a class that may have fillers what no sample shows.
func (rep *Report) fillers(g *GrownClass, s grownSamples) {
	objects, bytes := max(0, g.Objects-int64(max(0, s.objects))), max(0, g.Bytes-int64(max(0, s.bytes)))
	if bytes == 0 {
		return
	}
	if rep.Fillers == nil {
		rep.Fillers = &Fillers{}
	}
	rep.Fillers.Objects += objects
	rep.Fillers.Bytes += bytes
	g.Objects, g.Bytes = g.Objects-objects, g.Bytes-bytes
}

// text says what the fillers are.
func (f *Fillers) text() ui.Flow {
	return ui.Flowf("Not in this table: int[] and java.lang.Object without a sample, +%s. G1 of this JDK fills gaps "+
		"with such objects.", ui.Flow(ui.Bytes(uint64(f.Bytes))))
}
