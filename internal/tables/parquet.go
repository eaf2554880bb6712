package tables

import (
	"io"

	"github.com/parquet-go/parquet-go"
)

// Schema is the version of a table's columns.
func Schema(table string) string { return "heapcam.export." + table + "/1" }

// rowGroup is how many rows a group of a Parquet file has: what the writer holds in memory.
const rowGroup = 1 << 19

// Parquet writes rows as a Parquet file.
//
// Owner: who made it. Lifetime: until End. Concurrency: one goroutine. Errors: those of the file.
type Parquet[T any] struct {
	w   *parquet.GenericWriter[T]
	buf []T
	n   int
}

// NewParquet begins a file.
func NewParquet[T any](w io.Writer, schema string) *Parquet[T] {
	return &Parquet[T]{w: parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Snappy),
		parquet.KeyValueMetadata("heapcam.schema", schema))}
}

// Put appends a row.
func (t *Parquet[T]) Put(r T) error {
	if t.buf = append(t.buf, r); len(t.buf) < 4096 {
		return nil
	}
	return t.flush()
}

func (t *Parquet[T]) flush() error {
	_, err := t.w.Write(t.buf)
	if t.n += len(t.buf); err == nil && t.n >= rowGroup {
		t.n, err = 0, t.w.Flush()
	}
	t.buf = t.buf[:0]
	return err
}

// End writes what is left. The file is complete then.
func (t *Parquet[T]) End() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.w.Close()
}
