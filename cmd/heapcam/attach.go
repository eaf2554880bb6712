package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

type attachOptions struct {
	rec    recordOptions
	socket string
	json   bool
	yes    bool
}

func newAttachCmd() *cobra.Command {
	var o attachOptions
	c := &cobra.Command{
		Use:   "attach JVM",
		Short: "Ask the agent to record a running JVM",
		Long: `Use it when an agent runs and does not record JVM yet. Without an agent, use ` + "`heapcam record`" + `.

The agent loads the probe into JVM: a pid, a name (main class or jar), or the beginning of an id;
` + "`heapcam doctor`" + ` lists them. A setting that no flag sets has the value of the agent's configuration. The verb
returns as soon as the agent records JVM.`,
		Example: `  heapcam attach 4711
  heapcam attach --depth samples shop`,
		Args: exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam doctor`)"),
		RunE: func(c *cobra.Command, args []string) error {
			opts, err := o.options(c)
			if err != nil {
				return err
			}
			if err := o.rec.confirmed(o.yes); err != nil {
				return err
			}
			cl, err := dialAgent(o.socket)
			if exitCode(err) == exitNotFound {
				return fmt.Errorf("%w. `heapcam record JVM` needs no agent", err)
			}
			if err != nil {
				return err
			}
			r, err := cl.Attach(c.Context(), api.AttachRequest{JVM: args[0], Options: opts})
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(ui.Stdout, attachReply{ui.NewEnvelope("attach", 1), r})
			}
			ui.Fprintf(ui.Stderr, "heapcam: recording %s (pid %d) into %s\n", r.Name, r.PID, r.Dir)
			return nil
		},
	}
	o.rec.addProbe(c)
	addSocket(c, &o.socket)
	addYes(c, &o.yes)
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.attach/1).")
	exitsWith(c, "3", "No agent runs, or no such JVM.")
	exitsWith(c, "4", "Only root and members of the group "+api.Group+" may ask this agent to attach.")
	exitsWith(c, "5", "heapcam cannot record JVM. `heapcam doctor JVM` says why.")
	return c
}

// options gives the options of the probe that flags set. The agent adds the others.
func (o *attachOptions) options(c *cobra.Command) (string, error) {
	var all recordOptions
	all.add(&cobra.Command{}) // defaults, so that check sees complete options
	all.depth, all.sampling, all.shmSize = o.rec.depth, o.rec.sampling, o.rec.shmSize
	all.names, all.untested = o.rec.names, o.rec.untested
	all.stack, all.maxSync, all.sites = o.rec.stack, o.rec.maxSync, o.rec.sites
	if err := all.check(); err != nil {
		return "", err
	}
	set := c.Flags().Changed
	var opts []string
	if set("sites") && o.rec.exact() {
		opts = append(opts, "depth=full", o.rec.exactOption())
	} else if set("sites") {
		opts = append(opts, "exact=0")
	}
	if set("depth") && !o.rec.exact() {
		opts = append(opts, "depth="+o.rec.depth)
	}
	if set("sampling") {
		opts = append(opts, fmt.Sprintf("interval=%d", int64(o.rec.sampling)))
	}
	if set("stack-depth") {
		opts = append(opts, fmt.Sprintf("stack=%d", o.rec.stack))
	}
	if set("shm-size") {
		opts = append(opts, fmt.Sprintf("ring=%d", int64(o.rec.shmSize)))
	}
	if set("max-sync-pause") {
		opts = append(opts, fmt.Sprintf("max_sync=%d", o.rec.maxSync.Milliseconds()))
	}
	if set("thread-names") {
		opts = append(opts, "names="+o.rec.names)
	}
	if o.rec.untested {
		opts = append(opts, "allow_untested=1")
	}
	if set("proven-sites") && !o.rec.proven {
		opts = append(opts, "newsites=0")
	} else if set("proven-sites") {
		opts = append(opts, "newsites=1")
	}
	return strings.Join(opts, ","), nil
}

func addYes(c *cobra.Command, yes *bool) {
	c.Flags().BoolVar(yes, "yes", false, "Allow what --sites exact does to a JVM that runs: it stops for each 512 "+
		"classes and compiles its code anew. It keeps 8 to 11 KiB of native memory for each loaded class, and up to "+
		"3 KiB more in each further recording, of which there can be 8. JDK 17 loses the names of parameters "+
		"(javac -parameters).")
}

func addSocket(c *cobra.Command, p *string) {
	bind(c.Flags(), "socket", p)
	inSection(c.Flags(), ownFlags, "socket")
}

// socketPath gives the socket of this user's agent.
func socketPath(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if s := os.Getenv("HEAPCAM_SOCKET"); s != "" {
		return s, nil
	}
	if privileged() {
		return systemSocket, nil
	}
	dir, err := place.PrivateDir()
	return filepath.Join(dir, "agent.sock"), err
}

// clientSocket gives the socket of the agent that this user may ask: its own, else the host's.
func clientSocket(flag string) (string, error) {
	path, err := socketPath(flag)
	if err != nil || flag != "" || os.Getenv("HEAPCAM_SOCKET") != "" {
		return path, err
	}
	if _, err := os.Lstat(path); err != nil {
		if _, err := os.Lstat(systemSocket); err == nil {
			return systemSocket, nil
		}
	}
	return path, nil
}

func dialAgent(flag string) (*api.Client, error) {
	path, err := clientSocket(flag)
	if err != nil {
		return nil, err
	}
	c, err := api.Dial(path)
	if err != nil {
		return nil, noAgent(path, err)
	}
	return c, nil
}

// noAgent says why the agent on path cannot be asked.
func noAgent(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("this user may not use the agent on %s (%w): run the command as root or as a member of "+
			"the group %s", path, err, api.Group)
	}
	if os.IsTimeout(err) {
		return fmt.Errorf("the agent on %s does not answer: the machine is busy or the agent hangs (`heapcam service "+
			"status`); try again", path)
	}
	return withCode(exitNotFound, "no agent listens on %s: start one with `heapcam service start` or `heapcam "+
		"agent`, or give the socket of one with --socket", path)
}

// resolve finds the running JVM that ref means.
func resolve(ref string) (jvms.JVM, error) {
	j, err := jvms.Resolve(ref)
	if _, ok := err.(*jvms.NotFoundError); ok {
		return j, fmt.Errorf("%w (`heapcam doctor` lists the JVMs of this host)", err)
	}
	return j, err
}

// ringAppears is how long a verb waits for the shared ring of a probe that was loaded.
const ringAppears = 10 * time.Second

// takesOver is how long it may take to find the ring of a JVM whose recorder was killed.
const takesOver = 5 * time.Second

// load loads the probe into j and waits until a records it. A recorder that was killed leaves the probe and its ring:
// a continues there. loaded: this call put the probe there, so an error leaves a probe that nobody else records.
func load(ctx context.Context, a *agent.Agent, j jvms.JVM, rings, opts string) (
	st session.Status, loaded bool, err error,
) {
	err = place.Load(ctx, j, rings, opts)
	if err == nil {
		st, err = awaitRing(ctx, a, j)
		return st, true, err
	}
	if jvms.ObstacleOf(err) != jvms.Already {
		return session.Status{}, false, err
	}
	within, stop := context.WithTimeout(ctx, takesOver)
	defer stop()
	st, none := a.Await(within, j.PID, j.StartTicks)
	var disk *session.StoreError
	switch {
	case errors.As(none, &disk): // its ring is free, but the recording cannot be stored
		return st, false, fmt.Errorf("pid %d (%s): %w", j.PID, j.Name, none)
	case none != nil: // somebody else records it
		return st, false, err
	}
	return st, false, nil
}

// awaitRing waits until a records j, into which the probe was loaded.
func awaitRing(ctx context.Context, a *agent.Agent, j jvms.JVM) (session.Status, error) {
	ctx, stop := context.WithTimeout(ctx, ringAppears)
	defer stop()
	st, err := a.Await(ctx, j.PID, j.StartTicks)
	var refused *agent.RefusedError
	switch {
	case errors.As(err, &refused):
		return st, jvms.Errorf(jvms.Unrecordable, "pid %d (%s) cannot be recorded: %s", j.PID, j.Name, refused.Reason)
	case errors.Is(err, agent.ErrNoRing):
		if _, gone := jvms.Inspect(j.PID); gone != nil {
			return st, jvms.Errorf(jvms.Ended, "pid %d (%s) ended while the probe was loaded", j.PID, j.Name)
		}
		return st, jvms.Errorf(jvms.NoRing,
			"the probe was loaded into pid %d (%s), but its shared ring did not appear within %s: "+
				"see the probe's line on the JVM's stderr", j.PID, j.Name, ui.Duration(ringAppears))
	case err != nil:
		return st, fmt.Errorf("pid %d (%s): %w", j.PID, j.Name, err)
	}
	return st, nil
}
