package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// grouper are the flags of all verbs that group.
type grouper struct {
	by      string
	where   []string
	defs    string
	by_     []classify.Classifier
	filters []classify.Filter
}

const defaultBy = "type, site"

const groupingHelp = `A list of classifiers, with commas between, gives the levels of the tree: names
(` + "`heapcam classifiers`" + ` documents them all) or expressions over the object's properties. Those of
heapcam.classifiers.yaml, if there is such a file in the current folder, are known by name. A filter is
an expression that is true for what is kept.`

func (g *grouper) add(c *cobra.Command) {
	if g.by == "" {
		g.by = defaultBy
	}
	c.Flags().StringVar(&g.by, "by", g.by, "classifiers, with commas between")
	c.Flags().StringArrayVar(&g.where, "where", nil,
		"keep only what this expression is true for (may be given again: all must be true)")
	c.Flags().StringVar(&g.defs, "classifiers", "",
		"file of user-defined classifiers (default heapcam.classifiers.yaml, if it is there)")
}

// library knows the built-in classifiers and those of the file.
func library(path string) (*classify.Library, error) {
	l := classify.NewLibrary()
	name := path
	if name == "" {
		name = classify.FileName
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) && path == "" {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := l.Read(f, name); err != nil {
		return nil, usage("%v", err)
	}
	return l, nil
}

// parse makes the classifiers and filters; its errors are of usage.
func (g *grouper) parse() error {
	l, err := library(g.defs)
	if err != nil {
		return err
	}
	return g.make(l)
}

func (g *grouper) make(l *classify.Library) (err error) {
	if g.by_, err = l.By(g.by); err != nil {
		return usage("--by: %w", err)
	}
	g.filters = nil
	for _, w := range g.where {
		f, err := classify.NewFilter(w)
		if err != nil {
			return usage("--where: %w", err)
		}
		g.filters = append(g.filters, f)
	}
	return nil
}

// again gives classifiers and filters that have seen nothing: their budgets are per state.
func (g *grouper) again() ([]classify.Classifier, []classify.Filter) {
	if err := g.parse(); err != nil { // it was read before; a file that changed meanwhile does not matter
		return g.by_, g.filters
	}
	return g.by_, g.filters
}

// openReading opens what the argument of a reading verb names: a pulled file, a ring folder, a ring file, or a JVM
// that is or was recorded (name, pid or id, as `heapcam status` lists them).
func openReading(arg string) (*ringstore.Recording, error) {
	st, err := os.Stat(arg)
	if strings.ContainsRune(arg, os.PathSeparator) || err == nil && !st.IsDir() {
		return openRecording(arg)
	}
	if err == nil && (isRecording(arg) || len(ringFolders(arg)) > 0) {
		return openRecording(arg)
	}
	dir, nerr := recordingNamed(arg)
	if nerr != nil && err == nil && exitCode(nerr) == exitNotFound {
		return openRecording(arg) // which says what is wrong with that folder
	}
	if nerr != nil {
		return nil, nerr
	}
	return openRecording(dir)
}

// recordingNamed gives the ring folder of the JVM that ref names, running or ended: in the folders that status
// lists, and where the agent that answers us says it is.
func recordingNamed(ref string) (string, error) {
	recs, err := allRecordings("")
	if err != nil {
		return "", err
	}
	s, err := pick(recs, ref)
	if err != nil && exitCode(err) == exitNotFound {
		return "", withCode(exitNotFound, "%q: there is no such file, and no such recording in %s: `heapcam status` "+
			"lists them", ref,
			strings.Join(outDirs(""), " or "))
	}
	return s.Dir, err
}

// readingArg is what openReading takes, as the end of an error.
const readingArg = "one FILE: a pulled recording, a ring folder, a ring file, or a recorded JVM"

type groupOptions struct {
	grouper
	at, find  string
	fold      ui.Percent
	depth     int
	list      string
	limit     int
	json, csv bool
}

func newGroupCmd() *cobra.Command {
	o := groupOptions{at: "last", fold: 0.01, limit: 1000}
	c := &cobra.Command{
		Use:   "group FILE|DIR|JVM",
		Short: "The heap after one collection, grouped by any list of classifiers",
		Long: `Groups the objects that were alive after one collection, outside eden, by a list of classifiers into
a tree with objects, bytes and their share at every node, the largest first.
` + groupingHelp + `

Figures are exact as long as no level looks at allocation sites; those are known by samples. An
estimated node is marked with ~ and JSON and CSV give the bounds that hold the true number with 95 %
probability; recorded with --sampling 0, all is exact. What no sample covers stands under (site
unknown), what stood when the recording began and was not sampled under (before the tape). An object
that a classifier puts into several groups counts in each of them and once in their parent.`,
		Example: `  heapcam group incident.heapcam
  heapcam group --at peak --by 'package, type, ages' incident.heapcam
  heapcam group --by 'age > 9 ? "old" : "young", type, site.top(3)' --where 'size >= 1024' i.heapcam
  heapcam group --list 'java.util.HashMap$Node' --by type incident.heapcam
  heapcam group --json incident.heapcam | jq '.tree.children[0]'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.OutOrStdout(), args[0]) },
	}
	c.Flags().StringVar(&o.at, "at", o.at, "which collection: a number, first, last, peak, or a time (15:04:05 or "+
		"RFC 3339)")
	o.grouper.add(c)
	c.Flags().Var(&o.fold, "fold", "fold what has less than this share of all bytes; 0 shows all")
	c.Flags().IntVar(&o.depth, "depth", 0, "show so many levels of nodes; 0: all")
	c.Flags().StringVar(&o.find, "find", "", "show only groups whose key matches this regular expression, what is "+
		"below and what is above them")
	c.Flags().StringVar(&o.list, "list", "", "list the objects of the group with this path of keys, '/' between "+
		"them (lossless mode)")
	c.Flags().IntVar(&o.limit, "limit", o.limit, "with --list: so many objects at most; 0: all")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (heapcam.group/1), nothing folded; with --list one object "+
		"a line")
	c.Flags().BoolVar(&o.csv, "csv", false, "print CSV, a row for each node, nothing folded")
	return c
}

func (o *groupOptions) run(w io.Writer, path string) error {
	if o.json && o.csv {
		return usage("group: --json and --csv exclude each other")
	}
	if err := o.parse(); err != nil {
		return err
	}
	var find *regexp.Regexp
	if o.find != "" {
		var err error
		if find, err = regexp.Compile(o.find); err != nil {
			return usage("--find: %v", err)
		}
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	needs, _ := classify.Needs(o.by_, o.filters)
	r, c, err := stateAt(rec, o.at, needs == 0 && o.list == "")
	if err != nil {
		return err
	}
	world, spaces := analysis.World(r, c)
	g, err := analysis.Group(r, c, world, spaces, o.by_, o.filters)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.list != "" {
		return o.printList(w, r, g, spaces)
	}
	if find != nil {
		if g.Tree = g.Tree.Search(func(key string) bool {
			return find.MatchString(key) || find.MatchString(label(key))
		}); g.Tree == nil {
			return withCode(exitNotFound, "no group matches --find %s: `heapcam group --fold 0` shows all groups",
				o.find)
		}
	}
	switch {
	case o.json:
		return ui.JSON(w, g)
	case o.csv:
		return g.WriteCSV(w)
	}
	ui.Fprintf(w, "Live after %s: %d objects, %s\n", collectionName(g.GC, g.JVMGC, g.Time), g.Objects,
		ui.Bytes(g.Bytes))
	ui.Fprintf(w, "Grouped by %s\n", ui.Join(g.By, ", "))
	if !g.Exact {
		ui.Fprintf(w, "~ marks estimates from samples; --json gives their 95 %% intervals.\n")
	}
	ui.Fprintf(w, "\n")
	o.table(w, g.Tree)
	return nil
}

// collectionName names a collection by heapcam's number and the JVM log's.
func collectionName(gc, jvm uint64, at time.Time) string {
	return fmt.Sprintf("collection %d (GC(%d) of the JVM's log, %s)", gc, jvm, at.Local().Format(time.DateTime))
}

// table prints a tree.
func (o *groupOptions) table(w io.Writer, root *classify.Node) {
	if o.fold > 0 {
		root = root.Fold(float64(o.fold))
	}
	ui.Fprintf(w, "%12s  %11s  %8s  %s\n", "OBJECTS", "BYTES", "SHARE", "GROUP")
	all := max(root.Bytes, 1)
	root.Walk(func(path []string, n *classify.Node) bool {
		mark := ""
		if n.Estimated {
			mark = "~"
		}
		indent := ui.Text("")
		if len(path) > 0 {
			indent = ui.Text(strings.Repeat("  ", len(path)-1) + "• ")
		}
		ui.Fprintf(w, "%12s  %11s  %8s  %s%s\n", mark+strconv.FormatUint(n.Objects, 10), mark+ui.Bytes(n.Bytes),
			ui.Part(n.Bytes, all), indent, label(n.Key))
		return o.depth == 0 || len(path) < o.depth
	})
}

// olderShown is how classify.BeforeTape is shown.
const olderShown = "(before the recording)"

// label is the key of a group as text shows it.
func label(key string) string {
	if key == classify.BeforeTape {
		return olderShown
	}
	return key
}

// labels are keys as text shows them.
func labels(keys []string) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = label(k)
	}
	return out
}

// printList lists the objects of the node at o.list.
func (o *groupOptions) printList(w io.Writer, r *heap.View, g *analysis.Grouping, spaces []heap.SpaceAt) error {
	n := g.Tree.FindPath(strings.ReplaceAll(o.list, olderShown, classify.BeforeTape), "/")
	if n == nil {
		return withCode(exitNotFound, "no group has the path %q: `heapcam group --fold 0` shows all groups", o.list)
	}
	enc := ui.JSONLines(w)
	if !o.json {
		ui.Fprintf(w, "%18s %12s %8s  %s\n", "ADDRESS", "BYTES", "BORN AT", "CLASS AND ALLOCATION SITE (BORN AT: "+
			"collection)")
	}
	count := 0
	var werr error
	g.List(r, n, spaces, o.by_, o.filters, func(l analysis.ListedObject) bool {
		if count++; o.limit > 0 && count > o.limit {
			ui.Fprintf(ui.Stderr, "heapcam: only the first %d objects are listed; --limit 0 lists all\n", o.limit)
			return false
		}
		if o.json {
			werr = enc.Encode(l)
			return werr == nil
		}
		site := ui.Text("")
		if len(l.Site) > 0 {
			site = ui.Sprintf("  at %s", l.Site[0])
		}
		mark := ""
		if l.AtLeast {
			mark = "≤"
		}
		_, werr = ui.Fprintf(w, "%18s %12d %8s  %s%s\n", l.Address, l.Bytes, mark+strconv.FormatUint(l.Birth, 10),
			l.Class, site)
		return werr == nil
	})
	return werr
}

type classifiersOptions struct {
	defs string
	json bool
}

func newClassifiersCmd() *cobra.Command {
	var o classifiersOptions
	c := &cobra.Command{
		Use:   "classifiers",
		Short: "The classifiers that group, diff and trend know",
		Long: `Lists all classifiers with what they say, their cardinality and an example: the built-in ones, and
those of heapcam.classifiers.yaml. Such a file holds a list below "classifiers:", each with name,
description, example, cardinality (one, many or hierarchy) and expression.

Expressions (the language is expr-lang's) see of each object: type, package, loader, array, kind,
length, size, age, atleast, birth, space, spacetype, spacemode, address, thread, confidence and site
with site.known, site.top(N), site.frames() and site.has(TEXT); beside the language's own functions
path(KEY, …) for a hierarchy, power(N) for ranges of powers of two and glob(TEXT, PATTERN). They are
evaluated once for each distinct combination of the properties that they name. A list gives several
keys, none gives (others). An evaluation that takes too much memory or time ends with an error.

Which part of the VM allocated an object (ICPE'18's allocating subsystem) can not be known on a
stock VM. What points to what is not recorded.`,
		Example: "  heapcam classifiers\n  heapcam classifiers --json | jq -r '.classifiers[].name'",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := library(o.defs)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(c.OutOrStdout(), struct {
					ui.Envelope
					Classifiers []classify.Doc `json:"classifiers"`
				}{ui.NewEnvelope("classifiers", 1), l.Docs()})
			}
			for _, d := range l.Docs() {
				ui.Fprintf(c.OutOrStdout(), "%s (%s)\n    %s\n    gives: %s\n    example: --by '%s'\n",
					d.Name+strings.TrimSuffix("("+d.Args+")", "()"), d.Cardinality, d.Text, d.Keys, d.Example)
			}
			return nil
		},
	}
	c.Flags().StringVar(&o.defs, "classifiers", "",
		"file of user-defined classifiers (default heapcam.classifiers.yaml, if it is there)")
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (heapcam.classifiers/1)")
	return c
}
