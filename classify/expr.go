package classify

import (
	"errors"
	"fmt"
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

// Budgets of expressions: what one evaluation may allocate (in units of expr's VM, elements roughly), how long all
// evaluations of one expression may take, how many nodes its text may have, how deep loops may be nested (so that the
// work of one evaluation is bounded by exprMemory^exprLoops), how long a text may grow, how many keys it may give, and
// how long a key may be. What could outgrow these (reduce, replace, join, …) is not in the language: safe lists what
// is.
const (
	exprMemory = 2000
	exprLoops  = 2
	exprText   = 64 << 10
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

// Has says whether text is in any frame.
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
	Reachable  string                 `expr:"reachable"`
	RootKind   string                 `expr:"rootkind"`
	Holder     string                 `expr:"holder"`
	Retained   int                    `expr:"retained"`
	PointsTo   []string               `expr:"pointsto"`
	From       []string               `expr:"pointedfrom"`
	Health     string                 `expr:"health"`
	Path       func(...any) Path      `expr:"path"`
	Power      func(n int) string     `expr:"power"`
	Match      func(s, p string) bool `expr:"glob"`
}

// AttrType says that an expression looks at the type, attrLong that it looks at more than the size of what AttrLength
// gives.
const (
	AttrType Attr = 1 << 15
	attrLong Attr = 1 << 14
)

// properties are the names that an expression may use, and what each needs.
var properties = map[string]Attr{
	"type": AttrType, "package": AttrType, "loader": AttrType, "array": AttrType,
	"kind": AttrLength | AttrType | attrLong, "length": AttrLength | attrLong, "size": AttrLength, "age": AttrBirth,
	"atleast": AttrBirth,
	"birth":   AttrBirth, "space": AttrSpace, "spacetype": AttrSpace, "spacemode": AttrSpace, "address": AttrAddr,
	"thread": AttrSite, "confidence": AttrSite,
	"reachable": AttrReach, "rootkind": AttrRoot, "holder": AttrHolder, "retained": AttrRetained, "pointsto": AttrTo,
	"pointedfrom": AttrFrom, "health": AttrHealth,
	"site": AttrSite, "path": 0, "power": 0, "glob": 0,
}

func isProperty(name string) bool { _, ok := properties[name]; return ok }

// safe are the functions of the language that cannot outgrow their arguments by much.
var safe = []string{"all", "any", "one", "none", "filter", "map", "count", "len", "find", "findIndex", "findLast",
	"findLastIndex", "trim", "trimPrefix", "trimSuffix",
	"upper", "lower", "split", "splitAfter", "indexOf", "lastIndexOf", "hasPrefix", "hasSuffix", "int", "float", "abs",
	"ceil", "floor", "round", "max", "min", "sum", "mean",
	"median", "first", "last", "take", "uniq", "sort", "reverse", "bitand", "bitor", "bitxor", "bitshr", "bitnand"}

// inspector collects what an expression looks at. Of ages it tells which it tells apart, if all it does with them is to
// compare them with numbers or give them to power.
type inspector struct {
	a       Attr
	looks   int // at age or birth
	covered int // of these those that ages says all of
	ages    []uint64
	site    bool // it looks at the site
}

func isAge(n ast.Node) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && id.Value == "age"
}

func (n *inspector) Visit(node *ast.Node) {
	switch x := (*node).(type) {
	case *ast.IdentifierNode:
		n.a |= properties[x.Value]
		n.site = n.site || x.Value == "site"
		if x.Value == "age" || x.Value == "birth" {
			n.looks++
		}
	case *ast.BinaryNode:
		if !slices.Contains([]string{"<", "<=", ">", ">=", "==", "!="}, x.Operator) {
			return
		}
		number, ok := x.Right.(*ast.IntegerNode)
		of := x.Left
		if !ok {
			number, ok = x.Left.(*ast.IntegerNode)
			of = x.Right
		}
		if ok && isAge(of) && number.Value >= 0 {
			n.covered++
			n.ages = append(n.ages, uint64(number.Value), uint64(number.Value)+1)
		}
	case *ast.CallNode:
		if f, ok := x.Callee.(*ast.IdentifierNode); ok && f.Value == "power" && len(x.Arguments) == 1 &&
			isAge(x.Arguments[0]) {
			n.covered++
			n.ages = append(n.ages, powers...)
		}
	}
}

// apart gives the ages that the expression tells apart, nil if each.
func (n *inspector) apart() []uint64 {
	if n.looks > n.covered {
		return nil
	}
	return append([]uint64{}, n.ages...)
}

// loops gives how deep loops are nested below a node.
func loops(n ast.Node) int {
	deep := &loopDepth{}
	ast.Walk(&n, deep)
	return deep.most
}

// loopDepth counts predicates within predicates: a child is visited before its parent.
type loopDepth struct {
	most int
	in   map[ast.Node]bool
}

func (l *loopDepth) Visit(node *ast.Node) {
	p, ok := (*node).(*ast.PredicateNode)
	if !ok {
		return
	}
	if l.in == nil {
		l.in = map[ast.Node]bool{}
	}
	if l.in[p] {
		return
	}
	l.in[p] = true
	l.most = max(l.most, 1+loops(p.Node))
}

// bounder puts bounds on concatenation.
type bounder struct{}

func (bounder) Visit(node *ast.Node) {
	b, ok := (*node).(*ast.BinaryNode)
	if !ok || b.Operator != "+" {
		return
	}
	l, r := b.Left.Type(), b.Right.Type()
	name := ""
	switch {
	case l == nil || r == nil || l.Kind() == reflect.Interface || r.Kind() == reflect.Interface:
		name = "add_"
	case l.Kind() == reflect.String && r.Kind() == reflect.String:
		name = "cat_"
	default:
		return
	}
	ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{b.Left, b.Right}})
}

func cat(l, r string) (string, error) {
	if len(l)+len(r) > exprText {
		return "", fmt.Errorf("a text of more than %d bytes", exprText)
	}
	return l + r, nil
}

// language are the options that all expressions are compiled with.
func language() []expr.Option {
	opts := []expr.Option{expr.Env(env{}), expr.MaxNodes(exprNodes), expr.DisableAllBuiltins()}
	for _, name := range safe {
		opts = append(opts, expr.EnableBuiltin(name))
	}
	return append(opts, expr.Patch(bounder{}),
		expr.Function("cat_", func(p ...any) (any, error) { return cat(p[0].(string), p[1].(string)) },
			new(func(string, string) string)),
		expr.Function("add_", func(p ...any) (any, error) {
			switch l := p[0].(type) {
			case string:
				if r, ok := p[1].(string); ok {
					return cat(l, r)
				}
			case int:
				switch r := p[1].(type) {
				case int:
					return l + r, nil
				case float64:
					return float64(l) + r, nil
				}
			case float64:
				switch r := p[1].(type) {
				case int:
					return l + float64(r), nil
				case float64:
					return l + r, nil
				}
			}
			return nil, fmt.Errorf("%T + %T has no meaning", p[0], p[1])
		}, new(func(any, any) any)),
		expr.Function("string", func(p ...any) (any, error) { return scalar(p[0]) }, new(func(any) string)))
}

// compile makes the program of an expression. Errors are *SpecError.
func compile(spec string, p part, opts ...expr.Option) (prog *vm.Program, sees inspector, err error) {
	defer func() { // a parser that met what it did not expect
		if r := recover(); r != nil {
			err = at(spec, p.at, fmt.Sprintf("not an expression: %v", r))
		}
	}()
	prog, err = expr.Compile(p.text, append(language(), opts...)...)
	if err != nil {
		var fe *file.Error
		if errors.As(err, &fe) {
			col := p.at
			if fe.Line <= 1 { // within the spec's line
				col += len(string([]rune(p.text)[:min(fe.Column, len([]rune(p.text)))]))
			}
			if fe.Message == "unexpected token EOF" {
				fe.Message = "the expression ends too early"
			}
			return nil, sees, at(spec, col, fe.Message)
		}
		return nil, sees, at(spec, p.at, err.Error())
	}
	node := prog.Node()
	if loops(node) > exprLoops {
		return nil, sees, at(spec, p.at, fmt.Sprintf("loops more than %d deep", exprLoops))
	}
	ast.Walk(&node, &sees)
	return prog, sees, nil
}

// text is scalar for what is known to be one.
func text(x any) string {
	s, _ := scalar(x)
	return s
}

// scalar gives the key of a value.
func scalar(x any) (string, error) {
	var s string
	switch v := x.(type) {
	case nil:
		return Others, nil
	case string:
		s = v
	case bool:
		s = strconv.FormatBool(v)
	case int:
		s = strconv.Itoa(v)
	case int64:
		s = strconv.FormatInt(v, 10)
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return "", fmt.Errorf("it gives a %T, and not a key (a text, a number, true or false), "+
			"a list of keys or a path", x)
	}
	if len(s) > maxKey {
		s = s[:maxKey] + "…"
	}
	return s, nil
}

func keysOf(x any, out []string) ([]string, error) {
	var list []any
	switch v := x.(type) {
	case nil:
		return out, nil
	case Path:
		return append(out, v...), nil
	case []any:
		list = v
	default:
		if l := reflect.ValueOf(x); l.Kind() == reflect.Slice || l.Kind() == reflect.Array {
			for i := range min(l.Len(), maxKeys+1) {
				list = append(list, l.Index(i).Interface())
			}
			break
		}
		list = []any{x}
	}
	if len(list) > maxKeys {
		return nil, fmt.Errorf("it gives more than %d keys", maxKeys)
	}
	for _, v := range list {
		s, err := scalar(v)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// expression makes a classifier of an expression: a list gives many keys, a path a hierarchy, anything else one.
func expression(spec string, p part) (Classifier, error) {
	prog, sees, err := compile(spec, p)
	if err != nil {
		return Classifier{}, err
	}
	c := Classifier{Name: p.text, Needs: sees.a, Grain: 8, Ages: sees.apart()}
	if sees.site {
		c.Callers = 1
	}
	switch t := prog.Node().Type(); {
	case t == reflect.TypeFor[Path]():
		c.Cardinality = Hierarchy
	case t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Interface):
		c.Cardinality = Many
	}
	r := newRunner(prog, sees.a)
	c.Keys = func(w *World, t *Tuple, out []string) ([]string, error) {
		x, err := r.once(w, t)
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
	prog, sees, err := compile(spec, part{spec, 0}, expr.AsBool())
	if err != nil {
		return Filter{}, err
	}
	r := newRunner(prog, sees.a)
	return Filter{Name: spec, Needs: sees.a, Grain: 8, Ages: sees.apart(), Callers: sees.site,
		Keep: func(w *World, t *Tuple) (bool, error) {
			x, err := r.once(w, t)
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
