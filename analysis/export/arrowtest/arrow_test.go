// Package arrowtest reads the Parquet files of package export with Apache Arrow's reader, as other tools do. It is a
// module of its own, since Arrow brings gRPC and Thrift that nothing else needs; `make test-full` runs it.
package arrowtest

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

func exportTape() []trace.Block { return analysistest.Recording(3, 2, 2, 12) }

// TestTables: what a reader of Apache Arrow finds in the Parquet files is what the CSV and JSON files say, and the
// state is the replayed one.
func TestTables(t *testing.T) {
	ctx := context.Background()
	for _, table := range []string{"state", "samples", "history"} {
		write := func(format string) *bytes.Buffer {
			var b bytes.Buffer
			r := heap.NewReplay(&analysistest.Source{B: exportTape()})
			var err error
			switch table {
			case "state":
				var c *heap.Collection
				open := func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: exportTape()}) }
				var v *heap.View
				if v, c, err = collection.Open("last", open, open); err == nil {
					err = export.State(ctx, &b, format, v, c, nil)
				}
			case "samples":
				err = export.Samples(ctx, &b, format, r)
			default:
				err = export.ClassHistory(ctx, &b, format, r)
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
		if err := json.Unmarshal(write("json").Bytes(), &doc); err != nil ||
			doc.Schema != "heapcam.export."+table+"/1" ||
			len(doc.Rows) != len(rows)-1 {
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
