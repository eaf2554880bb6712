package config

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestGenerated fails when a file that is made from the registry is stale.
func TestGenerated(t *testing.T) {
	for name, want := range map[string][]byte{
		"../packaging/heapcam.yaml":     Sample(),
		"../docs/reference/settings.md": Reference(),
	} {
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./config", name, err)
		}
	}
}

// TestRegistry demands that every setting says what a reader needs: a help text of sentences, a default that can be
// written, and what 0 means where 0 is the default of a limit.
func TestRegistry(t *testing.T) {
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	for _, g := range Groups {
		for _, d := range g.Defs {
			if seen[d.Key] || !name.MatchString(d.Key) {
				t.Errorf("key %q is repeated or badly written", d.Key)
			}
			seen[d.Key] = true
			for _, text := range []string{d.Help, d.More, d.Wins} {
				if text != "" && !strings.HasSuffix(text, ".") || strings.Contains(text, "  ") {
					t.Errorf("%s: %q is no sentence", d.Key, text)
				}
			}
			if d.Help == "" || strings.Contains(d.Help, "`") {
				t.Errorf("%s: help %q", d.Key, d.Help)
			}
			if strings.HasSuffix(d.Zero, ".") {
				t.Errorf("%s: the meaning of 0 stands inside a sentence: %q", d.Key, d.Zero)
			}
			if d.Default == d.ZeroValue() && d.Zero == "" {
				t.Errorf("%s: the default is %s, and nothing says what that means", d.Key, d.Default)
			}
			chosen := d.Kind != Choice || slices.Contains(d.Choices, d.Default)
			if (d.Kind == Choice) != (len(d.Choices) > 0) || !chosen {
				t.Errorf("%s: choices %q, default %q", d.Key, d.Choices, d.Default)
			}
			if (d.Kind == Text || d.Kind == Choice) != (d.Placeholder != "") {
				t.Errorf("%s: placeholder %q", d.Key, d.Placeholder)
			}
		}
	}
	if Lookup("max_sync_pause").Usage() != "Longest time that a sync point may add to a pause, 1ms to 1m. "+
		"If a fifth of the pause is more, that is the limit. A longer listing is spread over pauses. "+
		"Default 10ms; 0s = unlimited." {
		t.Error(Lookup("max_sync_pause").Usage())
	}
	if Lookup("nothing") != nil || len(Known().JVM) == 0 || len(Known().Settings) != len(seen) {
		t.Error("lookup of names")
	}
}

// TestSample demands that the sample is sound, holds the rules, and leaves all but the packaged values at the default.
func TestSample(t *testing.T) {
	file, err := Parse("heapcam.yaml", Sample(), Known())
	if err != nil {
		t.Fatal(err)
	}
	packaged := map[string]string{}
	for _, s := range file.Settings {
		packaged[s.Key] = s.Text
	}
	commented := regexp.MustCompile(`(?m)^#((?:[a-z_]+: \S.*|rules:|  - .*|    [a-z_]+: .*))$`)
	all, err := Parse("heapcam.yaml", commented.ReplaceAll(Sample(), []byte("$1")), Known())
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Settings) != len(Names()) || len(all.Rules) != 2 {
		t.Errorf("%d settings of %d, %d rules", len(all.Settings), len(Names()), len(all.Rules))
	}
	for _, s := range all.Settings {
		d := Lookup(s.Key)
		if packaged[s.Key] != d.Packaged || d.Packaged == "" && s.Text != d.Default {
			t.Errorf("%s: %q, packaged %q", s.Key, s.Text, packaged[s.Key])
		}
	}
}
