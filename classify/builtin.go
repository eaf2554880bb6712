package classify

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// Doc documents a classifier.
type Doc struct {
	Name        string `json:"name"`
	Args        string `json:"args,omitempty"`
	Cardinality string `json:"cardinality"`
	Text        string `json:"description"`
	Example     string `json:"example"`
	Keys        string `json:"keys"` // what its keys look like
	User        bool   `json:"user_defined,omitempty"`
}

// builtin is a classifier that needs no definition. make takes the arguments as they were written, without quotes.
type builtin struct {
	Doc
	needs Attr
	make  func(args []string) (Classifier, error)
}

func one(needs Attr, key func(w *World, t *Tuple) string) func([]string) (Classifier, error) {
	return func(args []string) (Classifier, error) {
		if len(args) > 0 {
			return Classifier{}, fmt.Errorf("it takes no argument")
		}
		keys := func(w *World, t *Tuple, out []string) ([]string, error) { return append(out, key(w, t)), nil }
		return Classifier{Needs: needs, Keys: keys}, nil
	}
}

// number reads an optional argument from 1 to most.
func number(args []string, def, most int) (int, error) {
	if len(args) == 0 {
		return def, nil
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > most || len(args) > 1 {
		return 0, fmt.Errorf("it takes one number, 1 to %d", most)
	}
	return n, nil
}

// builtins in the order in which they are listed: those of ICPE'18 Table 3 that a recording can answer first.
func builtins() []builtin {
	return slices.Concat(stateBuiltins(), refBuiltins())
}

// stateBuiltins look at the state of the heap alone.
func stateBuiltins() []builtin {
	return []builtin{
		{Doc{"address", "[SIZE]", "one",
			"The range of addresses that contains the object. SIZE is a power of two, by default 1 MiB.",
			"address(64k)", "0x00000000e0000000", false}, AttrAddr, makeAddress},
		{Doc{"type", "[short]", "one",
			"The class, as `Class.getTypeName` gives it. `short` leaves out the package.",
			"type, site(3)", "java.util.HashMap$Node", false}, 0, makeType},
		{Doc{"length", "", "one", "The number of elements of an array.", "type, length", "16", false}, AttrLength,
			one(AttrLength, func(w *World, t *Tuple) string {
				if !w.isArray(t) {
					return "(not an array)"
				}
				return strconv.FormatUint(t.Length, 10)
			})},
		{Doc{"kind", "", "one", "Instance, small array (fewer than 255 elements) or big array.", "kind, type",
			"small array", false}, AttrLength, one(AttrLength, (*World).kind)},
		{Doc{"space", "", "one", "The space that contains the object; with G1 the region.", "space, type", "old",
			false}, AttrSpace,
			one(AttrSpace, func(w *World, t *Tuple) string { return w.space(t).Name })},
		{Doc{"spacetype", "", "one", "Eden, survivor or old.", "spacetype, type", "old", false}, AttrSpace,
			one(AttrSpace, func(w *World, t *Tuple) string { return spaceType(w.space(t)) })},
		{Doc{"spacemode", "", "one",
			"Normal, humongous (half a region of G1 or more) or archive (from the JDK's CDS archive).",
			"spacemode, type", "humongous", false}, AttrSpace,
			one(AttrSpace, func(w *World, t *Tuple) string { return spaceMode(w.space(t)) })},
		{Doc{"feature", "FILE", "many",
			"The features of FILE whose packages, classes, methods or line ranges match the allocation site. " +
				"An object can have several " +
				"features.", "feature(shop.features)", "checkout", false}, AttrSite, makeFeature},
		{Doc{"site", "[N]", "hierarchy",
			"The allocation site: the method and line, and below it its callers. N frames in all, by default 3.",
			"type, site(5)", "shop.Cart.add(Cart.java:17)", false}, AttrSite, makeSite},
		{Doc{"package", "", "one", "The package of the class; for arrays, that of their elements.", "package, type",
			"java.util", false}, 0,
			one(0, func(w *World, t *Tuple) string { return pkg(w.TypeName(t.Type)) })},
		{Doc{"packages", "", "hierarchy", "The package as a path.", "packages, type(short)", "java", false}, 0,
			makePackages},
		{Doc{"loader", "", "one", "The class loader of the class: its name, and its number in the " +
			"recording.", "loader, type", "app #3", false}, 0,
			one(0, (*World).loader)},
		{Doc{"age", "", "one",
			"The number of collections that the object has outlived since heapcam first saw it. " +
				"\"≥\" marks a lower bound: a full collection hid which object it was before.",
			"type, age", "12", false}, AttrBirth,
			one(AttrBirth, func(w *World, t *Tuple) string { return atLeast(t) + strconv.FormatUint(w.Age(t), 10) })},
		{Doc{"ages", "", "one", "The age, in ranges of powers of two.", "type, ages", "8–15", false}, AttrBirth,
			func(args []string) (Classifier, error) {
				c, err := one(AttrBirth, func(w *World, t *Tuple) string { return atLeast(t) + power(w.Age(t)) })(args)
				c.Ages = powers
				return c, err
			}},
		{Doc{"size", "", "one", "The size of one object in bytes.", "type, size", "24 B", false}, AttrLength,
			one(AttrLength, func(w *World, t *Tuple) string { return strconv.FormatUint(t.Size, 10) + " B" })},
		{Doc{"sizeclass", "", "one",
			"The size of one object, in ranges of powers of two.", "sizeclass, type", "16–31 B", false}, AttrLength,
			one(AttrLength, func(w *World, t *Tuple) string { return power(t.Size) + " B" })},
		{Doc{"thread", "", "one", "The thread that allocated the object. `thread_names` says how names are " +
			"recorded.", "thread, type", "http-nio-#-exec-#",
			false}, AttrSite, one(AttrSite, (*World).thread)},
		{Doc{"birth", "", "one", "The collection at whose end the object was first seen.", "birth, type", "gc 17",
			false}, AttrBirth,
			one(AttrBirth, func(w *World, t *Tuple) string { return atMost(t) + "gc " + strconv.Itoa(int(t.Birth)) })},
		{Doc{"birthtime", "[DURATION]", "one",
			"The time of that collection, rounded down to DURATION, by default 1m.", "birthtime(10s), type",
			"15:04:10", false}, AttrBirth, makeBirthTime},
		{Doc{"confidence", "", "one", "How the site of an object is known. `exact`: it was sampled at interval 0 " +
			"and stands for " +
			"itself alone. `sampled`: it was sampled and stands for others, too. `proven`: one bytecode alone " +
			"can have made it. `(one of few sites)`, `(site unknown)` and `(before the recording)`: it was not " +
			"sampled.", "type, confidence", "sampled", false}, AttrSite,
			one(AttrSite, func(w *World, t *Tuple) string {
				return w.confidence(t)
			})},
	}
}

// absent are the classifiers of ICPE'18 that a recording cannot answer, and why.
var absent = map[string]string{
	"subsystem": "which part of the VM allocated an object (interpreter, compiled code, VM) can not be known " +
		"on a stock VM",
}

func makeAddress(args []string) (Classifier, error) {
	grain := uint64(1 << 20)
	if len(args) > 0 {
		s := strings.ToLower(strings.TrimSuffix(strings.ToLower(args[0]), "ib"))
		mult := uint64(1)
		if n := len(s); n > 0 {
			switch s[n-1] {
			case 'k':
				mult, s = 1<<10, s[:n-1]
			case 'm':
				mult, s = 1<<20, s[:n-1]
			case 'g':
				mult, s = 1<<30, s[:n-1]
			}
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil || len(args) > 1 || bits.OnesCount64(n*mult) != 1 || n*mult < 8 {
			return Classifier{}, fmt.Errorf("it takes one size, a power of two from 8 on (like 64k)")
		}
		grain = n * mult
	}
	return Classifier{Needs: AttrAddr, Grain: grain, Keys: func(_ *World, t *Tuple, out []string) ([]string, error) {
		return append(out, fmt.Sprintf("%#016x", t.Addr&^(grain-1))), nil
	}}, nil
}

func makeType(args []string) (Classifier, error) {
	short := len(args) == 1 && args[0] == "short"
	if len(args) > 0 && !short {
		return Classifier{}, fmt.Errorf("its only argument is short")
	}
	return Classifier{Keys: func(w *World, t *Tuple, out []string) ([]string, error) {
		n := w.TypeName(t.Type)
		if short {
			n = n[strings.LastIndexByte(n, '.')+1:]
		}
		return append(out, n), nil
	}}, nil
}

func makePackages(args []string) (Classifier, error) {
	if len(args) > 0 {
		return Classifier{}, fmt.Errorf("it takes no argument")
	}
	return Classifier{Cardinality: Hierarchy, Keys: func(w *World, t *Tuple, out []string) ([]string, error) {
		return append(out, strings.Split(pkg(w.TypeName(t.Type)), ".")...), nil
	}}, nil
}

func makeSite(args []string) (Classifier, error) {
	n, err := number(args, 3, maxFrames)
	keys := func(w *World, t *Tuple, out []string) ([]string, error) {
		return append(out, w.site(t, n)...), nil
	}
	return Classifier{Cardinality: Hierarchy, Needs: AttrSite, Callers: 2, Keys: keys}, err
}

// site gives the first n frames of where t was allocated.
func (w *World) site(t *Tuple, n int) []string {
	if t.List > 0 {
		s := w.Lists[t.List-1].Keys
		return s[:min(n, len(s))]
	}
	if !t.Sampled {
		return []string{w.NoSite(t)}
	}
	s := w.Stack(t.Frame)
	if len(s) == 0 {
		return []string{"(no Java frame)"}
	}
	return s[:min(n, len(s))]
}

func makeBirthTime(args []string) (Classifier, error) {
	d := time.Minute
	if len(args) > 0 {
		var err error
		if d, err = time.ParseDuration(args[0]); err != nil || d < time.Millisecond || len(args) > 1 {
			return Classifier{}, fmt.Errorf("it takes one duration of at least 1ms (like 10s)")
		}
	}
	return Classifier{Needs: AttrBirth, Keys: func(w *World, t *Tuple, out []string) ([]string, error) {
		at, ok := time.Time{}, false
		if w.Time != nil {
			at, ok = w.Time(uint64(t.Birth))
		}
		if !ok {
			return append(out, BeforeRecording), nil
		}
		layout := time.TimeOnly
		if d < time.Second {
			layout = "15:04:05.000"
		}
		return append(out, atMost(t)+at.Local().Truncate(d).Format(layout)), nil
	}}, nil
}

func atLeast(t *Tuple) string {
	if t.AtLeast {
		return "≥ "
	}
	return ""
}

func atMost(t *Tuple) string {
	if t.AtLeast {
		return "≤ "
	}
	return ""
}

// powers are the ages from which on power gives another range.
var powers = func() (out []uint64) {
	for i := range 32 {
		out = append(out, 1<<i)
	}
	return out
}()

// power gives the range of powers of two that n is in.
func power(n uint64) string {
	if n < 2 {
		return strconv.FormatUint(n, 10)
	}
	lo := uint64(1) << (bits.Len64(n) - 1)
	return fmt.Sprintf("%d–%d", lo, 2*lo-1)
}

func (w *World) isArray(t *Tuple) bool { return w.Types[uint64(t.Type)].Flags&trace.TypeArray != 0 }

func (w *World) kind(t *Tuple) string {
	switch {
	case !w.isArray(t):
		return "instance"
	case t.Length < 255:
		return "small array"
	}
	return "big array"
}

func (w *World) space(t *Tuple) Space {
	if t.Space < 0 || t.Space >= len(w.Spaces) {
		return Space{Name: UnknownSpace}
	}
	return w.Spaces[t.Space]
}

func spaceType(s Space) string {
	switch s.Kind {
	case trace.SpaceEden:
		return "eden"
	case trace.SpaceSurvivor:
		return "survivor"
	case trace.SpaceOld, trace.SpaceHumongous, trace.SpaceHumongousCont, trace.SpaceArchive:
		return "old"
	}
	return UnknownSpace
}

func spaceMode(s Space) string {
	switch s.Kind {
	case trace.SpaceHumongous, trace.SpaceHumongousCont:
		return "humongous"
	case trace.SpaceArchive:
		return "archive"
	}
	return "normal"
}

func pkg(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return "(no package)"
}

func (w *World) loader(t *Tuple) string {
	id := w.Types[uint64(t.Type)].Loader
	if id == 0 {
		return "bootstrap"
	}
	n := w.Loaders[id].Name
	if n == "" {
		n = "(unnamed)"
	}
	return fmt.Sprintf("%s #%d", n, id)
}

func (w *World) thread(t *Tuple) string {
	if !t.Sampled {
		return w.NoSite(t)
	}
	th, ok := w.Threads[t.Thread]
	switch {
	case !ok:
		return "(unknown thread)"
	case th.Name == "":
		return "(unnamed)"
	}
	return th.Name
}
