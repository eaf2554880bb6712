package config

import (
	"errors"
	"strings"
	"testing"
)

var keys = Keys{Settings: []string{"max_trace_size", "depth", "sampling", "sampling_max_overhead",
	"sampling_target_live", "discover"}, JVM: []string{"depth", "sampling"}}

func TestParse(t *testing.T) {
	f, err := Parse("h.yaml", []byte(`# comment
max_trace_size: 16GiB
depth: full
rules:
  - match: {user: "jenkins", main: "*Tool*"}
    record: false
  - match: {unit: shop.service, container: false}
    depth: survivors
    sampling: 64KiB
`), keys)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Settings) != 2 || f.Settings[0] != (Setting{"max_trace_size", "16GiB", 2, 17}) || len(f.Rules) != 2 {
		t.Fatalf("%+v", f)
	}
	for _, c := range []struct {
		j    JVM
		line int
	}{
		{JVM{User: "jenkins", Main: "org.x.ToolMain"}, 5},
		{JVM{User: "jenkins", Main: "Shop"}, 0},
		{JVM{Unit: "shop.service"}, 7},
		{JVM{Unit: "shop.service", Container: true}, 0},
	} {
		r := f.Decide(c.j)
		if got := 0; r != nil && r.Line != c.line || r == nil && c.line != got {
			t.Errorf("%+v: %+v, want the rule of line %d", c.j, r, c.line)
		}
	}
	if f, err := Parse("h.yaml", []byte("# nothing\n"), keys); err != nil || len(f.Settings) != 0 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
}

// TestGroup demands that a mapping is the keys that begin with its name.
func TestGroup(t *testing.T) {
	f, err := Parse("h.yaml", []byte("sampling: {target_live: 20000, max_overhead: 1%}\ndiscover: true\n"), keys)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Settings) != 3 || f.Settings[0] != (Setting{"sampling_target_live", "20000", 1, 25}) ||
		f.Settings[1].Key != "sampling_max_overhead" {
		t.Errorf("%+v", f.Settings)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"max_trace_siz: 1\n", `h.yaml:1:1: unknown key "max_trace_siz"; did you mean "max_trace_size"?`},
		{"zzz: 1\n", `h.yaml:1:1: unknown key "zzz" (`},
		{"depth: full\ndepth: samples\n", "h.yaml:2:1: depth is set twice, here and in line 1"},
		{"sampling: {max_over: 1}\n", `h.yaml:1:12: unknown key "max_over"; did you mean "max_overhead"?`},
		{"sampling: {max_overhead: 1%}\nsampling_max_overhead: 2%\n",
			"h.yaml:2:24: sampling_max_overhead is set twice, here and in line 1"},
		{"max: {tracesize: 1}\n", `h.yaml:1:7: unknown key "tracesize"`},
		{"depth: [full]\n", "h.yaml:1:8: depth must be one value"},
		{"depth:\n", "h.yaml:1:7: depth must be one value"},
		{"- a\n", "h.yaml:1:1: the file must be a mapping"},
		{"a: b: c\n", "h.yaml:1:"},
		{"rules: {}\n", "h.yaml:1:8: rules must be a list"},
		{"rules:\n  - match: {usr: x}\n", `h.yaml:2:13: unknown key "usr"; did you mean "user"?`},
		{"rules:\n  - match: {user: x}\n    max_trace_size: 1\n", `h.yaml:3:5: unknown key "max_trace_size"`},
		{"rules:\n  - match: {user: '[x'}\n", "h.yaml:2:19: user: "},
		{"rules:\n  - record: maybe\n", "h.yaml:2:13: record must be true or false"},
		{"rules:\n  - record: false\n    depth: full\n", "h.yaml:2:5: a rule with record: false must not set depth"},
		{"rules:\n  - resource: {service.nam: x}\n",
			`h.yaml:2:16: unknown key "service.nam"; did you mean "service.name"?`},
		{"rules:\n  - resource: {service.name: [x]}\n", "h.yaml:2:30: service.name must be one value"},
	} {
		_, err := Parse("h.yaml", []byte(c.text), keys)
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestServiceRules: a rule matches the service of a JVM, and names attributes for it.
func TestServiceRules(t *testing.T) {
	f, err := Parse("h.yaml", []byte(`rules:
  - match: {service: "shop*"}
    resource: {service.name: shop, deployment.environment.name: production}
`), keys)
	if err != nil {
		t.Fatal(err)
	}
	r := f.Decide(JVM{Service: "shop-7"})
	if r == nil || r.Resource["service.name"] != "shop" || len(r.Resource) != 2 || !r.Record {
		t.Errorf("%+v", r)
	}
	if r := f.Decide(JVM{Service: "other"}); r != nil {
		t.Errorf("another service: %+v", r)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "x", true}, {"x", "x", true}, {"x", "xy", false}, {"*", "", true}, {"*", "a/b", true},
		{"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"/kube*/pod1*", "/kubepods/burstable/pod12/c", true}, {"?b", "ab", true}, {"?", "", false},
		{"[a-c]x", "bx", true}, {"[a-c]x", "dx", false},
		{`\*`, "*", true}, {`\*`, "a", false}, {"**b", "aab", true}, {"a*", "", false},
		{"*a*a*a*a*a*b", strings.Repeat("a", 5000), false},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("glob(%q, %.20q) is %v", c.pattern, c.s, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("depth: full\nrules:\n  - match: {user: a*}\n    record: false\n"), "user")
	f.Add([]byte("rules:\n  - match: {container: true, flag: '-X[a-z]*'}\n    depth: full\n"), "-Xmx1g")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		file, err := Parse("f", b, keys)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatal(err)
			}
			return
		}
		file.Decide(JVM{User: s, Main: s, Cgroup: s, Unit: s, Flags: []string{s}})
	})
}

// TestRuleRedact: a rule may leave names out of uploads; what is neither true nor false is refused.
func TestRuleRedact(t *testing.T) {
	f, err := Parse("x", []byte("rules:\n- match: {user: shop}\n  upload_redact: true\n- {match: {user: b}}\n"), keys)
	if err != nil || !f.Rules[0].Redact || f.Rules[1].Redact {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := Parse("x", []byte("rules:\n- upload_redact: names\n"), keys); err == nil {
		t.Error("upload_redact: names is taken")
	}
}
