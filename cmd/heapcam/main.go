// Command heapcam is a dashcam for the JVM heap: it records running JVMs into a bounded ring, and reads recordings.
//
// Each verb has a file of its own. help.go prints the help, and docs/reference is generated from the same texts
// (go generate). Data goes to stdout, messages to stderr. exit.go maps typed errors to exit codes.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/internal/attend"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// Set by the build (-ldflags -X main.version=…), which reads the version here if no tag names one (tools/version).
var (
	version = "0.1.0-dev"
	commit  = "" // of the sources; -dirty: they were changed since
)

func main() {
	collectLate()
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

// firstCollection is how large the heap may grow before Go's collector runs for the first time, in units of its usual
// 4 MiB: a short command needs none.
const firstCollection = 8

// collectLate has the first collection of our own heap come later, unless GOGC says what the user wants. After it the
// heap may double between two collections, as usual, or grow by what keepSmall says.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	usual := debug.SetGCPercent(100 * firstCollection)
	runtime.SetFinalizer(new(*int), func(**int) { debug.SetGCPercent(cmp.Or(int(growth.Load()), usual)) })
}

// growth is the percentage that keepSmall has set; 0: none.
var growth atomic.Int32

// keepSmall has our own heap collected whenever it has grown by so many percent, unless GOGC says what the user wants.
func keepSmall(percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	growth.Store(int32(percent))
	debug.SetGCPercent(percent)
}

// run executes one command line and gives its exit code.
func run(args []string) int {
	setAside.Store(false)
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	if unwritten := ui.Written(); err == nil {
		err = unwritten
	}
	if err == nil && setAside.Load() {
		return exitDamaged
	}
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if !silent(err) {
		printError(err)
	}
	var bad *codeError
	if errors.As(err, &bad) && bad.misused != nil {
		hint := ui.Text("`heapcam help` lists the verbs")
		if bad.misused.HasParent() && bad.misused.Name() != "help" {
			hint = ui.Sprintf("`heapcam help %s` lists the arguments and flags", verbPath(bad.misused))
		}
		ui.Fprintf(ui.Stderr, "heapcam: %s\n", hint)
	}
	return code
}

// verbPath is what the user types behind "heapcam" for a verb.
func verbPath(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// printError prints an error. It may contain anybody's text, so its newlines are escaped. If it points at a place in
// an expression that the user wrote, the expression and a caret follow on lines of their own.
func printError(err error) {
	var bad *classify.SpecError
	if !errors.As(err, &bad) {
		ui.Fprintf(ui.Stderr, "heapcam: %v\n", onFullDisk(err))
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

// onFullDisk says which disk is full and what to do, where nobody nearer to the error has.
func onFullDisk(err error) error {
	var own *codeError
	var at *fs.PathError
	if errors.As(err, &own) || !ringstore.DiskFull(err) || !errors.As(err, &at) {
		return err
	}
	if at.Path == ui.RawStdout().Name() {
		return fmt.Errorf("the disk that stdout writes to is full, so the output is incomplete. Free some space and "+
			"run the same command again (%w)", err)
	}
	dir := filepath.Dir(at.Path)
	return fmt.Errorf("the disk of %s is full%s. Free some space and run the same command again (%w)", dir,
		freeOn(dir), err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "heapcam",
		Short:         "A dashcam for the JVM heap",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
	}
	root.SetOut(ui.Stdout)
	root.SetErr(ui.Stderr)
	version := root.Flags().Bool("version", false, "Print the version, as the verb version does.")
	root.RunE = func(c *cobra.Command, _ []string) error {
		if *version {
			return newVersionCmd().RunE(c, nil)
		}
		return c.Help()
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return misused(c, usage("%s", plainly(err))) })
	root.SetHelpCommand(newHelpCmd())
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(c) })
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, g := range verbGroups() {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, v := range g.verbs {
			v.GroupID = g.id
			root.AddCommand(v)
		}
	}
	root.AddCommand(newExitCodesTopic(), newTermsTopic())
	each(root, func(c *cobra.Command) {
		if check := c.Args; check != nil {
			c.Args = func(c *cobra.Command, args []string) error { return misused(c, check(c, args)) }
		}
		finishFlags(c.Flags())
		finishFlags(c.PersistentFlags())
	})
	return root
}

// each calls f with c and every command below it.
func each(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, s := range c.Commands() {
		each(s, f)
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
	return usage("%s takes no arguments, but got %q", path(c), args[0])
}

// atMostOne allows one argument, what, or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage("%s takes at most one argument, %s, but got %d", path(c), what, len(args))
		}
		return nil
	}
}

// path is a verb as the user types it, without "heapcam".
func path(c *cobra.Command) string { return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ") }

func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s needs %s", path(c), what)
		}
		return nil
	}
}
