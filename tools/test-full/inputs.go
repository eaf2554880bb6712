package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// inputs knows the files of the commit and their content, to tell whether a stage has changed since it ran.
type inputs struct {
	files []string // as git ls-files -s prints them: mode, number of the content, and name
	names []string

	folders map[string][]string // of this module that the tests of each package import, by package
}

// readInputs reads which files git has.
func readInputs() (*inputs, error) {
	out, err := exec.Command("git", "ls-files", "-s").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	in := &inputs{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if _, name, ok := strings.Cut(line, "\t"); ok {
			in.files, in.names = append(in.files, line), append(in.names, name)
		}
	}
	return in, in.readFolders()
}

// readFolders asks go list once for all packages.
func (in *inputs) readFolders() error {
	out, err := exec.Command("go", "list", "-test", "-f",
		"{{or .ForTest .ImportPath}}{{range .Deps}}\t{{.}}{{end}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	in.folders = map[string][]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		deps := strings.Split(line, "\t")
		of := strings.TrimPrefix(strings.TrimSuffix(deps[0], ".test"), module)
		for _, dep := range deps {
			dep, _, _ = strings.Cut(dep, " ") // "PACKAGE [PACKAGE.test]"
			if folder, own := strings.CutPrefix(strings.TrimSuffix(dep, ".test"), module); own {
				in.folders[of] = append(in.folders[of], folder+"/")
			}
		}
	}
	for of, folders := range in.folders {
		slices.Sort(folders)
		in.folders[of] = slices.Compact(folders)
	}
	return nil
}

// outside is how tests reach what they do not import: the program, other folders, the documentation.
var outside = regexp.MustCompile(`HEAPCAM_BIN|"\.\.["/]|"go", "(build|run|list|test)"`)

// key is a number for what the results of a stage depend on: the stage itself, the versions of Go and of the JDKs,
// go.mod and go.sum, and the folders of its packages and of all packages of this module that they import. A stage that
// reaches further depends on every file; on the documentation if its tests name it. Nothing depends on results.
func (in *inputs) key(s *stage) (string, error) {
	folders, wide, docs := []string(nil), s.pkg == "" || s.dir != "", s.name == "fuzzing"
	if !wide {
		if folders = in.folders[path.Clean(s.pkg)]; folders == nil {
			return "", fmt.Errorf("go list does not know %s", s.pkg)
		}
		text, err := in.tests(path.Clean(s.pkg))
		if err != nil {
			return "", err
		}
		wide = outside.Match(text)
		docs = bytes.Contains(bytes.ReplaceAll(text, []byte("docs/benchmarks"), nil), []byte("docs"))
	}
	h := sha256.New()
	fmt.Fprintln(h, s.name, s.pkg, s.dir, s.args, s.only, s.command, runtime.Version(), installedJDKs())
	for i, name := range in.names {
		if in.counts(name, folders, wide, docs) {
			fmt.Fprintln(h, in.files[i])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), nil
}

// counts tells whether a stage depends on this file.
func (in *inputs) counts(name string, folders []string, wide, docs bool) bool {
	switch {
	case strings.HasPrefix(name, "docs/benchmarks/"), strings.HasPrefix(name, "bench/results/"):
		return false
	case name == "go.mod", name == "go.sum":
		return true
	case wide && (docs || !strings.HasPrefix(name, "docs/") && !strings.HasSuffix(name, ".md")):
		return true
	}
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) })
}

// tests gives the text of the tests in a folder.
func (in *inputs) tests(folder string) (text []byte, err error) {
	for _, name := range in.names {
		if path.Dir(name) == folder && strings.HasSuffix(name, "_test.go") {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			text = append(text, b...)
		}
	}
	return text, nil
}
