//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/packaging"
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
			e.Setenv("SELF", strconv.Itoa(os.Getpid()))
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

// TestRegistry demands that the registry of settings and the flags of the agent are the same, that what an agent
// without configuration does is what the registry says, and that the packaged file starts one.
func TestRegistry(t *testing.T) {
	o := &agentOptions{}
	c := o.command()
	left := config.Names()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains([]string{"config", "help", "service", "disabled"}, f.Name) {
			return
		}
		i := slices.IndexFunc(left, func(key string) bool { return flagOf(key) == f.Name })
		if i < 0 {
			t.Errorf("--%s is not in the registry of settings", f.Name)
			return
		}
		left = slices.Delete(left, i, i+1)
	})
	if len(left) > 0 {
		t.Errorf("heapcam agent has no flag for %q", left)
	}
	if err := o.check(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	if o.rec.maxTrace != agent.DefaultMaxTraceSize || o.rec.deviation != agent.DefaultDeviation ||
		o.rec.sampling != session.DefaultSampling || o.rec.maxIncidents != agent.DefaultIncidents ||
		o.rec.samplingMax.Percent != session.DefaultSamplingShare || o.rec.samplingMax.given {
		t.Error("the registry's defaults are not the agent's")
	}
	file := filepath.Join(t.TempDir(), "heapcam.yaml")
	if err := os.WriteFile(file, packaging.Config, 0o600); err != nil {
		t.Fatal(err)
	}
	_, all, err := configure(c, file)
	if err == nil {
		err = o.check()
	}
	if err != nil {
		t.Fatalf("the packaged configuration: %v", err)
	}
	for _, s := range all {
		if (s.Source == "default") != (config.Lookup(s.Key).Packaged == "") {
			t.Errorf("%s has its value from %s", s.Key, s.Source)
		}
	}
}
