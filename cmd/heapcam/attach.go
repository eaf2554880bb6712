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
	"github.com/heapcam/heapcam/agent/attach"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/trace"
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
		Long:  "attach asks the running agent (`heapcam agent`) to load the probe into JVM: a pid, the beginning of an id, or a name.\nWhat no flag sets is as the agent is configured. Without an agent use `heapcam record`.",
		Args:  exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam doctor`)"),
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
				return remote(err)
			}
			if o.json {
				return ui.JSON(ui.Stdout, struct {
					Schema string `json:"schema"`
					api.AttachReply
				}{"heapcam.attach/1", r})
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
	all.depth, all.sampling, all.ring, all.names, all.untested = o.rec.depth, o.rec.sampling, o.rec.ring, o.rec.names, o.rec.untested
	all.stack = o.rec.stack
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
	if set("ring") {
		opts = append(opts, fmt.Sprintf("ring=%d", int64(o.rec.ring)))
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
	c.Flags().StringVar(p, "socket", "", "socket of the agent (default $HEAPCAM_SOCKET, else "+systemSocket+" as root, else in the user's runtime folder)")
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
	dir, err := privateDir()
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
		return withCode(exitDenied, "this user may not ask the agent on %s (%v): try as root, or as a member of the group %s", path, err, api.Group)
	}
	return withCode(exitNotFound, "no agent listens on %s: start it (`heapcam service start`, or `heapcam agent`), or record without one (`heapcam record`) (%v)", path, err)
}

func remote(err error) error {
	if e, ok := err.(*api.RemoteError); ok {
		return withCode(codeOf(e.Kind), "%s", e.Text)
	}
	return err
}

// resolve finds the running JVM that ref means.
func resolve(ref string) (jvms.JVM, error) {
	j, err := jvms.Resolve(ref)
	switch e := err.(type) {
	case *jvms.NotFoundError:
		if e.Process {
			return j, withCode(exitNoRecord, "%w", err)
		}
		return j, withCode(exitNotFound, "%w (`heapcam doctor` lists the JVMs here)", err)
	case *jvms.AmbiguousError:
		return j, withCode(exitUsage, "%w", err)
	}
	return j, err
}

// refusal says why j can not be recorded, as far as that is seen from outside.
func refusal(j jvms.JVM, options string) error {
	v := jvms.Doctor(j)
	if v.Recordable || v.Problem == jvms.UntestedMajor && strings.Contains(options, "allow_untested=1") {
		return nil
	}
	err := fmt.Errorf("pid %d (%s) can not be recorded: %s", j.PID, j.Name, v.Reason)
	if v.Remedy != "" {
		err = fmt.Errorf("%w; %s", err, v.Remedy)
	}
	if v.Problem == jvms.NoRights {
		return withCode(exitDenied, "%w", err)
	}
	return withCode(exitNoRecord, "%w", err)
}

// loadProbe loads the probe into j, which refusal has nothing against. ringDir gives the folder for its ring, first as the JVM sees it, then as we do; the library is put
// where the JVM can read it.
func loadProbe(ctx context.Context, j jvms.JVM, ringDirAsJVM, options string) error {
	b, err := probe.Library()
	if err != nil {
		return err
	}
	place := installLibrary
	if j.UID != os.Getuid() || j.Container {
		place = func(b []byte) (string, error) { return libraryFor(j, b) }
	}
	lib, err := place(b)
	if err != nil {
		return err
	}
	load := func() error { return attach.Load(ctx, j.PID, lib, "dir="+ringDirAsJVM+","+options) }
	err = load()
	var refused *attach.ReturnError
	// A JVM takes commands before it gives JVMTI to those who come by one.
	for end := time.Now().Add(jvmStarts); errors.As(err, &refused) && refused.Code == trace.LoadJVMTI && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(startAgain)
		err = load()
	}
	var unloaded *attach.LoadError
	switch {
	case errors.As(err, &refused) && refused.Code == trace.LoadJVMTI:
		return withCode(exitNoRecord, "pid %d (%s) can not be recorded: it does not give the JVMTI that the probe needs, or has not started within %v", j.PID, j.Name, jvmStarts)
	case errors.As(err, &refused):
		return withCode(exitNoRecord, "pid %d (%s) can not be recorded: the probe refused it (code %d); its line on the JVM's stderr says why", j.PID, j.Name, refused.Code)
	case errors.As(err, &unloaded):
		return withCode(exitNoRecord, "pid %d (%s) can not be recorded: it can not load %s: %s", j.PID, j.Name, lib, unloaded.Text)
	}
	return err
}

// How long a JVM that gives no JVMTI is taken for one that is starting, and how often it is asked.
const (
	jvmStarts  = 5 * time.Second
	startAgain = 100 * time.Millisecond
)

// ringAppears bounds the wait for the ring of a probe that was loaded.
const ringAppears = 10 * time.Second

// unsaid is an error that is there to be asked for, and says nothing.
type unsaid struct{ error }

func (u unsaid) Error() string { return "" }
func (u unsaid) Unwrap() error { return u.error }

// awaitRing waits until a records j, into which the probe was loaded.
func awaitRing(ctx context.Context, a *agent.Agent, j jvms.JVM) (session.Status, error) {
	ctx, stop := context.WithTimeout(ctx, ringAppears)
	defer stop()
	st, err := a.Await(ctx, j.PID, j.StartTicks)
	var refused *agent.RefusedError
	switch {
	case errors.As(err, &refused):
		return st, withCode(exitNoRecord, "pid %d (%s) can not be recorded: %s", j.PID, j.Name, refused.Reason)
	case errors.Is(err, agent.ErrNoRing):
		if _, gone := jvms.Look(j.PID); gone != nil {
			return st, withCode(exitNotFound, "pid %d (%s) has gone", j.PID, j.Name)
		}
		return st, withCode(exitNoRecord, "the probe was loaded into pid %d (%s) but no ring of it appeared within %v: its line on the JVM's stderr says why%w", j.PID, j.Name, ringAppears, unsaid{agent.ErrNoRing})
	case err != nil:
		return st, fmt.Errorf("pid %d (%s): %w", j.PID, j.Name, err)
	}
	return st, nil
}

// ringDirFor makes the folder in which j's probe makes its ring: as the JVM sees it, and as we do.
func ringDirFor(j jvms.JVM, base string) (asJVM, ours string, err error) {
	name := fmt.Sprintf("heapcam-%d", j.UID)
	if j.Container {
		return ringDirIn(j, base, name)
	}
	dir := filepath.Join(base, name)
	return dir, dir, ownDirOf(j, dir)
}
