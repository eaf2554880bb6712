package fleetsql

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/heap"
)

var fences = regexp.MustCompile("(?s)```sql\n(.*?)```")

// queries are those of a page, in its order.
func queries(t *testing.T, name string) (out []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("../../docs/how-to", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fences.FindAllStringSubmatch(string(page), -1) {
		out = append(out, m[1])
	}
	if len(out) != 5 {
		t.Fatalf("%d queries on the page", len(out))
	}
	return out
}

// ask gives the rows of a query, each as its cells by column. It logs what the query took.
func ask(t *testing.T, db *sql.DB, query string) (out []map[string]any) {
	t.Helper()
	before := cpu(t)
	rows, err := db.Query(query)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells := make([]any, len(names))
		to := make([]any, len(names))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		row := map[string]any{}
		for i, n := range names {
			row[n] = cells[i]
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(query, "\n")
	t.Logf("%d rows, %.2f s of CPU: %s", len(out), (cpu(t) - before).Seconds(), first)
	return out
}

func cpu(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// names gives rows as texts of some columns, sorted.
func names(rows []map[string]any, columns ...string) (out []string) {
	for _, r := range rows {
		var s []string
		for _, c := range columns {
			s = append(s, fmt.Sprint(r[c]))
		}
		out = append(out, strings.Join(s, " "))
	}
	slices.Sort(out)
	return out
}

// TestQueries: on a thousand recordings the queries of the page find the five planted leaks and no other, the versions
// in which they began, and the host that differs. The tables of an export lie beside those of agents.
func TestQueries(t *testing.T) {
	q, dir := queries(t, "fleet-queries.md"), t.TempDir()
	rows, bytes := makeFleet(t, dir)
	t.Logf("%d recordings, %d rows, %d bytes", services*hosts, rows, bytes)
	f := create(t, filepath.Join(dir, "collections", "service=_", "date=2026-11-26", "export.parquet"))
	defer f.Close()
	if err := export.Collections(context.Background(), f, "parquet",
		heap.NewReplay(&analysistest.Source{B: analysistest.Recording(3, 2, 2, 12)})); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all [][]map[string]any
	for _, query := range q {
		all = append(all, ask(t, db, query))
	}
	found(t, all)
	if got := all[4]; got[len(got)-1]["p99_ms"] != 3.0 {
		t.Errorf("pauses: %v", got)
	}
}

// found compares the answers to the five queries with what was planted.
func found(t *testing.T, all [][]map[string]any) {
	t.Helper()
	var first, growing []string
	for _, l := range planted {
		class, _ := stackOf(l.service, l.site)
		first = append(first, serviceName(l.service)+" "+versionName(l.version)+" "+class)
		for v := l.version; v < 3; v++ {
			growing = append(growing, serviceName(l.service)+" "+versionName(v)+" "+class)
		}
	}
	slices.Sort(first)
	slices.Sort(growing)
	if got := names(all[0], "service", "first_version", "class"); !slices.Equal(got, first) {
		t.Errorf("first versions:\n%s\nplanted:\n%s", strings.Join(got, "\n"), strings.Join(first, "\n"))
	}
	if got := names(all[1], "service", "version", "class"); !slices.Equal(got, growing) {
		t.Errorf("growing:\n%s\nplanted:\n%s", strings.Join(got, "\n"), strings.Join(growing, "\n"))
	}
	if got := all[2]; len(got) != 3*services || got[0]["stack"] == "" || got[0]["text"] == "" {
		t.Errorf("%d largest sites", len(got))
	}
	class, _ := stackOf(odd.service, odd.site)
	want := []string{fmt.Sprintf("%s host-%d %s", serviceName(odd.service), odd.host, class)}
	if got := names(all[3], "service", "host", "class"); !slices.Equal(got, want) {
		t.Errorf("hosts that differ: %v, want %v", got, want)
	}
	if got := all[4]; len(got) < 3*services {
		t.Errorf("pauses: %v", got)
	}
}
