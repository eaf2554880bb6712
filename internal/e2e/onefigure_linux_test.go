package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// figureRow is a site in the JSON of report and histogram.
type figureRow struct {
	Class string
	Child string
	Site  []struct{ Class, Method string }

	Objects     int64
	ObjectsLow  int64 `json:"objects_low"`
	ObjectsHigh int64 `json:"objects_high"`
	Bytes       int64
	BytesLow    int64 `json:"bytes_low"`
	BytesHigh   int64 `json:"bytes_high"`
}

// payload says whether a row is of the site whose truth the program prints.
func (s figureRow) payload() bool {
	return s.Class == "byte[]" && len(s.Site) > 0 && s.Site[0].Class == "KeptSessions$Session" &&
		s.Site[0].Method == "<init>"
}

const payloadKey = "KeptSessions$Session.<init>("

func payloadOf(t *testing.T, what string, rows []figureRow) figureRow {
	t.Helper()
	for _, s := range rows {
		if s.payload() {
			return s
		}
	}
	t.Fatalf("%s does not have the site", what)
	return figureRow{}
}

// TestOneFigure records a program that prints how many sessions it holds: what lives at their site has one figure in
// all verbs, with one interval that holds the truth, and never exceeds what the class has exactly. Leaks add up to no
// more than all growth.
func TestOneFigure(t *testing.T) {
	tiers.Gate(t, "one figure for one row, in two real recordings")
	t.Parallel()
	for _, between := range parts(t, "0", "2") {
		t.Run("gc every "+between+" s", func(t *testing.T) {
			p := program{major: 17, gc: "G1", heap: "128m", main: "KeptSessions", args: []string{"8", between},
				limit: "64MiB", flags: []string{"--sampling", "128KiB", "--max-sync-pause", "0"}}
			r := p.start(t)
			r.finish(t)
			m := regexp.MustCompile(`(?m)^sessions (\d+)$`).FindStringSubmatch(r.stdout.String())
			if m == nil {
				t.Fatal("the program does not say how many sessions there are")
			}
			truth, _ := strconv.ParseInt(m[1], 10, 64)
			oneFigure(t, r.recorded(t).dir, truth)
		})
	}
}

func oneFigure(t *testing.T, dir string, truth int64) {
	var report struct {
		Sites []figureRow
		Grown []figureRow `json:"grown_sites"`
		Known knownSites  `json:"coverage"`
	}
	var histogram struct {
		Classes []figureRow
		Sites   []figureRow
		Known   knownSites `json:"coverage"`
	}
	heapcamJSON(t, &report, "report", dir)
	heapcamJSON(t, &histogram, "histogram", "--sites", dir)
	want := payloadOf(t, "histogram", histogram.Sites)
	class := int64(0)
	for _, c := range histogram.Classes {
		if c.Class == "byte[]" {
			class = c.Bytes
		}
	}
	t.Logf("%d sessions; estimated %d (%d to %d) objects, %d bytes of the %d of the class", truth, want.Objects,
		want.ObjectsLow, want.ObjectsHigh, want.Bytes, class)
	if want.Bytes > class || want.BytesHigh > class || class == 0 {
		t.Errorf("the site has %d bytes (up to %d), its class %d", want.Bytes, want.BytesHigh, class)
	}
	// An interval of 95 % misses the truth in one of 20 runs; twice as wide, in one of thousands.
	low, high := 2*want.ObjectsLow-want.Objects, 2*want.ObjectsHigh-want.Objects
	if truth < low || truth > high || want.Objects < want.ObjectsLow || want.Objects > want.ObjectsHigh {
		t.Errorf("%d objects (%d to %d), in truth %d", want.Objects, want.ObjectsLow, want.ObjectsHigh, truth)
	}
	if got := payloadOf(t, "report", report.Sites); !alike(got, want) {
		t.Errorf("report %+v, histogram %+v", got, want)
	}
	if g := payloadOf(t, "report's growth", report.Grown); g.Bytes > want.Bytes || g.Objects > want.Objects {
		t.Errorf("grew by %d objects, %d bytes, and has %d, %d", g.Objects, g.Bytes, want.Objects, want.Bytes)
	}
	if report.Known != histogram.Known {
		t.Errorf("sites known: report %+v, histogram %+v", report.Known, histogram.Known)
	}
	figures := otherFigures(t, dir)
	for verb, bytes := range figures {
		if max(bytes, want.Bytes)-min(bytes, want.Bytes) > 64 {
			t.Errorf("%s says %d bytes, histogram %d", verb, bytes, want.Bytes)
		}
	}
	leaksAddUp(t, dir, want.Bytes)
}

// alike says whether two rows are the same within rounding.
func alike(a, b figureRow) bool {
	for _, x := range [...][2]int64{{a.Objects, b.Objects}, {a.ObjectsLow, b.ObjectsLow},
		{a.ObjectsHigh, b.ObjectsHigh}, {a.Bytes, b.Bytes}, {a.BytesLow, b.BytesLow}, {a.BytesHigh, b.BytesHigh}} {
		if max(x[0], x[1])-min(x[0], x[1]) > 4 {
			return false
		}
	}
	return true
}

// knownSites is what verbs say of how many sites are known.
type knownSites struct {
	Exact    int64 `json:"exact_bytes"`
	Inferred int64 `json:"inferred_bytes"`
	Unknown  int64 `json:"unknown_bytes"`
}

// otherFigures gives the live bytes of the site as the verbs without rows of sites say it.
func otherFigures(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	var group groupReply
	heapcamJSON(t, &group, "group", "--by", "type, site", dir)
	out["group"] = int64(group.Tree.child(t, "byte[]").child(t, payloadKey).Bytes)
	var diff diffReply
	heapcamJSON(t, &diff, "diff", "--by", "type, site", dir)
	for _, c := range diff.Tree.Children {
		for _, s := range c.Children {
			if c.Key == "byte[]" && strings.HasPrefix(s.Key, payloadKey) {
				out["diff"] = int64(s.Bytes.After.Value)
			}
		}
	}
	var trend struct {
		Rows []struct {
			Path []string
			Last int64 `json:"last_bytes"`
		}
	}
	heapcamJSON(t, &trend, "trend", "--by", "type, site", "--top", "0", dir)
	for _, r := range trend.Rows {
		if len(r.Path) == 2 && r.Path[0] == "byte[]" && strings.HasPrefix(r.Path[1], payloadKey) {
			out["trend"] = r.Last
		}
	}
	var history struct {
		Sites []struct {
			Class string
			Site  []struct{ Class, Method string }
			Bytes []int64
		}
	}
	heapcamJSON(t, &history, "history", dir)
	for _, s := range history.Sites {
		if (figureRow{Class: s.Class, Site: s.Site}).payload() {
			out["history"] += s.Bytes[len(s.Bytes)-1]
		}
	}
	file := filepath.Join(t.TempDir(), "live.folded")
	_, errs, code := heapcam(t, "export", "--format", "collapsed", "--value", "inuse_space", "-o", file, dir)
	if code != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		stack, value, _ := strings.Cut(line, " ")
		if strings.HasSuffix(stack, ";KeptSessions$Session.<init>;byte[]") {
			n, _ := strconv.ParseInt(value, 10, 64)
			out["export"] += n
		}
	}
	for _, verb := range []string{"group", "diff", "trend", "history", "export"} {
		if out[verb] == 0 {
			t.Errorf("%s does not have the site", verb)
		}
	}
	return out
}

// leaksAddUp holds the shares of all leaks to all growth, and that of the site to what it has.
func leaksAddUp(t *testing.T, dir string, live int64) {
	t.Helper()
	var leaks struct {
		Verdicts []struct {
			Members []struct {
				figureRow
				Grown int64 `json:"grown_bytes"`
			}
			Share float64 `json:"share_of_growth"`
		}
	}
	heapcamJSON(t, &leaks, "leaks", dir)
	sum := 0.0
	for _, v := range leaks.Verdicts {
		sum += v.Share
		for _, m := range v.Members { // sites of one data structure
			if m.payload() && m.Grown > live+64 {
				t.Errorf("the leak grew by %d bytes and has %d", m.Grown, live)
			}
		}
	}
	if t.Logf("%d leaks, %.3f of the growth", len(leaks.Verdicts), sum); sum > 1.0001 {
		t.Errorf("leaks are %.3f of all growth", sum)
	}
}
