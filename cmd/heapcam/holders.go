package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

const (
	listingHelp = "\n\nThe recording needs a reference listing, which `heapcam references JVM` takes. The verb reads " +
		"the newest one, or with --at the newest one that is not newer than that collection. The graph of a large " +
		"listing stays in the reader's cache folder, so the next answer takes less time."
	listingAt = "Read the newest reference listing up to this collection: a number, first, last, peak, or a time."
)

// graphGrowth is by how many percent our own heap may grow between two collections while a graph is in it. A graph has
// few pointers, so that these take little.
const graphGrowth = 40

// retaining are the flags of the verbs that read a reference listing.
type retaining struct {
	at                         string
	class, site, object, where string
	defs                       string
	json                       bool
}

func (o *retaining) add(c *cobra.Command, verb string) {
	o.at = "last"
	c.Flags().StringVar(&o.at, "at", o.at, listingAt)
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam."+verb+"/1).")
}

func (o *retaining) addClass(c *cobra.Command) {
	c.Flags().StringVar(&o.class, "class", "",
		"Objects of this class: java.util.HashMap, int[], or the name without its package.")
}

// check says whether at most one set of objects is asked for.
func (o *retaining) check(verb string, needed bool, flags ...string) error {
	n := 0
	for _, s := range []string{o.class, o.site, o.object, o.where} {
		if s != "" {
			n++
		}
	}
	if n > 1 {
		return usage("%s takes only one of %s", verb, strings.Join(flags, ", "))
	}
	if needed && n == 0 {
		return usage("%s needs %s", verb, strings.Join(flags, " or "))
	}
	return nil
}

// load reads the reference listing.
func (o *retaining) load(rec *ringstore.Recording) (*retention.Heap, error) {
	gc := uint64(1<<64 - 1)
	if n, err := strconv.ParseUint(o.at, 10, 64); err == nil {
		gc = n
	} else if o.at != "last" {
		p := &replays{rec: rec}
		defer p.close()
		gc, err = collection.Find(o.at, p.count, p.open)
		if err != nil {
			return nil, refError(rec, "at", err)
		}
	}
	keepSmall(graphGrowth)
	of := &listingSources{rec: rec}
	defer of.close()
	h, err := retention.Load(of.sources(), gc, retention.Options{Kept: newGraphCache(rec.Path), Room: roomForGraph,
		Progress: ui.NewProgress("reading the references").Step})
	of.warn()
	switch {
	case errors.Is(err, reflisting.ErrNone):
		return nil, noListing(rec, of, err)
	case errors.Is(err, references.ErrIncomplete), errors.Is(err, references.ErrCorrupt):
		return nil, withCode(exitDamaged, "%s: %w", rec.Path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	return h, nil
}

// noListing says why a recording has no reference listing, and how one can be had.
func noListing(rec *ringstore.Recording, of *listingSources, err error) error {
	names, failed := reflisting.Names(of.sources().Defs())
	switch {
	case failed == nil && trace.Concurrent(names.JVM.Collector):
		return withCode(exitNotFound, "%s: %w: with ZGC, Shenandoah and Epsilon heapcam cannot list references. Run "+
			"the program with G1, Parallel or Serial", rec.Path, reflisting.ErrNone)
	case failed == nil && names.JVM.Major > 0 && names.JVM.Major < firstListed:
		return withCode(exitNotFound, "%s: %w: JDK %d does not show where objects have their references. Run the "+
			"program with JDK %d or later", rec.Path, reflisting.ErrNone, names.JVM.Major, firstListed)
	}
	return withCode(exitNotFound, "%s: %w; `heapcam references JVM` takes one while the JVM runs and an agent records "+
		"it, and `heapcam run` after 30 s", rec.Path, err)
}

// firstListed is the first JDK whose references the probe can list.
const firstListed = 17

// set gives the objects that are asked for, and their name.
func (o *retaining) set(rec *ringstore.Recording, h *retention.Heap) (set []graph.Member, asked string, err error) {
	switch {
	case o.class != "":
		set, asked = h.OfClass(o.class), o.class
	case o.object != "":
		n, err := strconv.ParseUint(strings.TrimPrefix(o.object, "0x"), 16, 64)
		if err != nil {
			return nil, "", usage("--object %s: an address such as 0x7f0012345678", o.object)
		}
		if i, ok := h.Object(n); ok {
			set = []graph.Member{{Object: i, Weight: 1}}
		}
		asked = "the object at " + o.object
	case o.site != "":
		names, placed, err := o.placed(rec, h)
		if err != nil {
			return nil, "", err
		}
		set, asked = h.OfSite(names, placed, o.site), "sampled objects from "+o.site
	case o.where != "":
		set, err = o.filtered(rec, h)
		asked = "objects with " + o.where
	default:
		set, asked = h.AllLive(), "all live objects"
	}
	if err == nil && len(set) == 0 {
		err = withCode(exitNotFound, "%s: %s: none in the references after collection %d", rec.Path, asked, h.About.GC)
	}
	return set, asked, err
}

// state gives the state after the listing's collection.
func (o *retaining) state(rec *ringstore.Recording, h *retention.Heap) (*heap.View, *heap.Collection, error) {
	v, c, _, err := stateAt(rec, strconv.FormatUint(h.About.GC, 10), false)
	if err == nil && v.State == nil {
		err = withCode(exitNotFound, "%s: the objects after collection %d are not known, so that their sites are not "+
			"either", rec.Path, h.About.GC)
	}
	return v, c, err
}

// placed gives the sampled objects in the listing, by the state after its collection; where that is not known, as at
// depth samples, by what the listing says.
func (o *retaining) placed(rec *ringstore.Recording, h *retention.Heap) (*heap.Symbols, []retention.Placed, error) {
	v, _, unknown := o.state(rec, h)
	if unknown == nil {
		return v.Symbols, retention.PlacedIn(v), nil
	}
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return nil, nil, unknown
	}
	l, err := reaches.After(h.About.GC)
	if err != nil || l == nil {
		return nil, nil, unknown
	}
	src := newSource(rec.Files...)
	defer src.Close()
	r := heap.NewReplay(src)
	if err := collection.Each(r, func(c *heap.Collection) bool { return c.GC < l.GC }); err != nil {
		return nil, nil, unknown
	}
	if all := l.Placed(r.Position().Live); len(all) > 0 {
		return r.Position().Symbols, all, nil
	}
	return nil, nil, unknown
}

// filtered gives the objects for which the expression is true. Objects in eden are not among them.
func (o *retaining) filtered(rec *ringstore.Recording, h *retention.Heap) ([]graph.Member, error) {
	f, err := classify.NewFilter(o.where)
	if err != nil {
		return nil, usage("--where: %w", err)
	}
	l, err := library(o.defs)
	if err != nil {
		return nil, err
	}
	by, err := l.By("type")
	if err != nil {
		return nil, err
	}
	v, c, err := o.state(rec, h)
	if err != nil {
		return nil, err
	}
	world, spaces := analysis.World(v, c)
	if f.Needs&classify.AttrRefs != 0 {
		labels, refs := h.Labels(f.Needs)
		v.Labelled(labels)
		world.Refs = refs
	}
	filters := []classify.Filter{f}
	g, err := analysis.Group(v, c, world, spaces, by, filters)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rec.Path, err)
	}
	var words []uint64
	g.List(v, g.Tree, spaces, by, filters, func(x analysis.ListedObject) bool {
		n, _ := strconv.ParseUint(strings.TrimPrefix(x.Address, "0x"), 16, 64)
		words = append(words, (n-v.JVM.HeapBase)/8)
		return true
	})
	return h.At(words), nil
}

func newHoldersCmd() *cobra.Command {
	var o retaining
	var dot bool
	c := &cobra.Command{
		Use:   "holders FILE|DIR|JVM",
		Short: "Show what keeps objects alive",
		Long: `Use it when you know what grows, and want to know why it is not collected.

A holder is an object through which all paths from the roots to some of these objects lead. For each holder the verb
prints a path from a root to it, and the most frequent way from it to the objects. It prints holders of at least 5 % of
the bytes, and adds up all others. Objects to which only weak or phantom references lead, and objects to which nothing
leads, have lines of their own.

Soft references keep objects alive, so they count: such a path has the mark "(soft)". Without a flag the verb shows what
holds what lives. With --site the figures are estimates: a sampled object also counts for the objects that were not
sampled.` +
			listingHelp + fileHelp,
		Example: `  heapcam holders incident.heapcam --class com.shop.Order
  heapcam holders incident.heapcam --site OrderService.create
  heapcam holders incident.heapcam --where 'size > 1000000' --dot | dot -Tsvg > holders.svg`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check("holders", false, "--class", "--site", "--where"); err != nil {
				return err
			}
			if dot && o.json {
				return usage("holders: --json and --dot exclude each other")
			}
			return o.with(args[0], func(rec *ringstore.Recording, h *retention.Heap) error {
				set, asked, err := o.set(rec, h)
				if err != nil {
					return err
				}
				r := h.Holders(set, asked)
				switch w := c.OutOrStdout(); {
				case o.json:
					return ui.JSON(w, r)
				case dot:
					r.WriteDOT(w)
				default:
					r.WriteText(w)
				}
				return nil
			})
		},
	}
	o.add(c, "holders")
	o.addClass(c)
	c.Flags().StringVar(&o.site, "site", "", "Sampled objects from a stack that contains this text, such as a method.")
	c.Flags().StringVar(&o.where, "where", "", "Objects for which this expression is true; see heapcam classifiers.")
	c.Flags().BoolVar(&dot, "dot", false, "Print a graph for Graphviz.")
	return c
}

// with opens a recording, reads its listing and calls f.
func (o *retaining) with(path string, f func(*ringstore.Recording, *retention.Heap) error) error {
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	h, err := o.load(rec)
	if err != nil {
		return err
	}
	if err := f(rec, h); err != nil {
		return err
	}
	newGraphCache(rec.Path).Keep(h)
	return nil
}

func newPathsCmd() *cobra.Command {
	var o retaining
	var strength string
	top := 20
	c := &cobra.Command{
		Use:   "paths FILE|DIR|JVM",
		Short: "Show on which paths roots reach objects",
		Long: `Use it to see the references that lead to one object, or to the objects of a class.

The path to an object is the one whose weakest reference is strongest: strong, soft, final (the finalizer has not run),
weak, phantom. Of such paths it is the shortest. A path begins at a local variable of a running method only if there is
no other one. The verb groups paths of many objects by the fields on them.` + listingHelp + fileHelp,
		Example: `  heapcam paths incident.heapcam --class com.shop.Session
  heapcam paths incident.heapcam --class byte[] --strength soft
  heapcam paths incident.heapcam --object 0x6c0012340`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check("paths", true, "--class", "--object"); err != nil {
				return err
			}
			if strength != "" && !slices.Contains(references.StrengthNames[:], strength) {
				return usage("--strength %s: it must be one of %s", strength,
					strings.Join(references.StrengthNames[:], ", "))
			}
			return o.with(args[0], func(rec *ringstore.Recording, h *retention.Heap) error {
				set, asked, err := o.set(rec, h)
				if err != nil {
					return err
				}
				r := h.Paths(set, asked, strength)
				if o.json {
					return ui.JSON(c.OutOrStdout(), r)
				}
				r.WriteText(c.OutOrStdout(), top)
				return nil
			})
		},
	}
	o.add(c, "paths")
	o.addClass(c)
	c.Flags().StringVar(&o.object, "object", "", "The object at this address, in hexadecimal.")
	c.Flags().StringVar(&strength, "strength", "",
		"Only objects whose best path has this strength: strong, soft, final, weak, phantom.")
	c.Flags().IntVar(&top, "top", top, "Number of ways to print; 0 = all.")
	return c
}

func newDominatorsCmd() *cobra.Command {
	var o retaining
	by, top, since := retention.ByObject, 20, ""
	c := &cobra.Command{
		Use:   "dominators FILE|DIR|JVM",
		Short: "Show which objects or classes retain most memory",
		Long: `Use it to find what would free most memory if it were gone.

An object retains itself and all that can be reached only through it. --by groups the objects: by class, class loader,
package or allocation site. What a group retains counts each byte once. --by site groups sampled objects only. --by drop
shows where many small parts begin: objects that retain much beside the largest object below them.

With --since the verb shows what retains more, or less, than in an earlier reference listing. It compares objects by the
paths to them, because collections move objects.` +
			listingHelp + fileHelp,
		Example: `  heapcam dominators incident.heapcam
  heapcam dominators incident.heapcam --by package --top 10
  heapcam dominators incident.heapcam --since first`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(retention.Bys, by) {
				return usage("--by %s: it must be one of %s", by, strings.Join(retention.Bys, ", "))
			}
			return o.with(args[0], func(rec *ringstore.Recording, h *retention.Heap) error {
				if since != "" {
					return o.growth(c.OutOrStdout(), rec, h, since, by, top)
				}
				r, err := o.dominators(rec, h, by, top)
				if err != nil {
					return err
				}
				return printDominators(c.OutOrStdout(), r, o.json)
			})
		},
	}
	o.add(c, "dominators")
	c.Flags().StringVar(&by, "by", by, "What to show: "+strings.Join(retention.Bys, ", ")+".")
	c.Flags().IntVar(&top, "top", top, "Number of objects or groups to show; 0 = all groups.")
	c.Flags().StringVar(&since, "since", "", "Show what retains more than in the newest reference listing up to this "+
		"collection. Default none.")
	return c
}

// dominators gives what retains most.
func (o *retaining) dominators(
	rec *ringstore.Recording,
	h *retention.Heap,
	by string,
	top int,
) (*retention.DominatorsReport, error) {
	var v *heap.View
	if by == retention.BySite {
		var err error
		if v, _, err = o.state(rec, h); err != nil {
			return nil, err
		}
	}
	return h.Dominators(by, top, v), nil
}

// growth prints what retains more in h than in the listing that since means. The graph of one is dropped before that of
// the other is made.
func (o *retaining) growth(w io.Writer, rec *ringstore.Recording, h *retention.Heap, since, by string, top int) error {
	after, err := o.dominators(rec, h, by, retention.Compared(by))
	if err != nil {
		return err
	}
	h.Graph = nil
	earlier := retaining{at: since}
	if since == "first" {
		lists := listingsOf(rec)
		if len(lists.gcs) > 0 {
			earlier.at = strconv.FormatUint(lists.gcs[0], 10)
		}
	}
	b, err := earlier.load(rec)
	if err != nil {
		return err
	}
	if b.About.Number == h.About.Number {
		return withCode(exitNotFound, "%s: there is no reference listing before that after collection %d", rec.Path,
			h.About.GC)
	}
	before, err := o.dominators(rec, b, by, retention.Compared(by))
	if err != nil {
		return err
	}
	r := retention.Growth(before, after, top)
	if o.json {
		return ui.JSON(w, r)
	}
	r.WriteText(w)
	return nil
}

func printDominators(w io.Writer, r *retention.DominatorsReport, json bool) error {
	if json {
		return ui.JSON(w, r)
	}
	r.WriteText(w)
	return nil
}
