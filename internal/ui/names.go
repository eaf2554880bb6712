package ui

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Lines breaks the name t into lines of at most width columns, where possible behind a blank, a dot, a slash or a
// comma, or before a dollar sign or a bracket. Nothing is lost. Each line but the first begins with an ellipsis, which
// no name holds: so a name does not begin a line.
func Lines(t Text, width int) (lines []Text) {
	width = max(width, Width/5)
	s := []rune(string(t))
	begin := Text("")
	for len(s) > width {
		at := 0
		for i := width; i > width/3 && at == 0; i-- {
			if s[i-1] == ' ' || strings.ContainsRune("./,;", s[i-1]) && s[i] != ' ' ||
				strings.ContainsRune("$([", s[i]) {
				at = i
			}
		}
		if at == 0 {
			at = width
			if i := strings.LastIndexByte(string(s[at-10:at]), '\\'); i >= 0 { // an escape stays whole
				at += utf8.RuneCountInString(string(s[at-10 : at])[:i]) - 10
			}
		}
		lines, s = append(lines, begin+Text(string(s[:at]))), s[at:]
		if begin == "" {
			begin = Text(ellipsis)
			width--
		}
	}
	return append(lines, begin+Text(string(s)))
}

// roomForNames is how many columns a name has at least beside what stands before it, or it gets lines of its own.
const roomForNames = 40

// Beside prints begin, and behind it the name t: in lines of at most Width columns, those that follow further to the
// right than a row begins.
func Beside(w io.Writer, begin, t Text) {
	at := utf8.RuneCountInString(string(begin))
	if Width-at < roomForNames && at+utf8.RuneCountInString(string(t)) > Width {
		Fprintf(w, "%s\n", Text(strings.TrimRight(string(begin), " ")))
		begin, at = "        ", 8
	}
	for i, l := range Lines(t, Width-at) {
		if i > 0 {
			begin = Text(strings.Repeat(" ", at))
		}
		Fprintf(w, "%s\n", Text(strings.TrimRight(string(begin+l), " ")))
	}
}
