package retention

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/internal/ui"
)

// GrowthReport is the document of `heapcam dominators --since`: what retains more than at an earlier reference listing.
type GrowthReport struct {
	Head
	// The collection before the earlier listing.
	SinceGC uint64 `json:"since_gc"`
	// When the JVM was stopped for the earlier listing.
	Since time.Time `json:"since"`
	// What is shown: object, drop, class, loader, package or site.
	By string `json:"by"`
	// What retains more or less, the largest growth first.
	Groups []Grown `json:"groups"`
}

// Grown is what a group, or the objects with one path, retain in both listings.
type Grown struct {
	// Name of the group; of objects, the path to them.
	Name string `json:"name"`
	// Bytes that it retained in the earlier listing.
	Before uint64 `json:"before"`
	// Bytes that it retains in the later one.
	After uint64 `json:"after"`
	// The change, bytes.
	Change int64 `json:"change"`
}

// mostCompared bounds the objects whose paths are compared.
const mostCompared = 2000

// Growth compares what retains most in two listings, with at most top rows, 0: all. Objects are compared by the paths
// to them, because collections move them: of those with one path, the one that retains most counts.
func Growth(before, after *DominatorsReport, top int) *GrowthReport {
	r := &GrowthReport{Head: after.Head, SinceGC: before.GC, Since: before.Time, By: after.By, Groups: []Grown{}}
	r.Envelope = ui.NewEnvelope("dominators-growth", 1)
	at := map[string]int{}
	row := func(name string) *Grown {
		i, ok := at[name]
		if !ok {
			i = len(r.Groups)
			at[name] = i
			r.Groups = append(r.Groups, Grown{Name: name})
		}
		return &r.Groups[i]
	}
	sizes := func(d *DominatorsReport, put func(name string, n uint64)) {
		for i := range d.Groups {
			put(d.Groups[i].Name, d.Groups[i].Retained)
		}
		for i := range d.Biggest {
			put(d.Biggest[i].Path.Text, d.Biggest[i].Retained)
		}
	}
	sizes(before, func(name string, n uint64) { x := row(name); x.Before = max(x.Before, n) })
	sizes(after, func(name string, n uint64) { x := row(name); x.After = max(x.After, n) })
	for i := range r.Groups {
		r.Groups[i].Change = int64(r.Groups[i].After) - int64(r.Groups[i].Before)
	}
	r.Groups = slices.DeleteFunc(r.Groups, func(x Grown) bool { return x.Change == 0 })
	slices.SortStableFunc(r.Groups, func(a, b Grown) int { return cmp.Compare(b.Change, a.Change) })
	if top > 0 && len(r.Groups) > top {
		r.Groups = r.Groups[:top]
	}
	return r
}

// WriteText prints the report.
func (r *GrowthReport) WriteText(w io.Writer) {
	ui.Fprintf(w, "What retains more in the references after collection %d, %s\n", r.GC, ui.Time(r.Time))
	ui.Fprintf(w, "than in those after collection %d, %s\n\n", r.SinceGC, ui.Time(r.Since))
	what := strings.ToUpper(r.By)
	if r.By == ByObject || r.By == ByDrop {
		what = "PATH TO THE OBJECT"
	}
	ui.Fprintf(w, "%12s  %11s  %11s  %s\n", "CHANGE", "BEFORE", "AFTER", what)
	for _, x := range r.Groups {
		sign, n := "+", x.Change
		if n < 0 {
			sign, n = "−", -n
		}
		ui.Beside(w, ui.Sprintf("%12s  %11s  %11s  ", sign+ui.Bytes(n), ui.Bytes(x.Before), ui.Bytes(x.After)),
			ui.Sprintf("%s", x.Name))
	}
	r.writeMissing(w)
}

// Compared is how many rows of Dominators Growth needs: all groups, or objects.
func Compared(by string) int {
	if by == ByObject || by == ByDrop {
		return mostCompared
	}
	return 0
}
