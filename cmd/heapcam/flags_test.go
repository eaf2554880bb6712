package main

import (
	"regexp"
	"strings"
	"testing"

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
