package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// mostHeld is the share of a data structure that one holder has if a verdict names it, mostOfClass the share of all
// objects of its classes where it is not known which of them its site allocated.
const (
	mostHeld    = 0.5
	mostOfClass = 0.8
)

// heldBy names what holds most of what sites allocated, by a reference listing of a recording: the newest one after a
// collection whose state is known. In a storm there may be none: then the newest one tells who holds all objects of
// the classes. It gives "" if there is no listing, if it cannot be read, or if no holder has most of it. The listing is
// read when the first verdict asks.
func heldBy(rec *ringstore.Recording) func([]sites.Key) ui.Flow {
	load := sync.OnceValues(func() (*retention.Heap, *heap.View) {
		reaches, done, err := settledReaches(rec)
		defer done()
		if err != nil {
			return nil, nil
		}
		gcs := reaches.GCs()
		for i := len(gcs) - 1; i >= max(0, len(gcs)-mostSettled); i-- {
			o := retaining{at: strconv.FormatUint(gcs[i], 10)}
			v, _, _, err := stateAt(rec, o.at, false)
			if err != nil || v.State == nil {
				continue
			}
			if h, err := o.load(rec); err == nil {
				return h, v
			}
		}
		o := retaining{at: "last"}
		if h, err := o.load(rec); err == nil {
			return h, nil
		}
		return nil, nil
	})
	return func(keys []sites.Key) ui.Flow {
		h, v := load()
		if h == nil {
			return ""
		}
		frames, classes := map[uint64]bool{}, map[string]bool{}
		for _, k := range keys {
			frames[k.Frame], classes[k.Class.Name] = true, true
		}
		if v == nil {
			return holderOfClasses(h, slices.Sorted(maps.Keys(classes)))
		}
		held := h.Graph.Holders(h.Sampled(v, func(s *heap.Sample) bool { return frames[s.Frame] }))
		if len(held.Holders) == 0 || held.Holders[0].Share < mostHeld {
			return ""
		}
		return holderFlow(held.Holders[0].Text())
	}
}

// holderOfClasses names what holds nearly all objects of these classes, whichever site allocated them.
func holderOfClasses(h *retention.Heap, classes []string) ui.Flow {
	var set []graph.Member
	for _, c := range classes {
		set = append(set, h.OfClass(c)...)
	}
	held := h.Graph.Holders(set)
	if len(held.Holders) == 0 || held.Holders[0].Share < mostOfClass {
		return ""
	}
	return ui.Flowf("%s (%s of these classes)", holderFlow(held.Holders[0].Text()),
		ui.Flow(ui.Share(held.Holders[0].Share)))
}

// holderFlow lets a holder be broken into lines, unless a name in it may hold blanks: it could begin a line.
func holderFlow(t ui.Text) ui.Flow {
	if strings.Contains(strings.NewReplacer(" → ", "", ", then ", "", "static ", "").Replace(string(t)), " ") {
		return ui.Flowf("%s", t)
	}
	return ui.Flow(t)
}
