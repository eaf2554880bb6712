package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManCmd writes man pages and completions of all verbs, for the packages. Their date is $SOURCE_DATE_EPOCH, if set.
func newManCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write man pages into DIR/man1 and completions into DIR/completions",
		Hidden: true,
		Args:   exactly(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			date := time.Now()
			if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
				n, err := strconv.ParseInt(s, 10, 64)
				if err != nil {
					return usage("SOURCE_DATE_EPOCH %q: it must be a number of seconds since 1970", s)
				}
				date = time.Unix(n, 0)
			}
			return writeMan(c.Root(), args[0], date.UTC())
		},
	}
}

func writeMan(root *cobra.Command, dir string, date time.Time) error {
	man, comp := filepath.Join(dir, "man1"), filepath.Join(dir, "completions")
	for _, d := range []string{man, comp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	var err error
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		if err != nil || c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		err = os.WriteFile(filepath.Join(man, name+".1"), manPage(c, date), 0o644)
		for _, s := range c.Commands() {
			each(s)
		}
	}
	each(root)
	if err != nil {
		return err
	}
	for name, f := range map[string]func(io.Writer) error{
		"heapcam.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_heapcam":     root.GenZshCompletion,
		"heapcam.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	} {
		var b bytes.Buffer
		if err := f(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(comp, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// roffText is roff for the paragraphs and lists of a help text.
func roffText(text string) string {
	s := strings.ReplaceAll(roff(text), "\n\n", "\n.PP\n")
	return strings.ReplaceAll("\n"+s, "\n\\- ", "\n.TP 2\n\\(bu\n")[1:]
}

// roff escapes text so that nothing in it is a request or an escape.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", `\(ga`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			lines[i] = `\&` + l
		}
	}
	var b strings.Builder
	for _, r := range strings.Join(lines, "\n") {
		if r < 0x80 {
			b.WriteRune(r)
		} else { // whatever character set the reader has
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

func manPage(c *cobra.Command, date time.Time) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 %q %q %q\n", strings.ToUpper(name), date.Format(time.DateOnly),
		"heapcam "+version, "heapcam manual")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(firstLower(c.Short)))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roffText(filled(long)))
	if c.HasAvailableSubCommands() {
		b.WriteString(".SH VERBS\n")
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() && s.Name() != "help" && s.Name() != "completion" {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(s.Use), roff(s.Short))
			}
		}
	}
	for i, s := range flagSections(c) {
		if i == 0 {
			b.WriteString(".SH OPTIONS\n")
		}
		fmt.Fprintf(&b, ".SS %s\n", roff(s.title))
		s.flags.VisitAll(func(f *pflag.Flag) {
			head := "--" + f.Name
			if f.Shorthand != "" {
				head = "-" + f.Shorthand + ", " + head
			}
			what, text := pflag.UnquoteUsage(f)
			if what != "" {
				head += " " + what
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(head), roff(text))
		})
	}
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(strings.TrimRight(c.Example, "\n")))
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitDocs {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(e.code), roff(e.meaning))
	}
	for _, e := range exitNotes(c) {
		fmt.Fprintf(&b, ".PP\n%s: %s\n", roff(e.code), roff(e.meaning))
	}
	b.WriteString(".SH SEE ALSO\n")
	var see []string
	if c.HasParent() {
		see = append(see, c.Parent().CommandPath())
	}
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() && s.Name() != "help" && s.Name() != "completion" {
			see = append(see, s.CommandPath())
		}
	}
	if len(see) == 0 {
		see = append(see, c.Root().Name())
	}
	for i, s := range see {
		sep := ","
		if i == len(see)-1 {
			sep = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(strings.ReplaceAll(s, " ", "-")), sep)
	}
	return b.Bytes()
}

// firstLower makes "Record a JVM" what a NAME line wants, and leaves "JVM" as it is.
func firstLower(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' || strings.HasPrefix(s, "A ") {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
