// Command heapcam is a dashcam for the JVM heap: it records running JVMs into a bounded ring, and reads what was
// recorded. One file a verb; docs/operations.md documents verbs, flags and exit codes. Data goes to stdout, talk to
// stderr.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/internal/attend"
	"github.com/heapcam/heapcam/internal/ui"
)

// Set by the build (-ldflags -X main.version=…), which reads the version here if no tag names one (tools/version).
var (
	version = "0.1.0-dev"
	commit  = "" // of the sources; -dirty: they were changed since
)

func main() {
	code, attended := 0, false
	if c, _, err := newRoot().Find(os.Args[1:]); err == nil && leavesDisk(c) {
		code, attended = attend.Run()
	}
	if !attended {
		answer := attend.Answering()
		code = run(os.Args[1:])
		answer(code)
	}
	ui.Flush()
	os.Exit(code)
}

// run executes one command line and gives its exit code.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if !silent(err) {
		tell(err)
	}
	var bad *codeError
	if errors.As(err, &bad) && bad.misused {
		ui.Fprintf(ui.Stderr, "heapcam: `heapcam help` lists the verbs, `heapcam help VERB` their flags\n")
	}
	return code
}

// tell prints an error. An error may hold anybody's text, so that its newlines are escaped; where it points at a place
// in what the user wrote, that stands in lines of its own.
func tell(err error) {
	var bad *classify.SpecError
	if !errors.As(err, &bad) {
		ui.Fprintf(ui.Stderr, "heapcam: %v\n", err)
		return
	}
	why, _, _ := strings.Cut(err.Error(), "\n  "+bad.Spec+"\n")
	ui.Fprintf(ui.Stderr, "heapcam: %s\n", ui.Prose(why))
	spec := ui.Prose(bad.Spec)
	ui.Fprintf(ui.Stderr, "  %s\n", spec)
	if string(spec) == bad.Spec { // else the column is another
		ui.Fprintf(ui.Stderr, "  %s\n", ui.Text(bad.Caret()))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "heapcam",
		Short: "A dashcam for the JVM heap",
		Long: "heapcam records what lives in the heap of running JVMs into a ring of files that never " +
			"grows past its limit.\nAfter an incident, pull the last part and see the heap at every collection of it.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
	}
	root.SetOut(ui.Stdout)
	root.SetErr(ui.Stderr)
	version := root.Flags().Bool("version", false, "print what the verb version prints")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *version {
			return newVersionCmd().RunE(c, nil)
		}
		return c.Help()
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misused(usage("%s", plainly(err))) })
	root.SetHelpCommand(newHelpCmd())
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ",
		fmt.Sprintf("Flags.FlagUsagesWrapped %d ", helpColumns)))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newRunCmd(), newRecordCmd(), newAgentCmd(), newAttachCmd(), newDetachCmd(), newPauseCmd(), newResumeCmd(),
		newCostCmd(), newBundleCmd(), newStatusCmd(), newPullCmd(), newFreezeCmd(), newIncidentsCmd(),
		newReportCmd(), newHistogramCmd(), newVerifyCmd(), newDumpCmd(), newDoctorCmd(), newConfigCmd(),
		newReloadCmd(), newServiceCmd(), newManCmd(), newVersionCmd(),
		newLeaksCmd(), newCoverageCmd(), newHistoryCmd(),
		newViewCmd(),
	)
	root.AddCommand(newGroupCmd(), newClassifiersCmd(), newDiffCmd(), newTrendCmd(), newExportCmd(),
		newExitCodesTopic())
	each(root, func(c *cobra.Command) {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error { return misused(check(c, args)) }
		}
		namePlaceholders(c.Flags())
		namePlaceholders(c.PersistentFlags())
		c.Long = wrapped(c.Long)
	})
	return root
}

// helpColumns is how long a line of help may be.
const helpColumns = 100

// wrapped breaks lines of help that are too long, between words.
func wrapped(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		for utf8.RuneCountInString(line) > helpColumns {
			end := len(string([]rune(line)[:helpColumns+1]))
			at := strings.LastIndexByte(line[:end], ' ')
			if at <= 0 || strings.TrimSpace(line[:at]) == "" {
				break
			}
			out, line = append(out, line[:at]), line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// each calls f with c and every command below it.
func each(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, s := range c.Commands() {
		each(s, f)
	}
}

// newHelpCmd is cobra's own, but that an unknown verb is an error.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "What a verb does, and its flags",
		RunE: func(c *cobra.Command, args []string) error {
			verb, rest, err := c.Root().Find(args)
			if err != nil {
				return misused(err)
			}
			if len(rest) > 0 {
				return misused(unknownVerb(verb, rest[0]))
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

// unknownVerb names the verbs below c that were probably meant.
func unknownVerb(c *cobra.Command, word string) error {
	c.SuggestionsMinimumDistance = 2
	near := c.SuggestionsFor(word)
	if len(near) == 0 {
		return usage("unknown verb %q", word)
	}
	prefix := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	for i, n := range near {
		near[i] = "`" + strings.TrimSpace(prefix+" "+n) + "`"
	}
	return usage("unknown verb %q; did you mean %s?", word, strings.Join(near, " or "))
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		return unknownVerb(c, args[0])
	}
	return usage("%s takes no argument, got %q", c.Name(), args[0])
}

// atMostOne takes one argument, what, or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s takes one %s, got %d arguments", c.Name(), what, len(args))
		}
		return nil
	}
}

func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s needs %s", c.Name(), what)
		}
		return nil
	}
}
