//go:build unix

package main

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heapcam/heapcam/config"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"heapcam":  main,
		"fakejava": fakeJava,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HEAPCAM_OUT", e.WorkDir+"/rec")
			e.Setenv("HEAPCAM_SOCKET", e.WorkDir+"/agent.sock")
			e.Setenv("TMPDIR", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": cmdStatus, "damage": cmdDamage},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("condition %q is not known", cond)
		},
	})
}

// TestSample demands that the packaged configuration is sound and has every key, with the default where it is commented out.
func TestSample(t *testing.T) {
	const name = "../../packaging/heapcam.yaml"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c := (&agentOptions{}).command()
	keys := configKeys(c)
	if _, err := config.Parse(name, b, keys); err != nil {
		t.Fatal(err)
	}
	open := regexp.MustCompile(`(?m)^#((?:[a-z_]+: \S.*|rules:|  - .*|    [a-z_]+: .*))$`).ReplaceAll(b, []byte("$1"))
	open = regexp.MustCompile(`(?m)^(discover|out|socket|metrics|overhead_cpu): .*`).ReplaceAll(open, nil)
	file, err := config.Parse(name, open, keys)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, key := range keys.Settings {
		if !regexp.MustCompile(`(?m)^#?` + key + `: `).MatchString(text) {
			t.Errorf("%s is not in %s", key, name)
		}
	}
	for _, s := range file.Settings {
		f := c.Flags().Lookup(flagOf(s.Key))
		if s.Key == "ring" { // 0 stands for the probe's own default
			continue
		}
		if was := f.Value.String(); f.Value.Set(s.Text) != nil || f.Value.String() != was {
			t.Errorf("%s: %s is not the default, %s", s.Key, s.Text, was)
		}
	}
	if len(file.Rules) != 2 {
		t.Errorf("%d rules", len(file.Rules))
	}
}
