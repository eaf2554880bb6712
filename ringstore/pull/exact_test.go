package pull

import (
	"testing"

	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// TestExactCutsRemarks: what an agent remarked behind the end that was asked for is not pulled, whatever event says it.
func TestExactCutsRemarks(t *testing.T) {
	c := &cutting{until: 10}
	for name, at := range map[string]func(uint64) trace.Meta{
		"note":      func(t uint64) trace.Meta { return trace.Meta{Notes: []trace.Note{{Time: t}}} },
		"sampling":  func(t uint64) trace.Meta { return trace.Meta{Sampling: []trace.Sampling{{Time: t}}} },
		"sitescut":  func(t uint64) trace.Meta { return trace.Meta{SitesCut: []trace.SitesCut{{Time: t}}} },
		"unlisted":  func(t uint64) trace.Meta { return trace.Meta{Unlisted: []trace.Unlisted{{Time: t}}} },
		"storm":     func(t uint64) trace.Meta { return trace.Meta{Storms: []trace.Storm{{Time: t}}} },
		"process":   func(t uint64) trace.Meta { return trace.Meta{Process: []trace.Process{{Time: t}}} },
		"killed":    func(t uint64) trace.Meta { return trace.Meta{Killed: []trace.Killed{{Time: t, Scope: 1}}} },
		"exhausted": func(t uint64) trace.Meta { return trace.Meta{Exhausted: []trace.Exhausted{{Time: t}}} },
	} {
		for when, kept := range map[uint64]bool{10: true, 11: false} {
			raw := trace.AppendBlock(nil, trace.EncodeMeta(at(when)))
			fr := segment.FrameData{Payload: raw}
			fr.T0, fr.T1 = 9, 12
			got, err := c.trim(fr, false, 0)
			if err != nil || (len(got.raw) > 0) != kept {
				t.Errorf("%s at %d: %d bytes of %d are kept, %v", name, when, len(got.raw), len(raw), err)
			}
		}
	}
}
