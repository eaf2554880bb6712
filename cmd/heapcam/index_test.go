package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis"
)

// TestIndex demands that a report is made once for a recording that is left alone, and anew for whatever else.
func TestIndex(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.heapcam")
	x := readIndex{filepath.Join(dir, "index"), "1.0"}
	put := func(text string, age time.Duration) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(x readIndex, what string, want bool) {
		t.Helper()
		made := false
		rep, err := indexed(x, reportResult, file, func() (*analysis.Report, error) {
			made = true
			return &analysis.Report{Schema: analysis.ReportSchema, FirstLook: "there"}, nil
		})
		if err != nil || rep.FirstLook != "there" || made != want {
			t.Errorf("%s: made %v, want %v; %v", what, made, want, err)
		}
	}
	put("one", time.Hour)
	ask(x, "the first time", true)
	ask(x, "the second", false)
	ask(readIndex{x.dir, "1.1"}, "another program", true)
	put("two", time.Hour)
	ask(x, "other bytes", true)
	put("one", 0)
	ask(x, "written just now", true)
	ask(x, "written just now, again", true)
	put("three", time.Minute)
	ask(x, "three", true)
	all, err := filepath.Glob(filepath.Join(x.dir, "*"))
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, f := range all {
		if err := os.WriteFile(f, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask(x, "a damaged index", true)
	ask(readIndex{}, "no folder", true)
	ask(readIndex{filepath.Join(file, "no"), "1.0"}, "a folder that can not be made", true)
}
