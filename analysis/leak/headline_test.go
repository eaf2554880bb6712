package leak

import (
	"bytes"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// TestHeadline: the first sentence answers whether the program leaks: what, or how small a leak may be unseen, or why
// nothing is known.
func TestHeadline(t *testing.T) {
	leaks := func(kinds ...string) []Verdict {
		var all []Verdict
		for _, k := range kinds {
			all = append(all, Verdict{Kind: k, Sentence: "Leak: byte[] from a.B.c(B.java:3) grows.",
				What: "byte[] from a.B.c(B.java:3)"})
		}
		return all
	}
	for _, c := range []struct {
		l     Report
		want  string
		style ui.Style
	}{
		{Report{Verdicts: leaks(KindLeak)}, "Leak: byte[] from a.B.c(B.java:3) grows.", ui.Bad},
		{Report{Verdicts: leaks(KindSuspect)}, "Leak: byte[] from a.B.c(B.java:3) grows.", ui.Doubt},
		{Report{Verdicts: leaks(KindFills, KindSuspect, KindSuspect)},
			"Leak: byte[] from a.B.c(B.java:3) grows. There are 2 other verdicts.", ui.Bad},
		{Report{Smallest: 70 << 10, interval: 512 << 10}, "No leak found above 70.0 KiB/s in 2 min 30 s and 9 " +
			"collections (95 %). A longer window, or `--sampling 64KiB`, shows smaller leaks.", ui.Good},
		{Report{Smallest: 70 << 10, interval: 64 << 10}, "No leak found above 70.0 KiB/s in 2 min 30 s and 9 " +
			"collections (95 %). A longer window, or `--sampling 16KiB`, shows smaller leaks.", ui.Good},
		{Report{Smallest: 70 << 10, interval: 16 << 10}, "No leak found above 70.0 KiB/s in 2 min 30 s and 9 " +
			"collections (95 %). A longer window shows smaller leaks.", ui.Good},
		{Report{smallest: "The result rests on 5 watched samples."}, "No leak found in 2 min 30 s and 9 " +
			"collections. The result rests on 5 watched samples.", ui.Good},
		{Report{doubt: "3 collections in 2 s are too few"}, "Cannot tell whether the program leaks: 3 collections " +
			"in 2 s are too few. Record for longer: at least one minute, with at least ten collections.", ui.Doubt},
		{Report{doubt: NoSamples}, "Cannot tell whether the program leaks: no allocation was sampled, so no " +
			"allocation site is known. Record again, and see `heapcam cost` for what stopped the sampling.", ui.Doubt},
		{Report{doubt: lostTooMany(60, 40)}, "Cannot tell whether the program leaks: 40.0 % of the samples " +
			"were lost. Record again, and sample less, such as with `--sampling 64KiB`.", ui.Doubt},
		{Report{doubt: lostTooMany(80, 20), Smallest: 70 << 10, interval: 16 << 10}, "No leak found above 70.0 KiB/s " +
			"in 2 min 30 s and 9 collections (95 %). A longer window shows smaller leaks.", ui.Good},
		{Report{doubt: NoCollection}, "Cannot tell whether the program leaks: there is no collection in this " +
			"recording. Record for longer: at least one minute, with at least ten collections.", ui.Doubt},
		{Report{doubt: FreesNothing}, "Cannot tell whether the program leaks: Epsilon frees nothing, so all that " +
			"the program allocates stays.", ui.Doubt},
	} {
		c.l.Window, c.l.Collections = 150, 9
		c.l.Headline = c.l.headline()
		if string(c.l.Headline) != c.want || Style(c.l.Verdicts, c.l.Headline) != c.style {
			t.Errorf("%s\nwant %s", c.l.Headline, c.want)
		}
		var b bytes.Buffer
		c.l.WriteText(&b, "x.heapcam")
		text := strings.Join(strings.Fields(b.String()), " ")
		if !strings.HasPrefix(text, c.want) || strings.Count(text, "Leak: ") > len(c.l.Verdicts) {
			t.Errorf("%s\ndoes not begin with\n%s, or says a verdict twice", text, c.want)
		}
	}
}

// TestDoubtSaysHowLong: how long the JVM ran counts, not when its last collection was.
func TestDoubtSaysHowLong(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	r.End, r.Taken = &trace.End{Time: 45e9, Reason: trace.EndDeath}, 9
	h := NewDetector()
	h.Times = []float64{19}
	want := "1 collection in 45 s is too few"
	if l := h.Report(&r.Cursor); !strings.Contains(string(l.Headline), want) || !l.ended {
		t.Errorf("%s", l.Headline)
	}
}

// TestReasons: each reason why a site is not named has a code, words, and what to do next.
func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for w := whyDropped; w <= whySmall; w++ {
		r := reasons[w]
		if r.code == "" || seen[r.code] || r.text == "" || !strings.HasSuffix(string(r.next), ".") {
			t.Errorf("%d: %+v", w, r)
		}
		seen[r.code] = true
	}
}
