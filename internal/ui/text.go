// Package ui is the boundary between heapcam's data and the reader's terminal. Names of classes, methods, source
// files, threads, loaders, JVMs and files, notes and reasons come from recordings and processes: they are hostile
// input. What they may not do is move the cursor, hide or reorder what stands beside them, begin a line of their
// own, or become a formula in a spreadsheet.
//
// The rule that holds this: text goes out through Fprintf and Sprintf of this package only. The format is a
// constant of ours and holds all layout, newlines too; each argument is data, whatever its type, and is escaped and
// cut here. Nobody has to remember to clean a name, as nobody has to in a template of html/template. Two tests keep
// the rule: internal/layers forbids the ways around (fmt.Fprintf, os.Stdout, io.WriteString …, and formats that are
// no constants) in the packages that write text, and cmd/heapcam sends hostile names through every verb and format.
// Stdout and Stderr are a second line: they escape forbidden characters in whatever reaches them, and cannot know
// whose newline it is.
//
// Terms:
//   - A hidden character is one that a reader does not see as a mark of its own: control characters (C0, DEL, C1),
//     format characters (bidi controls, zero-width ones), other spaces than U+0020, line and paragraph separators,
//     variation selectors, blank letters, unassigned and private ones.
//   - An escape is \xHH for a byte (characters below U+0080, and bytes that are no UTF-8), \uHHHH or \UHHHHHHHH for
//     a character.
//   - Text is what was made for people already: hidden characters in it are escaped, its backslashes are not.
//
// Invariants:
//   - Nothing that this package returns as Text by Name, Path, Prose, Join or Sprintf of a format without newline
//     holds a hidden character.
//   - Escape is injective: two names never look the same because of it. So a backslash is doubled where it would
//     read as the beginning of an escape or another backslash follows, and only there: C:\data\x stays as it is.
//     Hence it is not idempotent: names are escaped once, where they are printed.
//   - What is cut ends in "…#" and 12 hexadecimal digits of the SHA-256 of all of it, and no name that is not cut
//     can end so.
//
// It does not judge letters that look like others, nor text that is written from right to left, and a long name can
// still fill a whole line.
package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// How many characters are shown of a name, and of paths, errors and reasons. A JVM allows names of 65,535 bytes; a
// path of Linux has 4,096 at most.
const (
	MaxName = 512
	MaxText = 4096
)

// Text is text for people: Fprintf escapes hidden characters in it and leaves its backslashes alone.
type Text string

// Hidden says whether a reader would not see r as a mark of its own.
func Hidden(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	// blank Braille
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector) || r == '\u2800'
}

// ellipsis marks what is cut; in names it is escaped, so that none can pretend to be.
const ellipsis = '…'

// Escape shows a name whole: hidden characters as escapes, and so a space that stands beside another or at an end,
// for a run of spaces can push what follows into the next line of a terminal.
func Escape(s string) Text { return Text(escape(s, true, len(s)*len(`\Uhhhhhhhh`))) }

// Name is Escape, cut at MaxName characters.
func Name(s string) Text { return Text(escape(s, true, MaxName)) }

// Path is Escape, cut at MaxText characters.
func Path(s string) Text { return Text(escape(s, true, MaxText)) }

// Prose is text that may hold quoted names already: its hidden characters are escaped, and it is cut at MaxText
// characters.
func Prose(s string) Text { return Text(escape(s, false, MaxText)) }

// Join joins names, each as Name shows it. sep is ours.
func Join(names []string, sep string) Text {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(Name(n))
	}
	return Text(strings.Join(out, sep))
}

// plain says whether escape would leave s alone.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' || c >= 0x7f || c == '\\':
			return false
		case c == ' ' && (i == 0 || i+1 == len(s) || s[i+1] == ' '):
			return false
		}
	}
	return true
}

// escape writes s with at most limit characters; name says that backslashes and spaces are escaped, too, so that s
// can be had back.
func escape(s string, name bool, limit int) string {
	if len(s) <= limit && plain(s) {
		return s
	}
	const mark = 2 + 12 // characters of what ends a cut text
	var b strings.Builder
	n, keep, keepN := 0, 0, max(limit-mark, 0)
	put := func(c string) {
		b.WriteString(c)
		n += utf8.RuneCountInString(c)
	}
	for i := 0; i < len(s) && n <= limit; {
		r, w := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && w == 1, r < 0x80 && Hidden(r):
			put(fmt.Sprintf(`\x%02x`, s[i]))
		case Hidden(r) || name && r == ellipsis:
			if r > 0xffff {
				put(fmt.Sprintf(`\U%08x`, r))
			} else {
				put(fmt.Sprintf(`\u%04x`, r))
			}
		case name && r == ' ' && (i == 0 || i+1 == len(s) || s[i+1] == ' ' || s[i-1] == ' '):
			put(`\x20`)
		case name && r == '\\' && doubled(s[i+1:]):
			put(`\\`)
		default:
			b.WriteString(s[i : i+w])
			n++
		}
		i += w
		if n <= keepN {
			keep = b.Len()
		}
	}
	if n <= limit {
		return b.String()
	}
	sum := sha256.Sum256([]byte(s))
	return b.String()[:keep] + string(ellipsis) + "#" + hex.EncodeToString(sum[:6])
}

// doubled says whether a backslash must be doubled before rest: because it would begin an escape, or because what
// follows is shown with a backslash.
func doubled(rest string) bool {
	if rest == "" {
		return false
	}
	if n, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[rest[0]]; ok {
		return len(rest) > n && strings.Trim(rest[1:1+n], "0123456789abcdefABCDEF") == ""
	}
	r, w := utf8.DecodeRuneInString(rest)
	return r == '\\' || r == utf8.RuneError && w == 1 || Hidden(r) || r == ellipsis || rest == " " ||
		strings.HasPrefix(rest, "  ")
}

// Fprintf writes text as fmt.Fprintf does, but that every argument is data: strings, errors, Stringers and composed
// values are escaped and cut as Name does (errors as Prose). Text, Path(x) for instance, is taken as made for
// people. The format must be a constant. Elements of args are replaced.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	for i := range args {
		args[i] = data(args[i])
	}
	return fmt.Fprintf(w, format, args...)
}

// Sprintf does the same and gives the text.
func Sprintf(format string, args ...any) Text {
	for i := range args {
		args[i] = data(args[i])
	}
	return Text(fmt.Sprintf(format, args...))
}

// data gives what fmt may format of v.
func data(v any) any {
	switch x := v.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, uintptr, float32, float64,
		time.Duration:
		return v
	case string:
		if len(x) <= MaxName && plain(x) {
			return v
		}
	case Text:
		return escape(string(x), false, len(x)*len(`\Uhhhhhhhh`))
	case error, fmt.Stringer, fmt.Formatter:
	default:
		if k := reflect.TypeOf(v).Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			return v
		}
	}
	return datum{v}
}

// datum formats any value so that nothing in it is layout.
type datum struct{ v any }

func (d datum) Format(s fmt.State, verb rune) {
	err, isError := d.v.(error)
	shown := func(t string) string {
		if isError {
			return string(Prose(t))
		}
		return string(Name(t))
	}
	switch verb {
	case 's', 'v':
		t := ""
		if isError {
			t = message(err)
		} else {
			flag := ""
			for _, c := range "+#" {
				if s.Flag(int(c)) {
					flag += string(c)
				}
			}
			t = fmt.Sprintf("%"+flag+string(verb), d.v)
		}
		fmt.Fprintf(s, fmt.FormatString(s, 's'), shown(t))
	default: // %q quotes what cannot be printed itself
		t := fmt.Sprintf(fmt.FormatString(s, verb), d.v)
		io.WriteString(s, string(Prose(t)))
	}
}

// message is what err says, of joined errors in one line.
func message(err error) string {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var all []string
		for _, e := range several.Unwrap() {
			all = append(all, e.Error())
		}
		if strings.Join(all, "\n") == err.Error() {
			return strings.Join(all, "; ")
		}
	}
	return err.Error()
}

// guarded escapes in p what may not reach a terminal, whoever wrote it: all hidden characters but newline and tab.
// Bytes that may be the beginning of a character are left over.
func guarded(p []byte) (out, rest []byte) {
	clean := true
	for i := 0; i < len(p) && clean; i++ {
		clean = p[i] >= ' ' && p[i] < 0x7f || p[i] == '\n' || p[i] == '\t'
	}
	if clean {
		return p, nil
	}
	for len(p) > 0 {
		r, w := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && w == 1 && !utf8.FullRune(p):
			return out, p
		case r == utf8.RuneError && w == 1:
			out = fmt.Appendf(out, `\x%02x`, p[0])
		case r == '\n' || r == '\t' || !Hidden(r):
			out = append(out, p[:w]...)
		case r < 0x80:
			out = fmt.Appendf(out, `\x%02x`, r)
		case r > 0xffff:
			out = fmt.Appendf(out, `\U%08x`, r)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		p = p[w:]
	}
	return out, nil
}

// EscapeJSON writes hidden characters in a JSON document as \uHHHH: what a reader of it parses is unchanged. It
// gives b itself if there are none.
func EscapeJSON(b []byte) []byte {
	ascii := true
	for i := 0; i < len(b) && ascii; i++ {
		ascii = b[i] < 0x7f
	}
	if ascii { // encoding/json escapes what is below U+0020
		return b
	}
	var out bytes.Buffer
	out.Grow(len(b) + len(b)/8)
	for len(b) > 0 {
		r, w := utf8.DecodeRune(b)
		switch {
		case r < 0x7f || !Hidden(r):
			out.Write(b[:w])
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		b = b[w:]
	}
	return out.Bytes()
}
