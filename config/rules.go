package config

import (
	"path"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// JVM has the properties that rules match. Whoever started the JVM may have chosen the texts.
type JVM struct {
	User, Main   string // Main is the main class, or the file name of the jar
	Cgroup, Unit string // path below the hierarchy's root; the systemd unit in it, if any
	Container    bool
	Flags        []string // the VM's options
	Service      string   // service.name, as found without rules
}

// Rule says whether and how heapcam records the JVMs that it matches. Patterns are those of path.Match, but * also
// matches slashes. An empty pattern matches all.
type Rule struct {
	Line      int       `json:"line"`
	User      string    `json:"user,omitempty"`
	Main      string    `json:"main,omitempty"`
	Cgroup    string    `json:"cgroup,omitempty"`
	Unit      string    `json:"unit,omitempty"`
	Flag      string    `json:"flag,omitempty"`
	Service   string    `json:"service,omitempty"`
	Container *bool     `json:"container,omitempty"`
	Record    bool      `json:"record"`
	Redact    bool      `json:"upload_redact,omitempty"` // what is uploaded of these JVMs names nothing of them
	Settings  []Setting `json:"settings,omitempty"`      // for these JVMs, instead of the file's
	// Resource are attributes of OpenTelemetry for these JVMs, where neither process nor environment names them.
	Resource map[string]string `json:"resource,omitempty"`
}

// attributes are those of OpenTelemetry that a rule may set.
var attributes = []string{"service.name", "service.namespace", "service.version", "service.instance.id",
	"deployment.environment.name", "host.name", "k8s.cluster.name", "k8s.namespace.name"}

var matchKeys = []string{"user", "main", "cgroup", "unit", "flag", "service", "container"}

func (p *parser) rules(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return p.fail(n, "rules must be a list (- match: …)")
	}
	known := append(append([]string{"match", "record", "resource"}, p.keys.JVM...), "upload_redact")
	for _, item := range n.Content {
		r := Rule{Line: item.Line, Record: true}
		err := p.pairs(item, "a rule", known, func(key string, _, v *yaml.Node) (err error) {
			switch key {
			case "match":
				return p.match(&r, v)
			case "resource":
				return p.resource(&r, v)
			case "record":
				r.Record, err = p.boolean(key, v)
				return err
			case "upload_redact":
				r.Redact, err = p.boolean(key, v)
				return err
			}
			text, err := p.scalar(key, v)
			if err == nil {
				r.Settings = append(r.Settings, Setting{key, text, v.Line, v.Column})
			}
			return err
		})
		if err != nil {
			return err
		}
		if !r.Record && len(r.Settings) > 0 {
			return p.fail(item, "a rule with record: false must not set %s", r.Settings[0].Key)
		}
		p.file.Rules = append(p.file.Rules, r)
	}
	return nil
}

// resource reads the attributes that a rule sets.
func (p *parser) resource(r *Rule, n *yaml.Node) error {
	r.Resource = map[string]string{}
	return p.pairs(n, "resource", attributes, func(key string, _, v *yaml.Node) error {
		text, err := p.scalar(key, v)
		r.Resource[key] = text
		return err
	})
}

func (p *parser) match(r *Rule, n *yaml.Node) error {
	to := map[string]*string{"user": &r.User, "main": &r.Main, "cgroup": &r.Cgroup, "unit": &r.Unit, "flag": &r.Flag,
		"service": &r.Service}
	return p.pairs(n, "match", matchKeys, func(key string, _, v *yaml.Node) error {
		if key == "container" {
			b, err := p.boolean(key, v)
			r.Container = &b
			return err
		}
		text, err := p.scalar(key, v)
		if err != nil {
			return err
		}
		if _, err := path.Match(text, ""); err != nil {
			return p.fail(v, "%s: %q is not a valid pattern: a [ or \\ is incomplete", key, text)
		}
		*to[key] = text
		return nil
	})
}

func (p *parser) boolean(key string, v *yaml.Node) (bool, error) {
	text, err := p.scalar(key, v)
	if err != nil {
		return false, err
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, p.fail(v, "%s must be true or false, not %q", key, text)
	}
	return b, nil
}

// Matches says whether the rule applies to j.
func (r *Rule) Matches(j JVM) bool {
	if r.Container != nil && *r.Container != j.Container {
		return false
	}
	if r.Flag != "" {
		hit := false
		for _, f := range j.Flags {
			hit = hit || glob(r.Flag, f)
		}
		if !hit {
			return false
		}
	}
	return glob(r.User, j.User) && glob(r.Main, j.Main) && glob(r.Cgroup, j.Cgroup) && glob(r.Unit, j.Unit) &&
		glob(r.Service, j.Service)
}

// Decide gives the first rule that matches j. It gives nil if none matches: then heapcam records j with the settings of
// the file.
func (f *File) Decide(j JVM) *Rule {
	for i := range f.Rules {
		if f.Rules[i].Matches(j) {
			return &f.Rules[i]
		}
	}
	return nil
}

// glob is path.Match, but * also matches slashes, because cgroups are paths of any depth. Its time is bounded: it
// backtracks only to the last *.
func glob(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	p, i := 0, 0
	star, from := -1, 0
	for i < len(s) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, i
			p++
			continue
		}
		if i < len(s) && p < len(pattern) {
			if n, ok := one(pattern[p:], s[i]); ok {
				p, i = p+n, i+1
				continue
			}
		}
		if star < 0 || from >= len(s) {
			return false
		}
		from++
		p, i = star+1, from
	}
	return true
}

// one matches a byte against the start of a pattern, and gives the length of the pattern that it used.
func one(pattern string, c byte) (int, bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '\\':
		return 2, pattern[1] == c
	case '[':
		end := 1
		for end < len(pattern) && (pattern[end] != ']' || end == 1) {
			if pattern[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(pattern) {
			return 0, false
		}
		ok, err := path.Match(pattern[:end+1], string(rune(c)))
		return end + 1, err == nil && ok
	}
	return 1, pattern[0] == c
}
