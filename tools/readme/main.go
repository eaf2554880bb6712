// Command readme puts real output into README.md and docs/tutorial.md: it runs `make demo` for the former, and the
// commands of the tutorial for the latter. `make readme` runs it; it takes about four minutes. Arguments name the pages
// to update (none: both).
//
// README.md has the report of the demo between the markers demo:begin and demo:end. The tutorial has, after a fence of
// commands, the markers output:begin and output:end: between them stands what these commands printed, or its first N
// lines (output:begin N). Only what stands between markers is replaced.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// columns is the longest line that a document may have.
const columns = 120

func main() {
	if err := update(); err != nil {
		fmt.Fprintln(os.Stderr, "readme:", err)
		os.Exit(1)
	}
}

func update() error {
	dir, err := os.MkdirTemp("", "heapcam-readme")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, page := range []struct {
		path string
		fill func(text, dir string) (string, error)
	}{{"README.md", readme}, {"docs/tutorial.md", tutorial}} {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], page.path) {
			continue
		}
		b, err := os.ReadFile(page.path)
		if err != nil {
			return err
		}
		text, err := page.fill(string(b), dir)
		if err != nil {
			return fmt.Errorf("%s: %w", page.path, err)
		}
		if err := os.WriteFile(page.path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readme gives the text with the demo's report in it.
func readme(text, dir string) (string, error) {
	out := filepath.Join(dir, "report.txt")
	demo := exec.Command("tools/demo")
	demo.Env = append(os.Environ(), "DEMO_REPORT="+out)
	demo.Stdout, demo.Stderr = os.Stderr, os.Stderr
	if err := demo.Run(); err != nil {
		return "", fmt.Errorf("tools/demo: %w", err)
	}
	report, err := os.ReadFile(out)
	if err != nil {
		return "", err
	}
	return between(text, "demo", []string{string(report)})
}

// tutorial gives the text with what its own commands print in it. They run in a folder of their own that has the
// examples, with the built heapcam.
func tutorial(text, dir string) (string, error) {
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	if err := os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")); err != nil {
		return "", err
	}
	steps := commands(text)
	var script strings.Builder
	fmt.Fprintf(&script, "export PATH=%q:$PATH\n", filepath.Join(root, "bin"))
	for i, s := range steps {
		fmt.Fprintf(&script, "{\n%s} >%d.out 2>&1\n", s, i)
	}
	sh := exec.Command("bash")
	sh.Dir, sh.Stdin, sh.Stderr = dir, strings.NewReader(script.String()), os.Stderr
	if err := sh.Run(); err != nil {
		return "", fmt.Errorf("the commands: %w", err)
	}
	outputs := make([]string, len(steps))
	for i := range steps {
		b, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)+".out"))
		if err != nil {
			return "", err
		}
		outputs[i] = string(b)
	}
	return between(text, "output", follow(text, outputs))
}

var (
	fence = regexp.MustCompile("(?ms)^```sh(?: full)?\n(.*?)^```$")
	shown = regexp.MustCompile(`(?m)^<!-- output:begin`)
)

// commands gives the text of each fence of commands that a test machine can run.
func commands(text string) (out []string) {
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// follow gives, for each pair of markers in text, the output of the fence of commands that stands before it.
func follow(text string, outputs []string) (out []string) {
	for _, at := range shown.FindAllStringIndex(text, -1) {
		out = append(out, outputs[len(fence.FindAllString(text[:at[0]], -1))-1])
	}
	return out
}

// between replaces what stands between each pair of markers of this name by a fence with an output, in their order.
func between(text, name string, outputs []string) (string, error) {
	markers := regexp.MustCompile(`(?s)(<!-- ` + name + `:begin(?: (\d+))? -->\n).*?(<!-- ` + name + `:end -->)`)
	if n := len(markers.FindAllString(text, -1)); n != len(outputs) {
		return "", fmt.Errorf("%d pairs of markers %s:begin and %s:end, want %d", n, name, name, len(outputs))
	}
	next := 0
	return markers.ReplaceAllStringFunc(text, func(s string) string {
		m := markers.FindStringSubmatch(s)
		first, _ := strconv.Atoi(m[2])
		next++
		return m[1] + "```text\n" + shape(outputs[next-1], first) + "```\n" + m[3]
	}), nil
}

// shape keeps the first lines of an output (0: all), and folds those that are too long for a document.
func shape(output string, first int) string {
	var b strings.Builder
	lines := strings.Split(strings.TrimRight(output, "\n"), "\n")
	for i, line := range lines {
		if first > 0 && i == first {
			b.WriteString("…\n")
			break
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		for line = strings.TrimRight(line, " "); utf8.RuneCountInString(line) > columns; {
			head := string([]rune(line)[:columns])
			cut := strings.LastIndexByte(head, ' ')
			if cut < columns/4 {
				cut = len(head)
			}
			b.WriteString(line[:cut] + "\n")
			line = strings.Repeat(" ", indent+4) + strings.TrimLeft(line[cut:], " ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
