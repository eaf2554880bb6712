package classify

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FileName is the file of user-defined classifiers that is read when no other is named.
const FileName = "heapcam.classifiers.yaml"

// maxFile bounds that file, maxUser the classifiers in it.
const maxFile, maxUser = 1 << 20, 1000

type userClassifier struct {
	Doc
	make func() Classifier
}

func (u *userClassifier) classifier() Classifier { return u.make() }

// definition is a classifier in a file.
type definition struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Example     string `yaml:"example"`
	Cardinality string `yaml:"cardinality"`
	Expression  string `yaml:"expression"`
}

// DefinitionError says where a file of classifiers is wrong.
type DefinitionError struct {
	File string
	Line int // 0 if it is not known
	Err  error
}

func (e *DefinitionError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}
func (e *DefinitionError) Unwrap() error { return e.Err }

// Read adds the classifiers of a file: a list below `classifiers`, each with name, description, example, cardinality
// (one, many or hierarchy) and expression. name is the file's, for errors, which are *DefinitionError.
func (l *Library) Read(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return &DefinitionError{name, 0, err}
	}
	if len(data) > maxFile {
		return &DefinitionError{name, 0, fmt.Errorf("larger than %d bytes", maxFile)}
	}
	var doc struct {
		Classifiers []yaml.Node `yaml:"classifiers"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return &DefinitionError{name, 0, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if len(doc.Classifiers) > maxUser {
		return &DefinitionError{name, 0, fmt.Errorf("more than %d classifiers", maxUser)}
	}
	for i := range doc.Classifiers {
		n := &doc.Classifiers[i]
		if err := l.define(n); err != nil {
			return &DefinitionError{name, n.Line, err}
		}
	}
	return nil
}

func (l *Library) define(n *yaml.Node) error {
	var d definition
	if n.Kind == yaml.MappingNode {
		known := []string{"name", "description", "example", "cardinality", "expression"}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !slices.Contains(known, n.Content[i].Value) {
				return fmt.Errorf("%q is not one of %s", n.Content[i].Value, strings.Join(known, ", "))
			}
		}
	}
	if err := n.Decode(&d); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	name, args, ok := call(d.Name)
	if !ok || args != nil || name != d.Name {
		return fmt.Errorf("name %q: letters, digits, - and _ only", d.Name)
	}
	taken := func(x string) bool { return x == d.Name }
	if isProperty(d.Name) || slices.ContainsFunc(l.builtins, func(b builtin) bool { return taken(b.Name) }) ||
		slices.ContainsFunc(l.user, func(u userClassifier) bool { return taken(u.Name) }) {
		return fmt.Errorf("the name %s is taken", d.Name)
	}
	text := strings.TrimSpace(d.Expression)
	c, err := expression(text, part{text, 0})
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	card := c.Cardinality
	switch d.Cardinality {
	case "":
	case "one":
		card = One
	case "many":
		card = Many
	case "hierarchy":
		card = Hierarchy
	default:
		return fmt.Errorf("%s: cardinality %q is not one, many or hierarchy", d.Name, d.Cardinality)
	}
	l.user = append(l.user, userClassifier{Doc{Name: d.Name, Cardinality: card.String(), Text: d.Description,
		Example: d.Example, Keys: text, User: true},
		func() Classifier {
			c, _ := expression(text, part{text, 0}) // it compiled before
			c.Name, c.Cardinality = d.Name, card
			if card == One {
				keys := c.Keys
				c.Keys = func(w *World, t *Tuple, out []string) ([]string, error) {
					ks, err := keys(w, t, out)
					return ks[:min(len(ks), 1)], err
				}
			}
			return c
		}})
	return nil
}
