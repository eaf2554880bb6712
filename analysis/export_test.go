package analysis

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/pprof/profile"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

func exportTape() []trace.Block { return modelTape(3, 2, 2, 12) }

// TestTables: what a reader of Apache Arrow finds in the Parquet files is what the CSV and JSON files say, and the state is the replayed one.
func TestTables(t *testing.T) {
	ctx := context.Background()
	for _, table := range []string{"state", "samples", "histories"} {
		write := func(format string) *bytes.Buffer {
			var b bytes.Buffer
			r := heap.NewReplay(&memBlocks{exportTape()})
			var err error
			switch table {
			case "state":
				var c *heap.Collection
				open := func() *heap.Replay { return heap.NewReplay(&memBlocks{exportTape()}) }
				var v *heap.View
				if v, c, err = Open("last", open, open); err == nil {
					err = ExportState(ctx, &b, format, v, c)
				}
			case "samples":
				err = ExportSamples(ctx, &b, format, r)
			default:
				err = ExportHistories(ctx, &b, format, r)
			}
			if err != nil {
				t.Fatal(err)
			}
			return &b
		}
		rows, err := csv.NewReader(write("csv")).ReadAll()
		if err != nil || len(rows) < 10 {
			t.Fatalf("%s: %d rows, %v", table, len(rows), err)
		}
		var doc struct {
			Schema string
			Rows   []map[string]any
		}
		if err := json.Unmarshal(write("json").Bytes(), &doc); err != nil || doc.Schema != "heapcam.export."+table+"/1" || len(doc.Rows) != len(rows)-1 {
			t.Fatalf("%s: %s, %d rows of %d, %v", table, doc.Schema, len(doc.Rows), len(rows)-1, err)
		}
		pf, err := file.NewParquetReader(bytes.NewReader(write("parquet").Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if v := pf.MetaData().KeyValueMetadata().FindValue("heapcam.schema"); v == nil || *v != doc.Schema {
			t.Fatalf("schema %v", v)
		}
		ar, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: 1 << 20}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		at, err := ar.ReadTable(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if at.NumRows() != int64(len(rows)-1) || at.NumCols() != int64(len(rows[0])) {
			t.Fatalf("%s: %d × %d, CSV %d × %d", table, at.NumRows(), at.NumCols(), len(rows)-1, len(rows[0]))
		}
		for i, name := range rows[0] {
			col := at.Column(i)
			if col.Name() != name {
				t.Fatalf("column %d is %s, CSV %s", i, col.Name(), name)
			}
			n := 1
			for _, chunk := range col.Data().Chunks() {
				for k := range chunk.Len() {
					got, want := chunk.ValueStr(k), rows[n][i]
					if name == "time_ms" {
						want = got // shown as a date there
					} else if name == "weight" {
						g, _ := strconv.ParseFloat(got, 64)
						w, _ := strconv.ParseFloat(want, 64)
						if g == w {
							want = got
						}
					}
					if got != want {
						t.Fatalf("%s row %d, %s: %s, CSV %s", table, n, name, got, want)
					}
					n++
				}
			}
		}
		at.Release()
	}
}

// TestPprof: pprof's own validation takes the profile, its live values add up to the exact state, and go tool pprof shows it.
func TestPprof(t *testing.T) {
	open := func() *heap.Replay { return heap.NewReplay(&memBlocks{exportTape()}) }
	r, c, err := Open("last", open, open)
	if err != nil {
		t.Fatal(err)
	}
	p, err := MakeProfile(open(), c.GC)
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
		out, err := exec.Command("go", "tool", "pprof", "-top", "-unit=B", "-sample_index="+value, name).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Type: "+value) {
			t.Fatalf("go tool pprof: %v\n%s", err, out)
		}
	}
	if err := p.WriteCollapsed(&b, "x"); err == nil {
		t.Fatal(fmt.Errorf("an unknown value"))
	}
}
