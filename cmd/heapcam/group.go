package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/bucket"
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

const groupingHelp = `A list of classifiers, separated by commas, defines the levels of the tree. A classifier is a name
(` + "`heapcam classifiers`" + ` explains all) or an expression over the properties of an object. If the current folder
contains the file heapcam.classifiers.yaml, you can also use the names that it defines. --where keeps only the objects
for which an expression is true.`

// fileHelp and atUsage explain what all reading verbs have in common.
const (
	fileHelp = "\n\nFILE is a file that `heapcam pull` wrote, a ring folder (DIR), a ring file, or the name or pid " +
		"of a JVM that is or was recorded. For a recording in another folder than the usual ones give DIR/NAME."
	atUsage = "Collection to show: a number, first, last, peak (most live bytes), or a time (15:04:05, " +
		"2026-11-21 15:04:05 or RFC 3339). Times are local; add Z for UTC."
)

func (g *grouper) add(c *cobra.Command) {
	if g.by == "" {
		g.by = defaultBy
	}
	c.Flags().StringVar(&g.by, "by", g.by, "Classifiers that define the levels, separated by commas.")
	c.Flags().StringArrayVar(&g.where, "where", nil,
		"Keep only objects for which this expression is true. If you repeat the flag, all must be true.")
	c.Flags().StringVar(&g.defs, "classifiers", "",
		"File with your own classifiers. Default heapcam.classifiers.yaml, if it exists.")
}

// library gives the built-in classifiers and those of the file.
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

// parse creates the classifiers and filters. Its errors are errors of usage.
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

// again gives new classifiers and filters, because their budgets are per state.
func (g *grouper) again() ([]classify.Classifier, []classify.Filter) {
	if err := g.parse(); err != nil { // the first read succeeded; ignore that the file has changed since
		return g.by_, g.filters
	}
	return g.by_, g.filters
}

// openReading opens what the argument of a reading verb names: a pulled file, a ring folder, a ring file, or a JVM
// that is or was recorded (name, pid or id, as `heapcam status` lists them), or an object of a bucket.
func openReading(arg string) (*ringstore.Recording, error) {
	path, err := readingPath(arg)
	if err != nil {
		return nil, err
	}
	return openRecording(path)
}

// readingPath finds the file or folder that the argument of a reading verb names. What a path names, and an object of a
// bucket, it gives as they are: openRecording says what is wrong with them.
func readingPath(arg string) (string, error) {
	if bucket.Is(arg) {
		return arg, nil
	}
	st, err := os.Stat(arg)
	if strings.ContainsRune(arg, os.PathSeparator) || err == nil && !st.IsDir() {
		if dir, name := filepath.Split(filepath.Clean(arg)); err != nil { // DIR/JVM, as for a run --out DIR
			if recs, _ := recordings([]string{dir}); len(recs) > 0 {
				s, err := pick(recs, name)
				if err == nil {
					return s.Dir, nil
				}
				listRecordings(recs)
				return "", withCode(exitCode(err), "%s: no recording in %s has this name, id or pid", arg, dir)
			}
		}
		return arg, nil
	}
	if err == nil && (isRecording(arg) || len(ringFolders(arg)) > 0) {
		return arg, nil
	}
	dir, nerr := recordingNamed(arg)
	if code := exitCode(nerr); err == nil && (code == exitNotFound || code == exitDenied) {
		return arg, nil
	}
	return dir, nerr
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
		if closedTo("") != "" {
			return "", orDenied(err, "", ref)
		}
		return "", withCode(exitNotFound, "%q: there is no such file, and no such recording in %s; name one in "+
			"another folder as DIR/%s", ref, strings.Join(outDirs(""), " or "), ref)
	}
	return s.Dir, err
}

// readingArg is what openReading takes, as the end of an error.
const readingArg = "one FILE: a pulled recording, a ring folder, a ring file, or a recorded JVM"

type groupOptions struct {
	grouper
	at, find  string
	atNamed   bool // by the user
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
		Short: "Group the live objects after one collection, by class, site, age and more",
		Long: `Use it to ask what the heap contains, and from where.

The verb groups the objects that were live after one collection into a tree, without eden: only what a full collection
left there counts. Each node shows objects, bytes and their share; the largest node is first. ` + groupingHelp + `

Figures are exact if no level uses allocation sites. Sites are known from samples, so below them figures are
estimates, marked with ~. Where references were listed after the collection (heapcam references), the verb also shows
how much of each group is garbage. Who holds objects is known after such a collection only: without --at the verb takes
the newest one. JSON and CSV give the bounds that contain the true number with 95 % probability. In a
recording with --sampling 0 all figures are exact, unless samples were lost. With --sites exact the innermost frame of a
site is exact. The verb draws its callers among the live samples that end there, and shows their share; the bounds allow
any other of these callers. Objects whose site is not known have a group of their own, and so have objects that may be
older than the recording. An object in several groups counts in each of them, and once in their parent: the groups may
add up to more than the parent. ` + fileHelp,
		Example: `  heapcam group incident.heapcam
  heapcam group --at peak --by 'package, type, ages' incident.heapcam
  heapcam group --by 'age > 9 ? "old" : "young", type' --where 'size >= 1024' incident.heapcam
  heapcam group --by 'holder, type' --where 'retained > 1000' incident.heapcam
  heapcam group --list 'java.util.HashMap$Node' --by type incident.heapcam
  heapcam group --json incident.heapcam | jq '.tree.children[0]'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error {
			o.atNamed = c.Flags().Changed("at")
			return o.run(c.OutOrStdout(), args[0])
		},
	}
	c.Flags().StringVar(&o.at, "at", o.at, atUsage)
	o.grouper.add(c)
	c.Flags().Var(&o.fold, "fold", "Combine groups with less than this share of all bytes; 0 = show all groups.")
	c.Flags().IntVar(&o.depth, "depth", 0, "Number of levels to show. Default 0 = all.")
	c.Flags().StringVar(&o.find, "find", "", "Show only groups whose name matches this regular expression, with all "+
		"groups above and below them.")
	c.Flags().StringVar(&o.list, "list", "", "List the objects of one group. PATH is the names of the groups that "+
		"lead to it, separated by /.")
	c.Flags().IntVar(&o.limit, "limit", o.limit, "With --list: largest number of objects; 0 = all.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.group/1) with all groups. With --list, print one "+
		"JSON object per line.")
	c.Flags().BoolVar(&o.csv, "csv", false, "Print CSV: one row per group, all groups.")
	inSection(c.Flags(), "Grouping", "by", "where", "classifiers", "at")
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
	lists := listingsOf(rec)
	if n := len(lists.gcs); needs&classify.AttrRefs != 0 && !o.atNamed && n > 0 {
		o.at = strconv.FormatUint(lists.gcs[n-1], 10)
		ui.Fprintf(ui.Stderr, "heapcam: after collection %s, the newest with a reference listing; --at names another "+
			"one\n", o.at)
	}
	r, c, known, err := stateAt(rec, o.at, needs == 0 && o.list == "" && len(lists.gcs) == 0)
	if err != nil {
		return err
	}
	world, spaces := analysis.World(r, c)
	garbage, err := lists.label(r, c.GC, world, needs)
	if err != nil {
		return err
	}
	world.LostSamples = known != nil && known.Lost
	if known != nil {
		analysis.DrawCallers(world, r, known.Callers().Frozen())
	}
	if known != nil && o.list == "" {
		analysis.Prove(world, r.Symbols, known)
	}
	grouped := analysis.Group
	if garbage && o.list == "" {
		grouped = analysis.GroupApart
	}
	g, err := grouped(r, c, world, spaces, o.by_, o.filters)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.list != "" {
		return o.printList(w, r, g, spaces)
	}
	if find != nil {
		if g.Tree = g.Tree.Search(func(key string) bool {
			return find.MatchString(key)
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
	ui.Paragraph(w, "", 0, ui.Flowf("Live after %s: %d objects, %s", ui.Flow(collectionName(g.GC, g.JVMGC, g.Time)),
		g.Objects, ui.Flow(ui.Bytes(g.Bytes))))
	ui.Fprintf(w, "Grouped by %s\n", ui.Join(g.By, ", "))
	if !g.Exact {
		ui.Fprintf(w, "~ marks estimates from samples; --json and --csv give their 95 %% intervals.\n")
	}
	ui.Fprintf(w, "\n")
	o.table(w, g.Tree)
	groupNotes(w, g, garbage)
	if needs&classify.AttrSite != 0 {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "Sites known:", 13, known.Newest.Sentence())
	}
	return nil
}

// groupNotes explains what the table shows beside figures.
func groupNotes(w io.Writer, g *analysis.Grouping, garbage bool) {
	if garbage {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, "GARBAGE: part of the bytes that nothing keeps alive. It has not been collected yet.")
	}
	if g.Drawn() {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, drawnLegend)
	}
}

// drawnLegend explains drawnMark.
const drawnLegend = ui.Flow("callers drawn: the innermost frame is exact; the callers are as in live samples " +
	"that end there. The percentage is the share of the objects with this frame.")

// collectionName names a collection by heapcam's number and the JVM log's.
func collectionName(gc, jvm uint64, at time.Time) string {
	return fmt.Sprintf("collection %d (GC(%d) of the JVM's log, %s)", gc, jvm, ui.Time(at))
}

// table prints a tree.
func (o *groupOptions) table(w io.Writer, root *grouping.Node) {
	if o.fold > 0 {
		root = root.Fold(float64(o.fold))
	}
	dead := func(*grouping.Dead) ui.Text { return "" }
	if root.Dead != nil {
		dead = func(d *grouping.Dead) ui.Text {
			if d == nil {
				d = &grouping.Dead{}
			}
			return ui.Sprintf("%11s  ", ui.Bytes(d.Bytes))
		}
		ui.Fprintf(w, "%12s  %11s  %11s  %8s  %s\n", "OBJECTS", "BYTES", "GARBAGE", "SHARE", "GROUP")
	} else {
		ui.Fprintf(w, "%12s  %11s  %8s  %s\n", "OBJECTS", "BYTES", "SHARE", "GROUP")
	}
	all := max(root.Bytes, 1)
	root.Walk(func(path []string, n *grouping.Node) bool {
		mark := ""
		if n.Estimated {
			mark = "~"
		}
		indent := ui.Text("")
		if len(path) > 0 {
			indent = ui.Text(strings.Repeat("  ", len(path)-1) + "• ")
		}
		ui.Beside(w, ui.Sprintf("%12s  %11s  %s%8s  %s", mark+strconv.FormatUint(n.Objects, 10), mark+ui.Bytes(n.Bytes),
			dead(n.Dead), ui.Part(n.Bytes, all), indent),
			ui.Sprintf("%s", n.Key)+fillerMark(n.Key)+drawnMark(n.Drawn, n.Share))
		return o.depth == 0 || len(path) < o.depth
	})
}

// drawnMark says that objects are in a group because their callers were drawn, and with which share.
func drawnMark(drawn uint64, share float64) ui.Text {
	if drawn == 0 {
		return ""
	}
	if share == 0 { // of several groups that were combined
		return "  (callers drawn)"
	}
	return ui.Sprintf("  (callers drawn: %s)", ui.Share(share))
}

// printList lists the objects of the node at o.list.
func (o *groupOptions) printList(w io.Writer, r *heap.View, g *analysis.Grouping, spaces []heap.SpaceAt) error {
	n := g.Tree.FindPath(o.list, "/")
	if n == nil {
		return withCode(exitNotFound, "no group has the path %q: `heapcam group --by '%s' --fold 0` shows all groups",
			o.list, o.by)
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
		Short: "List the classifiers for group, diff and trend",
		Long: `Each entry has the meaning, the cardinality and an example. The list contains the built-in
classifiers and your own of heapcam.classifiers.yaml. That file has a list ` + "`classifiers:`" + `. Each item has
the keys name, description, example, cardinality (one, many or hierarchy) and expression.

Expressions are in the language expr-lang. They can use these properties of an object: type, package, loader, array,
kind, length, size, age, atleast, birth, space, spacetype, spacemode, address, thread, confidence and site. A site has
site.known, site.top(N), site.frames() and site.has(TEXT). Besides the functions of the language there are
path(KEY, …) for a hierarchy, power(N) for ranges of powers of two, and glob(TEXT, PATTERN). A list gives an object
several keys; an empty list puts it into (others). An evaluation that needs too much memory or time ends with an
error.

With a reference listing after the collection there are also reachable, rootkind, holder, retained, pointsto,
pointedfrom and health, as classifiers and as properties: ` + "`retained > 1000000`, `\"byte[]\" in pointsto`" + `.

One classifier of other tools is missing: which part of the VM allocated an object. A stock JVM does not say it.`,
		Example: "  heapcam classifiers\n  heapcam classifiers --json | jq -r '.classifiers[].name'",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			l, err := library(o.defs)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(c.OutOrStdout(), classifiersReply{ui.NewEnvelope("classifiers", 1), l.Docs()})
			}
			for _, d := range l.Docs() {
				ui.Fprintf(c.OutOrStdout(), "%s (%s)\n    %s\n    gives: %s\n    example: --by '%s'\n",
					d.Name+strings.TrimSuffix("("+d.Args+")", "()"), d.Cardinality, d.Text, d.Keys, d.Example)
			}
			return nil
		},
	}
	c.Flags().StringVar(&o.defs, "classifiers", "",
		"File with your own classifiers. Default heapcam.classifiers.yaml, if it exists.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.classifiers/1).")
	return c
}
