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
}

func newAttachCmd() *cobra.Command {
	var o attachOptions
	c := &cobra.Command{
		Use:   "attach JVM",
		Short: "Have the agent record a running JVM",
		Long: "attach asks the running agent (`heapcam agent`) to load the probe into JVM: a pid, the beginning of " +
			"an id, or a name.\n" +
			"What no flag sets is as the agent is configured. Without an agent use `heapcam record`.",
		Args: exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam doctor`)"),
		RunE: func(c *cobra.Command, args []string) error {
			opts, err := o.options(c)
			if err != nil {
				return err
			}
			cl, err := dialAgent(o.socket)
			if err != nil {
				return err
			}
			r, err := cl.Attach(c.Context(), api.AttachRequest{JVM: args[0], Options: opts})
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(ui.Stdout, struct {
					ui.Envelope
					api.AttachReply
				}{ui.NewEnvelope("attach", 1), r})
			}
			ui.Fprintf(ui.Stderr, "heapcam: recording %s (pid %d) into %s\n", r.Name, r.PID, r.Dir)
			return nil
		},
	}
	o.rec.addProbe(c)
	addSocket(c, &o.socket)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// options are those of the probe that flags set: the agent knows the others.
func (o *attachOptions) options(c *cobra.Command) (string, error) {
	var all recordOptions
	all.add(&cobra.Command{}) // defaults, so that what stands here is checked as everywhere
	all.depth, all.sampling, all.shmSize = o.rec.depth, o.rec.sampling, o.rec.shmSize
	all.names, all.untested = o.rec.names, o.rec.untested
	all.stack, all.maxSync = o.rec.stack, o.rec.maxSync
	if err := all.check(); err != nil {
		return "", err
	}
	set := c.Flags().Changed
	var opts []string
	if set("depth") {
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
	return strings.Join(opts, ","), nil
}

func addSocket(c *cobra.Command, p *string) {
	bind(c.Flags(), "socket", p)
}

// socketPath gives where the agent of this user listens.
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

// clientSocket gives where an agent listens that this user may ask: its own, else the host's.
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

// noAgent says why the agent on path can not be asked.
func noAgent(path string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("this user may not ask the agent on %s (%w): try as root, or as a member of "+
			"the group %s", path, err, api.Group)
	}
	return withCode(exitNotFound, "no agent listens on %s: start it (`heapcam service start`, or `heapcam agent`), "+
		"or record without one (`heapcam record`) (%v)", path, err)
}

// resolve finds the running JVM that ref means.
func resolve(ref string) (jvms.JVM, error) {
	j, err := jvms.Resolve(ref)
	if e, ok := err.(*jvms.NotFoundError); ok && !e.Process {
		return j, fmt.Errorf("%w (`heapcam doctor` lists the JVMs here)", err)
	}
	return j, err
}

// ringAppears bounds the wait for the ring of a probe that was loaded.
const ringAppears = 10 * time.Second

// awaitRing waits until a records j, into which the probe was loaded.
func awaitRing(ctx context.Context, a *agent.Agent, j jvms.JVM) (session.Status, error) {
	ctx, stop := context.WithTimeout(ctx, ringAppears)
	defer stop()
	st, err := a.Await(ctx, j.PID, j.StartTicks)
	var refused *agent.RefusedError
	switch {
	case errors.As(err, &refused):
		return st, jvms.Errorf(jvms.Unrecordable, "pid %d (%s) can not be recorded: %s", j.PID, j.Name, refused.Reason)
	case errors.Is(err, agent.ErrNoRing):
		if _, gone := jvms.Inspect(j.PID); gone != nil {
			return st, jvms.Errorf(jvms.Ended, "pid %d (%s) has gone", j.PID, j.Name)
		}
		return st, jvms.Errorf(jvms.NoRing,
			"the probe was loaded into pid %d (%s) but no ring of it appeared within %v: "+
				"its line on the JVM's stderr says why", j.PID, j.Name, ringAppears)
	case err != nil:
		return st, fmt.Errorf("pid %d (%s): %w", j.PID, j.Name, err)
	}
	return st, nil
}
