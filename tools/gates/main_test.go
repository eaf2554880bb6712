package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasure shows that each limit is found, and only beyond it.
func TestMeasure(t *testing.T) {
	body := func(n int) string { return strings.Repeat("\tx()\n", n) }
	for what, c := range map[string]struct {
		name, text string
		want       []string
	}{
		"columns": {"a.js", strings.Repeat("ä", 120) + "\n" + strings.Repeat("ä", 121) + "\n",
			[]string{"columns a.js"}},
		"tabs":           {"a.js", "\t" + strings.Repeat("a", 117) + "\n", []string{"columns a.js"}},
		"file of 500":    {"a.js", strings.Repeat("\n", 500), nil},
		"file of 501":    {"a.js", strings.Repeat("\n", 501), []string{"file a.js"}},
		"function of 80": {"a.go", "package a\n\nfunc f() {\n" + body(80) + "}\n", nil},
		"function of 81": {"a.go", "package a\n\nfunc f() {\n" + body(81) + "}\n", []string{"function a.go f"}},
		"test of 120":    {"a_test.go", "package a\n\nfunc f() {\n" + body(120) + "}\n", nil},
		"test of 121": {"a_test.go", "package a\n\nfunc f() {\n" + body(121) + "}\n",
			[]string{"function a_test.go f"}},
		"C function of 80": {"a.c", "static int f(int a,\n             int b) {\n" + body(80) + "}\n", nil},
		"C function of 81": {"a.c", "static int f(int a,\n             int b) {\n" + body(81) + "}\n",
			[]string{"function a.c f"}},
		"page": {"a.md", strings.Repeat("ä", 120) + "\n" + strings.Repeat("a ", 61),
			[]string{"columns a.md"}},
		"page of 501":          {"a.md", strings.Repeat("\n", 501), nil},
		"how-to of 80":         {"docs/how-to/a.md", strings.Repeat("\n", 80), nil},
		"how-to of 81":         {"docs/how-to/a.md", strings.Repeat("\n", 81), []string{"file docs/how-to/a.md"}},
		"README of 151":        {"README.md", strings.Repeat("\n", 151), []string{"file README.md"}},
		"row of a table":       {"a.md", "| " + strings.Repeat("a ", 70) + "|\n", nil},
		"fenced code":          {"a.md", "````sh\n```\n" + strings.Repeat("a ", 70) + "\n````\n", nil},
		"after fenced code":    {"a.md", "~~~\n~~~\n" + strings.Repeat("a ", 70) + "\n", []string{"columns a.md"}},
		"a link alone":         {"a.md", "- [a b](" + strings.Repeat("a", 140) + ").\n", nil},
		"an address alone":     {"a.md", "https://" + strings.Repeat("a", 140) + "\n", nil},
		"a link in a sentence": {"a.md", "see [a b](" + strings.Repeat("a", 140) + ")\n", []string{"columns a.md"}},
		"C table is no code":   {"a.c", "static int f[] = {\n" + body(90) + "};\n", nil},
	} {
		found, err := measure(c.name, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var got []string
		for _, x := range found {
			got = append(got, x.key)
		}
		if strings.Join(got, ";") != strings.Join(c.want, ";") {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestExceptions shows that an exception needs a reason.
func TestExceptions(t *testing.T) {
	name := filepath.Join(t.TempDir(), "list")
	for text, ok := range map[string]bool{
		"# comment\n\nfile a.go   generated\n":   true,
		"function a.go f   the inner loop\n":     true,
		"file a.go\n":                            false,
		"file a.go   \n":                         false,
		"file   there is no file in this line\n": false,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := exceptions(name); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
