package main

import (
	"strconv"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// mostHeld is the share of a data structure that one holder has if a verdict names it.
const mostHeld = 0.5

// heldBy names what holds most of what sites allocated, by a reference listing of a recording: the newest one after a
// collection whose state is known, as that of each is not in a storm. It gives "" if there is none, if it cannot be
// read, or if no holder has most of it. The listing is read when the first verdict asks.
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
		return nil, nil
	})
	return func(keys []sites.Key) ui.Flow {
		h, v := load()
		if h == nil {
			return ""
		}
		frames := map[uint64]bool{}
		for _, k := range keys {
			frames[k.Frame] = true
		}
		held := h.Graph.Holders(h.Sampled(v, func(s *heap.Sample) bool { return frames[s.Frame] }))
		if len(held.Holders) == 0 || held.Holders[0].Share < mostHeld {
			return ""
		}
		return holderFlow(held.Holders[0].Text())
	}
}

// holderFlow lets a holder be broken into lines, unless a name in it may hold blanks: it could begin a line.
func holderFlow(t ui.Text) ui.Flow {
	if strings.Contains(strings.NewReplacer(" → ", "", ", then ", "", "static ", "").Replace(string(t)), " ") {
		return ui.Flowf("%s", t)
	}
	return ui.Flow(t)
}
