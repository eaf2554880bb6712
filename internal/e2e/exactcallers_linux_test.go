package e2e

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// TestExactCallers: with `--sites exact` each verb that shows stacks draws the callers of a method that two others
// call, by samples. The lengths of the arrays tell which of them called it.
func TestExactCallers(t *testing.T) {
	tiers.Gate(t, "callers of exact sites")
	t.Parallel()
	p := program{major: 17, gc: "Serial", heap: "256m", main: "Callers", args: []string{"700000"},
		opts:  []string{"-Xms256m", "-Xmn32m"},
		flags: []string{"--sites", "exact", "--sampling", "16KiB", "--overhead-cpu", "0"}, limit: "64MiB"}
	r := p.start(t)
	r.finish(t)
	dir := r.recorded(t).dir
	verify(t, dir, 1)
	kept, cached := lengths(t, dir)
	share := kept / (kept + cached)
	if kept < 30_000 || cached < 60_000 {
		t.Fatalf("%.0f arrays are kept and %.0f cached", kept, cached)
	}
	is := func(what string, got, all float64) {
		t.Helper()
		if got == 0 || math.Abs(got/all-share) > 0.06 {
			t.Errorf("%s: %.0f of %.0f are of keep, in truth %.1f %%", what, got, all, 100*share)
		}
	}
	var d struct {
		Tree drawnChange `json:"tree"`
	}
	heapcamJSON(t, &d, "diff", "--from", "3", "--by", "site(2)", dir)
	helper := d.Tree.below(t, "Callers.make")
	keep := helper.below(t, "Callers.keep")
	is("diff", keep.Objects.After.Value, helper.Objects.After.Value)
	if keep.Drawn < 20_000 || math.Abs(keep.Share-share) > 0.06 || helper.Drawn > 0 {
		t.Errorf("diff: %.0f drawn, share %g; of the helper %.0f", keep.Drawn, keep.Share, helper.Drawn)
	}
	// All that died was cached: samples that died say so.
	if b := keep.Objects.Born; keep.Objects.Died.Value > 0.02*helper.Objects.Died.Value ||
		helper.Objects.Died.Value < 500 || b.Low > b.Value || b.High < helper.Objects.Born.Value/2 {
		t.Errorf("diff: of keep %+v, of the helper %+v", keep.Objects, helper.Objects)
	}
	var x struct {
		Rows []struct {
			Path    []string  `json:"path"`
			Objects []float64 `json:"objects"`
			Drawn   []float64 `json:"callers_drawn"`
		} `json:"rows"`
	}
	heapcamJSON(t, &x, "trend", "--by", "site(2)", dir)
	of := map[string]float64{}
	for _, row := range x.Rows {
		last := len(row.Objects) - 1
		name, _, _ := strings.Cut(row.Path[len(row.Path)-1], "(")
		of[name] = row.Objects[last]
		if name == "Callers.keep" && (row.Drawn == nil || row.Drawn[last] < 20_000) {
			t.Errorf("trend: drawn %v", row.Drawn)
		}
	}
	is("trend", of["Callers.keep"], of["Callers.make"])
	out, errs, code := heapcam(t, "export", "--format", "collapsed", "--value", "inuse_objects", "-o", "-", dir)
	if code != 0 {
		t.Fatalf("export: %d %s", code, errs)
	}
	stacks := map[string]float64{}
	for l := range strings.Lines(out) {
		at := strings.LastIndexByte(l, ' ')
		n, _ := strconv.ParseFloat(strings.TrimSpace(l[at+1:]), 64)
		stacks[l[:at]] = n
	}
	const stack = "Callers.main;Callers.keep;Callers.make;byte[]"
	all := 0.0
	for s, n := range stacks {
		if strings.Contains(s, "Callers.make;") {
			all += n
		}
	}
	is("export", stacks[stack]+stacks[stack+"_[callers_drawn]"], all)
	if n := stacks[stack+"_[callers_drawn]"]; n < 20_000 || math.Abs(all-helper.Objects.After.Value) > 3 {
		t.Errorf("export: %.0f drawn; the helper made %.0f that live, %.0f in the diff", n, all,
			helper.Objects.After.Value)
	}
	var two struct {
		Sites []struct {
			Drawn bool `json:"callers_drawn"`
		} `json:"sites"`
	}
	if heapcamJSON(t, &two, "diff", dir, dir); len(two.Sites) == 0 || !two.Sites[0].Drawn {
		t.Errorf("diff of two: %+v", two)
	}
}

// drawnChange is a group of a diff.
type drawnChange struct {
	Key     string `json:"key"`
	Objects struct {
		Died  drawnRange `json:"died"`
		Born  drawnRange `json:"born"`
		After drawnRange `json:"after"`
	} `json:"objects"`
	Drawn    float64       `json:"callers_drawn"`
	Share    float64       `json:"callers_share"`
	Children []drawnChange `json:"children"`
}

type drawnRange struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// below gives the group whose name begins so.
func (c *drawnChange) below(t *testing.T, name string) *drawnChange {
	t.Helper()
	for i := range c.Children {
		if strings.HasPrefix(c.Children[i].Key, name) {
			return &c.Children[i]
		}
	}
	t.Fatalf("%s is not below %s", name, c.Key)
	return nil
}

// lengths counts the arrays of Callers that live at the end.
func lengths(t *testing.T, dir string) (kept, cached float64) {
	t.Helper()
	var g struct {
		Tree struct {
			Children []struct {
				Key     string  `json:"key"`
				Objects float64 `json:"objects"`
			} `json:"children"`
		} `json:"tree"`
	}
	heapcamJSON(t, &g, "group", "--by", "length", "--where", `type == "byte[]"`, dir)
	for _, x := range g.Tree.Children {
		switch x.Key {
		case "200":
			kept = x.Objects
		case "300":
			cached = x.Objects
		}
	}
	return kept, cached
}
