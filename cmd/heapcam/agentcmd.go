package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/metrics"
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/svc"
)

type agentOptions struct {
	rec      recordOptions
	socket   string
	shmDir   string
	spool    string
	config   string
	discover bool
	service  bool
	metrics  string
	budget   ui.Percent
	pause    time.Duration
	cpu      ui.Percent
	memory   ui.Size
	disabled string
	remote   api.RemoteConfig
	rate     ui.Size
	maxPull  ui.Size
}

// leastMemory is what an agent of one JVM needs at its worst, two encoders and a table of sites: with less it would
// let go of what it has just begun.
const leastMemory = 64 << 20

func newAgentCmd() *cobra.Command { return (&agentOptions{}).command() }

func (o *agentOptions) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "The daemon: record many JVMs, continue after a restart, answer on a Unix socket",
		Long: "agent watches a folder for the rings of JVMs that load the probe (by `heapcam attach`, or by " +
			"-agentpath:LIB=dir=FOLDER in their own options; `heapcam agent` prints both on start) and records each " +
			"of them.\n" +
			"One that comes back continues each recording where the shared ring stands.\n" +
			"With --spool FOLDER it also takes the rings that probes with -agentpath:LIB=spool:FOLDER made where no " +
			"agent reaches " +
			"them (another container, a volume), and recordings that are put there.\n" +
			"With --discover it attaches by itself to each JVM that comes, as the rules of its configuration say " +
			"(`heapcam config`).",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return asService(o.service, func(ctx context.Context) error { return o.run(ctx, c) })
		},
	}
	o.rec.add(c)
	addSocket(c, &o.socket)
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "configuration file (default "+systemConfig+" if it is there)")
	f.BoolVar(&o.service, "service", false, "run below the control manager of Windows, and log to its event log")
	f.StringVar(&o.disabled, "disabled", hostSwitch, "the host's switch: while this file is there nothing is recorded")
	_ = f.MarkHidden("disabled") // for tests: operators need one place to look at
	bind(f, "discover", &o.discover)
	bind(f, "overhead_cpu", &o.budget)
	bind(f, "overhead_pause", &o.pause)
	bind(f, "agent_max_cpu", &o.cpu)
	bind(f, "agent_max_memory", &o.memory)
	bind(f, "metrics", &o.metrics)
	bind(f, "remote", &o.remote.Listen)
	bind(f, "remote_cert", &o.remote.Cert)
	bind(f, "remote_key", &o.remote.Key)
	bind(f, "remote_tokens", &o.remote.Tokens)
	bind(f, "remote_client_ca", &o.remote.ClientCA)
	bind(f, "remote_rate", &o.rate)
	bind(f, "remote_max_pull", &o.maxPull)
	bind(f, "spool", &o.spool)
	bind(f, "shm_dir", &o.shmDir)
	o.shmDir = defaultRings // of this platform
	return c
}

// check finds what is wrong before anything is started.
func (o *agentOptions) check() error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if o.memory != 0 && o.memory < leastMemory {
		return usage("--agent-max-memory %s: at least %s", &o.memory, ui.Bytes(int64(leastMemory)))
	}
	if o.pause < 0 {
		return usage("--overhead-pause %v: it is negative", o.pause)
	}
	if strings.ContainsAny(o.shmDir, optionSeparators) {
		return usage("--shm-dir %s: its name may hold none of %q, which part the probe's options", o.shmDir,
			optionSeparators)
	}
	if o.spool != "" && !filepath.IsAbs(o.spool) {
		return usage("--spool %s: an absolute path, please", o.spool)
	}
	for _, a := range []struct{ flag, address, like string }{{"metrics", o.metrics, "127.0.0.1:9464"},
		{"remote", o.remote.Listen, "0.0.0.0:9465"}} {
		if _, _, err := net.SplitHostPort(a.address); a.address != "" && err != nil {
			return usage("--%s %s: it is no address (like %s)", a.flag, a.address, a.like)
		}
	}
	if o.remote.Listen != "" && (o.remote.Cert == "" || o.remote.Key == "" || o.remote.Tokens == "" &&
		o.remote.ClientCA == "") {
		return usage("--remote needs --remote-cert and --remote-key, and --remote-tokens or --remote-client-ca")
	}
	return nil
}

// daemon is an agent at work, with what belongs to its process.
type daemon struct {
	options *agentOptions
	live    *liveConfig
	config  agent.Config
	agent   *agent.Agent // nil before open
	api     *api.Server
	found   *jvms.Discovery
	socket  string
	rings   string // the folder for shared rings
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
	d := &daemon{options: o, live: live}
	if err := d.folders(); err != nil {
		return err
	}
	d.configure(kept)
	d.discovery()
	if d.agent, err = agent.New(d.config); err != nil {
		return err
	}
	d.api = api.New(d.agent, api.Config{Attach: d.attach, Reload: d.reload, Kind: kindOf, Rings: d.config.Watch,
		Log: d.config.Log})
	d.logOption()
	return d.serve(ctx)
}

// folders makes the folders of the socket and of shared rings.
func (d *daemon) folders() (err error) {
	if d.socket, err = socketPath(d.options.socket); err != nil {
		return err
	}
	if err := socketFolder(d.socket); err != nil {
		return fmt.Errorf("folder of the socket: %w", err)
	}
	d.rings = filepath.Join(d.options.shmDir, ringFolder())
	if err := place.OwnFolder(d.rings, os.Getuid()); err != nil {
		return fmt.Errorf("--shm-dir: %w", err)
	}
	return nil
}

// configure makes the agent's configuration of the settings, and hands it the descriptors that systemd kept.
func (d *daemon) configure(kept []*os.File) {
	o := d.options
	logTo := ui.Stderr
	if o.service {
		logTo = svc.Log(logTo)
	}
	d.config = o.rec.config(logTo)
	level := zerolog.InfoLevel
	if o.rec.verbose {
		level = zerolog.DebugLevel
	}
	log := newLog(logTo, level)
	d.config.Log = log
	d.config.Watch, d.config.Spool = []string{d.rings}, o.spool
	d.config.Probe, d.config.Switch = probe.Version(), o.disabled
	o.limit(&d.config)
	d.config.Kept = kept
	if !svc.Store() {
		return
	}
	d.config.KeepFD = svc.Keep
	d.config.DropFD = func(name string) {
		if err := svc.Drop(name); err != nil {
			logs.Write(&log, logs.RingNotDropped, logs.Err.Of(err), logs.Descriptor.Of(name))
		}
	}
}

// discovery connects the agent with what finds JVMs.
func (d *daemon) discovery() {
	d.found = jvms.NewDiscovery(jvms.DiscoveryConfig{Log: d.config.Log, Decide: d.live.decide})
	d.found.Recorded = func(j jvms.JVM) bool { return recording(d.agent, j) }
	d.found.Attach = func(ctx context.Context, j jvms.JVM, options string) error {
		_, err := d.attach(ctx, api.AttachRequest{JVM: j.ID, Options: options})
		return err
	}
	d.config.Others = func() []api.Other { return others(d.found) }
	d.found.Wait = func() (jvms.Unrecorded, bool) {
		if d.agent.Off() {
			return jvms.Unrecorded{Why: "switch", Reason: "the host's switch is set",
				Remedy: "remove " + hostSwitch}, true
		}
		if err := d.agent.Room(); err != nil { // what it would cost the JVM is for nothing
			return jvms.Unrecorded{Why: "agent memory", Reason: err.Error(),
				Remedy: "raise agent_max_memory, or exclude some JVMs by a rule"}, true
		}
		return jvms.Unrecorded{}, false
	}
	d.found.DetachedBy = func(j jvms.JVM) string { return d.agent.DetachedBy(j.PID, j.StartTicks, j.UID) }
	d.found.TakeOver = func(ctx context.Context, j jvms.JVM) {
		ctx, stop := context.WithTimeout(ctx, jvms.TakeOverWithin)
		defer stop()
		// nothing comes of a JVM that was detached from, or is another recorder's
		d.agent.Await(ctx, j.PID, j.StartTicks)
	}
}

func (d *daemon) attach(ctx context.Context, r api.AttachRequest) (api.AttachReply, error) {
	return d.options.attach(ctx, d.agent, r)
}

// reload reads the configuration again and applies what may change while the agent runs.
func (d *daemon) reload() error {
	defer svc.Reloading()()
	now, err := d.live.reload()
	if err != nil {
		logs.Write(&d.config.Log, logs.ConfigNotReloaded, logs.Err.Of(err))
		return err
	}
	limits := now.rec.config(io.Discard)
	now.limit(&limits)
	d.agent.SetLimits(limits.Limits())
	logs.Write(&d.config.Log, logs.ConfigReloaded)
	d.found.Reconsider()
	return nil
}

// logOption logs the option that has a JVM load the probe by itself.
func (d *daemon) logOption() {
	lib, err := place.ProbeForOptions()
	if err != nil {
		logs.Write(&d.config.Log, logs.ProbeNotInstalled, logs.Err.Of(err))
		return
	}
	logs.Write(&d.config.Log, logs.ProbeOption,
		logs.Option.Of("-agentpath:"+lib+"="+d.options.rec.probeOptions(d.rings)))
}

// serve records and answers until ctx is done, and returns when all of it has ended.
func (d *daemon) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() { d.agent.Run(ctx) })
	wait.Go(func() { svc.Notify(ctx, agentAlive(d.agent, d.socket)) })
	recorder := place.Recorder{Out: d.agent.Out(), Watch: d.agent.Watch, Await: func(ctx context.Context, j jvms.JVM) {
		awaitRing(ctx, d.agent, j)
	}}
	go place.Resume(ctx, recorder, d.options.shmDir)
	if d.options.metrics != "" {
		go d.serveMetrics(ctx)
	}
	if d.options.remote.Listen != "" {
		go d.serveRemote(ctx)
	}
	go onReload(ctx, d.reload)
	if d.options.discover {
		go func() {
			if err := d.found.Run(ctx); err != nil && ctx.Err() == nil {
				logs.Write(&d.config.Log, logs.DiscoveryFailed, logs.Err.Of(err))
			}
		}()
	}
	err := d.api.Serve(ctx, d.socket)
	cancel()
	wait.Wait()
	return err
}

// serveMetrics answers Prometheus. Recording continues if it cannot.
func (d *daemon) serveMetrics(ctx context.Context) {
	a, alive := d.agent, agentAlive(d.agent, d.socket)
	source := metrics.Source{Status: a.Status, Others: a.Others, Self: a.Self, AttachFailures: d.found.Failures,
		Incidents: a.Incidents, Spool: a.Spool, Version: version}
	h := metrics.Handler(source, func(context.Context) error {
		_, err := alive()
		return err
	})
	l, err := net.Listen("tcp", d.options.metrics)
	if err == nil {
		err = metrics.Serve(ctx, l, h)
	}
	if err != nil {
		logs.Write(&d.config.Log, logs.MetricsFailed, logs.Err.Of(err), logs.Address.Of(d.options.metrics))
	}
}

// serveRemote answers other hosts. Recording continues if it cannot.
func (d *daemon) serveRemote(ctx context.Context) {
	remote := d.options.remote
	remote.Rate, remote.MaxPull = int64(d.options.rate), int64(d.options.maxPull)
	if err := d.api.ServeRemote(ctx, remote); err != nil {
		logs.Write(&d.config.Log, logs.RemoteFailed, logs.Err.Of(err), logs.Address.Of(remote.Listen))
	}
}

// limit puts the agent's own part of limitKeys into cfg.
func (o *agentOptions) limit(cfg *agent.Config) {
	cfg.BudgetCPU, cfg.BudgetPause = float64(o.budget), o.pause
	cfg.MaxCPU, cfg.MaxMemory = float64(o.cpu), int64(o.memory)
}

// others gives the JVMs that discovery left alone.
func others(d *jvms.Discovery) (out []api.Other) {
	for _, u := range d.Unrecorded() {
		out = append(out, api.Other(u))
	}
	return out
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
		return api.AttachReply{}, withCode(exitNoRecord, "nothing is recorded on this host while %s is there",
			o.disabled)
	}
	if err := a.Room(); err != nil {
		return api.AttachReply{}, err
	}
	if recording(a, j) {
		return api.AttachReply{}, jvms.Errorf(jvms.Already, "pid %d (%s) is being recorded already", j.PID, j.Name)
	}
	opts := o.rec.attachOptions()
	if o.disabled != hostSwitch {
		opts += ",disabled=" + o.disabled
	}
	if r.Options != "" {
		opts += "," + r.Options // what comes later holds
	}
	if err := place.Refusal(j, opts); err != nil {
		return api.AttachReply{}, err
	}
	ring, err := place.RingDirFor(j, o.shmDir)
	if err != nil {
		return api.AttachReply{}, err
	}
	a.Watch(ring.Ours)
	if err := place.Load(ctx, j, ring.AsJVM, opts); err != nil {
		return api.AttachReply{}, err
	}
	st, err := awaitRing(ctx, a, j)
	if err != nil {
		return api.AttachReply{}, err
	}
	return api.AttachReply{ID: st.ID, PID: j.PID, Name: j.Name, Dir: st.Dir}, nil
}
