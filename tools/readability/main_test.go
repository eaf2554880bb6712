package main

import (
	"math"
	"strings"
	"testing"
)

// TestEase: a page of ten words and fifteen syllables in one sentence has the value that Flesch's formula gives.
func TestEase(t *testing.T) {
	if got := (metrics{Words: 10, Sentences: 1, Syllables: 15}).ease(); math.Abs(got-69.785) > 1e-9 {
		t.Errorf("reading ease %v, want 69.785", got)
	}
}

// TestProse: paragraphs and descriptions of flags are prose; headings, commands and names of flags are not.
func TestProse(t *testing.T) {
	got := prose(`Copy the last part.
It is one file.

Usage:
  heapcam pull [flags]

  heapcam pull --last 200MiB -o i.heapcam

Flags:
  -o, --out FILE         where to write
                         (default: here)
      --exact            cut at collections
`)
	want := "Copy the last part.\nIt is one file.|where to write\n(default: here)|cut at collections"
	var paragraphs []string
	for _, p := range strings.Split(got, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			paragraphs = append(paragraphs, p)
		}
	}
	if s := strings.Join(paragraphs, "|"); s != want {
		t.Errorf("%q, want %q", s, want)
	}
}
