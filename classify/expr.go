package classify

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Budgets of expressions: what one evaluation may allocate (in units of expr's VM, elements and characters, roughly), how long one and all
// evaluations of one expression may take, how many nodes its text may have, how many keys it may give, and how long a key may be.
const (
	exprMemory = 100_000
	exprOne    = time.Second
	exprTotal  = 60 * time.Second
	exprNodes  = 500
	maxKeys    = 256
	maxKey     = 1024
)

// Path is what site.top and path give: the keys of a hierarchy.
type Path []string

// Site is the allocation site of an object in expressions.
type Site struct {
	w *World
	t *Tuple
	// Known says whether the object was sampled.
	Known bool `expr:"known"`
}

// Top gives the first n frames as a path.
func (s Site) Top(n int) Path { return s.w.site(s.t, max(1, min(n, maxFrames))) }

// Frames gives all frames, innermost first: method(File:line).
func (s Site) Frames() []string { return s.w.site(s.t, maxFrames) }

// Has says whether text stands in any frame.
func (s Site) Has(text string) bool {
	return s.Known && slices.ContainsFunc(s.Frames(), func(f string) bool { return strings.Contains(f, text) })
}

// siteEnv makes Site's methods lower case in expressions.
type siteEnv struct {
	Known  bool                `expr:"known"`
	Top    func(n int) Path    `expr:"top"`
	Frames func() []string     `expr:"frames"`
	Has    func(t string) bool `expr:"has"`
}

// env is what an expression sees of an object.
type env struct {
	Type       string                 `expr:"type"`
	Package    string                 `expr:"package"`
	Loader     string                 `expr:"loader"`
	Array      bool                   `expr:"array"`
	Kind       string                 `expr:"kind"`
	Length     int                    `expr:"length"`
	Size       int                    `expr:"size"`
	Age        int                    `expr:"age"`
	AtLeast    bool                   `expr:"atleast"`
	Birth      int                    `expr:"birth"`
	Space      string                 `expr:"space"`
	SpaceType  string                 `expr:"spacetype"`
	SpaceMode  string                 `expr:"spacemode"`
	Address    int                    `expr:"address"`
	Thread     string                 `expr:"thread"`
	Confidence string                 `expr:"confidence"`
	Site       siteEnv                `expr:"site"`
	Path       func(...any) Path      `expr:"path"`
	Power      func(n int) string     `expr:"power"`
	Match      func(s, p string) bool `expr:"glob"`
}

// properties are the names that an expression may use, and what each needs.
var properties = map[string]Attr{
	"type": 0, "package": 0, "loader": 0, "array": 0, "kind": AttrLength, "length": AttrLength, "size": AttrLength, "age": AttrBirth, "atleast": AttrBirth,
	"birth": AttrBirth, "space": AttrSpace, "spacetype": AttrSpace, "spacemode": AttrSpace, "address": AttrAddr, "thread": AttrSite, "confidence": AttrSite,
	"site": AttrSite, "path": 0, "power": 0, "glob": 0,
}

func isProperty(name string) bool { _, ok := properties[name]; return ok }

// needs collects what an expression looks at.
type needs struct{ a Attr }

func (n *needs) Visit(node *ast.Node) {
	if id, ok := (*node).(*ast.IdentifierNode); ok {
		n.a |= properties[id.Value]
	}
}

// compile makes the program of an expression. Errors are *SpecError.
func compile(spec string, p part, opts ...expr.Option) (prog *vm.Program, a Attr, err error) {
	defer func() { // a parser that met what it did not expect
		if r := recover(); r != nil {
			err = at(spec, p.at, fmt.Sprintf("not an expression: %v", r))
		}
	}()
	var n needs
	opts = append(opts, expr.Env(env{}), expr.MaxNodes(exprNodes), expr.DisableBuiltin("now"), expr.DisableBuiltin("repeat"))
	prog, err = expr.Compile(p.text, opts...)
	if err != nil {
		var fe *file.Error
		if errors.As(err, &fe) {
			col := p.at
			if fe.Line <= 1 { // within the spec's line
				col += len(string([]rune(p.text)[:min(fe.Column, len([]rune(p.text)))]))
			}
			return nil, 0, at(spec, col, fe.Message)
		}
		return nil, 0, at(spec, p.at, err.Error())
	}
	node := prog.Node()
	ast.Walk(&node, &n)
	return prog, n.a, nil
}

// runner evaluates a program for tuples within its budget.
type runner struct {
	prog *vm.Program
	a    Attr
	vm   vm.VM
	env  env
	left time.Duration
	w    *World
	t    *Tuple
}

func newRunner(prog *vm.Program, a Attr) *runner {
	r := &runner{prog: prog, a: a, left: exprTotal}
	r.vm.MemoryBudget = exprMemory
	site := func() Site { return Site{r.w, r.t, r.t.Sampled} }
	r.env.Site = siteEnv{Top: func(n int) Path { return site().Top(n) }, Frames: func() []string { return site().Frames() }, Has: func(s string) bool { return site().Has(s) }}
	r.env.Path = func(parts ...any) Path {
		var p Path
		for _, x := range parts {
			p = append(p, text(x))
		}
		return p
	}
	r.env.Power = func(n int) string { return power(uint64(max(n, 0))) }
	r.env.Match = glob
	return r
}

func (r *runner) run(w *World, t *Tuple) (out any, err error) {
	r.w, r.t = w, t
	e := &r.env
	e.Type, e.Array = w.TypeName(t.Type), w.isArray(t)
	e.Package, e.Loader = pkg(e.Type), w.loader(t)
	if r.a&AttrLength != 0 {
		e.Length, e.Size, e.Kind = int(t.Length), int(t.Size), w.kind(t)
	}
	if r.a&AttrBirth != 0 {
		e.Age, e.AtLeast, e.Birth = int(w.Age(t)), t.AtLeast, int(t.Birth)
	}
	if r.a&AttrSpace != 0 {
		s := w.space(t)
		e.Space, e.SpaceType, e.SpaceMode = s.Name, spaceType(s), spaceMode(s)
	}
	e.Address = int(t.Addr)
	if r.a&AttrSite != 0 {
		e.Thread, e.Site.Known = w.thread(t), t.Sampled
		e.Confidence = "sampled"
		if !t.Sampled {
			e.Confidence = w.noSite(t)
		} else if t.WObjects.Sum <= float64(t.Objects) {
			e.Confidence = "exact"
		}
	}
	if r.left <= 0 {
		return nil, fmt.Errorf("it took more than %v", exprTotal)
	}
	began := time.Now()
	defer func() {
		if x := recover(); x != nil {
			out, err = nil, fmt.Errorf("%v", x)
		}
		d := time.Since(began)
		if r.left -= d; err == nil && d > exprOne {
			err = fmt.Errorf("one evaluation took %v", d)
		}
	}()
	out, err = r.vm.Run(r.prog, *e)
	var fe *file.Error
	if errors.As(err, &fe) {
		err = fmt.Errorf("column %d: %s", fe.Column+1, fe.Message)
	}
	return out, err
}

func text(x any) string {
	var s string
	switch v := x.(type) {
	case nil:
		return Others
	case string:
		s = v
	case bool:
		s = strconv.FormatBool(v)
	case int:
		s = strconv.Itoa(v)
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) {
			s = Others
		}
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > maxKey {
		s = s[:maxKey] + "…"
	}
	return s
}

func keysOf(x any, out []string) ([]string, error) {
	switch v := x.(type) {
	case nil:
		return out, nil
	case Path:
		for _, s := range v {
			out = append(out, text(s))
		}
	case []string:
		for _, s := range v {
			out = append(out, text(s))
		}
	case []any:
		for _, s := range v {
			out = append(out, text(s))
		}
	default:
		if k := reflect.ValueOf(x).Kind(); k == reflect.Map || k == reflect.Func || k == reflect.Struct || k == reflect.Slice {
			return nil, fmt.Errorf("it gives a %s, and not a key, a list of keys or a path", k)
		}
		out = append(out, text(v))
	}
	if len(out) > maxKeys {
		return nil, fmt.Errorf("it gives more than %d keys", maxKeys)
	}
	return out, nil
}

// expression makes a classifier of an expression: a list gives many keys, a path a hierarchy, anything else one.
func expression(spec string, p part) (Classifier, error) {
	prog, a, err := compile(spec, p)
	if err != nil {
		return Classifier{}, err
	}
	c := Classifier{Name: p.text, Needs: a, Grain: 8}
	switch t := prog.Node().Type(); {
	case t == reflect.TypeFor[Path]():
		c.Cardinality = Hierarchy
	case t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Interface):
		c.Cardinality = Many
	}
	r := newRunner(prog, a)
	c.Keys = func(w *World, t *Tuple, out []string) ([]string, error) {
		x, err := r.run(w, t)
		if err != nil {
			return nil, err
		}
		return keysOf(x, out)
	}
	return c, nil
}

// NewFilter makes a filter of a boolean expression. Its error is a *SpecError.
func NewFilter(spec string) (Filter, error) {
	if len(spec) > maxSpec {
		return Filter{}, &SpecError{spec[:64] + "…", 1, fmt.Sprintf("longer than %d bytes", maxSpec)}
	}
	prog, a, err := compile(spec, part{spec, 0}, expr.AsBool())
	if err != nil {
		return Filter{}, err
	}
	r := newRunner(prog, a)
	return Filter{Name: spec, Needs: a, Grain: 8, Keep: func(w *World, t *Tuple) (bool, error) {
		x, err := r.run(w, t)
		b, _ := x.(bool)
		return b, err
	}}, nil
}

// glob says whether s matches p, in which * stands for anything.
func glob(s, p string) bool {
	parts := strings.Split(p, "*")
	if len(parts) == 1 {
		return s == p
	}
	if !strings.HasPrefix(s, parts[0]) {
		return false
	}
	s = s[len(parts[0]):]
	for _, m := range parts[1 : len(parts)-1] {
		i := strings.Index(s, m)
		if i < 0 {
			return false
		}
		s = s[i+len(m):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
