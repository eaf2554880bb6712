package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestPlaceholders demands that the help names the value of each flag in capitals: neither a type of Go's nor a word that stands in back quotes.
func TestPlaceholders(t *testing.T) {
	capitals := regexp.MustCompile(`^[A-Z|]+$`)
	each(newRoot(), func(c *cobra.Command) {
		look := func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s --%s: a back quote in %q", c.CommandPath(), f.Name, f.Usage)
			}
			if name, _ := pflag.UnquoteUsage(f); f.Value.Type() != "bool" && !capitals.MatchString(name) {
				t.Errorf("%s --%s %s", c.CommandPath(), f.Name, name)
			}
		}
		c.Flags().VisitAll(look)
		c.PersistentFlags().VisitAll(look)
	})
}

// TestExitTable demands that the documents name the exit codes that exitTable does, in its words.
func TestExitTable(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Exit codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| ([0-9][0-9n, +]*) \| (.*) \|$`).FindAllStringSubmatch(section, -1)
	if len(rows) != len(exitTable) {
		t.Fatalf("the table in docs/operations.md has %d codes, exitTable %d", len(rows), len(exitTable))
	}
	for i, e := range exitTable {
		if rows[i][1] != e.code || rows[i][2] != e.meaning {
			t.Errorf("docs/operations.md: %q %q, want %q %q", rows[i][1], rows[i][2], e.code, e.meaning)
		}
	}
}

// TestReloadableKeys demands that docs/operations.md names the keys that a reload makes hold at once, and later.
func TestReloadableKeys(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for want, keys := range map[string][]string{"at once, ": limitKeys, "for JVMs that are attached to ": append(jvmKeys[:len(jvmKeys):len(jvmKeys)], "rules")} {
		if row := "| `" + strings.Join(keys, "`, `") + "` | " + want; !strings.Contains(string(b), row) {
			t.Errorf("docs/operations.md has no row %q", row)
		}
	}
}
