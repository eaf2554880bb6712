package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/config"
)

// helpColumns is the longest line of help, and proseColumns the longest line of its paragraphs.
const (
	helpColumns  = 100
	proseColumns = 96
)

// verbGroup is a task of the user and the verbs for it, in the order of `heapcam help`.
type verbGroup struct {
	id, title string
	verbs     []*cobra.Command
}

func init() { cobra.EnableCommandSorting = false } // verbs are listed in the order of verbGroups

func verbGroups() []verbGroup {
	return []verbGroup{
		{"record", "Record", []*cobra.Command{
			newRunCmd(), newRecordCmd(), newAttachCmd(), newStatusCmd(), newPauseCmd(), newResumeCmd(),
			newReferencesCmd(),
			newDetachCmd(), newPullCmd(), newFreezeCmd(), newIncidentsCmd()}},
		{"read", "Read a recording", []*cobra.Command{
			newReportCmd(), newLeaksCmd(), newViewCmd(), newHistogramCmd(), newGroupCmd(), newDiffCmd(),
			newTrendCmd(), newHistoryCmd(), newLifetimesCmd(), newDragCmd(), newWhatifCmd(), newHoldersCmd(),
			newPathsCmd(), newDominatorsCmd(), newLoadersCmd(), newExportCmd(), newCoverageCmd(),
			newClassifiersCmd(), newVerifyCmd(), newDumpCmd()}},
		{"operate", "Operate", []*cobra.Command{
			newDoctorCmd(), newServiceCmd(), newAgentCmd(), newConfigCmd(), newReloadCmd(), newCostCmd(),
			newBundleCmd(), newVersionCmd(), newManCmd()}},
	}
}

const rootHelp = `heapcam is a dashcam for the JVM heap. It records what happens in the heap of running JVMs, into files
that never grow past a limit: the newest data replaces the oldest. After an incident you copy the last part of the
recording. On any machine you then see the heap after every garbage collection: what grew, and which line of code
allocated it.`

// firstCommands are what a newcomer should type.
var firstCommands = []struct{ line, does string }{
	{"heapcam run -- java -jar app.jar", "record a program from its start"},
	{"heapcam report app", "show what grew, who allocated it, and what leaks"},
}

// printHelp prints the help of c. It contains texts of this program alone, nothing of a recording.
func printHelp(c *cobra.Command) {
	_, _ = io.WriteString(c.OutOrStdout(), helpText(c)) // an error of stdout cannot be reported anywhere
}

// helpText gives the help of c.
func helpText(c *cobra.Command) string {
	if !c.HasParent() {
		return rootText(c)
	}
	var b strings.Builder
	if !c.Runnable() { // a topic
		return c.Short + ":\n\n" + filled(c.Long) + "\n"
	}
	fmt.Fprintf(&b, "%s.\n\nUsage:\n  %s\n", c.Short, c.UseLine())
	if c.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", filled(c.Long))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nVerbs:\n%s", verbLines(c.Commands()))
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
	}
	for _, s := range flagSections(c) {
		fmt.Fprintf(&b, "\n%s:\n%s", s.title, s.flags.FlagUsagesWrapped(helpColumns))
	}
	if codes := exitNotes(c); len(codes) > 0 {
		b.WriteString("\nExit codes (`heapcam help exit-codes` lists all):\n")
		for _, e := range codes {
			fmt.Fprintf(&b, "  %-6s %s\n", e.code, indented(e.meaning, 9))
		}
	}
	return b.String()
}

// rootText is what `heapcam` and `heapcam help` print.
func rootText(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(filled(rootHelp) + "\n\nStart with:\n")
	for _, f := range firstCommands {
		fmt.Fprintf(&b, "  %-36s %s\n", f.line, f.does)
	}
	for _, g := range root.Groups() {
		other := func(c *cobra.Command) bool { return c.GroupID != g.ID }
		verbs := slices.DeleteFunc(slices.Clone(root.Commands()), other)
		fmt.Fprintf(&b, "\n%s:\n%s", g.Title, verbLines(verbs))
	}
	b.WriteString("\n" + filled("`heapcam help VERB` explains a verb, with examples and flags. "+
		"`heapcam help terms` explains the words, `heapcam help exit-codes` the exit codes. "+
		"`heapcam doctor` says which JVMs of this host heapcam can record.") + "\n")
	return b.String()
}

func verbLines(verbs []*cobra.Command) string {
	var b strings.Builder
	for _, v := range verbs {
		if v.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-15s %s\n", v.Name(), v.Short)
		}
	}
	return b.String()
}

// filled breaks paragraphs between words. A blank line ends a paragraph, "- " begins an item of a list, and a line
// that begins with two blanks stays as it is.
func filled(text string) string {
	var out []string
	para := ""
	flush := func() {
		if para != "" {
			indent := 0
			if strings.HasPrefix(para, "- ") {
				indent = 2
			}
			out = append(out, brokenAt(para, proseColumns, indent))
		}
		para = ""
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line == "":
			flush()
			out = append(out, "")
		case strings.HasPrefix(line, "  ") && strings.HasPrefix(para, "- "):
			para += line[1:]
		case strings.HasPrefix(line, "  "):
			flush()
			out = append(out, line)
		case strings.HasPrefix(line, "- "):
			flush()
			para = line
		case para == "":
			para = line
		default:
			para += " " + line
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// indented breaks text that begins at a column, and indents the lines after the first one to it.
func indented(text string, column int) string { return brokenAt(text, helpColumns-column, column) }

// brokenAt breaks a paragraph into lines of so many columns, those after the first one behind an indent.
func brokenAt(para string, columns, indent int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(para) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n"+strings.Repeat(" ", indent))
}

// exitNote says what an exit code means for one verb.
type exitNote struct{ code, meaning string }

const exitKey = "exit codes"

// exitsWith adds to the help of c what an exit code means for this verb.
func exitsWith(c *cobra.Command, code, meaning string) {
	all := map[string]string{}
	maps.Copy(all, c.Annotations) // which several verbs may share
	all[exitKey] += code + "\t" + meaning + "\n"
	c.Annotations = all
}

// exitNotes gives what exitsWith added.
func exitNotes(c *cobra.Command) (out []exitNote) {
	for line := range strings.Lines(c.Annotations[exitKey]) {
		code, meaning, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, exitNote{code, meaning})
	}
	return out
}

// flagSection is a heading of help and the flags below it.
type flagSection struct {
	title string
	flags *pflag.FlagSet
}

const (
	sectionKey  = "heapcam-section"
	ownFlags    = "Flags"
	remoteFlags = "Ask the agent of another host"
)

// inSection moves flags below a heading of their own.
func inSection(fs *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, sectionKey, []string{title}); err != nil {
			panic(err)
		}
	}
}

// settingsTitle is the heading of the flags of a group of settings.
func settingsTitle(group string) string { return "Settings: " + strings.ToLower(group[:1]) + group[1:] }

// sectionOf gives the heading of the group of settings that key is in.
func sectionOf(key string) string {
	for _, g := range config.Groups {
		if slices.ContainsFunc(g.Defs, func(d config.Def) bool { return d.Key == key }) {
			return settingsTitle(g.Title)
		}
	}
	return ownFlags
}

// flagSections gives the flags of c below their headings, settings last.
func flagSections(c *cobra.Command) (out []flagSection) {
	byTitle := map[string]*pflag.FlagSet{}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if f.Name == "help" {
			f.Usage = "Print this help."
		}
		title := ownFlags
		if t := f.Annotations[sectionKey]; len(t) > 0 {
			title = t[0]
		}
		if byTitle[title] == nil {
			byTitle[title] = pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
		}
		byTitle[title].AddFlag(f)
	})
	last := []string{ownFlags, remoteFlags}
	for _, g := range config.Groups {
		last = append(last, settingsTitle(g.Title))
	}
	isLast := func(title string) bool { return slices.Contains(last, title) }
	order := append(slices.DeleteFunc(slices.Sorted(maps.Keys(byTitle)), isLast), last...)
	for _, title := range order {
		if fs := byTitle[title]; fs != nil {
			out = append(out, flagSection{title, fs})
		}
	}
	return out
}

// newHelpCmd is cobra's own, but that an unknown verb is an error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Explain a verb, with examples and flags",
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := c.Root().Find(args)
			if err != nil {
				return misused(c, err)
			}
			if len(rest) > 0 {
				return misused(c, unknownVerb(verb, rest[0]))
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

// terms are the words that the help uses.
var terms = []struct{ word, meaning string }{
	{"agent", "The daemon that records many JVMs: `heapcam agent`, or the service."},
	{"collection", "One garbage collection. A recording has the heap after each of them."},
	{"depth", "How much heapcam records: samples, survivors or full (`heapcam config explain depth`)."},
	{"incident", "A part of a recording that is kept when the recording itself is overwritten. To make room for " +
		"a new incident, heapcam deletes the oldest that it made by itself, and none of yours."},
	{"live", "Not known to be dead. In old space an object counts as live until its space is collected."},
	{"old space", "The part of the heap for objects that have survived several collections."},
	{"probe", "The small library that heapcam loads into a JVM."},
	{"recorder", "What stores the probe's data on disk: `heapcam run`, `record` or `agent`."},
	{"recording", "What heapcam wrote about one JVM: a folder of ring files."},
	{"reference", "A field or an array element that leads from one object to another. They are recorded in " +
		"listings: for incidents, at intervals and on request."},
	{"ring", "The ring files of a recording together. At the limit the newest data replaces the oldest."},
	{"ring file", "One file of a recording. It can be read alone."},
	{"ring folder", "The folder with the ring files of one recording."},
	{"root", "What holds an object from outside the heap, such as a local variable or a thread."},
	{"sample", "An allocation whose stack the probe recorded."},
	{"shared ring", "The memory through which the probe passes data to the recorder."},
	{"site", "Allocation site: the line of code that allocated an object, with its callers."},
	{"sync point", "A list of all live objects, which the probe writes during a pause. Reading begins at one."},
	{"window", "The time that a recording covers."},
}

// newTermsTopic is not a verb but a page of help.
func newTermsTopic() *cobra.Command {
	text := ""
	for _, t := range terms {
		text += fmt.Sprintf("  %-12s %s\n", t.word, indented(t.meaning, 15))
	}
	return &cobra.Command{Use: "terms", Short: "Words that the help uses", Long: text}
}
