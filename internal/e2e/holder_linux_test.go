package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// holdGarbage holds the histogram after the collection of the newest reference listing, and the line of the report,
// against each other.
func holdGarbage(t *testing.T, dir, report string) {
	t.Helper()
	var r struct {
		Garbage *struct {
			GC        uint64 `json:"gc"`
			Old       uint64 `json:"old_bytes"`
			Unreached uint64 `json:"unreached_bytes"`
			Weak      uint64 `json:"weak_bytes"`
		} `json:"garbage"`
	}
	heapcamJSON(t, &r, "report", dir)
	if r.Garbage == nil && strings.Contains(report, " of these classes)") {
		t.Log("the heap state after the collection of the listing is not known, as in a storm: no garbage is told")
		return
	}
	if r.Garbage == nil || !strings.Contains(report, "Garbage") {
		t.Fatalf("the report says nothing of garbage:\n%s", report)
	}
	var h struct {
		Bytes   uint64 `json:"bytes"`
		Dead    uint64 `json:"dead_bytes"`
		Reached bool   `json:"reached"`
	}
	at := fmt.Sprint(r.Garbage.GC)
	// A collection that a storm left unlisted, or within a listing in parts: old space is known by the reference
	// listing alone.
	if _, errs, code := heapcam(t, "histogram", "--at", at, dir); code == 3 &&
		(strings.Contains(errs, " is not known") || strings.Contains(errs, " is known in part")) {
		t.Logf("%+v; %s", *r.Garbage, errs)
		return
	}
	heapcamJSON(t, &h, "histogram", "--at", at, dir)
	// Young objects count in the histogram alone.
	if dead := r.Garbage.Unreached + r.Garbage.Weak; !h.Reached || h.Dead < dead || h.Dead-dead > h.Bytes/10 {
		t.Errorf("garbage %+v in old space; the histogram: %+v", *r.Garbage, h)
	}
	t.Logf("%+v %+v", *r.Garbage, h)
}

// TestExhaustedHolder: nobody asks for a reference listing. A program keeps what it serves in a static map until its
// memory is used up. The incident that heapcam keeps has a listing, and its report names the map.
func TestExhaustedHolder(t *testing.T) {
	tiers.Gate(t, "the holder of what fills a heap, in a minute of full collections")
	t.Parallel()
	for i, gc := range parts(t, "Serial", "G1") {
		t.Run(gc, func(t *testing.T) {
			p := program{major: []int{17, 25}[i], gc: gc, heap: "64m", main: "Hoard", args: []string{"3500"},
				limit: "64MiB"}
			r, x, ok := exhausted(t, &p)
			for try := 1; !ok && try < 3; try++ { // the JVM ended before its listing, or that took too long
				t.Logf("%+v: once more", x.References)
				r, x, ok = exhausted(t, &p)
			}
			if !ok && !full {
				t.Skipf("not run: the holder of what fills a heap: no reference listing in three runs: %+v",
					x.References)
			}
			n := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}
			dir := n.Path(x.ID)
			if listed, of := referenceListings(t, dir); len(listed) == 0 || of.torn != 0 {
				t.Fatalf("%d reference listings, %d torn; %+v", len(listed), of.torn, x.References)
			}
			out, _, _ := heapcam(t, "report", dir)
			if !strings.Contains(strings.Join(strings.Fields(out), " "), "static Hoard.orders") {
				t.Errorf("the holder is not named:\n%s", out)
			}
			holdGarbage(t, dir, strings.Join(strings.Fields(out), " "))
			var doc struct {
				Verdict string `json:"verdict"`
			}
			out, _, _ = heapcam(t, "incidents", "show", "--json", "--out", r.out, x.ID)
			if err := json.Unmarshal([]byte(out), &doc); err != nil || !strings.Contains(doc.Verdict, "Hoard") {
				t.Errorf("%v: %s", err, out)
			}
			out, _, _ = heapcam(t, "incidents", "show", "--out", r.out, x.ID)
			t.Logf("%+v\n%s", x.References, out)
			verify(t, r.recorded(t).dir, 0)
		})
	}
}

// exhausted runs a program until its heap is exhausted, and gives the incident that heapcam kept. ok: the JVM lived
// long enough for its reference listing.
func exhausted(t *testing.T, p *program) (r *running, x ringstore.Incident, ok bool) {
	t.Helper()
	r = p.start(t)
	r.wait(t)
	n := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}
	all, err := n.List()
	if err != nil {
		t.Fatal(err)
	}
	found := -1
	for k := range all {
		if strings.HasPrefix(all[k].Reason, (trace.Exhausted{}).String()) { // an end may follow
			found = k
		}
	}
	if found < 0 {
		t.Fatalf("no incident of the exhaustion: %+v; %s", all, r.stderr.String())
	}
	x = all[found]
	if x.References == nil || x.References.Objects == 0 && x.References.Why == "" {
		t.Fatalf("the incident does not say what became of its listing: %+v", x)
	}
	return r, x, x.References.Objects > 0
}
