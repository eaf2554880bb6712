package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
)

const pageFile = "docs/benchmarks/test-full.md"

// writePage writes what the results say of all stages.
func writePage(r *results, all []stage) error {
	if err := os.WriteFile(pageFile, []byte(page(r, all, machine())), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	fmt.Println("written: " + pageFile)
	return nil
}

// machine says what kind of machine this is.
func machine() string {
	memory := ""
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib uint64
		if _, err := fmt.Sscanf(string(b), "MemTotal: %d", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB of memory", (kib+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%d cores%s, %s/%s, %s", runtime.NumCPU(), memory, runtime.GOOS, runtime.GOARCH,
		runtime.Version())
}

// page is the text of the page.
func page(r *results, all []stage, machine string) string {
	var b strings.Builder
	b.WriteString("# Results of make test-full\n\n")
	b.WriteString("`make test-full` writes this page. It runs all tests, the long ones too, and leaves out what has\n" +
		"passed if the files that it depends on have not changed since.\n\n")
	fmt.Fprintf(&b, "- Commit: `%s`\n- Machine: %s\n\n", r.Commit, machine)
	b.WriteString("| tests | passed | passed earlier | failed | skipped | not run | seconds | date |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	var sum counts
	var repeated, untouched []string
	for _, s := range all {
		x := r.Stages[s.name]
		if x == nil || len(x.Tests)+len(x.Earlier) == 0 {
			untouched = append(untouched, "`"+s.name+"`")
			continue
		}
		c := x.count()
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %.0f | %s |\n", s.name, c.passed, c.earlier, c.failed,
			c.skipped, c.left, c.seconds, x.Date)
		sum.passed, sum.failed, sum.skipped = sum.passed+c.passed, sum.failed+c.failed, sum.skipped+c.skipped
		sum.left, sum.earlier = sum.left+c.left, sum.earlier+c.earlier
		for _, n := range x.Names {
			if o := x.Tests[n]; o != nil && o.Result == pass && o.Runs > 1 {
				repeated = append(repeated, fmt.Sprintf("`%s` of %s: %d runs", n, s.name, o.Runs))
			}
		}
	}
	fmt.Fprintf(&b, "| all of these | %d | %d | %d | %d | %d | | |\n", sum.passed, sum.earlier, sum.failed,
		sum.skipped, sum.left)
	b.WriteString("\nSeconds are those of the tests, added up; some run side by side. *Passed earlier* are tests\n" +
		"that passed before something that they depend on has changed, and have not run since.\n")
	section(&b, "Never run", untouched)
	section(&b, "Passed earlier", r.earlier(all))
	section(&b, "Failed first, and passed when they were repeated", repeated)
	var left []string
	for _, why := range r.reasons(all) {
		left = append(left, strings.TrimPrefix(why, "not run: "))
	}
	section(&b, "What the tests left out, and why", left)
	section(&b, "The slowest ten", r.slowest(all, 10))
	return b.String()
}

// earlier gives which tests passed earlier, by commit, the oldest first.
func (r *results) earlier(all []stage) (out []string) {
	by := map[string][]string{}
	for _, s := range all {
		x := r.Stages[s.name]
		if x == nil {
			continue
		}
		for _, n := range x.Names {
			if o := x.Earlier[n]; o != nil && x.Tests[n] == nil {
				at := fmt.Sprintf("%s, `%s`", o.Date, o.Commit)
				by[at] = append(by[at], "`"+n+"`")
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%s: %d tests: %s", at, len(by[at]), strings.Join(by[at], ", ")))
	}
	return out
}

// section writes a list, if there is anything in it.
func section(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, i := range items {
		b.WriteString(wrapped("- " + i))
	}
}

// wrapped divides an item of a list into lines.
func wrapped(item string) string {
	const most = 100
	var b strings.Builder
	column := 0
	for i, word := range strings.Split(item, " ") {
		switch {
		case i == 0:
		case column+1+len(word) > most:
			b.WriteString("\n  ")
			column = 2
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}
