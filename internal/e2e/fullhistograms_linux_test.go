package e2e

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestFullHistograms holds the state after each full collection against the histogram that the JVM itself logs then.
// The collections are caused by allocations, which are granted before the pause ends: in that place stand remains of
// dead objects.
func TestFullHistograms(t *testing.T) {
	t.Parallel()
	type work struct {
		main, heap, young string
		args              []string
	}
	type jvm struct {
		major int
		gc    string
		work
	}
	var all []jvm
	for _, w := range []work{
		{"Granted", "24m", "8m", []string{"3"}},
		{"Tight", "48m", "16m", []string{"4000", "75"}},
		{"Humongous", "64m", "8m", []string{"3000"}},
		{"Fill", "8m", "2m", nil},
		{"Exhaust", "24m", "8m", []string{"85", "4"}},
	} {
		for _, gc := range collectors {
			for _, major := range []int{17, 25} {
				if major >= 20 || gc != "G1" { // before, G1 leaves dead objects where it compacts nothing
					all = append(all, jvm{major, gc, w})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b jvm) int { return cmp.Compare(b.gc, a.gc) })
	for _, c := range parts(t, all...) {
		histograms := filepath.Join(t.TempDir(), "histograms.log")
		p := program{major: c.major, gc: c.gc, heap: c.heap, main: c.main, args: c.args, limit: "64MiB",
			opts: []string{"-Xmn" + c.young, "-Xlog:gc+classhisto*=trace:file=" + histograms + "::filecount=0"}}
		r := p.start(t)
		r.wait(t)
		rec := r.recorded(t)
		logged := loggedHistograms(t, histograms)
		recording, err := ringstore.OpenRecording(rec.dir)
		if err != nil {
			t.Fatal(err)
		}
		compared, differ := 0, 0
		src := &blockSource{files: recording.Files}
		for h := heap.NewReplay(src); ; {
			c, err := h.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			want := logged[c.JVMGC]
			if !c.Known || c.Kind != trace.PauseFull || want == nil {
				continue
			}
			compared++
			if got := classesOf(h); !maps.Equal(got, want) {
				if differ++; differ == 1 {
					t.Errorf("%s, GC(%d), state and the JVM's histogram: %v", p.main, c.JVMGC, differing(got, want))
				}
			}
		}
		src.close()
		recording.Close()
		t.Logf("%s, %d %s: %d full collections compared, %d differ", c.main, c.major, c.gc, compared, differ)
		if compared < 3 {
			t.Errorf("%s, %d %s: %d full collections compared of %d", c.main, c.major, c.gc, compared, len(logged))
		}
		verify(t, rec.dir, 1)
	}
}

var afterFull = regexp.MustCompile(`GC\((\d+)\) +\d+: +`)

// loggedHistograms reads the histograms that a JVM has logged after full collections: objects and bytes by class, by
// the number of the collection.
func loggedHistograms(t *testing.T, file string) map[uint64]map[string][2]uint64 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[uint64]map[string][2]uint64{}
	var text strings.Builder
	gc, after := "", false
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "Class Histogram") {
			if after && gc != "" {
				n, _ := strconv.ParseUint(gc, 10, 64)
				out[n] = folded(parseHistogram(text.String()))
			}
			after = strings.Contains(line, "start]") && strings.Contains(line, "after full gc")
			gc = ""
			text.Reset()
		} else if m := afterFull.FindStringSubmatchIndex(line); after && m != nil {
			gc = line[m[2]:m[3]]
			text.WriteString(strings.TrimSpace(line[m[3]+1:]) + "\n")
		}
	}
	return out
}

func folded(h map[string][2]uint64) map[string][2]uint64 {
	out := map[string][2]uint64{}
	for name, n := range h {
		if filler(name) { // G1 puts them behind humongous objects
			continue
		}
		name = fold(name)
		out[name] = [2]uint64{out[name][0] + n[0], out[name][1] + n[1]}
	}
	return out
}

// classesOf is the state as such a histogram.
func classesOf(h *heap.Replay) map[string][2]uint64 {
	out := map[string][2]uint64{}
	for id, n := range h.State.PerType() {
		if n.Objects > 0 {
			name := h.TypeName(uint32(id))
			out[name] = [2]uint64{out[name][0] + n.Objects, out[name][1] + n.Bytes}
		}
	}
	return folded(out)
}

// differing gives the first classes of which two histograms say something else.
func differing(a, b map[string][2]uint64) (out []string) {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if a[name] != b[name] && len(out) < 8 {
			out = append(out, name+": "+strconv.FormatUint(a[name][0], 10)+", "+strconv.FormatUint(b[name][0], 10))
		}
	}
	return out
}
