package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis"
)

// TestAnswerCost measures what the questions of TestPace cost the viewer, without a browser: processor time, which
// other work on the machine hardly changes. HEAPCAM_PACE_OF is the recording (make answers).
func TestAnswerCost(t *testing.T) {
	path := os.Getenv("HEAPCAM_PACE_OF")
	if os.Getenv("HEAPCAM_ANSWERS") == "" || path == "" {
		t.Skip("not run: what each answer costs the viewer (make answers OF=RECORDING)")
	}
	at := view(t, path)
	var report struct{ Report analysis.Report }
	ask(t, at, "overview?", &report)
	settle := func() { // until the viewer has read all states and computes nothing in advance
		for before := time.Duration(-1); before != processorTime(viewer); time.Sleep(3 * time.Second) {
			before = processorTime(viewer)
		}
	}
	ask(t, at, "trend?by=type&largest=1", nil)
	settle()
	fmt.Printf("opened: processor %v, memory %d MiB, at most %d MiB\n", processorTime(viewer),
		status(viewer, "VmRSS")>>10, status(viewer, "VmHWM")>>10)
	known := slices.DeleteFunc(slices.Clone(report.Report.Collections),
		func(c analysis.CollectionRow) bool { return !c.Known })
	var classes []string // of verdicts
	for _, v := range report.Report.Verdicts {
		if c := strconv.Quote(v.Class); !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	var all, waits []time.Duration
	for _, x := range steps(report.Report.Collections) {
		before, begin := processorTime(viewer), time.Now()
		var together sync.WaitGroup
		var size int64
		var mu sync.Mutex
		for _, q := range requests(x.hash, known, classes) {
			together.Go(func() {
				n := ask(t, at, q, nil)
				mu.Lock()
				size += n
				mu.Unlock()
			})
		}
		together.Wait()
		took, wait := processorTime(viewer)-before, time.Since(begin)
		all, waits = append(all, took), append(waits, wait)
		time.Sleep(700 * time.Millisecond) // the time that a reader needs
		later := processorTime(viewer) - before - took
		hash, _ := url.QueryUnescape(x.hash)
		fmt.Printf("%-45s processor %5d ms, afterwards %5d ms, waited %5d ms, answer %4d KiB\n", hash,
			took.Milliseconds(), later.Milliseconds(), wait.Milliseconds(), size>>10)
	}
	slices.Sort(all)
	slices.Sort(waits)
	fmt.Printf("processor: median %v, 95 %% %v, longest %v; waited: median %v, 95 %% %v, longest %v; memory at most "+
		"%d MiB\n", all[len(all)/2], all[len(all)*95/100], all[len(all)-1], waits[len(waits)/2].Round(time.Millisecond),
		waits[len(waits)*95/100].Round(time.Millisecond), waits[len(waits)-1].Round(time.Millisecond),
		status(viewer, "VmHWM")>>10)
}

// requests are what the page asks the viewer for when it opens hash for the first time. classes are those of verdicts.
func requests(hash string, known []analysis.CollectionRow, classes []string) (out []string) {
	view, rest, _ := strings.Cut(hash, "?")
	p, _ := url.ParseQuery(rest)
	add := func(path string, pairs ...string) {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] != "" {
				v.Set(pairs[i], pairs[i+1])
			}
		}
		out = append(out, path+"?"+v.Encode())
	}
	or := func(key, def string) string {
		if p.Get(key) != "" {
			return p.Get(key)
		}
		return def
	}
	first, last := known[0], known[len(known)-1]
	if from, to, ok := strings.Cut(p.Get("win"), "-"); ok {
		a, _ := strconv.ParseInt(from, 10, 64)
		b, _ := strconv.ParseInt(to, 10, 64)
		for i := range known {
			if known[i].Time.UnixMilli() < a && i+1 < len(known) {
				first = known[i+1]
			}
			if known[i].Time.UnixMilli() <= b {
				last = known[i]
			}
		}
	}
	gc := func(c analysis.CollectionRow) string { return strconv.FormatUint(c.GC, 10) }
	fold := map[string]string{"": "1"}[p.Get("jdk")]
	switch view {
	case "overview":
		if by := map[string]string{"": "type", "site": "site(1)"}[p.Get("live")]; by != "" {
			add("trend", "largest", "1", "by", by)
		}
	case "leaks": // a curve for each verdict
		if len(classes) > 0 {
			add("trend", "by", "type, site(1)", "where", "type in ["+strings.Join(classes, ", ")+"]")
		}
	case "cost":
		add("cost")
	case "state":
		at, by := or("at", gc(last)), or("by", "type, site")
		add("group", "at", at, "by", by, "where", p.Get("filter"), "find", p.Get("q"))
		add("flame", "at", at, "by", by, "where", p.Get("filter"), "order", or("order", "root"), "fold", fold)
	case "diff":
		from, to := or("from", gc(first)), or("to", gc(last))
		add("diff", "from", from, "to", to, "by", or("by", "type"))
		add("change", "from", from, "to", to, "fold", fold)
	case "trends":
		add("trend", "by", or("by", "type"), "win", p.Get("win"))
	case "retained":
		add("retained", "by", "object")
	}
	return out
}

// ask sends a request to the viewer and decodes its answer into v. It returns the size of the answer on the wire.
func ask(t *testing.T, at, what string, v any) int64 {
	r, err := http.Get(at + "api/" + what)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("%s: %s %.200s %v", what, r.Status, b, err)
	} else if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			t.Error(err)
		}
	}
	return int64(len(b))
}
