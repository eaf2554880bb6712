package ui

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"
)

// Width is how many columns lines for people have at most. A word that is longer stays whole: names are to be copied.
const Width = 100

// Style is how a headline looks on a terminal that shows colours.
type Style string

// The styles are sequences of ECMA-48.
const (
	Plain Style = ""
	Bold  Style = "\x1b[1m"
	Bad   Style = "\x1b[1;31m"
	Good  Style = "\x1b[1;32m"
	Doubt Style = "\x1b[1;33m"
	reset Style = "\x1b[0m"
)

// colours says whether f shows colours: a terminal whose user has not refused them (no-color.org).
func colours(f *os.File) bool {
	term := os.Getenv("TERM")
	if os.Getenv("NO_COLOR") != "" || term == "dumb" || term == "" && runtime.GOOS != "windows" {
		return false
	}
	if runtime.GOOS == "windows" && os.Getenv("WT_SESSION") == "" {
		return false
	}
	return IsTerminal(f)
}

// style switches the terminal behind w to s; others than a Guard of a terminal stay as they are.
func style(w io.Writer, s Style) {
	g, ok := w.(*Guard)
	if !ok || s == Plain || g.colour == nil || !g.colour() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	io.WriteString(g.to(), string(s))
}

// Flow is text that may be broken into lines at its blanks. So it holds no blank of a name, which could begin a line
// of its own: make it with Flowf, or of what is ours.
type Flow string

// Flowf writes text as Sprintf does, and what of args is data has no blanks: they are escaped. Only numbers and Flow
// stay as they are.
func Flowf(format string, args ...any) Flow {
	for i, a := range args {
		switch x := a.(type) {
		case Flow:
			args[i] = Text(x)
		case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		default:
			args[i] = Text(strings.ReplaceAll(string(Sprintf("%v", x)), " ", `\x20`))
		}
	}
	return Flow(Sprintf(format, args...))
}

// Headline prints t as a paragraph in a style.
func Headline(w io.Writer, s Style, t Flow) {
	style(w, s)
	Paragraph(w, "", 0, t)
	style(w, reset.unless(s))
}

func (s Style) unless(begun Style) Style {
	if begun == Plain {
		return Plain
	}
	return s
}

// Section begins a part of a page: an empty line and its heading.
func Section(w io.Writer, heading Flow) {
	Fprintf(w, "\n")
	Headline(w, Bold, heading)
}

// fieldAt is the column at which the text of a field begins.
const fieldAt = 16

// Field prints what a page says under a name, in the column of all fields.
func Field(w io.Writer, name Flow, t Flow) {
	Paragraph(w, "  "+name, fieldAt, t)
}

// Datum is Field of what is not ours: it stays in one line.
func Datum(w io.Writer, name Flow, t Text) {
	Fprintf(w, "%-*s %s\n", fieldAt-1, Text("  "+name), t)
}

// Paragraph prints t in lines of at most Width columns. They begin at column indent, the first one behind label.
func Paragraph(w io.Writer, label Flow, indent int, t Flow) {
	pad := strings.Repeat(" ", max(0, indent-utf8.RuneCountInString(string(label))))
	if label != "" && pad == "" {
		pad = " "
	}
	line := string(label) + pad
	for i, l := range Wrap(t, Width-indent) {
		if i > 0 {
			line = strings.Repeat(" ", indent)
		}
		Fprintf(w, "%s\n", Text(line)+l)
	}
}

// Wrap breaks t at blanks into lines of at most width columns. A longer word, such as the name of a class, is broken as
// Lines does it; but not one with a slash, because a path is pasted whole.
func Wrap(t Flow, width int) (lines []Text) {
	line, n := "", 0
	for i, word := range words(string(t)) {
		k := utf8.RuneCountInString(word)
		switch {
		case i > 0 && n+1+k > width:
			if rest, ok := strings.CutSuffix(line, " at"); ok { // "at" stays with the place that it names
				line, word, k = rest, "at "+word, k+3
			}
			lines = append(lines, Text(strings.TrimRight(line, " ")))
			line, n = word, k
		case i > 0:
			line, n = line+" "+word, n+1+k
		default:
			line, n = word, k
		}
		if n > width && !strings.Contains(line, "/") {
			parts := Lines(Text(line), width)
			last := len(parts) - 1
			lines = append(lines, parts[:last]...)
			line, n = string(parts[last]), utf8.RuneCountInString(string(parts[last]))
		}
	}
	return append(lines, Text(strings.TrimRight(line, " ")))
}

// units are words that stay with the number before them.
var units = map[string]bool{"%": true, "B": true, "KiB": true, "MiB": true, "GiB": true, "TiB": true, "ns": true,
	"µs": true, "ms": true, "s": true, "min": true, "h": true, "d": true, "UTC": true}

// words splits t at the blanks at which a line may end.
func words(t string) (out []string) {
	for i, w := range strings.Split(t, " ") {
		unit, _, _ := strings.Cut(strings.TrimRight(w, ".,;:)"), "/")
		if i > 0 && units[unit] && out[len(out)-1] != "" && strings.ContainsRune("0123456789",
			rune(out[len(out)-1][len(out[len(out)-1])-1])) {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// Next prints the commands to run next.
func Next(w io.Writer, commands ...Text) {
	if len(commands) == 0 {
		return
	}
	Section(w, "Next:")
	for _, c := range commands {
		Fprintf(w, "  %s\n", c)
	}
}

// ShellWord shows an argument of a command so that a shell takes it as it is. What hides something is written as $'…',
// with its bytes in octal: bash, zsh, ksh and busybox read that, and others find no such file. A relative path that
// begins with a hyphen begins with ./ instead, so that it is no flag.
func ShellWord(s string) Text {
	const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-"
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	if s != "" && strings.Trim(s, plainChars) == "" && len(s) <= MaxText {
		return Text(s)
	}
	if strings.ContainsFunc(s, Hidden) || !utf8.ValidString(s) || strings.Contains(s, "  ") ||
		strings.TrimSpace(s) != s {
		var b strings.Builder
		for i := range len(s) {
			if c := s[i]; strings.IndexByte(plainChars, c) >= 0 {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
		return Path("$'" + b.String() + "'")
	}
	if utf8.RuneCountInString(s) > MaxText {
		return Path(s)
	}
	return "'" + Text(strings.ReplaceAll(s, "'", `'\''`)) + "'"
}
