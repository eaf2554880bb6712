package ui

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWidth: no line has more than Width columns, unless a word of it has.
func TestWidth(t *testing.T) {
	var b bytes.Buffer
	long := Flow(strings.Repeat("word and ", 60))
	Headline(&b, Bad, long)
	Field(&b, "Name", long)
	Field(&b, "A name that is longer than its column", "x")
	c := NewColumns(2, ">OBJECTS", ">BYTES", "CLASS")
	c.Row(5, "1.0 KiB", long)
	c.Row(12345678901, "7 B", "java.lang.String")
	c.Under(6, "at a.B.c(B.java:1)")
	c.Write(&b)
	for _, l := range strings.Split(b.String(), "\n") {
		if utf8.RuneCountInString(l) > Width || strings.HasSuffix(l, " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(l), l)
		}
	}
	for _, want := range []string{"\n      OBJECTS    BYTES  CLASS\n", "\n  12345678901      7 B  java.lang.String\n",
		"\n      at a.B.c(B.java:1)\n", "\n  Name          word and", "\n  A name that is longer than its column x\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestFlow: no name begins a line.
func TestFlow(t *testing.T) {
	f := Flowf("%s, %v and %d of %s", strings.Repeat("EVIL word ", 30), errors.New("x EVIL"), 7, Flow("1 of ours"))
	if got := string(f); strings.Count(got, " ") != 7 || !strings.HasSuffix(got, `and 7 of 1 of ours`) {
		t.Error(got)
	}
	c := NewColumns(0, "A", "B")
	c.Row("a", strings.Repeat("EVIL word ", 30))
	var b bytes.Buffer
	c.Write(&b)
	Paragraph(&b, "", 0, f)
	for _, l := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "EVIL") && !strings.HasPrefix(l, `EVIL\x20`) {
			t.Errorf("%q", l)
		}
	}
}

// TestColours: a style reaches a terminal alone, and only one whose user wants it.
func TestColours(t *testing.T) {
	var b bytes.Buffer
	on := &Guard{to: func() io.Writer { return &b }, colour: func() bool { return true }}
	Headline(on, Good, "fine")
	if b.String() != "\x1b[1;32mfine\n\x1b[0m" {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	Headline(NewGuard(&b), Good, "\x1b[1mfine")
	Headline(&b, Good, "fine")
	if b.String() != `\x1b[1mfine`+"\nfine\n" {
		t.Errorf("%q", b.String())
	}
	for _, env := range [][2]string{{"NO_COLOR", "1"}, {"TERM", "dumb"}} {
		t.Setenv("TERM", "xterm")
		t.Setenv("NO_COLOR", "")
		t.Setenv(env[0], env[1])
		if colours(RawStdout()) {
			t.Errorf("colours in spite of %s=%s", env[0], env[1])
		}
	}
}

// TestShellWord: what Next shows can be pasted.
func TestShellWord(t *testing.T) {
	for in, want := range map[string]Text{"a/b-1.heapcam": "a/b-1.heapcam", "": "''", "a b": "'a b'",
		"it's": `'it'\''s'`, "$x": "'$x'", "a b; rm -rf x": "'a b; rm -rf x'", "`x`": "'`x`'",
		"=ls": "'=ls'", "~": "'~'", "-o": "./-o", `a\x41`: `'a\x41'`, "a\nb": `$'a\012b'`,
		"a\x1b[2J'": `$'a\033\1332J\047'`,
		"a  b":      `$'a\040\040b'`, "\u202ex": `$'\342\200\256x'`, "\xff": `$'\377'`} {
		if got := ShellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestShellWordPasted: bash gives back what was quoted.
func TestShellWordPasted(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	for _, s := range []string{"a b; rm -rf x", "$(id)`id`", "'\"\\", "a\nb",
		"\x1b]0;t\a", "\u202e\ufeff", "\xff\xfe", "!!",
		"a  b ", `\x41\\`, "é", "~root", "{a,b}*?[c]", "#x", "-rf", "=ls", "a\\\n", strings.Repeat("x\n", 500)} {
		var b bytes.Buffer
		Next(&b, Sprintf("printf %%s %s", ShellWord(s)))
		_, command, _ := strings.Cut(b.String(), "Next:\n")
		out, err := exec.Command(bash, "-c", command).Output()
		if err != nil || strings.TrimPrefix(string(out), "./") != s {
			t.Errorf("%q: %q: %q %v", s, command, out, err)
		}
	}
}
