package classify

import (
	"fmt"
	"slices"
	"strings"
)

// SpecError points at what is wrong in a list of classifiers or in a filter.
type SpecError struct {
	Spec string
	Col  int // from 1, in runes
	Why  string
}

func (e *SpecError) Error() string {
	return fmt.Sprintf("column %d: %s\n  %s\n  %s", e.Col, e.Why, e.Spec, e.Caret())
}

// Caret points at the column from below Spec.
func (e *SpecError) Caret() string { return strings.Repeat(" ", max(e.Col-1, 0)) + "^" }

// maxSpec bounds the text of a list, maxLevels its classifiers.
const maxSpec, maxLevels = 16 << 10, 16

// Library knows the classifiers by name: the built-in ones, and those that were added.
type Library struct {
	builtins []builtin
	user     []userClassifier
}

// NewLibrary knows the built-in classifiers.
func NewLibrary() *Library { return &Library{builtins: builtins()} }

// Docs documents all classifiers.
func (l *Library) Docs() []Doc {
	var out []Doc
	for _, b := range l.builtins {
		out = append(out, b.Doc)
	}
	for _, u := range l.user {
		out = append(out, u.Doc)
	}
	return out
}

// By makes the classifiers of a list: names of the library with arguments, or expressions, with commas between. Its
// error is a *SpecError.
func (l *Library) By(spec string) ([]Classifier, error) {
	if len(spec) > maxSpec {
		return nil, &SpecError{spec[:64] + "…", 1, fmt.Sprintf("longer than %d bytes", maxSpec)}
	}
	var out []Classifier
	parts, err := splitTop(spec)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		c, err := l.one(spec, p)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	if len(out) > maxLevels {
		return nil, &SpecError{spec, 1, fmt.Sprintf("more than %d classifiers", maxLevels)}
	}
	return out, nil
}

// part is a piece of a spec, at byte at.
type part struct {
	text string
	at   int
}

// splitTop splits at commas outside of brackets and quotes.
func splitTop(spec string) ([]part, error) {
	var out []part
	depth, start := 0, 0
	var quote byte
	add := func(end int) error {
		t := spec[start:end]
		lead := len(t) - len(strings.TrimLeft(t, " \t\n"))
		if t = strings.TrimSpace(t); t == "" {
			return at(spec, start, "a classifier is missing")
		}
		out = append(out, part{t, start + lead})
		return nil
	}
	for i := 0; i < len(spec); i++ {
		ch := spec[i]
		switch {
		case quote != 0:
			if ch == '\\' && quote != '`' {
				i++
			} else if ch == quote {
				quote = 0
			}
		case ch == '"' || ch == '\'' || ch == '`':
			quote = ch
		case ch == '(' || ch == '[' || ch == '{':
			depth++
		case ch == ')' || ch == ']' || ch == '}':
			if depth--; depth < 0 {
				return nil, at(spec, i, "nothing is open that this closes")
			}
		case ch == ',' && depth == 0:
			if err := add(i); err != nil {
				return nil, err
			}
			start = i + 1
		}
	}
	if quote != 0 || depth > 0 {
		return nil, at(spec, len(spec), "the end comes before what is open is closed")
	}
	return out, add(len(spec))
}

func at(spec string, byteAt int, why string) *SpecError {
	return &SpecError{spec, len([]rune(spec[:min(byteAt, len(spec))])) + 1, why}
}

// call splits name(args) with plain arguments; ok says whether it is one.
func call(text string) (name string, args []string, ok bool) {
	name, rest, has := strings.Cut(text, "(")
	name = strings.TrimSpace(name)
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return "", nil, false
	}
	if !has {
		return name, nil, true
	}
	if !strings.HasSuffix(rest, ")") || strings.Count(rest, ")") != 1 || strings.Contains(rest, "(") {
		return "", nil, false
	}
	rest = strings.TrimSpace(rest[:len(rest)-1])
	if rest == "" {
		return name, nil, true
	}
	for _, a := range strings.Split(rest, ",") {
		args = append(args, strings.Trim(strings.TrimSpace(a), `"'`))
	}
	return name, args, true
}

func (l *Library) one(spec string, p part) (Classifier, error) {
	if name, args, ok := call(p.text); ok {
		if i := slices.IndexFunc(l.builtins, func(b builtin) bool { return b.Name == name }); i >= 0 {
			c, err := l.builtins[i].make(args)
			if err != nil {
				return c, at(spec, p.at, name+": "+err.Error())
			}
			c.Name = p.text
			return c, nil
		}
		if i := slices.IndexFunc(l.user, func(u userClassifier) bool { return u.Name == name }); i >= 0 && args == nil {
			return l.user[i].classifier(), nil
		}
		if why := absent[strings.ToLower(name)]; why != "" {
			return Classifier{}, at(spec, p.at, name+": "+why)
		}
		if args == nil && !isProperty(name) {
			why := fmt.Sprintf("there is no classifier %q (`heapcam classifiers` lists them)", name)
			return Classifier{}, at(spec, p.at, why)
		}
	}
	return expression(spec, p)
}
