package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/ui"
)

// scriptVersion runs tools/version with VERSION in its environment.
func scriptVersion(t *testing.T, version string, args ...string) string {
	t.Helper()
	c := exec.Command("../../tools/version", args...)
	c.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("tools/version %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestVersionIsOne: the program, the probe and the changelog name the same version.
func TestVersionIsOne(t *testing.T) {
	if got := scriptVersion(t, ""); got != version && exec.Command("git", "describe", "--exact-match").Run() != nil {
		t.Errorf("tools/version prints %q, this program is %q", got, version)
	}
	number := strings.TrimSuffix(version, "-dev")
	for name, want := range map[string]string{
		"../../probe/src/version.h": `#define HC_PROBE_VERSION "` + version + `"`,
		"../../CHANGELOG.md":        "\n## [" + number + "] - ",
	} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), want) {
			t.Errorf("%s does not name %q", name, want)
		}
	}
}

// TestVersionOfTheRest: a build of the probe names its commit until a release; packages of a development version sort
// before the release and after each other.
func TestVersionOfTheRest(t *testing.T) {
	for _, c := range []struct{ version, of, want string }{
		{"0.1.0-dev", "version", `0\.1\.0-dev`},
		{"v1.2.3", "version", `1\.2\.3`},
		{"0.1.0-dev", "probe", `0\.1\.0-dev(\+[0-9a-f]+(-dirty)?)?`},
		{"1.2.3", "probe", `1\.2\.3`},
		{"", "package 0.1.0-dev", `0\.1\.0~dev\.202311142213`},
		{"", "package v1.2.3", `1\.2\.3`},
		{"", "package 1.2.3-rc1", `1\.2\.3~rc1`},
	} {
		got := scriptVersion(t, c.version, strings.Fields(c.of)...)
		if !regexp.MustCompile("^" + c.want + "$").MatchString(got) {
			t.Errorf("tools/version %s of %q: %q, want %s", c.of, c.version, got, c.want)
		}
	}
	if err := exec.Command("../../tools/version", "package", "main").Run(); err == nil {
		t.Error("a version that does not begin with a digit is accepted")
	}
}

// TestVersionNamesCommit: text and JSON name the commit that the build gives, and none if it gives none.
func TestVersionNamesCommit(t *testing.T) {
	old := commit
	t.Cleanup(func() { commit = old })
	for _, commit = range []string{"", "0123abc-dirty"} {
		text, doc := printed(t, "version"), printed(t, "version", "--json")
		if !strings.HasPrefix(text, "heapcam "+version+" (") {
			t.Errorf("text: %q", text)
		}
		if strings.Contains(text, "\ncommit "+commit+"\n") != (commit != "") {
			t.Errorf("commit %q: %q", commit, text)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		if got, _ := v["commit"].(string); v["version"] != version || got != commit {
			t.Errorf("commit %q: %s", commit, doc)
		}
	}
}

// printed runs a verb and gives what it wrote to stdout.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var b strings.Builder
	old := ui.Stdout
	ui.Stdout = &b
	defer func() { ui.Stdout = old }()
	if code := run(args); code != exitOK {
		t.Fatalf("%q: status %d", args, code)
	}
	return b.String()
}
