//go:build linux

package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/config"
)

//go:generate go test . -run TestReference -update

var update = flag.Bool("update", false, "write the generated pages anew")

const generated = "<!-- Generated: go generate ./cmd/heapcam. Do not edit. -->\n"

// TestReference fails when a reference page that is made from the commands is stale.
func TestReference(t *testing.T) {
	for name, want := range map[string][]byte{"exit-codes.md": exitCodePage(), "verbs.md": verbPage(newRoot()),
		"json.md": jsonPage(t), "classifiers.md": classifierPage()} {
		path := filepath.Join("../../docs/reference", name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./cmd/heapcam", path, err)
		}
	}
}

func exitCodePage() []byte {
	var b bytes.Buffer
	b.WriteString(generated + "# Exit codes\n\nEach verb ends with one of these codes; only `run` can end with " +
		"others. " +
		"A script can test for them.\nA result is no failure: `report` of a program that leaks ends with 0. " +
		"`heapcam help exit-codes` prints\nthe same list.\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exitDocs {
		fmt.Fprintf(&b, "| %s | %s |\n", e.code, e.meaning)
	}
	b.WriteString("\n" + otherCodes + "\n")
	return b.Bytes()
}

const verbHead = `# Verbs

This page has the texts that ` + "`heapcam help VERB`" + ` prints. Data goes to stdout, messages go to stderr.
[Settings](settings.md) explains the flags that are settings, [JSON](json.md) what ` + "`--json`" + ` prints, and
[exit codes](exit-codes.md) how a verb ends.

No verb needs root as such: [security](../security.md#who-may-do-what) says who may do what.

- A **JVM** is a pid, a name (main class, jar, or tool of the JDK such as ` + "`javac`" + `), or the beginning of an id.
  ` + "`heapcam doctor` and `heapcam status`" + ` show ids.
- A **FILE** is a file that ` + "`heapcam pull`" + ` wrote, a ring folder or a folder with exactly one ring folder in it
  (**DIR**), or one ring file. Verbs that read a
  FILE also take a JVM, whose recording they look for where ` + "`heapcam status`" + `
  does. ` + "`verify`" + ` does not.
- A **GC** is the number of a collection, ` + "`first`, `last`, `peak`" + ` or a time (` + "`15:04:05`" + `, RFC 3339).
- A **SIZE** looks like ` + "`512k`, `64MiB` or `16G`" + ` (powers of 1024).
- A **DURATION** looks like ` + "`90s`, `15m` or `1h30m`" + `.
`

// verbPage has a section for each verb: what it does, and its flags. Of a setting it names the flag alone.
func verbPage(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(generated + verbHead)
	title := ""
	each(root, func(c *cobra.Command) {
		if !c.HasParent() || c.Hidden || c.Name() == "help" || c.Name() == "completion" || !c.Runnable() {
			return
		}
		for _, g := range root.Groups() {
			if g.ID == c.GroupID && g.Title != title {
				title = g.Title
				fmt.Fprintf(&b, "\n## %s\n", title)
			}
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s.\n", strings.TrimPrefix(c.CommandPath(), "heapcam "), c.Short)
		fmt.Fprintf(&b, "\n```text\n%s\n```\n", c.UseLine())
		if c.Long != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(filled(c.Long)))
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```sh elsewhere\n%s\n```\n",
				strings.TrimSpace(strings.ReplaceAll(c.Example, "\n  ", "\n")))
		}
		flags(&b, c)
		if codes := exitNotes(c); len(codes) > 0 {
			b.WriteString("\n| exit code | meaning |\n|---|---|\n")
			for _, e := range codes {
				fmt.Fprintf(&b, "| %s | %s |\n", e.code, e.meaning)
			}
		}
	})
	return b.Bytes()
}

// variable is the name of an environment variable or of a figure.
var variable = regexp.MustCompile(`\$?\b[A-Za-z]+(?:_[A-Za-z]+)+\b`)

// escapeCell keeps text inside a cell of a Markdown table: names with _ become code, and other signs stay.
func escapeCell(text string) string {
	parts := strings.Split(text, "`")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "|", "\\|")
		if i%2 == 0 { // outside of code
			parts[i] = strings.NewReplacer("*", "\\*", "<", "\\<").Replace(variable.ReplaceAllString(parts[i], "`$0`"))
		}
	}
	return strings.Join(parts, "`")
}

func flags(b *bytes.Buffer, c *cobra.Command) {
	var rows, settings []string
	for _, s := range flagSections(c) {
		s.flags.VisitAll(func(f *pflag.Flag) {
			value, text := pflag.UnquoteUsage(f)
			def := config.Lookup(strings.ReplaceAll(f.Name, "-", "_"))
			switch {
			case f.Name == "help":
			case def != nil && text == def.Usage():
				settings = append(settings, "`--"+f.Name+"`")
			default:
				name := "--" + f.Name
				if f.Shorthand != "" {
					name = "-" + f.Shorthand + ", " + name
				}
				rows = append(rows, fmt.Sprintf("| `%s` | %s |\n",
					strings.ReplaceAll(strings.TrimSpace(name+" "+value), "|", "\\|"), escapeCell(text)))
			}
		})
	}
	if len(rows) > 0 {
		b.WriteString("\n| flag | meaning |\n|---|---|\n" + strings.Join(rows, ""))
	}
	if len(settings) > 0 {
		b.WriteString("\n" + brokenAt("[Settings](settings.md): "+strings.Join(settings, ", ")+".", 110, 0) + "\n")
	}
}

// TestExitDocs demands that every exit code of exit.go is documented once, and no other.
func TestExitDocs(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "exit.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "exit") && len(v.Values) == 1 {
			if l, ok := v.Values[0].(*ast.BasicLit); ok {
				codes = append(codes, l.Value)
			}
		}
		return true
	})
	var documented []string
	for _, e := range exitDocs {
		documented = append(documented, e.code)
	}
	if want := append(codes, "128+n"); !slices.Equal(documented, want) {
		t.Errorf("documented: %q, in use: %q", documented, want)
	}
}

const classifierHead = `# Classifiers

A classifier sorts objects into groups. ` + "`heapcam group`, `diff` and `trend`" + ` take a list of classifiers
with ` + "`--by`" + `; each of them is one level of the tree. ` + "`heapcam classifiers`" + ` prints the same list,
with your own classifiers.

The **cardinality** says how many groups an object is in: *one*, *many*, or a *hierarchy* of groups, each inside the
one before.

| classifier | cardinality | meaning | name of a group, for example | example of ` + "`--by`" + ` |
|---|---|---|---|---|
`

const classifierTail = `
## Your own classifiers

A file with the name ` + "`heapcam.classifiers.yaml`" + ` in the current folder, or the file of
` + "`--classifiers`" + `, defines your own classifiers:

` + "```yaml" + `
classifiers:
  - name: era
    description: Whether the object is older than nine collections.
    example: era, type
    cardinality: one
    expression: 'age > 9 ? "old" : "young"'
` + "```" + `

The [verb](verbs.md#classifiers) lists what an expression can use. [Group and
compare](../how-to/group-and-compare.md) has the form of a FILE of features. You can also write an expression in
` + "`--by` and `--where`" + ` directly.
`

func classifierPage() []byte {
	var b bytes.Buffer
	b.WriteString(generated + classifierHead)
	for _, d := range classify.NewLibrary().Docs() {
		name := d.Name
		if d.Args != "" {
			name += "(" + d.Args + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` | `%s` |\n", name, d.Cardinality, escapeCell(d.Text), d.Keys,
			d.Example)
	}
	b.WriteString(classifierTail)
	return b.Bytes()
}
