package classify

import (
	"errors"
	"fmt"
	"time"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// runner evaluates a program for tuples within its budget.
type runner struct {
	prog *vm.Program
	a    Attr
	vm   vm.VM
	env  env
	left time.Duration
	w    *World
	t    *Tuple
	memo map[seen]result
}

// seen is what an expression knows of a tuple: attributes that it does not read are zero.
type seen struct {
	typ          uint32
	length, size uint64
	birth        uint32
	atLeast      bool
	gc           uint64
	space        int
	addr         uint64
	sampled      bool
	exact        bool
	frame, thr   uint64
	refs         uint32
}

type result struct {
	out any
	err error
}

// maxMemo bounds the results that are kept.
const maxMemo = 1 << 18

// once is run, but once for all tuples that look the same to the expression.
func (r *runner) once(w *World, t *Tuple) (any, error) {
	if w != r.w {
		r.memo = map[seen]result{}
	}
	var k seen
	if r.a&AttrType != 0 {
		k.typ = t.Type
	}
	if r.a&AttrLength != 0 {
		k.size = t.Size
	}
	if r.a&attrLong != 0 {
		k.length = t.Length
	}
	if r.a&AttrBirth != 0 {
		k.birth, k.atLeast, k.gc = t.Birth, t.AtLeast, t.GC
	}
	if r.a&AttrSpace != 0 {
		k.space = t.Space
	}
	if r.a&AttrAddr != 0 {
		k.addr = t.Addr
	}
	if r.a&AttrSite != 0 {
		k.birth, k.atLeast = t.Birth, t.AtLeast
		k.sampled, k.exact, k.frame, k.thr = t.Sampled, t.WObjects.Sum <= float64(t.Objects), t.Frame, t.Thread
	}
	if r.a&AttrRefs != 0 {
		k.refs = t.Refs
	}
	x, ok := r.memo[k]
	if !ok {
		x.out, x.err = r.run(w, t)
		if len(r.memo) < maxMemo {
			r.memo[k] = x
		}
	}
	r.w = w
	return x.out, x.err
}

func newRunner(prog *vm.Program, a Attr) *runner {
	r := &runner{prog: prog, a: a, left: exprTotal}
	r.vm.MemoryBudget = exprMemory
	site := func() Site { return Site{r.w, r.t, r.t.Sampled} }
	r.env.Site = siteEnv{Top: func(n int) Path { return site().Top(n) },
		Frames: func() []string { return site().Frames() }, Has: func(s string) bool { return site().Has(s) }}
	r.env.Path = func(parts ...any) Path {
		var p Path
		for _, x := range parts[:min(len(parts), maxFrames)] {
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
	if r.a&AttrRefs != 0 {
		e.refs(w.refs(t))
	}
	if r.a&AttrSite != 0 {
		e.Thread, e.Site.Known = w.thread(t), t.Sampled
		e.Confidence = w.confidence(t)
	}
	if r.left <= 0 {
		return nil, fmt.Errorf("it took more than %v", exprTotal)
	}
	began := time.Now()
	defer func() {
		if x := recover(); x != nil {
			out, err = nil, fmt.Errorf("%v", x)
		}
		r.left -= time.Since(began)
	}()
	out, err = r.vm.Run(r.prog, *e)
	var fe *file.Error
	if errors.As(err, &fe) {
		err = fmt.Errorf("column %d: %s", fe.Column+1, fe.Message)
	}
	return out, err
}
