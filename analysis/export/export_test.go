package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/parquet-go/parquet-go"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

func exportRecording() []trace.Block { return analysistest.Recording(3, 2, 2, 12) }

// TestTables: CSV, JSON and Parquet have the same rows. (Module arrowtest compares Parquet with Apache Arrow's reader.)
func TestTables(t *testing.T) {
	open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: exportRecording()}) }
	sameRows[StateRow](t, "state", func(w io.Writer, format string) error {
		r, c, err := collection.Open("last", open, open)
		if err != nil {
			return err
		}
		return State(context.Background(), w, format, r, c, nil)
	})
	sameRows[SampleRow](t, "samples", func(w io.Writer, format string) error {
		return Samples(context.Background(), w, format, open())
	})
	sameRows[HistoryRow](t, "history", func(w io.Writer, format string) error {
		return ClassHistory(context.Background(), w, format, open())
	})
	sameRows[CollectionRow](t, "collections", func(w io.Writer, format string) error {
		return Collections(context.Background(), w, format, open())
	})
}

func sameRows[T comparable](t *testing.T, table string, write func(w io.Writer, format string) error) {
	out := map[string][]byte{}
	for _, format := range TableFormats {
		var b bytes.Buffer
		if err := write(&b, format); err != nil {
			t.Fatal(err)
		}
		out[format] = b.Bytes()
	}
	rows, err := csv.NewReader(bytes.NewReader(out["csv"])).ReadAll()
	if err != nil || len(rows) < 10 {
		t.Fatalf("%s: %d rows, %v", table, len(rows), err)
	}
	var doc struct {
		Schema string
		Rows   []T
	}
	if err := json.Unmarshal(out["json"], &doc); err != nil || doc.Schema != "heapcam.export."+table+"/1" {
		t.Fatalf("%s: %s, %v", table, doc.Schema, err)
	}
	got, err := parquet.Read[T](bytes.NewReader(out["parquet"]), int64(len(out["parquet"])))
	if err != nil || !slices.Equal(got, doc.Rows) || len(got) != len(rows)-1 {
		t.Fatalf("%s: %d rows in Parquet, %d in JSON, %d in CSV, %v", table, len(got), len(doc.Rows), len(rows)-1, err)
	}
}

// TestPprof: pprof's own validation takes the profile, its live values add up to the exact state, and go tool pprof
// shows it.
func TestPprof(t *testing.T) {
	open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: exportRecording()}) }
	r, c, err := collection.Open("last", open, open)
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProfile(open(), c.GC)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "heap.pb.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	var sum [4]int64
	for _, s := range prof.Sample {
		for i, v := range s.Value {
			sum[i] += v
		}
		if len(s.Label["type"]) != 1 {
			t.Fatalf("labels %v", s.Label)
		}
	}
	near := func(got int64, want uint64) bool {
		d := got - int64(want)
		return d <= int64(len(prof.Sample)) && -d <= int64(len(prof.Sample))
	}
	if !near(sum[2], uint64(r.State.Objects())) || !near(sum[3], r.State.Bytes()) || sum[0] < sum[2]/2 {
		t.Fatalf("%v, state %d, %d", sum, r.State.Objects(), r.State.Bytes())
	}
	for _, value := range []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"} {
		var text bytes.Buffer
		if err := p.WriteCollapsed(&text, value); err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, l := range strings.Split(strings.TrimSpace(text.String()), "\n") {
			i := strings.LastIndexByte(l, ' ')
			n, err := strconv.ParseInt(l[i+1:], 10, 64)
			if err != nil || strings.Count(l, " ") != 1 || !strings.Contains(l, ";") {
				t.Fatalf("%q: %v", l, err)
			}
			total += n
		}
		i := slices.Index([]string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}, value)
		if total != sum[i] {
			t.Fatalf("%s: %d, pprof %d", value, total, sum[i])
		}
		out, err := exec.Command("go", "tool", "pprof", "-top", "-unit=B", "-sample_index="+value,
			name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Type: "+value) {
			t.Fatalf("go tool pprof: %v\n%s", err, out)
		}
	}
	if err := p.WriteCollapsed(&b, "x"); err == nil {
		t.Fatal(fmt.Errorf("an unknown value"))
	}
}
