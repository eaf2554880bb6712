package tables

import (
	"bytes"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heapcam/heapcam/trace"
)

// TestParquet: rows of a file are those that were put, in their order, and the columns of whose they are stand beside
// the others.
func TestParquet(t *testing.T) {
	who := Of(trace.Resource{trace.AttrService: "orders", trace.AttrK8sNS: "shop", trace.AttrPod: "orders-0"}, "00ff")
	if who.Namespace != "shop" || who.Instance != "orders-0" {
		t.Errorf("%+v", who)
	}
	var rows []CollectionRow
	for i := range uint64(10_000) {
		rows = append(rows, CollectionRow{Whose: who, GC: i, Kind: "young", PauseNS: i * i})
	}
	var b bytes.Buffer
	w := NewParquet[CollectionRow](&b, Schema("collections"))
	for _, r := range rows {
		if err := w.Put(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := f.Lookup("heapcam.schema"); v != "heapcam.export.collections/1" {
		t.Errorf("schema %q", v)
	}
	if c := f.Schema().Columns(); len(c) != 22 || !slices.Equal(c[0], []string{"service"}) {
		t.Errorf("columns %v", c)
	}
	got, err := parquet.Read[CollectionRow](bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil || !slices.Equal(got, rows) {
		t.Errorf("%d rows, %v", len(got), err)
	}
}
