package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/svc"
)

type agentOptions struct {
	rec    recordOptions
	socket string
	rings  string

	service bool
}

func newAgentCmd() *cobra.Command {
	var o agentOptions
	c := &cobra.Command{
		Use:   "agent",
		Short: "The daemon: record many JVMs, continue after a restart, answer on a Unix socket",
		Long: "agent watches a folder for the rings of JVMs that load the probe (by `heapcam attach`, or by\n" +
			"-agentpath:LIB=dir=FOLDER in their own options; `heapcam agent` prints both on start) and records each of them.\n" +
			"One that comes back continues each recording where the shared ring stands.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return asService(o.service, o.run) },
	}
	o.rec.add(c)
	addSocket(c, &o.socket)
	c.Flags().BoolVar(&o.service, "service", false, "run below the control manager of Windows, and log to its event log")
	c.Flags().StringVar(&o.rings, "rings", "/dev/shm", "where the folder for shared rings, heapcam-UID, is made")
	return c
}

// run runs the agent until ctx is done.
func (o *agentOptions) run(ctx context.Context) error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if strings.ContainsAny(o.rings, ",:") { // they part the probe's options
		return usage("--rings %s: its name may hold neither comma nor colon", o.rings)
	}
	if o.rec.out == "" && os.Getenv("HEAPCAM_OUT") == "" && os.Getuid() == 0 {
		o.rec.out = systemOut
	}
	sock, err := socketPath(o.socket)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(sock), 0o700); err != nil {
		return fmt.Errorf("folder of the socket: %w", err)
	}
	rings := filepath.Join(o.rings, "heapcam-"+strconv.Itoa(os.Getuid()))
	if err := ownDir(rings, os.Getuid()); err != nil {
		return fmt.Errorf("--rings: %w", err)
	}
	logTo := io.Writer(os.Stderr)
	if o.service {
		logTo = svc.Log(logTo)
	}
	cfg := o.rec.config(logTo)
	level := zerolog.InfoLevel
	if o.rec.verbose {
		level = zerolog.DebugLevel
	}
	cfg.Log = newLog(logTo, level)
	cfg.Watch = []string{rings}
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	if lib, err := installProbe(); err != nil {
		cfg.Log.Warn().Err(err).Msg("this agent can only record JVMs that load a probe of their own")
	} else {
		cfg.Log.Info().Str("option", "-agentpath:"+lib+"="+o.rec.probeOptions(rings)).Msg("JVMs with this option are recorded")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		svc.Notify(ctx, agentAlive(a, sock))
	}()
	go resume(ctx, a, o.rings)
	cfg.Log.Info().Str("socket", sock).Str("rings", rings).Str("out", a.Out()).Msg("agent is ready")
	err = a.Serve(ctx, sock, o.attacher(a), exitCode)
	cancel()
	<-done
	<-told
	return err
}

func (o *agentOptions) attacher(a *agent.Agent) agent.Attacher {
	return func(ctx context.Context, r agent.AttachRequest) (agent.AttachReply, error) {
		j, err := resolve(r.JVM)
		if err != nil {
			return agent.AttachReply{}, err
		}
		for _, s := range a.Status() { // a probe that was detached stays mapped: j.Recorded says too much
			if s.PID == j.PID && s.StartTicks == j.StartTicks && !s.Phase.Over() {
				return agent.AttachReply{}, withCode(exitUsage, "pid %d (%s) is being recorded already", j.PID, j.Name)
			}
		}
		asJVM, ours, err := ringDirFor(j, o.rings)
		if err != nil {
			return agent.AttachReply{}, err
		}
		a.Watch(ours)
		opts := r.Options
		if opts == "" {
			opts = strings.TrimPrefix(o.rec.probeOptions("-"), "dir=-,")
		}
		if err := loadProbe(ctx, j, asJVM, opts); err != nil {
			return agent.AttachReply{}, err
		}
		st, err := awaitRing(ctx, a, j)
		if err != nil {
			return agent.AttachReply{}, err
		}
		return agent.AttachReply{ID: st.ID, PID: j.PID, Name: j.Name, Dir: st.Dir}, nil
	}
}
