package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/internal/ui"
)

const (
	// drainTime bounds the reading of what JVMs left in their rings after the command has ended.
	drainTime = 60 * time.Second
	// dyingTime is the patience with a JVM that is going but not gone when the command has ended.
	dyingTime = 700 * time.Millisecond
	// detachTime bounds the wait for JVMs that outlive the command to let go.
	detachTime = 5 * time.Second
)

type runOptions struct {
	rec    recordOptions
	freeze bool
}

func newRunCmd() *cobra.Command {
	var o runOptions
	c := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARG…]",
		Short: "Run a command and record every JVM that it or anything below it starts",
		Long: "run starts COMMAND with JAVA_TOOL_OPTIONS set, so that each JVM below it loads the probe, and records " +
			"them until COMMAND ends.\n" +
			"Input, output, signals and the exit status pass through: " +
			"128+n when the command was ended by signal n, 125 when heapcam itself " +
			"failed, 126 or 127 when the command can not be executed or found. " +
			"Each JVM says \"Picked up JAVA_TOOL_OPTIONS: …\" on its stderr.\n" +
			"A command line that has a JVM write a CDS archive (-XX:ArchiveClassesAtExit and others) runs " +
			"unrecorded: such a JVM refuses agents.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withCode(exitRunFailed, "run needs a command: heapcam run [flags] -- COMMAND…")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return o.run(args)
		},
	}
	c.Flags().SetInterspersed(false)
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return withCode(exitRunFailed, "%v", err) })
	o.rec.add(c)
	c.Flags().BoolVar(&o.freeze, "freeze-on-failure", false,
		"keep the window as an incident when COMMAND ends with a status other than 0")
	return c
}

func (o *runOptions) run(args []string) error {
	fail := func(err error) error { return withCode(exitRunFailed, "%w", err) }
	if err := o.rec.check(); err != nil {
		return fail(err)
	}
	path, err := exec.LookPath(args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		if errors.Is(err, fs.ErrPermission) {
			return withCode(exitNotExec, "%w", err)
		}
		return withCode(exitNoCommand, "%w", err)
	}
	if option, where := place.WritesArchive(args); option != "" {
		ui.Fprintf(ui.Stderr, "heapcam: the command runs unrecorded: a JVM that writes an archive of classes "+
			"(%s, in %s) does not start with an agent; \"heapcam record\" can attach to it later\n", option, where)
		p, err := o.command(path, args, os.Environ())
		if err != nil {
			return err
		}
		return status(waitStatus(p))
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
	a, err := agent.New(cfg)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	stop := func() { cancel(); <-done }
	defer stop()
	go jvms.TakeOverBelow(ctx, rings, func(ctx context.Context, j jvms.JVM) {
		a.Await(ctx, j.PID, j.StartTicks) // what is wrong the agent has logged
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

// command runs the command to its end, with signals given on to it.
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

// finish reads what is left. JVMs that outlive the command are let go: nobody would read their rings any more.
func (o *runOptions) finish(a *agent.Agent) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := a.Drain(ctx); err != nil {
		ui.Fprintf(ui.Stderr, "heapcam: not all rings were read to their end: %v\n", err)
	}
	dying, stop := context.WithTimeout(ctx, dyingTime) // a killed JVM with a large heap takes its time
	defer stop()
	if a.Idle(dying) == nil {
		return
	}
	if n, _ := a.Detach(""); n > 0 {
		ui.Fprintf(ui.Stderr, "heapcam: %s outlived the command: no longer recorded\n", ui.Plural(uint64(n), "JVM"))
		ctx, cancel := context.WithTimeout(context.Background(), detachTime)
		defer cancel()
		a.Idle(ctx)
	}
}

// freezeAll keeps the windows of all recordings that were not frozen already.
func freezeAll(a *agent.Agent, reason string) {
	for _, s := range a.Status() {
		if s.Incident != "" {
			continue
		}
		if i, err := a.Freeze(s.ID, reason); err != nil {
			ui.Fprintf(ui.Stderr, "heapcam: %s could not be frozen: %v\n", s.ID, err)
		} else {
			ui.Fprintf(ui.Stderr, "heapcam: frozen: %s\n", i.ID)
		}
	}
}

// report tells where the recordings are of a command that ended with status code.
func report(a *agent.Agent, code int) {
	all := a.Status()
	for _, s := range all {
		ui.Fprintf(ui.Stderr, "heapcam: recorded %s\n", summary(s))
	}
	switch {
	case len(all) > 0:
	case code != 0:
		ui.Fprintf(ui.Stderr, "heapcam: no JVM was recorded: none was started, or it ignores JAVA_TOOL_OPTIONS, or "+
			"it does not start with an agent (if it writes a CDS archive, clear JAVA_TOOL_OPTIONS for it)\n")
	default:
		ui.Fprintf(ui.Stderr, "heapcam: no JVM was recorded: none was started, or it ignores JAVA_TOOL_OPTIONS\n")
	}
}

// withToolOptions sets JAVA_TOOL_OPTIONS in env, behind what is there.
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
