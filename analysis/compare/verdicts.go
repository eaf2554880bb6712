package compare

import (
	"io"
	"slices"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// States of a verdict in two recordings.
const (
	New   = "new"   // only the recording after the change has it
	Still = "still" // both have it
	Gone  = "gone"  // only the recording before has it
)

// Verdict is one of `heapcam leaks` in either recording.
type Verdict struct {
	State    string  `json:"state"` // new, still or gone
	Kind     string  `json:"kind"`
	SiteID   string  `json:"site_id"` // of the recording after, if it has the verdict
	Sentence ui.Flow `json:"sentence"`
	// why the other recording cannot show it; "" if it could
	CannotTell string `json:"cannot_tell,omitempty"`

	what ui.Flow
}

// Judge takes in the verdicts of both recordings. Two are the same if they share a site, by class and methods of the
// stack.
func (d *Report) Judge(before, after *leak.Report) {
	ids := func(v *leak.Verdict) (all []string) {
		for _, m := range v.Members {
			all = append(all, m.SiteID)
		}
		if c := v.Callers; c != nil { // the other recording may have sampled sites
			all = append(all, sites.ID(v.Class, c.Stack))
		}
		return append(all, v.SiteID)
	}
	same := func(v, o *leak.Verdict) bool {
		of := ids(o)
		return slices.ContainsFunc(ids(v), func(id string) bool { return slices.Contains(of, id) })
	}
	has := func(l *leak.Report, v *leak.Verdict) bool {
		return slices.ContainsFunc(l.Verdicts, func(o leak.Verdict) bool { return same(v, &o) })
	}
	add := func(v *leak.Verdict, state, cannot string) {
		d.Verdicts = append(d.Verdicts, Verdict{state, v.Kind, v.SiteID, v.Sentence, cannot, v.What})
	}
	for _, state := range []string{New, Still} {
		for i := range after.Verdicts {
			v := &after.Verdicts[i]
			switch old := has(before, v); {
			case old && state == Still:
				add(v, Still, "")
			case !old && state == New:
				add(v, New, before.CannotTell)
			}
		}
	}
	for i := range before.Verdicts {
		if v := &before.Verdicts[i]; !has(after, v) {
			add(v, Gone, after.CannotTell)
		}
	}
	if len(d.Verdicts) > 0 && d.Verdicts[0].State == New {
		d.Sentence = ui.Flowf("New after the change: %s %s", d.Verdicts[0].Sentence, d.Sentence)
	}
}

// writeVerdicts prints which verdicts are new, and which are gone.
func (d *Report) writeVerdicts(w io.Writer) {
	if len(d.Verdicts) == 0 {
		return
	}
	ui.Section(w, "Verdicts of `heapcam leaks`")
	for _, v := range d.Verdicts {
		text := ui.Flowf("%s %s", ui.Flow(v.Kind), v.what)
		if v.CannotTell != "" {
			text += " (the other recording cannot tell whether it leaks)"
		}
		ui.Field(w, ui.Flow(v.State), text)
	}
}
