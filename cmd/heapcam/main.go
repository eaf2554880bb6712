// Command heapcam is a dashcam for the JVM heap: it records running JVMs into a bounded ring, and reads what was recorded. One file a
// verb; docs/operations.md documents verbs, flags and exit codes. Data goes to stdout, talk to stderr.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/internal/ui"
)

// version is set by the build (-ldflags -X main.version=…).
var version = "dev"

func main() {
	code, attended := attend(os.Args[1:])
	if !attended {
		answer := answering()
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
		ui.Fprintf(ui.Stderr, "heapcam: %v\n", err)
	}
	if code == exitUsage {
		ui.Fprintf(ui.Stderr, "heapcam: `heapcam help` lists the verbs, `heapcam help VERB` their flags\n")
	}
	return code
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "heapcam",
		Short:         "A dashcam for the JVM heap",
		Long:          "heapcam records what lives in the heap of running JVMs into a ring of files that never grows past its limit.\nAfter an incident, pull the last part and see the heap at every collection of it.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(ui.Stdout)
	root.SetErr(ui.Stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", plainly(err)) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newRunCmd(), newRecordCmd(), newAgentCmd(), newAttachCmd(), newDetachCmd(), newPauseCmd(), newResumeCmd(), newCostCmd(), newBundleCmd(), newStatusCmd(), newPullCmd(), newFreezeCmd(), newIncidentsCmd(),
		newReportCmd(), newHistogramCmd(), newVerifyCmd(), newDumpCmd(), newDoctorCmd(), newConfigCmd(), newReloadCmd(), newServiceCmd(), newManCmd(), newVersionCmd(),
		newLeaksCmd(), newQualityCmd(), newHistoriesCmd(),
		newViewCmd(),
	)
	root.AddCommand(newGroupCmd(), newClassifiersCmd(), newDiffCmd(), newTrendCmd(), newExportCmd())
	return root
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if c.HasSubCommands() {
		return usage("unknown verb %q", args[0])
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
