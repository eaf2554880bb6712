package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
)

// retainedRows is how many groups or objects an answer about retained sizes has.
const retainedRows = 200

// references returns the newest reference listing of the recording; reflisting.ErrNone says that there is none.
func (s *Server) references(ctx context.Context) (*retention.Heap, error) {
	if s.timeline(ctx).unreferenced(ctx) {
		return nil, reflisting.ErrNone
	}
	version, _ := s.version()
	return s.data.graphs.get(ctx, version, func(ctx context.Context) (*retention.Heap, error) {
		var ins []*Input
		defer func() {
			for _, in := range ins {
				in.Close()
			}
		}()
		var failed error
		report := s.data.s.hub.progress("Reading the references", "")
		defer report(1, 1)
		from := func(open func(func(done, total int64)) (*Input, error)) func() reflisting.Source {
			if open == nil {
				open = s.cfg.Open
			}
			return func() reflisting.Source {
				in, err := open(report)
				if err != nil {
					failed = err
					return nothing{}
				}
				ins = append(ins, in)
				return &stoppable{ctx, in.Source}
			}
		}
		refs := &s.cfg.References
		of := reflisting.Sources{Heads: from(refs.Heads), Parts: from(refs.Parts), Defs: from(refs.Defs)}
		h, err := retention.Load(of, 1<<64-1, retention.Options{Kept: s.cfg.Graphs})
		if failed != nil {
			return nil, failed
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil && s.cfg.Graphs != nil {
			go s.cfg.Graphs.Keep(h)
		}
		return h, err
	})
}

// labelled gives a state with what the newest reference listing knows of its objects, if the listing was taken after
// the same collection.
func (s *Server) labelled(ctx context.Context, st *state, a classify.Attr) (*state, error) {
	h, err := s.references(ctx)
	switch {
	case errors.Is(err, reflisting.ErrNone):
		return nil, badRequest{inField{"by", err}}
	case err != nil:
		return nil, err
	case h.About.GC != st.c.GC:
		return nil, badRequest{inField{"by", fmt.Errorf("the newest reference listing was taken after collection %d, "+
			"not after collection %d", h.About.GC, st.c.GC)}}
	}
	labels, refs := h.Labels(a)
	view, world := *st.r, *st.world
	view.Labelled(labels)
	world.Refs = refs
	return &state{fmt.Sprint(st.key, "\x00", h.About.Number), &view, st.c, &world, st.spaces, st.callers}, nil
}

// noListing is the answer where the recording has no reference listing.
type noListing struct {
	None bool `json:"none"`
}

// dominated is a part of the dominator tree: what one object dominates, or the objects that no other one dominates.
type dominated struct {
	*retention.DominatorsReport
	Objects  uint64            `json:"objects"` // of the heap
	Children []retention.Child `json:"children"`
	Count    int               `json:"count"`
}

// retained answers like `heapcam dominators --json`: groups with what they retain, or with by=object a level of the
// dominator tree.
func (s *Server) retained(r *http.Request) (any, error) {
	h, err := s.references(r.Context())
	if errors.Is(err, reflisting.ErrNone) {
		return noListing{true}, nil
	}
	if err != nil {
		return nil, err
	}
	by := or(r.FormValue("by"), retention.ByObject)
	if !slices.Contains(retention.Bys, by) {
		return nil, badRequest{fmt.Errorf("by=%s: one of %s", by, strings.Join(retention.Bys, ", "))}
	}
	if by != retention.ByObject {
		v, err := s.listed(r.Context(), h, by == retention.BySite)
		if err != nil {
			return nil, err
		}
		rep := h.Dominators(by, retainedRows, v)
		return dominated{DominatorsReport: rep, Objects: rep.Objects}, nil
	}
	of, out := graph.None, dominated{}
	if a := r.FormValue("object"); a != "" {
		if of, err = objectAt(h, a); err != nil {
			return nil, err
		}
	} else {
		out.DominatorsReport = h.Dominators(by, 1, nil)
		out.Objects = out.DominatorsReport.Objects
	}
	out.Children, out.Count = h.Dominated(of, retainedRows)
	return out, nil
}

// listed is the state after the listing's collection, nil unless it is needed.
func (s *Server) listed(ctx context.Context, h *retention.Heap, needed bool) (*heap.View, error) {
	if !needed {
		return nil, nil
	}
	st, err := s.at(ctx, strconv.FormatUint(h.About.GC, 10), ofObjects)
	if err != nil {
		return nil, err
	}
	if st.r.State == nil {
		return nil, badRequest{fmt.Errorf("the objects after collection %d are not known, so their sites are not "+
			"either", h.About.GC)}
	}
	return st.r, nil
}

func objectAt(h *retention.Heap, address string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(address, "0x"), 16, 64)
	if err != nil {
		return 0, badRequest{fmt.Errorf("%s is no address such as 0x7f0012345678", address)}
	}
	i, ok := h.Object(n)
	if !ok {
		return 0, badRequest{fmt.Errorf("no object of the reference listing is at %s", address)}
	}
	return i, nil
}

// held is who holds a set of objects, and on which paths the roots reach it.
type held struct {
	Holders *retention.HoldersReport `json:"holders"`
	Paths   *retention.PathsReport   `json:"paths"`
}

// holders answers like `heapcam holders --json` and `heapcam paths --json`, for a class, a site or one object.
func (s *Server) holders(r *http.Request) (any, error) {
	h, err := s.references(r.Context())
	if errors.Is(err, reflisting.ErrNone) {
		return noListing{true}, nil
	}
	if err != nil {
		return nil, err
	}
	var set []graph.Member
	asked := ""
	switch class, site, object := r.FormValue("class"), r.FormValue("site"), r.FormValue("object"); {
	case object != "":
		i, err := objectAt(h, object)
		if err != nil {
			return nil, err
		}
		set, asked = []graph.Member{{Object: i, Weight: 1}}, "the object at "+object
	case site != "":
		v, err := s.listed(r.Context(), h, true)
		if err != nil {
			return nil, err
		}
		set, asked = h.OfSite(v.Symbols, retention.PlacedIn(v), site), "sampled objects from "+site
	case class != "":
		set, asked = h.OfClass(class), class
	default:
		return nil, badRequest{errors.New("holders needs a class, a site or an object")}
	}
	if len(set) == 0 {
		return nil, badRequest{fmt.Errorf("%s: none in the references after collection %d", asked, h.About.GC)}
	}
	return held{h.Holders(set, asked), h.Paths(set, asked, "")}, nil
}
