// Command gates measures the source files: lines of at most 120 columns, functions of at most 80 lines (of tests: 120),
// files of at most 500 lines. It prints each excess and fails.
//
// Of Markdown it measures the columns, and the lines of the pages that a person reads from top to bottom. Rows of
// tables, fenced code, and lines that are one link may be wider, because they cannot be broken.
//
// tools/gates/exceptions.txt lists what may be longer, one a line, with its reason:
//
//	function trace/columns/decode.go blob   the inner loop of replay; split, it is slower
//
// An exception that is not needed fails too, so that the list only shrinks. With -generate the command prints the
// exceptions that are missing.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"os/exec"
	"path"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns  = 120 // a tab counts as four, as in an editor
	maxFunction = 80  // lines between the braces
	maxTest     = 120
	maxFile     = 500
	list        = "tools/gates/exceptions.txt"
)

// pageLines are the most lines of a page: the first pattern that matches its path decides. Other pages have no limit.
var pageLines = []struct {
	pattern string
	lines   int
}{
	{"README.md", 150}, {"CHANGELOG.md", 60}, {"CONTRIBUTING.md", 80}, {"docs/tutorial.md", 80},
	{"docs/glossary.md", 60}, {"docs/performance.md", 100}, {"docs/verification.md", 100},
	{"docs/how-to/*.md", 80}, {"docs/explanation/*.md", 120}, {"docs/design/0*.md", 80},
}

// excess is one thing that is too long. Its key is what an exception names.
type excess struct{ key, text string }

func main() {
	generate := flag.Bool("generate", false, "print the exceptions that are missing")
	flag.Parse()
	if err := run(*generate); err != nil {
		fmt.Fprintln(os.Stderr, "gates:", err)
		os.Exit(1)
	}
}

func run(generate bool) error {
	allowed, err := exceptions(list)
	if err != nil {
		return err
	}
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	failed, used := 0, map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		if !measured(name) {
			continue
		}
		b, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		} else if err != nil {
			return err
		}
		found, err := measure(name, b)
		if err != nil {
			return err
		}
		for _, x := range found {
			if allowed[x.key] {
				used[x.key] = true
				continue
			}
			failed++
			if !generate {
				fmt.Println(x.text)
			} else if !used[x.key] {
				fmt.Printf("%s   not mended yet\n", x.key)
			}
			used[x.key] = used[x.key] || generate
		}
	}
	for _, key := range sorted(allowed) {
		if !used[key] {
			failed++
			fmt.Printf("%s: the exception %q is not needed: delete it\n", list, key)
		}
	}
	if failed > 0 && !generate {
		return fmt.Errorf("%d lines, functions, files or exceptions to mend", failed)
	}
	return nil
}

// exceptions reads the list: kind, file and, for functions, a name; then the reason.
func exceptions(name string) (map[string]bool, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for i, l := range strings.Split(string(b), "\n") {
		if l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		key, reason, ok := strings.Cut(l, "   ")
		if n := len(strings.Fields(key)); !ok || strings.TrimSpace(reason) == "" || n < 2 || n > 3 {
			return nil, fmt.Errorf("%s:%d: want KIND FILE [FUNCTION], three spaces, and a reason", name, i+1)
		}
		out[key] = true
	}
	return out, nil
}

// measured reports whether a file is source or a document of ours.
func measured(name string) bool {
	if strings.Contains(name, "/vendor/") || strings.Contains(name, "/testdata/") {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".c", ".h", ".js", ".css", ".md":
		return true
	}
	return false
}

func measure(name string, b []byte) (out []excess, err error) {
	markdown, lines := path.Ext(name) == ".md", 0
	var page markdownPage
	for l := range strings.Lines(string(b)) {
		lines++
		l = strings.TrimRight(l, "\r\n")
		n := columns(l)
		if markdown && page.unbreakable(l) || n <= maxColumns {
			continue
		}
		out = append(out, excess{"columns " + name,
			fmt.Sprintf("%s:%d: %d columns, at most %d", name, lines, n, maxColumns)})
	}
	if most := maxLines(name); lines > most {
		out = append(out, excess{"file " + name, fmt.Sprintf("%s: %d lines, at most %d", name, lines, most)})
	}
	var fs []function
	switch path.Ext(name) {
	case ".go":
		fs, err = goFunctions(name, b)
	case ".c", ".h":
		fs = cFunctions(b)
	}
	limit := maxFunction
	if strings.HasSuffix(name, "_test.go") {
		limit = maxTest
	}
	for _, f := range fs {
		if f.lines > limit {
			out = append(out, excess{"function " + name + " " + f.name,
				fmt.Sprintf("%s:%d: %s has %d lines, at most %d", name, f.at, f.name, f.lines, limit)})
		}
	}
	return out, err
}

// maxLines gives the most lines that a file may have.
func maxLines(name string) int {
	if path.Ext(name) != ".md" {
		return maxFile
	}
	for _, p := range pageLines {
		if ok, _ := path.Match(p.pattern, name); ok {
			return p.lines
		}
	}
	return math.MaxInt
}

// markdownPage is what is known of a page after the lines that were read.
type markdownPage struct{ fence string } // how the open code block began, or ""

var (
	markdownLink = regexp.MustCompile(`!?\[[^\]]*\]\([^)\s]*\)|<?https?://[^\s>]+>?`)
	listMark     = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)?\s*$`)
)

// unbreakable reports whether the next line of the page may be longer than others.
func (p *markdownPage) unbreakable(l string) bool {
	text := strings.TrimSpace(l)
	switch {
	case p.fence != "":
		if strings.HasPrefix(text, p.fence) && strings.Trim(text, p.fence[:1]) == "" {
			p.fence = ""
		}
		return true
	case strings.HasPrefix(text, "```"), strings.HasPrefix(text, "~~~"):
		p.fence = text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
		return true
	case strings.HasPrefix(text, "|"):
		return true
	}
	at := markdownLink.FindStringIndex(l)
	return at != nil && listMark.MatchString(l[:at[0]]) && strings.Trim(l[at[1]:], " .,;:)") == ""
}

func columns(l string) int { return utf8.RuneCountInString(l) + 3*strings.Count(l, "\t") }

// function is one with a body: name, first line, lines between the braces.
type function struct {
	name      string
	at, lines int
}

func goFunctions(name string, b []byte) (out []function, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, b, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			from, to := set.Position(fn.Body.Lbrace).Line, set.Position(fn.Body.Rbrace).Line
			out = append(out, function{fn.Name.Name, set.Position(fn.Pos()).Line, max(0, to-from-1)})
		}
	}
	return out, nil
}

var cName = regexp.MustCompile(`(\w+)\s*\(`)

// cFunctions finds functions by form: a body begins with a line that ends in "{" and starts at column 1, or with "{"
// alone, and ends with "}" at column 1.
func cFunctions(b []byte) (out []function) {
	head, at := "", 0
	for i, l := range strings.Split(string(b), "\n") {
		switch {
		case at == 0 && strings.HasSuffix(l, "{") && (head != "" || !strings.HasPrefix(l, " ")):
			if m := cName.FindStringSubmatch(head + l); m != nil && !strings.Contains(l, "=") {
				out, at = append(out, function{name: m[1], at: i + 1}), i+1
			}
			head = ""
		case at > 0 && strings.HasPrefix(l, "}"):
			out[len(out)-1].lines, at = i-at, 0
		case strings.HasSuffix(l, ",") || strings.HasSuffix(l, ")"):
			head += l // of a head over several lines
		default:
			head = ""
		}
	}
	return out
}

func sorted(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
