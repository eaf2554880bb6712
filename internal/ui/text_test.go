package ui

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]Text{
		"java.util.HashMap$Node[]": "java.util.HashMap$Node[]", "Müller.größe": "Müller.größe", "類": "類", "😀": "😀",
		"": "", "a b": "a b",
		"\x1b[31mred": `\x1b[31mred`, "a\nb\tc\rd\x00\x7f": `a\x0ab\x09c\x0dd\x00\x7f`, "\u009b31m": `\u009b31m`,
		"\x9b":           `\x9b`,
		"a\u202eb\u2066": `a\u202eb\u2066`, "a\u200bb\u200d\ufeff": `a\u200bb\u200d\ufeff`,
		"\u2028\u2029": `\u2028\u2029`, "\u00a0\u3000": `\u00a0\u3000`,
		"\u115f\u3164\u034f\ufe0f\u2800": `\u115f\u3164\u034f\ufe0f\u2800`, "\U000e0041": `\U000e0041`,
		"\ue000\U0010fffe": `\ue000\U0010fffe`, "\ufffd": "\ufffd",
		`C:\data\users\x`: `C:\data\users\x`, `\\server\share`: `\\\server\share`, `\x1b`: `\\x1b`,
		`\u202e`: `\\u202e`, "\\\x1b": `\\\x1b`, `a\`: `a\`,
		"a  b": `a\x20\x20b`, " a ": `\x20a\x20`, "a…#0": `a\u2026#0`,
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %s, want %s", in, got, want)
		}
		if back := unescape(string(want)); back != in {
			t.Errorf("%s reads as %q, want %q", want, back, in)
		}
	}
}

// TestName: what is cut has the stated length and stays distinct, and no whole name looks like a cut one.
func TestName(t *testing.T) {
	long := strings.Repeat("x", 600)
	a, b := Name(long+"a"), Name(long+"b")
	if a == b || utf8.RuneCountInString(string(a)) != MaxName || !strings.HasPrefix(string(a), long[:MaxName-14]+"…#") {
		t.Errorf("%s\n%s", a, b)
	}
	if Name(long[:MaxName]) != Text(long[:MaxName]) {
		t.Error("a name of the greatest length is cut")
	}
	if c := Name(string(a)); c == a {
		t.Error("a name looks like another that was cut")
	}
	if n := utf8.RuneCountInString(string(Name(strings.Repeat("\u202e", 300)))); n > MaxName || n < MaxName-20 {
		t.Errorf("%d characters", n)
	}
}

type named struct{ s string }

func (n named) String() string { return n.s }

type kind string

// TestFprintf: arguments are data, of whatever type and whatever verb; the format is layout.
func TestFprintf(t *testing.T) {
	const evil = "a\n\x1b[2J"
	for _, c := range []struct{ got, want Text }{
		{Sprintf("%s|%v|%5s|%-5s|\n", "ab", "ab", "ab", "ab"), "ab|ab|   ab|ab   |\n"},
		{Sprintf("%d %5.1f %v %s %t %x", 7, 1.25, uint8(3), time.Second, true, 255), "7   1.2 3 1s true ff"},
		{Sprintf("%s", evil), `a\x0a\x1b[2J`},
		{Sprintf("%-14s|%14v|", evil, named{evil}), `a\x0a\x1b[2J  |  a\x0a\x1b[2J|`},
		{Sprintf("%s %v %s %v", kind(evil), &named{evil}, []string{evil}, map[string]string{"k": evil}),
			`a\x0a\x1b[2J &{a\x0a\x1b[2J} [a\x0a\x1b[2J] map[k:a\x0a\x1b[2J]`},
		{Sprintf("%q %q", evil, "C:\\d\u3164"), `"a\n\x1b[2J" "C:\\d\u3164"`},
		{Sprintf("%v", errors.New("x: "+evil+` "C:\\d"`)), `x: a\x0a\x1b[2J "C:\\d"`},
		{Sprintf("%s", errors.Join(errors.New("one"), errors.New("two\n3"))), `one; two\x0a3`},
		{Sprintf("%s", Text(evil+`\x1b`)), `a\x0a\x1b[2J\x1b`},
		{Sprintf("%s", Join([]string{"a", evil}, " / ")), `a / a\x0a\x1b[2J`},
		{Sprintf("%+v", struct{ N string }{evil}), `{N:a\x0a\x1b[2J}`},
		{Sprintf("%d%%", 5), "5%"},
		{Sprintf("%v %s", nil, error(nil)), "<nil> %!s(<nil>)"},
	} {
		// &named{} prints by its String, which the value has, too
		if c.got != c.want && c.got != Text(strings.ReplaceAll(string(c.want), `&{a\x0a\x1b[2J}`, `a\x0a\x1b[2J`)) {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	w := NewCSV(&b, "name", "n", "x", "ok")
	names := []string{"a.B", "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "＝1", "a,b", `q"`,
		"a\nb", " =1"}
	for _, n := range names {
		if err := w.Row(n, -5, -0.5, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(names)+1 {
		t.Fatal(rows, err)
	}
	for i, r := range rows[1:] {
		if strings.ContainsAny(r[0][:1], "=+-@\t\r\n") || !reflect.DeepEqual(r[1:], []string{"-5", "-0.5", "true"}) {
			t.Errorf("%q", r)
		}
		if back := unescape(strings.TrimPrefix(r[0], "'")); back != names[i] {
			t.Errorf("%q reads as %q, want %q", r[0], back, names[i])
		}
	}
}

// TestGuard: what comes in pieces is guarded as if it came at once.
func TestGuard(t *testing.T) {
	in := "ok\tä\n\x1b[31m\u202e\u009b\x9b😀\ufeff\U000e0041 end\xe2\x80"
	want := "ok\tä\n" + `\x1b[31m\u202e\u009b\x9b😀\ufeff\U000e0041 end\xe2\x80`
	for _, step := range []int{1, 2, 3, 7, 100} {
		var b bytes.Buffer
		g := NewGuard(&b)
		for s := in; s != ""; s = s[min(step, len(s)):] {
			if n, err := g.Write([]byte(s[:min(step, len(s))])); err != nil || n != min(step, len(s)) {
				t.Fatal(n, err)
			}
		}
		g.Flush()
		if b.String() != want {
			t.Errorf("in pieces of %d: %s, want %s", step, b.String(), want)
		}
	}
}

// unescape is the inverse of Escape, as its documentation says.
func unescape(s string) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i+1]]
		switch v, err := strconv.ParseUint(s[min(i+2, len(s)):min(i+2+n, len(s))], 16, 32); {
		case s[i+1] == '\\':
			b = append(b, '\\')
			i++
		case n == 0 || err != nil || i+2+n > len(s):
			b = append(b, '\\')
		default:
			if n == 2 {
				b = append(b, byte(v))
			} else {
				b = utf8.AppendRune(b, rune(v))
			}
			i += 1 + n
		}
	}
	return string(b)
}

func hidden(s string) bool {
	for i, r := range s {
		if Hidden(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return true
		}
	}
	return false
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a.B", "\x1b[0m", `\x1b`, `\\u202e`, "\\\\\n", "a\\ ", "\\  ", "\xe2\x80",
		"\u202e", strings.Repeat("\\x41", 300), "=1", "…#"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, x := range []Text{Escape(s), Name(s), Path(s), Prose(s), Sprintf("%s%v%q", s, s, s),
			Join([]string{s, s}, ", "), Sprintf("%v", errors.New(s)), Text(CSVCell(s))} {
			if hidden(string(x)) {
				t.Fatalf("%q shows a hidden character: %q", s, x)
			}
		}
		if back := unescape(string(Escape(s))); back != s {
			t.Fatalf("Escape(%q) = %s reads as %q", s, Escape(s), back)
		}
		if n := utf8.RuneCountInString(string(Name(s))); n > MaxName {
			t.Fatalf("%d characters of %q", n, s)
		}
		if c := CSVCell(s); c != "" && strings.ContainsAny(c[:1], "=+-@\t\r\n") {
			t.Fatalf("a formula: %q", c)
		}
		var b bytes.Buffer
		g := NewGuard(&b)
		fmt.Fprint(g, s)
		g.Flush()
		if hidden(strings.NewReplacer("\n", "", "\t", "").Replace(b.String())) {
			t.Fatalf("guarded: %q", b.String())
		}
		b.Reset()
		var plain, got any
		if err := JSON(&b, map[string]string{"k": s}); err != nil || hidden(strings.ReplaceAll(b.String(), "\n", "")) {
			t.Fatalf("%v: %q", err, b.String())
		}
		was, _ := json.Marshal(map[string]string{"k": s})
		if json.Unmarshal(was, &plain) != nil || json.Unmarshal(b.Bytes(), &got) != nil ||
			!reflect.DeepEqual(plain, got) {
			t.Fatalf("JSON has another value: %q", b.String())
		}
	})
}
