package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

const (
	// drainTime is how long run reads at most from the shared rings after the command has ended.
	drainTime = 60 * time.Second
	// dyingTime is how long run waits for a JVM that is ending when the command has ended.
	dyingTime = 700 * time.Millisecond
)

type runOptions struct {
	rec    recordOptions
	drag   string
	freeze bool
}

func newRunCmd() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG…]",
		Short: "Run a command, and record every JVM that it starts",
		Long: `Use it for programs that you start yourself: on a laptop, in CI, or as a container's entry point.

heapcam sets the environment variable JAVA_TOOL_OPTIONS, so COMMAND and every JVM below it load the probe. It
records them until COMMAND ends. The recordings are in the folder of --out, by default ./heapcam-recordings.

COMMAND keeps its input and output, gets the signals, and sets the exit code. Each JVM prints "Picked up
JAVA_TOOL_OPTIONS: …" on stderr; heapcam cannot prevent that line. A JVM that writes a CDS archive (for example
with -XX:ArchiveClassesAtExit) does not start with an agent. heapcam runs such a command without recording it.`,
		Example: `  heapcam run -- java -jar app.jar
  heapcam run --max-trace-size 200MiB --freeze-on-failure -- mvn test`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withCode(exitRunFailed, "run needs a command: heapcam run [flags] -- COMMAND [ARG…]")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return o.run(args)
		},
	}
	c.Flags().SetInterspersed(false)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return withCode(exitRunFailed, "%s (`heapcam help run` lists the flags)", plainly(err))
	})
	o.rec.add(c)
	c.Flags().BoolVar(&o.freeze, "freeze-on-failure", false,
		"Keep the recording as an incident if COMMAND ends with a status other than 0.")
	c.Flags().StringVar(&o.drag, "drag", "", "Packages whose bytecode is changed so that it notes when objects are "+
		"used, for heapcam drag (experimental). Examples: com.example,org.other; app for all of the application; "+
		"all for the JDK, too.")
	exitsWith(c, "any other", "The exit code of COMMAND.")
	exitsWith(c, "125", "heapcam itself failed.")
	exitsWith(c, "126", "COMMAND is not executable.")
	exitsWith(c, "127", "COMMAND does not exist.")
	exitsWith(c, "128+n", "Signal n ended COMMAND.")
	return c
}

// packages is what --drag takes: names of packages or classes, which the probe gets as one option.
var packages = regexp.MustCompile(`^[A-Za-z_$][\w$.]*(,[A-Za-z_$][\w$.]*)*$`)

const mostPackages = 199 // bytes, in the probe

func (o *runOptions) setDrag() error {
	switch {
	case o.drag == "":
		return nil
	case !packages.MatchString(o.drag) || len(o.drag) > mostPackages:
		return usage("--drag %s: it must be app, all, or packages like com.example,org.other of at most %d bytes",
			o.drag, mostPackages)
	case o.rec.exact():
		return usage("--drag cannot be combined with --sites %s", o.rec.sites)
	}
	o.rec.drag = strings.ReplaceAll(o.drag, ",", "+")
	return nil
}

func (o *runOptions) run(args []string) error {
	fail := func(err error) error { return withCode(exitRunFailed, "%w", err) }
	if err := o.setDrag(); err != nil {
		return fail(err)
	}
	if err := o.rec.check(); err != nil {
		return fail(err)
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if errors.Is(err, fs.ErrPermission) {
			return withCode(exitNotExec, "run: %w", err)
		}
		return withCode(exitNoCommand, "run: %w", err)
	}
	if option, where := place.WritesArchive(args); option != "" {
		ui.Fprintf(ui.Stderr, "heapcam: the command runs without being recorded: a JVM that writes a CDS archive "+
			"(%s, in %s) does not start with an agent; you can attach later with \"heapcam record\"\n", option, where)
		p, err := o.command(path, args, os.Environ())
		if err != nil {
			return err
		}
		return status(waitStatus(p))
	}
	if few := fewTasks(); few != "" {
		ui.Fprintf(ui.Stderr, "heapcam: %s, and heapcam needs about %d beside the command's own: raise the limit if "+
			"either fails\n", few, ownTasks)
	}
	lib, err := place.InstallProbe()
	if err != nil {
		return fail(err)
	}
	dir, err := place.MakeRingDir("run", -1)
	if err != nil {
		return fail(err)
	}
	defer dir.Remove()
	rings := dir.Ours
	cfg := o.rec.config(ui.Stderr)
	cfg.Watch = []string{rings}
	if cfg.ReferencesInterval == 0 {
		cfg.ReferencesInterval = -1 // its age doubles
	}
	a, err := agent.New(cfg)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx)
	}()
	stop := func() { cancel(); <-done }
	defer stop()
	go jvms.TakeOverBelow(ctx, rings, func(ctx context.Context, j jvms.JVM) {
		_, _ = a.Await(ctx, j.PID, j.StartTicks) // the agent logs an error
	})

	p, err := o.command(path, args, withToolOptions(os.Environ(), "-agentpath:"+lib+"="+o.rec.probeOptions(rings)))
	if err != nil {
		return err
	}
	o.finish(a)
	stop()
	code := waitStatus(p)
	if code != 0 && o.freeze {
		freezeAll(a, fmt.Sprintf("the command ended with status %d", code))
	}
	report(a, code)
	return status(code)
}

// command runs the command to its end, and passes signals to it.
func (o *runOptions) command(path string, args, env []string) (*os.ProcessState, error) {
	cmd := &exec.Cmd{Path: path, Args: args, Env: env, Stdin: ui.RawStdin(), Stdout: ui.RawStdout(),
		Stderr: ui.RawStderr()}
	sigs := make(chan os.Signal, 32)
	signal.Notify(sigs, passedSignals()...)
	defer signal.Stop(sigs)
	if err := cmd.Start(); err != nil {
		return nil, withCode(exitNotExec, "%w", err)
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-sigs:
				passSignal(cmd.Process, s)
			case <-ended:
				return
			}
		}
	}()
	werr := cmd.Wait()
	close(ended)
	var exit *exec.ExitError
	if werr != nil && !errors.As(werr, &exit) {
		return nil, withCode(exitRunFailed, "%w", werr)
	}
	return cmd.ProcessState, nil
}

// finish reads the rest of the shared rings. It detaches from JVMs that outlive the command, because nobody would read
// their rings.
func (o *runOptions) finish(a *agent.Agent) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := a.Drain(ctx); err != nil {
		ui.Fprintf(ui.Stderr, "heapcam: the end of a recording may be missing: not all shared rings were read to "+
			"the end: %v\n", err)
	}
	dying, stop := context.WithTimeout(ctx, dyingTime) // a killed JVM with a large heap takes its time
	defer stop()
	if a.Idle(dying) == nil {
		return
	}
	if n, _ := a.Detach(""); n > 0 {
		ui.Fprintf(ui.Stderr, "heapcam: %s outlived the command and is no longer recorded\n", ui.Plural(uint64(n),
			"JVM"))
		_ = agentConfirms(a)
	}
}

// freezeAll keeps an incident of each recording that has none yet.
func freezeAll(a *agent.Agent, reason string) {
	for _, s := range a.Status() {
		if s.Incident != "" {
			continue
		}
		if i, err := a.Freeze(s.ID, reason); err != nil {
			ui.Fprintf(ui.Stderr, "heapcam: cannot keep the window of %s as an incident: %v\n", s.ID, err)
		} else {
			ui.Fprintf(ui.Stderr, "heapcam: kept %s as incident %s\n", s.ID, i.ID)
		}
	}
}

// shortPath gives path relative to the working folder if it is below it.
func shortPath(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// report says where the recordings of a command are that ended with status code.
func report(a *agent.Agent, code int) {
	all := a.Status()
	largest := session.Status{}
	for _, s := range all {
		if s.Phase.Over() && s.Dir != "" { // without reserved space, as status says it
			d, _ := onDisk(s.Dir) // somebody may have removed it
			s.TraceBytes, s.Files = d.TraceBytes, d.Files
		}
		ui.Fprintf(ui.Stderr, "heapcam: recorded %s\n", summary(s))
		if s.Dir != "" && s.TraceBytes > largest.TraceBytes {
			largest = s
		}
	}
	if largest.Dir != "" && ui.IsTerminal(ui.RawStderr()) {
		ui.Fprintf(ui.Stderr, "heapcam: next: heapcam report %s\n", ui.ShellWord(shortPath(largest.Dir)))
	}
	switch {
	case len(all) > 0:
	case code != 0:
		ui.Fprintf(ui.Stderr, "heapcam: no JVM was recorded. Either the command started none, or the JVM ignores "+
			"JAVA_TOOL_OPTIONS, or it does not start with an agent (if it writes a CDS archive, clear "+
			"JAVA_TOOL_OPTIONS for it), or a line above says why. One that ends within a second is not recorded if "+
			"/dev/shm has no room for its ring\n")
	default:
		ui.Fprintf(ui.Stderr, "heapcam: no JVM was recorded: either the command started none, or the JVM ignores "+
			"JAVA_TOOL_OPTIONS, or a line above says why. One that ends within a second is not recorded if "+
			"/dev/shm has no room for its ring\n")
	}
}

// withToolOptions adds option to JAVA_TOOL_OPTIONS in env, after the present value.
func withToolOptions(env []string, option string) []string {
	const key = "JAVA_TOOL_OPTIONS="
	out := make([]string, 0, len(env)+1)
	value := option
	for _, e := range env {
		if len(e) >= len(key) && e[:len(key)] == key {
			if old := e[len(key):]; old != "" {
				value = old + " " + option
			}
			continue
		}
		out = append(out, e)
	}
	return append(out, key+value)
}
