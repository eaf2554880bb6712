package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// own is how the documents name this repository from outside.
const own = "https://github.com/heapcam/heapcam/blob/main/"

// slug is the anchor that a heading gets where Markdown is shown.
func slug(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// anchors gives those of a Markdown file.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, code := map[string]bool{}, false
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if h := strings.TrimLeft(line, "#"); !code && h != line && strings.HasPrefix(h, " ") {
			out[slug(h)] = true
		}
	}
	return out
}

func documents(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules") && path != root {
			return filepath.SkipDir
		}
		ext := filepath.Ext(path)
		packaged := strings.HasPrefix(path, root+"/packaging/") && (ext == ".yml" || ext == ".yaml" || ext == ".json")
		if !d.IsDir() && (ext == ".md" || packaged) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestLinks(t *testing.T) {
	code := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	links := regexp.MustCompile(`\]\(([^)\s]+)\)|(` + regexp.QuoteMeta(own) + `[^\s"')]+)`)
	checked := 0
	for _, doc := range documents(t) {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range links.FindAllStringSubmatch(code.ReplaceAllString(string(b), ""), -1) {
			to, from := m[1], filepath.Dir(doc)
			if to == "" {
				to = m[2]
			}
			if rest, ok := strings.CutPrefix(to, own); ok {
				to, from = rest, root
			}
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(to, "#")
			path := filepath.Join(from, file)
			if file == "" {
				path = doc
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, to)
				continue
			}
			if anchor != "" && !anchors(t, path)[anchor] {
				t.Errorf("%s links to %s: no such heading", doc, to)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links were found", checked)
	}
}

func TestSlug(t *testing.T) {
	for h, want := range map[string]string{" What heapcam costs\n": "what-heapcam-costs", "`run`": "run",
		"A.B, C": "ab-c", "3 a.m.": "3-am"} {
		if got := slug(h); got != want {
			t.Errorf("%q: %q, want %q", h, got, want)
		}
	}
}
