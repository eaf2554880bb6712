package web

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/export"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Bounds of the caches and the answers. A state needs about 10 bytes an object, a grouping the size of its tree.
const (
	maxStates    = 2
	maxTuples    = 6
	maxGroupings = 12
	maxFlows     = 32
	maxFlowBytes = 256 << 20
	maxBranches  = 100 // children of a node in an answer
	maxPath      = 128 // keys of a path
	maxFound     = 100 // groups that a search shows: more would slow the page down
)

// state is the heap after a collection.
type state struct {
	key    string // of the caches
	r      *heap.View
	c      *heap.Collection
	world  *classify.World
	spaces []heap.SpaceAt
	// as of analysis.DrawCallers
	callers *sites.Callers
}

// detail says which properties of its objects a state must hold.
type detail int

const (
	ofObjects detail = iota // all
	ofTypes                 // types and lengths
	ofSites                 // types, and the sites and threads of samples
)

// at returns the state after the collection ref. It may hold no more detail than what.
func (s *Server) at(ctx context.Context, ref string, what detail) (*state, error) {
	if ref == "" {
		ref = "last"
	}
	key := ref
	// Which collection is the first, last or peak one depends on the version of the recording.
	if _, err := strconv.ParseUint(ref, 10, 64); err != nil {
		v, _ := s.version()
		key += " " + v
	}
	from := &s.data.states
	if what != ofObjects && s.timeline(ctx) != nil {
		from = &s.data.counts
	} else { // a replay gives all details: one state for all requests
		what = ofObjects
	}
	return from.get(ctx, fmt.Sprint(key, " ", what),
		func(ctx context.Context) (*state, error) { return s.data.state(ctx, key, ref, what) })
}

// state returns the state after the collection ref: a kept one, or one that is replayed.
func (d *data) state(ctx context.Context, key, ref string, what detail) (*state, error) {
	if t := d.s.timeline(ctx); t != nil {
		st, err := t.state(ctx, ref, what)
		if st != nil {
			st.key = key
		}
		if st != nil || err != nil {
			return st, err
		}
	}
	st := &state{key: key}
	var callers *sites.Callers
	err := d.open(ctx, "Replaying to collection "+ref, func(open func() *heap.Replay) (err error) {
		st.r, st.c, err = collection.OpenWatched(ref, open, open, func(r *heap.Cursor) func(*heap.Collection) {
			callers = &sites.Callers{}
			return func(*heap.Collection) { callers.Follow(r) }
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.callers = callers.Frozen()
	analysis.DrawCallers(st.world, st.r, st.callers)
	return st, nil
}

// stateBy is the default list of classifiers of a state.
const stateBy = "type, site"

// changeBy is the default list of classifiers of diffs and trends.
const changeBy = "type"

// question is a list of classifiers, and filters.
type question struct {
	by    string
	where []string
}

// questionOf reads the question of a request; def is the default list of classifiers.
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

// inField adds to a *classify.SpecError the field of the page that caused it.
type inField struct {
	field string
	error
}

func (e inField) Unwrap() error { return e.error }

// make returns the classifiers and filters of the question.
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

// detailOf returns the detail of a state that classifiers and filters need.
func detailOf(by []classify.Classifier, filters []classify.Filter) detail {
	a, _ := classify.Needs(by, filters)
	switch a &= classify.AttrAll; {
	case a&^classify.AttrLength == 0:
		return ofTypes
	case a == classify.AttrSite:
		return ofSites
	}
	return ofObjects
}

// groups is a grouping in the cache. Its Tree is nil: tree computes the parts that are requested.
type groups struct {
	*analysis.Grouping
	tree *grouping.Tree

	mu    sync.Mutex // guards the last search, which the table and the drawing share
	asked [2]string  // path and search text
	found *grouping.Node
	hits  int
	shown int
}

// grouped groups the state after the collection ref, or returns the grouping from the cache.
func (s *Server) grouped(ctx context.Context, ref string, q question) (*groups, error) {
	a, err := s.asked(ctx, ref, q)
	if err != nil {
		return nil, err
	}
	return s.data.groups.get(ctx, a.key+"\x00"+q.String(),
		func(ctx context.Context) (*groups, error) { return a.group(ctx, s) })
}

// asked is a question of a state.
type asked struct {
	*state
	by      []classify.Classifier
	filters []classify.Filter
}

func (s *Server) asked(ctx context.Context, ref string, q question) (*asked, error) {
	by, filters, err := q.make(s)
	if err != nil {
		return nil, err
	}
	st, err := s.at(ctx, ref, detailOf(by, filters))
	if err != nil {
		return nil, err
	}
	if a, _ := classify.Needs(by, filters); a&classify.AttrRefs != 0 {
		if st, err = s.labelled(ctx, st, a); err != nil {
			return nil, err
		}
	}
	return &asked{st, by, filters}, nil
}

// group groups the state.
func (q *asked) group(ctx context.Context, s *Server) (*groups, error) {
	a, grain := classify.Needs(q.by, q.filters)
	ages := classify.Ages(q.by, q.filters)
	key := fmt.Sprint(q.key, "\x00", a&classify.AttrAll, grain, ages)
	ts, err := s.data.tuples.get(ctx, key, func(context.Context) ([]classify.Tuple, error) {
		return analysis.Tuples(q.r, q.world, q.spaces, a, grain, ages)
	})
	if err != nil { // too many
		return nil, badRequest{err}
	}
	s.data.grouping.Lock()
	defer s.data.grouping.Unlock()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	g, tree, err := analysis.OpenTuples(q.r.Symbols, q.c, q.world, ts, q.by, q.filters)
	if err != nil { // an expression that took too much, or too many groups
		return nil, badRequest{err}
	}
	return &groups{Grouping: g, tree: tree}, nil
}

// branch is a node in an answer, with some of its children.
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
	Drawn     uint64    `json:"callers_drawn,omitempty"` // as of grouping.Node
	Share     float64   `json:"callers_share,omitempty"`
	Count     int       `json:"count"` // of all children, in the answer or not
	Children  []*branch `json:"children,omitempty"`
}

func branchOf(n *grouping.Node, count int) *branch {
	return &branch{n.Key, n.Objects, n.Bytes, n.Estimated, n.Samples, n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh,
		n.Drawn, n.Share, count, nil}
}

// whole converts a node and all descendants.
func whole(n *grouping.Node) *branch {
	b := branchOf(n, len(n.Children))
	for _, c := range n.Children {
		b.Children = append(b.Children, whole(c))
	}
	return b
}

// level converts n and its children from number skip on, at most maxBranches.
func level(t *grouping.Tree, n *grouping.Node, skip int) (*branch, error) {
	kids, err := t.Children(n, skip, maxBranches)
	if err != nil {
		return nil, err
	}
	counts, err := t.Count(append(kids, n)...)
	if err != nil {
		return nil, err
	}
	b := branchOf(n, counts[len(kids)])
	for i, c := range kids {
		b.Children = append(b.Children, branchOf(c, counts[i]))
	}
	return b, nil
}

// groupReply is the answer to api/group.
type groupReply struct {
	*analysis.Grouping         // its Tree is nil
	Tree               *branch `json:"tree"`
	Hits               *int    `json:"hits,omitempty"`  // number of groups that match the search
	Shown              int     `json:"shown,omitempty"` // number of these in the answer
}

// group answers with the part of a grouping below path: one level, or the nodes that a search finds.
func (s *Server) group(r *http.Request) (any, error) {
	defer s.way.answered()
	g, err := s.grouped(r.Context(), r.FormValue("at"), questionOf(r, stateBy))
	if err != nil {
		return nil, err
	}
	n, err := g.pick(r)
	if err != nil {
		return nil, err
	}
	rep := groupReply{Grouping: g.Grouping}
	if match := searchOf(r); match != nil {
		found, hits, shown, err := g.search(n, match, r.FormValue("path"), r.FormValue("find"))
		if err != nil {
			return nil, badRequest{err}
		}
		rep.Tree, rep.Hits, rep.Shown = whole(found), &hits, shown
		return rep, nil
	}
	if rep.Tree, err = level(g.tree, n, number(r, "skip")); err != nil {
		return nil, badRequest{err}
	}
	return rep, nil
}

// number reads a parameter that is a number ≥ 0; anything else is 0.
func number(r *http.Request, name string) int {
	v, _ := strconv.Atoi(r.FormValue(name))
	return min(max(0, v), math.MaxInt32)
}

func pathOf(p string) (path []string, err error) {
	if json.Unmarshal([]byte(p), &path) != nil || len(path) > maxPath {
		return nil, badRequest{fmt.Errorf("the path of a group must be a list of at most %d keys", maxPath)}
	}
	return path, nil
}

// pick finds the node at the request's path.
func (g *groups) pick(r *http.Request) (*grouping.Node, error) {
	p := r.FormValue("path")
	if p == "" {
		return g.tree.Root, nil
	}
	path, err := pathOf(p)
	if err != nil {
		return nil, err
	}
	n, err := g.tree.Find(path...)
	if err == nil && n == nil {
		err = fmt.Errorf("there is no group %s in this heap state", strings.Join(path, " / "))
	}
	if err != nil {
		return nil, badRequest{err}
	}
	return n, nil
}

// search finds the groups below n whose key matches; path is the path of n.
func (g *groups) search(
	n *grouping.Node,
	match func(string) bool,
	path, find string,
) (found *grouping.Node, hits, shown int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if asked := [2]string{path, find}; g.found == nil || g.asked != asked {
		if found, hits, shown, err = g.tree.Search(n, match, maxFound); err != nil {
			return nil, 0, 0, err
		}
		g.asked, g.found, g.hits, g.shown = asked, found, hits, shown
	}
	return g.found, g.hits, g.shown, nil
}

// searchOf returns the function that finds matching keys; nil if the request searches for nothing.
func searchOf(r *http.Request) func(key string) bool {
	q := r.FormValue("find")
	if q == "" {
		return nil
	}
	re, err := regexp.Compile("(?i)" + q)
	if err != nil { // then it is a plain text
		re = regexp.MustCompile("(?i)" + regexp.QuoteMeta(q))
	}
	return re.MatchString
}

// nearest answers with the collection whose heap state the page shows while that of the requested one is still being
// read; 0: the requested one can be shown. all: all states are read. What is the last or the peak collection is known
// when all of them are read.
func (s *Server) nearest(r *http.Request) (any, error) {
	var rep struct {
		GC  uint64 `json:"gc"`
		All bool   `json:"all"`
	}
	t := s.timeline(r.Context())
	if t == nil {
		rep.All = true
		return rep, nil
	}
	gc, err := strconv.ParseUint(r.FormValue("at"), 10, 64)
	switch {
	case r.FormValue("at") == "first":
		gc = 0
	case err != nil:
		gc = math.MaxUint64
	}
	if !t.any() {
		s.way.ask()
	}
	rep.GC, rep.All, err = t.nearest(r.Context(), gc)
	return rep, err
}

// classifiers answers like `heapcam classifiers --json`.
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

// attach makes the response a file that the browser downloads.
func attach(w http.ResponseWriter, name, typ string) {
	w.Header().Set("Content-Type", typ)
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// file serves the file that f writes. An error that f returns before it writes becomes JSON.
func file(f func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			w.Header().Del("Content-Disposition")
			reply(w, nil, err)
		}
	}))
}

// export answers with all groups of the request's question as a file.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	g, err := s.grouped(r.Context(), r.FormValue("at"), questionOf(r, stateBy))
	if err != nil {
		return err
	}
	n, err := g.pick(r)
	if err != nil {
		return err
	}
	part := *g.Grouping
	if match := searchOf(r); match != nil {
		part.Tree, _, _, err = g.tree.Search(n, match, math.MaxInt)
	} else {
		part.Tree, err = g.tree.All(n)
	}
	if err != nil {
		return badRequest{err}
	}
	name := fmt.Sprintf("%s-gc%d", fileName(s.cfg.Title), g.GC)
	switch f := r.FormValue("format"); f {
	case "csv":
		attach(w, name+".csv", "text/csv; charset=utf-8")
		return part.WriteCSV(w)
	case "json":
		attach(w, name+".json", "application/json")
		return ui.JSONLines(w).Encode(&part)
	case "pprof": // of the whole state, like `heapcam export`
		var p *export.Profile
		if err := s.data.replay(r.Context(), "Writing the profile", func(r *heap.Replay) (err error) {
			p, err = export.NewProfile(r, g.GC)
			return err
		}); err != nil {
			return err
		}
		attach(w, name+".pb.gz", "application/octet-stream")
		return p.WritePprof(w)
	default:
		return badRequest{fmt.Errorf("unknown format %q: use csv, json or pprof", f)}
	}
}
