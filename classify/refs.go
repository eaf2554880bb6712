package classify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/trace"
)

// Refs are what a reference listing knows of an object: each field is known if its Attr was asked for.
type Refs struct {
	Reach    string   // AttrReach: the strength of the best path to it, Unreachable or NotReached
	Root     string   // AttrRoot: kind of the root at the start of that path
	Holder   string   // AttrHolder: path to the outermost object without which it would be garbage
	Retained uint64   // AttrRetained: bytes
	To       []string // AttrTo: classes that it refers to, sorted
	From     []string // AttrFrom: classes of reached objects that refer to it, sorted
	Health   string   // AttrHealth
}

// Keys of objects that no path reaches: garbage, or not known because roots are missing.
const (
	Unreachable = "unreachable"
	NotReached  = "not reached from the roots that were recorded"
)

// NotListed is the key of an object that is not in the reference listing.
const NotListed = "(not in the reference listing)"

var unlisted = Refs{Reach: NotListed, Root: NotListed, Holder: NotListed, Health: NotListed}

// refs gives what is known of the references of t.
func (w *World) refs(t *Tuple) *Refs {
	if t.Refs == 0 || int(t.Refs) >= len(w.Refs) {
		return &unlisted
	}
	return &w.Refs[t.Refs]
}

// refs gives an expression what is known of references.
func (e *env) refs(r *Refs) {
	e.Reachable, e.RootKind, e.Holder, e.Health = r.Reach, r.Root, r.Holder, r.Health
	e.Retained, e.PointsTo, e.From = int(min(r.Retained, 1<<62)), r.To, r.From
}

// refBuiltins need a reference listing.
func refBuiltins() []builtin {
	of := func(a Attr, get func(*Refs) string) func([]string) (Classifier, error) {
		return one(a, func(w *World, t *Tuple) string { return get(w.refs(t)) })
	}
	return []builtin{
		{Doc{"reachable", "", "one", "The weakest reference on the best path from a root to the object: `strong`, " +
			"`soft`, `final`, `weak`, `phantom`. `unreachable` is garbage that has not been collected yet. If roots " +
			"are missing, it says so instead. " + needsListing, "reachable, type", "strong", false}, AttrReach,
			of(AttrReach, func(r *Refs) string { return r.Reach })},
		{Doc{"rootkind", "", "one", "The kind of root at the start of that path. " + needsListing, "rootkind, type",
			"stack local", false}, AttrRoot, of(AttrRoot, func(r *Refs) string { return r.Root })},
		{Doc{"holder", "", "one", "The outermost object without which this one would be garbage, as its path. " +
			"Classes, loaders and threads do not count. Holders that retain little have one group. " + needsListing,
			"holder, type", "static com.shop.Shop.cache", false}, AttrHolder,
			of(AttrHolder, func(r *Refs) string { return r.Holder })},
		{Doc{"retained", "", "one", "The bytes that would be free without this object, in ranges of powers of two. " +
			needsListing, "retained, type", "1048576–2097151 B", false}, AttrRetained,
			one(AttrRetained, func(w *World, t *Tuple) string {
				if r := w.refs(t); r != &unlisted {
					return power(r.Retained) + " B"
				}
				return NotListed
			})},
		{Doc{"pointsto", "[short or package]", "many", "The classes of the objects to which this one refers, or " +
			"their packages. " + needsListing, "type, pointsto", "byte[]", false}, AttrTo,
			refClasses(AttrTo, func(r *Refs) []string { return r.To })},
		{Doc{"pointedfrom", "[short or package]", "many", "The classes of the objects that refer to this one, or " +
			"their packages. Objects that no root reaches do not count. " + needsListing, "type, pointedfrom(short)",
			"HashMap$Node", false}, AttrFrom, refClasses(AttrFrom, func(r *Refs) []string { return r.From })},
		{Doc{"health", "", "one", "How arrays of references, and collections of java.util, use their slots. " +
			"`empty`: not one is used. `sparse`: at most a quarter is used. `oversized`: such an array with 1 KiB or " +
			"more of unused slots. `used`: all others. " + needsListing, "health, type", "sparse", false}, AttrHealth,
			of(AttrHealth, func(r *Refs) string { return r.Health })},
	}
}

const needsListing = "It needs a reference listing after the collection."

// refClasses makes a classifier of names of classes.
func refClasses(a Attr, get func(*Refs) []string) func([]string) (Classifier, error) {
	return func(args []string) (Classifier, error) {
		name := func(s string) string { return s }
		switch {
		case len(args) == 0:
		case len(args) == 1 && args[0] == "short":
			name = func(s string) string { return s[strings.LastIndexByte(s, '.')+1:] }
		case len(args) == 1 && args[0] == "package":
			name = func(s string) string { return pkg(strings.TrimRight(s, "[]")) }
		default:
			return Classifier{}, fmt.Errorf("its only argument is short or package")
		}
		keys := func(w *World, t *Tuple, out []string) ([]string, error) {
			for _, s := range get(w.refs(t)) {
				if s = name(s); !slices.Contains(out, s) {
					out = append(out, s)
				}
			}
			return out, nil
		}
		return Classifier{Cardinality: Many, Needs: a, Keys: keys}, nil
	}
}

// Garbage keeps what nothing keeps alive: what weak and phantom references alone lead to, too. What fills a hole is no
// object.
func Garbage() Filter {
	return Filter{Name: "garbage", Needs: AttrReach, Keep: func(w *World, t *Tuple) (bool, error) {
		return w.Types[uint64(t.Type)].Flags&trace.TypeFiller == 0 && w.refs(t).garbage(), nil
	}}
}

func (r *Refs) garbage() bool {
	return r.Reach == Unreachable || r.Reach == "weak" || r.Reach == "phantom"
}
