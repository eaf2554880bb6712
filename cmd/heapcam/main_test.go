//go:build unix

package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
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
	open = regexp.MustCompile(`(?m)^(discover|out|socket|metrics|overhead_cpu|agent_max_[a-z]+): .*`).ReplaceAll(open, nil)
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
		if s.Key == "shm_size" { // 0 stands for the probe's own default
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

// TestEveryKey demands that the table in docs/operations.md has every key, its default and what the package sets.
func TestEveryKey(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n### Every key\n")
	section, _, _ = strings.Cut(section, "\n## ")
	type row struct{ def, pkg string }
	rows := map[string]row{}
	for _, m := range regexp.MustCompile(`(?m)^\| (`+"`[a-z_`, ]+`"+`) \| (.*?) \| (.*?) ?\| .* \|$`).FindAllStringSubmatch(section, -1) {
		for _, key := range strings.Split(m[1], ", ") {
			rows[strings.Trim(key, "`")] = row{strings.Trim(m[2], "`"), m[3]}
		}
	}
	o := &agentOptions{}
	c := o.command()
	defaults := map[string]string{}
	for _, key := range settings(c) {
		defaults[key] = or(c.Flags().Lookup(flagOf(key)).Value.String(), `""`)
	}
	_, all, err := configure(c, "../../packaging/heapcam.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		want := row{def: defaults[s.Key]}
		if s.Source != "default" {
			want.pkg = s.Value
		}
		if got, ok := rows[s.Key]; !ok || got != want {
			t.Errorf("%s: the table says %q, it is %q", s.Key, got, want)
		}
		delete(rows, s.Key)
	}
	for key := range rows {
		t.Errorf("%s: there is no such key", key)
	}
}
