package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
)

// Bounds of what is kept and sent. A state takes some 10 bytes an object, a grouping what its tree takes.
const (
	maxStates    = 2
	maxTuples    = 3
	maxGroupings = 8
	maxBranches  = 200  // children of a node that are sent at a time
	maxDrawn     = 4000 // nodes of a drawing
	maxPath      = 128  // keys of a path
	maxFound     = 400  // groups that a search shows
)

// state is the heap after a collection, and what was made of it.
type state struct {
	key    string // tells it from others
	r      *heap.Replayer
	c      *heap.Collection
	world  *classify.World
	spaces []heap.SpaceAt
}

// at gives the state after the collection that ref means; with types it may be one that tells types and lengths alone.
func (s *Server) at(ctx context.Context, ref string, types bool) (*state, error) {
	if ref == "" {
		ref = "last"
	}
	key := ref
	if _, err := strconv.ParseUint(ref, 10, 64); err != nil { // what it means changes as the recording grows
		v, _ := s.version()
		key += " " + v
	}
	if types {
		return s.data.counts.get(ctx, key, func(ctx context.Context) (*state, error) { return s.data.state(ctx, key, ref, true) })
	}
	return s.data.states.get(ctx, key, func(ctx context.Context) (*state, error) { return s.data.state(ctx, key, ref, false) })
}

// state gives the state after the collection that ref means: as it was kept, else it is replayed.
func (d *data) state(ctx context.Context, key, ref string, types bool) (*state, error) {
	if t := d.s.tape(ctx); t != nil {
		st, err := t.state(ctx, ref, types)
		if st != nil {
			st.key = key
		}
		if st != nil || err != nil {
			return st, err
		}
	}
	st := &state{key: key}
	what := "going to collection " + ref
	err := d.open(ctx, what, func(open func() *heap.Replayer) (err error) {
		st.r, st.c, err = analysis.Open(ref, open, open)
		return err
	})
	if err != nil {
		return nil, err
	}
	st.world, st.spaces = analysis.World(st.r, st.c)
	return st, nil
}

// stateBy is what a state is grouped by unless something else is asked for.
const stateBy = "type, site"

// changeBy is the same of diffs and trends.
const changeBy = "type"

// question is how the state is to be grouped.
type question struct {
	by    string
	where []string
}

// questionOf reads the question; def are the classifiers that are meant if none are named.
func questionOf(r *http.Request, def string) question {
	q := question{by: r.FormValue("by")}
	if strings.TrimSpace(q.by) == "" {
		q.by = def
	}
	for _, w := range r.Form["where"] {
		if strings.TrimSpace(w) != "" {
			q.where = append(q.where, w)
		}
	}
	return q
}

// inField tells in which field of the page an error of a *classify.SpecError stands.
type inField struct {
	field string
	error
}

func (e inField) Unwrap() error { return e.error }

// make gives classifiers and filters.
func (q question) make(s *Server) ([]classify.Classifier, []classify.Filter, error) {
	l := classify.NewLibrary()
	if s.cfg.Library != nil {
		var err error
		if l, err = s.cfg.Library(); err != nil {
			return nil, nil, badRequest{err}
		}
	}
	by, err := l.By(q.by)
	if err != nil {
		return nil, nil, badRequest{inField{"by", err}}
	}
	var filters []classify.Filter
	for _, w := range q.where {
		f, err := classify.NewFilter(w)
		if err != nil {
			return nil, nil, badRequest{inField{"where", err}}
		}
		filters = append(filters, f)
	}
	return by, filters, nil
}

func (q question) String() string { return strings.Join(append([]string{q.by}, q.where...), "\x00") }

// types says whether classifiers and filters look at no more than types and lengths, which states count by themselves.
func types(by []classify.Classifier, filters []classify.Filter) bool {
	a, _ := classify.Needs(by, filters)
	return a&classify.AttrAll&^classify.AttrLength == 0
}

// grouped groups the state after the collection that ref means, or gives what was grouped before. The tree is only read.
func (s *Server) grouped(ctx context.Context, ref string, q question) (*analysis.Grouping, error) {
	by, filters, err := q.make(s)
	if err != nil {
		return nil, err
	}
	st, err := s.at(ctx, ref, types(by, filters))
	if err != nil {
		return nil, err
	}
	return s.data.groups.get(ctx, st.key+"\x00"+q.String(), func(ctx context.Context) (*analysis.Grouping, error) {
		a, grain := classify.Needs(by, filters)
		ages := classify.Ages(by, filters)
		ts, err := s.data.tuples.get(ctx, fmt.Sprint(st.key, "\x00", a&classify.AttrAll, grain, ages), func(context.Context) ([]classify.Tuple, error) {
			return analysis.Tuples(st.r, st.c.GC, st.spaces, a, grain, ages)
		})
		if err != nil { // too many
			return nil, badRequest{err}
		}
		s.data.grouping.Lock()
		defer s.data.grouping.Unlock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		g, err := analysis.GroupTuples(st.r, st.c, st.world, ts, by, filters)
		if err != nil { // an expression that took too much, or too many groups
			return nil, badRequest{err}
		}
		return g, nil
	})
}

// branch is a node as the page gets it: with some of its children.
type branch struct {
	Key       string    `json:"key"`
	Objects   uint64    `json:"objects"`
	Bytes     uint64    `json:"bytes"`
	Estimated bool      `json:"estimated,omitempty"`
	Samples   uint64    `json:"samples,omitempty"`
	ObjLow    *uint64   `json:"objects_low,omitempty"`
	ObjHigh   *uint64   `json:"objects_high,omitempty"`
	BytesLow  *uint64   `json:"bytes_low,omitempty"`
	BytesHigh *uint64   `json:"bytes_high,omitempty"`
	Count     int       `json:"count"` // of children, sent or not
	Children  []*branch `json:"children,omitempty"`
}

func branchOf(n *classify.Node) *branch {
	return &branch{n.Key, n.Objects, n.Bytes, n.Estimated, n.Samples, n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh, len(n.Children), nil}
}

// cut gives n with so many levels of children, at most most of each node from skip on.
func cut(n *classify.Node, levels, skip, most int) *branch {
	b := branchOf(n)
	if levels > 0 {
		for _, c := range n.Children[min(skip, len(n.Children)):min(skip+most, len(n.Children))] {
			b.Children = append(b.Children, cut(c, levels-1, 0, most))
		}
	}
	return b
}

// drawing gives the nodes that have at least a 1/1000 of n's bytes, the largest first at each level.
func drawing(n *classify.Node) *branch {
	left := maxDrawn
	var walk func(n *classify.Node, least uint64) *branch
	walk = func(x *classify.Node, least uint64) *branch {
		b := branchOf(x)
		for _, c := range x.Children {
			if left--; left < 0 || c.Bytes < least {
				break
			}
			b.Children = append(b.Children, walk(c, least))
		}
		return b
	}
	return walk(n, max(n.Bytes/1000, 1))
}

// groupReply is the answer to api/group.
type groupReply struct {
	*analysis.Grouping         // its Tree is nil
	Tree               *branch `json:"tree"`
	Hits               *int    `json:"hits,omitempty"`  // of a search: groups that match
	Shown              int     `json:"shown,omitempty"` // of these
}

// group answers with a part of a grouping: below path, so many levels, or what is large enough to be drawn.
func (s *Server) group(r *http.Request) (any, error) {
	g, err := s.grouped(r.Context(), r.FormValue("at"), questionOf(r, stateBy))
	if err != nil {
		return nil, err
	}
	n, hits, err := pick(g.Tree, r)
	if err != nil {
		return nil, err
	}
	short := *g
	short.Tree = nil
	rep := groupReply{Grouping: &short, Hits: hits}
	if r.FormValue("draw") != "" {
		rep.Tree = drawing(n)
		return rep, nil
	}
	if hits != nil {
		n, rep.Shown = largest(n, maxFound)
		rep.Tree = cut(n, maxPath, 0, maxFound)
		return rep, nil
	}
	rep.Tree = cut(n, 1, number(r, "skip"), maxBranches)
	return rep, nil
}

// number reads a number that is not negative; 0 if it is none.
func number(r *http.Request, name string) int {
	v, _ := strconv.Atoi(r.FormValue(name))
	return max(0, v)
}

func pathOf(p string) (path []string, err error) {
	if json.Unmarshal([]byte(p), &path) != nil || len(path) > maxPath {
		return nil, badRequest{fmt.Errorf("path: not a list of at most %d keys", maxPath)}
	}
	return path, nil
}

// pick finds the node that the question's path leads to, and what the search in it leaves.
func pick(root *classify.Node, r *http.Request) (*classify.Node, *int, error) {
	n := root
	if p := r.FormValue("path"); p != "" {
		path, err := pathOf(p)
		if err != nil {
			return nil, nil, err
		}
		if n = root.Find(path...); n == nil {
			return nil, nil, badRequest{fmt.Errorf("there is no group %s", strings.Join(path, " / "))}
		}
	}
	q := r.FormValue("find")
	if q == "" {
		return n, nil, nil
	}
	re, err := regexp.Compile("(?i)" + q)
	if err != nil { // then it is meant as it stands
		re = regexp.MustCompile("(?i)" + regexp.QuoteMeta(q))
	}
	known := map[string]bool{} // one name stands in many places
	match := func(k string) bool {
		m, ok := known[k]
		if !ok {
			m = re.MatchString(k)
			known[k] = m
		}
		return m
	}
	hits := 0
	n.Walk(func(_ []string, x *classify.Node) bool {
		if x != n && match(x.Key) {
			hits++
			return false
		}
		return true
	})
	found := &classify.Node{Key: n.Key, Objects: n.Objects, Bytes: n.Bytes}
	for _, c := range n.Children {
		if m := search(c, match); m != nil {
			found.Children = append(found.Children, m)
		}
	}
	return found, &hits, nil
}

// search keeps the nodes that match, without what is below them, and all above.
func search(n *classify.Node, match func(string) bool) *classify.Node {
	c := *n
	c.Children = nil
	if match(n.Key) {
		return &c
	}
	for _, x := range n.Children {
		if m := search(x, match); m != nil {
			c.Children = append(c.Children, m)
		}
	}
	if c.Children == nil {
		return nil
	}
	return &c
}

// largest leaves of what a search found, the nodes without children, at most most, the largest, and what is above them; it gives how many.
func largest(n *classify.Node, most int) (*classify.Node, int) {
	var found []uint64
	n.Walk(func(_ []string, x *classify.Node) bool {
		if x != n && x.Children == nil {
			found = append(found, x.Bytes)
		}
		return true
	})
	if len(found) <= most {
		return n, len(found)
	}
	slices.Sort(found)
	least, ties := found[len(found)-most], 0 // of those of that size no more than there is room for
	for _, b := range found[len(found)-most:] {
		if b == least {
			ties++
		}
	}
	var keep func(n *classify.Node) *classify.Node
	keep = func(n *classify.Node) *classify.Node {
		c := *n
		c.Children = nil
		for _, x := range n.Children {
			switch {
			case x.Children == nil && x.Bytes == least:
				if ties--; ties >= 0 {
					c.Children = append(c.Children, x)
				}
			case x.Children == nil:
				if x.Bytes > least {
					c.Children = append(c.Children, x)
				}
			default:
				if k := keep(x); k.Children != nil {
					c.Children = append(c.Children, k)
				}
			}
		}
		return &c
	}
	return keep(n), most
}

// classifiers answers with what `heapcam classifiers --json` gives.
func (s *Server) classifiers(*http.Request) (any, error) {
	l := classify.NewLibrary()
	if s.cfg.Library != nil {
		var err error
		if l, err = s.cfg.Library(); err != nil {
			return nil, badRequest{err}
		}
	}
	return l.Docs(), nil
}

// attach has the browser keep what follows as a file.
func attach(w http.ResponseWriter, name, typ string) {
	w.Header().Set("Content-Type", typ)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// file serves what f writes; an error before that is told as JSON.
func file(f func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			w.Header().Del("Content-Disposition")
			reply(w, nil, err)
		}
	}))
}

// export gives the whole of what is shown as a file.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	g, err := s.grouped(r.Context(), r.FormValue("at"), questionOf(r, stateBy))
	if err != nil {
		return err
	}
	n, _, err := pick(g.Tree, r)
	if err != nil {
		return err
	}
	part := *g
	part.Tree = n
	name := fmt.Sprintf("%s-gc%d", fileName(s.cfg.Title), g.GC)
	switch f := r.FormValue("format"); f {
	case "csv":
		attach(w, name+".csv", "text/csv; charset=utf-8")
		return part.WriteCSV(w)
	case "json":
		attach(w, name+".json", "application/json")
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(&part)
	case "pprof": // of the whole state, as `heapcam export` gives it
		var p *analysis.Profile
		if err := s.data.replay(r.Context(), "making a profile", func(r *heap.Replayer) (err error) {
			p, err = analysis.MakeProfile(r, g.GC)
			return err
		}); err != nil {
			return err
		}
		attach(w, name+".pb.gz", "application/octet-stream")
		return p.WritePprof(w)
	default:
		return badRequest{fmt.Errorf("format %q: csv, json or pprof", f)}
	}
}
