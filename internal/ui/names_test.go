package ui

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestBreakAtBlank: a remark is broken at a blank, not within a word.
func TestBreakAtBlank(t *testing.T) {
	words := Text("In force: depth survivors, one sample in 512 KiB, since recording exceeded the overhead budget")
	for width := 30; width < 90; width++ {
		lines := Lines(words, width)
		for _, l := range lines[:len(lines)-1] {
			if !strings.HasSuffix(string(l), " ") {
				t.Errorf("%d columns: %q", width, lines)
			}
		}
	}
}

// TestLongNames prints tables with names longer than a line: no line passes Width, and who joins the lines of a
// name has all of it.
func TestLongNames(t *testing.T) {
	names := []string{
		"org.springframework.security.config.annotation.web.configurers.oauth2.client.OAuth2LoginConfigurer$Endpoint" +
			"Configuration$Holder",
		"com.example." + strings.Repeat("very.", 40) + "DeepClass", strings.Repeat("x", 250), "short.Name",
		`a\x20b` + strings.Repeat(`\x1b`, 60),
	}
	for _, name := range names {
		for _, l := range Wrap(Flowf("A probable leak: %s allocated at %s.f(%s:1) grows", name, name, name), Width-4) {
			if n := utf8.RuneCountInString(string(l)); n > Width-4 {
				t.Errorf("%d columns of %d: %s", n, Width-4, l)
			}
		}
		for _, before := range []int{2, 40, 70, 95} {
			var b strings.Builder
			Beside(&b, Text(strings.Repeat("9", before-2)+"  "), Text(name))
			joined := ""
			for _, l := range strings.Split(b.String(), "\n") {
				if n := utf8.RuneCountInString(l); n > Width {
					t.Errorf("%d columns: %s", n, l)
				}
				l = strings.TrimLeft(strings.TrimPrefix(l, strings.Repeat("9", before-2)), " ")
				joined += strings.TrimPrefix(l, "…")
			}
			if joined != name {
				t.Errorf("%q came out as %q", name, joined)
			}
		}
		c := NewColumns(2, ">BYTES", ">OBJECTS", "CLASS AND ALLOCATION SITE")
		c.Row(Bytes(uint64(1)<<30), 123456789, Flowf("%s at %s", name, name))
		c.Row("~334.3 KiB–1.0 GiB", "~16.2 MiB–18.7 MiB", name)
		c.Under(6, Sprintf("at %s", name))
		var b strings.Builder
		c.Write(&b)
		for _, l := range strings.Split(b.String(), "\n") {
			if n := utf8.RuneCountInString(l); n > Width {
				t.Errorf("%d columns: %s", n, l)
			}
		}
	}
}
