// Command readability prints how easy each document and each help text reads: its Flesch reading ease, its words in a
// sentence, and its words. The counts are those of Vale, which leaves out tables, code and headings.
//
//	readability [-heapcam PROGRAM] [-vale COMMAND] [-least N] [FILE…]
//
// Without files it measures every Markdown file in git. A help text is measured as its prose and the descriptions of
// its flags. With -least the command fails if a page or a text has less.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const vale = "go run github.com/vale-cli/vale/v3/cmd/vale@v3.21.0"

// metrics are what Vale counted in a page.
type metrics struct {
	Words     float64 `json:"words"`
	Sentences float64 `json:"sentences"`
	Syllables float64 `json:"syllables"`
}

// ease is Flesch's: 60 to 70 is plain English. tools/vale/Heapcam/ReadingEase.yml has the same formula.
func (m metrics) ease() float64 {
	return 206.835 - 1.015*m.Words/m.Sentences - 84.6*m.Syllables/m.Words
}

type tool struct {
	vale  []string
	least float64
	low   int
}

func main() {
	program := flag.String("heapcam", "", "measure the help texts of this program, too")
	command := flag.String("vale", vale, "the command that runs Vale")
	least := flag.Float64("least", 0, "fail if a page or a text has less")
	flag.Parse()
	t := &tool{vale: strings.Fields(*command), least: *least}
	if err := t.run(*program, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "readability:", err)
		os.Exit(1)
	}
}

func (t *tool) run(program string, files []string) error {
	if len(files) == 0 {
		out, err := exec.Command("git", "ls-files", "*.md").Output()
		if err != nil {
			return fmt.Errorf("git ls-files: %w", err)
		}
		files = strings.Fields(string(out))
	}
	fmt.Println("  ease  words/sentence   words  page")
	for _, f := range files {
		if err := t.page(f, f); err != nil {
			return err
		}
	}
	if program != "" {
		if err := t.helpTexts(program); err != nil {
			return err
		}
	}
	if t.low > 0 {
		return fmt.Errorf("%d pages or texts have less than %g", t.low, t.least)
	}
	return nil
}

// page measures a file and prints a row of that name.
func (t *tool) page(file, name string) error {
	out, err := exec.Command(t.vale[0], append(t.vale[1:], "ls-metrics", file)...).Output()
	if err != nil {
		return fmt.Errorf("%s ls-metrics %s: %w", t.vale[0], file, err)
	}
	var m metrics
	if err := json.Unmarshal(out, &m); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if m.Words == 0 || m.Sentences == 0 {
		fmt.Printf("%6s %15s %7.0f  %s\n", "-", "-", m.Words, name)
		return nil
	}
	fmt.Printf("%6.1f %15.1f %7.0f  %s\n", m.ease(), m.Words/m.Sentences, m.Words, name)
	if m.ease() < t.least {
		t.low++
	}
	return nil
}

var verb = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) {2,}\S`)

// helpTexts measures what the program prints for each verb that its help lists.
func (t *tool) helpTexts(program string) error {
	dir, err := os.MkdirTemp("", "readability-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all, err := exec.Command(program, "help").Output()
	if err != nil {
		return fmt.Errorf("%s help: %w", program, err)
	}
	for _, m := range verb.FindAllStringSubmatch(string(all), -1) {
		text, err := exec.Command(program, "help", m[1]).Output()
		if err != nil {
			return fmt.Errorf("%s help %s: %w", program, m[1], err)
		}
		file := filepath.Join(dir, m[1]+".md")
		if err := os.WriteFile(file, []byte(prose(string(text))), 0o600); err != nil {
			return err
		}
		if err := t.page(file, "help "+m[1]); err != nil {
			return err
		}
	}
	return nil
}

var (
	flagRow = regexp.MustCompile(`^ +(?:-\w, )?--[\w-]+(?: \S+)? {2,}(\S.*)$`)
	further = regexp.MustCompile(`^ {16,}(\S.*)$`) // a further line of a flag's description
)

// prose gives the sentences of a help text as Markdown: its paragraphs and, each as one, the descriptions of flags.
// Other lines that are indented are commands, and lines that end in a colon are headings.
func prose(text string) string {
	var out strings.Builder
	inFlag := false
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		if m := flagRow.FindStringSubmatch(l); m != nil {
			out.WriteString("\n\n" + m[1])
			inFlag = true
			continue
		}
		m := further.FindStringSubmatch(l)
		switch {
		case inFlag && m != nil:
			out.WriteString("\n" + m[1])
			continue
		case strings.HasPrefix(l, " "), strings.HasSuffix(l, ":"), l == "":
			out.WriteString("\n\n")
		default:
			out.WriteString("\n" + l)
		}
		inFlag = false
	}
	return out.String() + "\n"
}
