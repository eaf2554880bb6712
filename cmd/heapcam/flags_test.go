package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestPlaceholders demands that the help names the value of each flag in capitals: neither a type of Go's nor a
// word that stands in back quotes.
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

// TestHelpWidth demands that no line of any help is longer than a terminal of 100 columns.
func TestHelpWidth(t *testing.T) {
	each(newRoot(), func(c *cobra.Command) {
		var b bytes.Buffer
		c.SetOut(&b)
		c.InitDefaultHelpFlag()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > helpColumns {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
	})
}

// TestAttachOptions demands that each flag of attach reaches the probe, and none that was not given.
func TestAttachOptions(t *testing.T) {
	for flag, want := range map[string]string{
		"depth=full": "depth=full", "sampling=100000": "interval=100000", "stack-depth=9": "stack=9",
		"shm-size=4MiB": "ring=4194304", "max-sync-pause=40ms": "max_sync=40", "thread-names=off": "names=off",
		"allow-untested-jdk=true": "allow_untested=1", "proven-sites=true": "newsites=1",
		"proven-sites=false": "newsites=0", "sites=exact": "depth=full,exact=1", "sites=sampled": "exact=0",
	} {
		o := attachOptions{}
		c := &cobra.Command{}
		o.rec.addProbe(c)
		name, value, _ := strings.Cut(flag, "=")
		if err := c.Flags().Set(name, value); err != nil {
			t.Fatal(err)
		}
		if got, err := o.options(c); err != nil || got != want {
			t.Errorf("--%s: %q, %v, want %q", flag, got, err, want)
		}
	}
}

// TestHelpComplete demands that the help of each verb has a summary and an example, and that the help of each flag is a
// sentence.
func TestHelpComplete(t *testing.T) {
	each(newRoot(), func(c *cobra.Command) {
		if !c.HasParent() || c.Hidden || !c.Runnable() || c.Name() == "completion" || c.Name() == "help" {
			return
		}
		name := c.CommandPath()
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: summary %q", name, c.Short)
		}
		if !regexp.MustCompile(`^  (sudo )?heapcam |^  export `).MatchString(c.Example) {
			t.Errorf("%s: examples %q", name, c.Example)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			first, _ := utf8.DecodeRuneInString(f.Usage)
			if f.Name != "help" && (!strings.HasSuffix(f.Usage, ".") || !unicode.IsUpper(first)) &&
				!strings.HasPrefix(f.Usage, "heapcam ") {
				t.Errorf("%s --%s: %q is not a sentence", name, f.Name, f.Usage)
			}
		})
	})
}
