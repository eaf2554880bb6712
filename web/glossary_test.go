package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

//go:generate go test . -run TestGlossary -update

var update = flag.Bool("update", false, "write the generated files anew")

// glossaryTerm is a row of the table in docs/glossary.md.
type glossaryTerm struct {
	Term    string `json:"term"`
	Meaning string `json:"meaning"`
}

var (
	markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	tableRule    = regexp.MustCompile(`^[\s|:-]+$`)
)

// readGlossary returns the rows of all two-column tables of a Markdown page. Of the markup only backticks stay.
func readGlossary(page string) (terms []glossaryTerm) {
	lines := strings.Split(page, "\n")
	for i, l := range lines {
		// The line before the rule is the table's head.
		if !strings.HasPrefix(l, "|") || tableRule.MatchString(l) ||
			i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|") && tableRule.MatchString(lines[i+1]) {
			continue
		}
		l = strings.ReplaceAll(l, `\|`, "\x00")
		cells := strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|")
		if len(cells) != 2 {
			continue
		}
		for i, c := range cells {
			c = markdownLink.ReplaceAllString(c, "$1")
			c = strings.NewReplacer("**", "", "*", "", "\x00", "|").Replace(c)
			cells[i] = strings.TrimSpace(c)
		}
		terms = append(terms, glossaryTerm{cells[0], cells[1]})
	}
	return terms
}

// TestGlossary fails when the page's glossary differs from docs/glossary.md.
func TestGlossary(t *testing.T) {
	page, err := os.ReadFile("../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	terms := readGlossary(string(page))
	if len(terms) < 20 {
		t.Fatalf("docs/glossary.md has %d terms in tables of two columns (| term | meaning |)", len(terms))
	}
	var want bytes.Buffer
	enc := json.NewEncoder(&want)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"generated": "go generate ./web", "terms": terms}); err != nil {
		t.Fatal(err)
	}
	const file = "assets/glossary.json"
	if *update {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from docs/glossary.md (%v): run go generate ./web", file, err)
	}
}

// TestReadGlossary checks the Markdown that a glossary may contain.
func TestReadGlossary(t *testing.T) {
	got := readGlossary("# Glossary\n\n| term | meaning |\n|---|---|\n| `--by` | **a** [link](x.md), *or* a \\| b |\n" +
		"text | more\n| a | b | c |\n")
	if len(got) != 1 || got[0] != (glossaryTerm{"`--by`", "a link, or a | b"}) {
		t.Errorf("%+v", got)
	}
}
