package attach

import (
	"errors"
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	b, err := request("load", []string{"/l.so", "true", "a=b"})
	if err != nil || string(b) != "1\x00load\x00/l.so\x00true\x00a=b\x00" {
		t.Errorf("request: %q, %v", b, err)
	}
	if b, err = request("properties", nil); err != nil || string(b) != "1\x00properties\x00\x00\x00\x00" {
		t.Errorf("request: %q, %v", b, err)
	}
	for _, args := range [][]string{{"a", "b", "c", "d"}, {"a\x00b"}} {
		if _, err := request("x", args); err == nil {
			t.Errorf("request takes %q", args)
		}
	}
}

func TestParseLoad(t *testing.T) {
	var ret *ReturnError
	var load *LoadError
	for _, c := range []struct {
		in   string
		want func(error) bool
	}{
		{"0\nreturn code: 0\n", func(err error) bool { return err == nil }},
		{"0\n", func(err error) bool { return err == nil }},
		{"0\nreturn code: 7\n", func(err error) bool { return errors.As(err, &ret) && ret.Code == 7 }},
		{"0\nreturn code: -3", func(err error) bool { return errors.As(err, &ret) && ret.Code == -3 }},
		{"-1\n/x.so: cannot open shared object file", func(err error) bool {
			return errors.As(err, &load) && strings.Contains(load.Text, "cannot open")
		}},
		{"0\n/x.so was not loaded.", func(err error) bool { return errors.As(err, &load) }},
		{"102", func(err error) bool { return errors.As(err, &ret) && ret.Code == 102 }},
		{"", func(err error) bool { return errors.Is(err, ErrProtocol) }},
		{"hello\n", func(err error) bool { return errors.Is(err, ErrProtocol) }},
		{"0\nreturn code: x", func(err error) bool { return errors.Is(err, ErrProtocol) }},
	} {
		if err := parseLoad([]byte(c.in)); !c.want(err) {
			t.Errorf("parseLoad(%q) = %v", c.in, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("0\nreturn code: 0\n"))
	f.Add([]byte("-1\nno such file\x1b[2J"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := parseLoad(b); err != nil && strings.ContainsAny(err.Error(), "\n\x1b\x00") {
			t.Errorf("control characters reach a terminal: %q", err)
		}
		if _, _, err := parseAnswer(b); err != nil && !errors.Is(err, ErrProtocol) {
			t.Error(err)
		}
	})
}
