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
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/config"
)

//go:generate go test . -run TestReference -update

var update = flag.Bool("update", false, "write the generated pages anew")

const generated = "<!-- Generated: go generate ./cmd/heapcam. Do not edit. -->\n"

// TestReference fails when a reference page that is made from the commands is stale.
func TestReference(t *testing.T) {
	for name, want := range map[string][]byte{"exit-codes.md": exitCodePage(), "verbs.md": verbPage(newRoot())} {
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
	b.WriteString(generated + "# Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exitDocs {
		fmt.Fprintf(&b, "| %s | %s |\n", e.code, e.meaning)
	}
	b.WriteString("\n`run` gives its command's status otherwise.\n")
	return b.Bytes()
}

// verbPage has a section for each verb: what it does, and its flags. Of a setting it names the flag alone.
func verbPage(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString(generated + "# Verbs\n\nThe same as `heapcam help VERB`. [Settings](settings.md) explains the " +
		"flags that are " +
		"settings. See also [exit codes](exit-codes.md).\n")
	each(root, func(c *cobra.Command) {
		if !c.HasParent() || c.Hidden || c.Name() == "help" || c.Name() == "completion" || !c.Runnable() {
			return
		}
		line := strings.TrimPrefix(c.CommandPath(), "heapcam ") + strings.TrimPrefix(c.Use, c.Name())
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", strings.TrimPrefix(c.CommandPath(), "heapcam "),
			strings.TrimSuffix(c.Short, "."))
		fmt.Fprintf(&b, "\n```\nheapcam %s\n", line)
		if c.Example != "" {
			fmt.Fprintf(&b, "\n%s\n", c.Example)
		}
		b.WriteString("```\n")
		if c.Long != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.Long)
		}
		flags(&b, c)
	})
	return b.Bytes()
}

func flags(b *bytes.Buffer, c *cobra.Command) {
	var rows, settings []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, text := pflag.UnquoteUsage(f)
		switch {
		case f.Hidden || f.Name == "help":
		case config.Lookup(strings.ReplaceAll(f.Name, "-", "_")) != nil &&
			text == config.Lookup(strings.ReplaceAll(f.Name, "-", "_")).Usage():
			settings = append(settings, "`--"+f.Name+"`")
		default:
			if d := f.DefValue; d != "" && d != "false" && d != "[]" && !strings.Contains(text, "efault") {
				text += " (default " + d + ")"
			}
			rows = append(rows, fmt.Sprintf("| `--%s` | %s | %s |\n", f.Name, value,
				strings.ReplaceAll(text, "|", "\\|")))
		}
	})
	if len(rows) > 0 {
		b.WriteString("\n| flag | value | meaning |\n|---|---|---|\n" + strings.Join(rows, ""))
	}
	if len(settings) > 0 {
		fmt.Fprintf(b, "\nSettings: %s.\n", strings.Join(settings, ", "))
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
