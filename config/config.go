// Package config reads heapcam.yaml: settings by name, and the rules that say which JVMs heapcam records, and how.
//
// A setting is a scalar. `overhead: {cpu: 2%, pause: 10ms}` means `overhead_cpu: 2%` and `overhead_pause: 10ms`. The
// text of a value is that of the flag with the same name (max_trace_size: 16GiB is --max-trace-size 16GiB), so the
// flag alone checks it. Reading is strict: an unknown or repeated key, or a value of the wrong kind, is an error. The
// error names file, line and column, and a similar key.
//
// The registry (Groups) has for each setting its default, unit, help text, the meaning of 0, which limit wins, and
// when a change takes effect. Help, the sample file and the reference page are generated from it.
//
// The package does not check values, and applies nothing.
package config

//go:generate go test . -run TestGenerated -update

import (
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file in bytes: it is read by a service that runs as root.
const maxFile = 1 << 20

// Setting is one value and its place in the file.
type Setting struct {
	Key    string `json:"key"`
	Text   string `json:"text"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// File is a configuration file.
type File struct {
	Name     string
	Settings []Setting
	Rules    []Rule
}

// Error says what is wrong with a file and where.
type Error struct {
	File         string
	Line, Column int
	Msg          string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Msg)
}

// Keys are the names that a file may contain. Settings are at the top level. JVM has those that a rule may set for the
// JVMs that it matches.
type Keys struct {
	Settings, JVM []string
}

// Read reads the file of that name. Errors: those of the file system, *Error.
func Read(name string, keys Keys) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(name, b, keys)
}

// Parse reads data, the contents of the file of that name. Errors are *Error.
func Parse(name string, data []byte, keys Keys) (*File, error) {
	p := parser{file: &File{Name: name}, keys: keys}
	if len(data) > maxFile {
		return nil, &Error{File: name, Msg: "the file is larger than 1 MiB"}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		line := 1 // the library omits it for the first line
		msg := strings.TrimPrefix(err.Error(), "yaml: ")
		if n, _ := fmt.Sscanf(msg, "line %d:", &line); n == 1 {
			msg = strings.TrimSpace(msg[strings.IndexByte(msg, ':')+1:])
		}
		return nil, &Error{name, line, 1, msg}
	}
	if len(doc.Content) == 0 { // empty, or only comments
		return p.file, nil
	}
	root := doc.Content[0]
	if err := p.top(root); err != nil {
		return nil, err
	}
	return p.file, nil
}

type parser struct {
	file *File
	keys Keys
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) error {
	return &Error{p.file.Name, n.Line, n.Column, fmt.Sprintf(format, args...)}
}

// pairs calls each with the keys and values of a mapping. A key must be known, and must not be repeated.
func (p *parser) pairs(n *yaml.Node, what string, known []string, each func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return p.fail(n, "%s must be a mapping (key: value)", what)
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return p.fail(k, "a key must be a word")
		}
		if line, again := seen[k.Value]; again {
			return p.fail(k, "%s is set twice, here and in line %d", k.Value, line)
		}
		seen[k.Value] = k.Line
		if !contains(known, k.Value) {
			hint := Suggest(k.Value, known)
			if hint == noSuggestion && what != "the file" {
				hint = fmt.Sprintf(" (%s has %s)", what, strings.Join(known, ", "))
			}
			return p.fail(k, "unknown key %q%s", k.Value, hint)
		}
		if err := each(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) top(n *yaml.Node) error {
	known := append([]string{"rules"}, p.keys.Settings...)
	grouped := groups(p.keys.Settings)
	// the name of a group is known if its value is a mapping
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; grouped[k] != nil && n.Content[i+1].Kind == yaml.MappingNode &&
			!contains(known, k) {
			known = append(known, k)
		}
	}
	return p.pairs(n, "the file", known, func(key string, _, v *yaml.Node) error {
		if key == "rules" {
			return p.rules(v)
		}
		if v.Kind == yaml.MappingNode && grouped[key] != nil {
			return p.group(key, grouped[key], v)
		}
		return p.setting(key, v)
	})
}

func (p *parser) setting(key string, v *yaml.Node) error {
	for _, s := range p.file.Settings {
		if s.Key == key {
			return p.fail(v, "%s is set twice, here and in line %d", key, s.Line)
		}
	}
	text, err := p.scalar(key, v)
	if err == nil {
		p.file.Settings = append(p.file.Settings, Setting{key, text, v.Line, v.Column})
	}
	return err
}

// group reads `overhead: {cpu: 2%}` as `overhead_cpu: 2%`.
func (p *parser) group(name string, known []string, n *yaml.Node) error {
	return p.pairs(n, name, known, func(key string, _, v *yaml.Node) error {
		return p.setting(name+"_"+key, v)
	})
}

// groups gives the first parts of keys, and the rest of the keys that begin with each.
func groups(keys []string) map[string][]string {
	out := map[string][]string{}
	for _, k := range keys {
		for i := range k {
			if k[i] == '_' {
				out[k[:i]] = append(out[k[:i]], k[i+1:])
			}
		}
	}
	return out
}

func (p *parser) scalar(key string, v *yaml.Node) (string, error) {
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
		return "", p.fail(v, "%s must be one value", key)
	}
	return v.Value, nil
}

func contains(known []string, k string) bool {
	for _, n := range known {
		if n == k {
			return true
		}
	}
	return false
}

const noSuggestion = " (`heapcam config explain` lists them)"

// Suggest gives the end of a message: the known key that is most similar to k, if one is similar enough.
func Suggest(k string, known []string) string {
	best, at := len(k)/2+1, ""
	for _, n := range known {
		if d := distance(k, n); d < best {
			best, at = d, n
		}
	}
	if at == "" {
		return noSuggestion
	}
	return fmt.Sprintf("; did you mean %q?", at)
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diag, row[j+1] = row[j+1], min(diag+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
