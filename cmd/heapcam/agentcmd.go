package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/metrics"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/svc"
)

type agentOptions struct {
	rec      recordOptions
	socket   string
	rings    string
	spool    string
	config   string
	discover bool
	service  bool
	metrics  string
	budget   percent
	pause    time.Duration
	cpu      percent
	memory   size
	disabled string
	remote   api.RemoteConfig
	rate     size
	maxPull  size
}

// leastMemory is what an agent of one JVM needs at its worst, two encoders and a table of sites: with less it would let go of what it has just begun.
const leastMemory = 64 << 20

func newAgentCmd() *cobra.Command { return (&agentOptions{}).command() }

func (o *agentOptions) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "The daemon: record many JVMs, continue after a restart, answer on a Unix socket",
		Long: "agent watches a folder for the rings of JVMs that load the probe (by `heapcam attach`, or by\n" +
			"-agentpath:LIB=dir=FOLDER in their own options; `heapcam agent` prints both on start) and records each of them.\n" +
			"One that comes back continues each recording where the shared ring stands.\n" +
			"With --spool FOLDER it also takes the rings that probes with -agentpath:LIB=spool:FOLDER made where no agent reaches\n" +
			"them (another container, a volume), and recordings that are put there.\n" +
			"With --discover it attaches by itself to each JVM that comes, as the rules of its configuration say (`heapcam config`).",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return asService(o.service, func(ctx context.Context) error { return o.run(ctx, c) })
		},
	}
	o.rec.add(c)
	addSocket(c, &o.socket)
	c.Flags().StringVar(&o.config, "config", "", "configuration file (default "+systemConfig+" if it is there)")
	c.Flags().BoolVar(&o.discover, "discover", false, "attach to every JVM that comes, as the rules of the configuration say")
	c.Flags().BoolVar(&o.service, "service", false, "run below the control manager of Windows, and log to its event log")
	c.Flags().Var(&o.budget, "overhead-cpu", "what the probe may cost a JVM, as a share of wall time (like 2%); above it, less depth and fewer samples; 0: any")
	c.Flags().DurationVar(&o.pause, "overhead-pause", 0, "what an ordinary collection's record may add to its pause (like 10ms); 0: any")
	c.Flags().Var(&o.cpu, "agent-max-cpu", "what the agent itself may take of one core (like 50%), all JVMs together, each the same part: above its part a JVM is compressed less, then recorded at a lower depth; 0: any")
	c.Flags().Var(&o.memory, "agent-max-memory", "memory that the agent itself may hold, shared rings apart: when it is nearly used up no further recording begins, then the largest is let go of; at least 64 MiB; 0: any")
	c.Flags().Lookup("agent-max-memory").DefValue = ""
	c.Flags().StringVar(&o.metrics, "metrics", "", "address for Prometheus (/metrics) and for health (/healthz), like 127.0.0.1:9464; empty: none")
	c.Flags().StringVar(&o.remote.Listen, "remote", "", "address for status and pulls from other hosts over HTTPS, like 0.0.0.0:9465; empty: none")
	c.Flags().StringVar(&o.remote.Cert, "remote-cert", "", "certificate of this host for --remote, PEM")
	c.Flags().StringVar(&o.remote.Key, "remote-key", "", "its key, PEM; nobody but its owner may read the file")
	c.Flags().StringVar(&o.remote.Tokens, "remote-tokens", "", "file of bearer tokens for --remote, lines of NAME SCOPE[,SCOPE] TOKEN with the scopes status and pull; nobody but its owner may read it")
	c.Flags().StringVar(&o.remote.ClientCA, "remote-client-ca", "", "who has a certificate of this CA may see and pull, PEM")
	c.Flags().Var(&o.rate, "remote-rate", "bytes a second that all pulls from other hosts may take; 0: any")
	c.Flags().Var(&o.maxPull, "remote-max-pull", "what one pull from another host may take, newest whole files; 0: any")
	c.Flags().StringVar(&o.disabled, "disabled", hostSwitch, "the host's switch: while this file is there nothing is recorded")
	_ = c.Flags().MarkHidden("disabled") // for tests: operators need one place to look at
	c.Flags().StringVar(&o.spool, "spool", "", "folder for rings of JVMs that this agent can not reach (probe option spool:DIR), and for recordings from elsewhere, which are taken; empty: none")
	c.Flags().StringVar(&o.rings, "rings", defaultRings, "where the folder for shared rings, heapcam-UID, is made")
	return c
}

// check finds what is wrong before anything is started.
func (o *agentOptions) check() error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if o.memory != 0 && o.memory < leastMemory {
		return usage("--agent-max-memory %s: at least %s", &o.memory, humanBytes(leastMemory))
	}
	if o.pause < 0 {
		return usage("--overhead-pause %v: it is negative", o.pause)
	}
	if strings.ContainsAny(o.rings, optionSeparators) {
		return usage("--rings %s: its name may hold none of %q, which part the probe's options", o.rings, optionSeparators)
	}
	if o.spool != "" && !filepath.IsAbs(o.spool) {
		return usage("--spool %s: an absolute path, please", o.spool)
	}
	for _, a := range []struct{ flag, address, like string }{{"metrics", o.metrics, "127.0.0.1:9464"}, {"remote", o.remote.Listen, "0.0.0.0:9465"}} {
		if _, _, err := net.SplitHostPort(a.address); a.address != "" && err != nil {
			return usage("--%s %s: it is no address (like %s)", a.flag, a.address, a.like)
		}
	}
	if o.remote.Listen != "" && (o.remote.Cert == "" || o.remote.Key == "" || o.remote.Tokens == "" && o.remote.ClientCA == "") {
		return usage("--remote needs --remote-cert and --remote-key, and --remote-tokens or --remote-client-ca")
	}
	return nil
}

// run runs the agent until ctx is done.
func (o *agentOptions) run(ctx context.Context, c *cobra.Command) error {
	kept := svc.Kept() // before anything could inherit them
	live, err := newLiveConfig(c, o.config)
	if err != nil {
		return err
	}
	if err := located(o.check(), live.settings); err != nil {
		return err
	}
	if o.rec.out == "" && os.Getenv("HEAPCAM_OUT") == "" && privileged() {
		o.rec.out = systemOut
	}
	sock, err := socketPath(o.socket)
	if err != nil {
		return err
	}
	if err := socketFolder(sock); err != nil {
		return fmt.Errorf("folder of the socket: %w", err)
	}
	rings := filepath.Join(o.rings, ringFolder())
	if err := ownDir(rings, os.Getuid()); err != nil {
		return fmt.Errorf("--rings: %w", err)
	}
	logTo := ui.Stderr
	if o.service {
		logTo = svc.Log(logTo)
	}
	cfg := o.rec.config(logTo)
	level := zerolog.InfoLevel
	if o.rec.verbose {
		level = zerolog.DebugLevel
	}
	cfg.Log = newLog(logTo, level)
	cfg.Watch, cfg.Spool = []string{rings}, o.spool
	o.limit(&cfg)
	cfg.Kept = kept
	if svc.Store() {
		cfg.KeepFD = svc.Keep
		cfg.DropFD = func(name string) {
			if err := svc.Drop(name); err != nil {
				cfg.Log.Warn().Err(err).Str("descriptor", name).
					Msg("cannot have systemd drop a descriptor: it keeps the ring's memory until the service is stopped")
			}
		}
	}
	var a *agent.Agent
	attach := func(ctx context.Context, r api.AttachRequest) (api.AttachReply, error) {
		return o.attach(ctx, a, r)
	}
	found := newDiscovery(attach, cfg.Log, live.decide)
	recorded := func(j jvms.JVM) bool { return recording(a, j) }
	cfg.Probe = probe.Version()
	cfg.Others, cfg.Switch = found.list, o.disabled
	found.wait = func() (api.Other, bool) {
		if a.Off() {
			return api.Other{Why: "switch", Reason: "the host's switch is set", Remedy: "remove " + hostSwitch}, true
		}
		if err := a.Room(); err != nil { // what it would cost the JVM is for nothing
			return api.Other{Why: "agent memory", Reason: err.Error(), Remedy: "a larger agent_max_memory, or a rule that leaves some JVMs out"}, true
		}
		return api.Other{}, false
	}
	found.detached = func(j jvms.JVM) string { return a.DetachedBy(j.PID, j.StartTicks, j.UID) }
	found.adopt = func(ctx context.Context, j jvms.JVM) {
		ctx, stop := context.WithTimeout(ctx, adoptFor)
		defer stop()
		a.Await(ctx, j.PID, j.StartTicks) // nothing comes of a JVM that was detached from, or is another recorder's
	}
	reload := func() error {
		defer svc.Reloading()()
		now, err := live.reload()
		if err != nil {
			cfg.Log.Error().Err(err).Msg("the configuration was not reloaded")
			return err
		}
		limits := now.rec.config(io.Discard)
		now.limit(&limits)
		a.SetLimits(limits.Limits())
		cfg.Log.Info().Msg("the configuration was reloaded")
		found.again(recorded)
		return nil
	}
	if a, err = agent.New(cfg); err != nil {
		return err
	}
	srv := api.New(a, api.Config{Attach: attach, Reload: reload, Kind: kindOf, Rings: cfg.Watch, Log: cfg.Log})
	if lib, err := probeForOptions(); err != nil {
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
	if o.metrics != "" {
		alive := agentAlive(a, sock)
		h := metrics.Handler(metrics.Source{Status: a.Status, Others: a.Others, Self: a.Self, AttachFailures: found.failures, Incidents: a.Incidents, Spool: a.Spool, Version: version}, func(context.Context) error {
			_, err := alive()
			return err
		})
		go func() { // recording goes on without
			l, err := net.Listen("tcp", o.metrics)
			if err == nil {
				err = metrics.Serve(ctx, l, h)
			}
			if err != nil {
				cfg.Log.Error().Err(err).Msg("metrics are not served")
			}
		}()
	}
	if o.remote.Listen != "" {
		o.remote.Rate, o.remote.MaxPull = int64(o.rate), int64(o.maxPull)
		go func() { // recording goes on without
			if err := srv.ServeRemote(ctx, o.remote); err != nil {
				cfg.Log.Error().Err(err).Msg("nothing is offered to other hosts")
			}
		}()
	}
	go onReload(ctx, reload)
	if o.discover {
		go func() {
			if err := found.run(ctx, recorded); err != nil && ctx.Err() == nil {
				cfg.Log.Error().Err(err).Msg("JVMs that come are not seen")
			}
		}()
	}
	err = srv.Serve(ctx, sock)
	cancel()
	<-done
	<-told
	return err
}

// limit puts the agent's own part of limitKeys into cfg.
func (o *agentOptions) limit(cfg *agent.Config) {
	cfg.BudgetCPU, cfg.BudgetPause = float64(o.budget), o.pause
	cfg.MaxCPU, cfg.MaxMemory = float64(o.cpu), int64(o.memory)
}

// recording says that a records j now. A probe that was detached stays mapped: j.Recorded says too much.
func recording(a *agent.Agent, j jvms.JVM) bool {
	for _, s := range a.Status() {
		if s.Of(j.PID, j.StartTicks, j.UID) && !s.Phase.Over() {
			return true
		}
	}
	return false
}

func (o *agentOptions) attach(ctx context.Context, a *agent.Agent, r api.AttachRequest) (api.AttachReply, error) {
	j, err := resolve(r.JVM)
	if err != nil {
		return api.AttachReply{}, err
	}
	if a.Off() {
		return api.AttachReply{}, withCode(exitNoRecord, "nothing is recorded on this host while %s is there", o.disabled)
	}
	if err := a.Room(); err != nil {
		return api.AttachReply{}, err
	}
	if recording(a, j) {
		return api.AttachReply{}, withCode(exitUsage, "pid %d (%s) is being recorded already", j.PID, j.Name)
	}
	opts := o.rec.attachOptions()
	if o.disabled != hostSwitch {
		opts += ",disabled=" + o.disabled
	}
	if r.Options != "" {
		opts += "," + r.Options // what comes later holds
	}
	if err := refusal(j, opts); err != nil {
		return api.AttachReply{}, err
	}
	asJVM, ours, err := ringDirFor(j, o.rings)
	if err != nil {
		return api.AttachReply{}, err
	}
	a.Watch(ours)
	if err := loadProbe(ctx, j, asJVM, opts); err != nil {
		return api.AttachReply{}, err
	}
	st, err := awaitRing(ctx, a, j)
	if err != nil {
		return api.AttachReply{}, err
	}
	return api.AttachReply{ID: st.ID, PID: j.PID, Name: j.Name, Dir: st.Dir}, nil
}
