package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/heapcam/heapcam/agent/pods"
	"github.com/heapcam/heapcam/agent/session"
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
	pause    time.Duration
	cpu      ui.Percent
	memory   ui.Size
	disabled string
	remote   api.RemoteConfig
	rate     ui.Size
	maxPull  ui.Size
	upload   uploadOptions
	profiles profileOptions

	kubernetes bool
	verdicts   time.Duration
}

// leastMemory is what an agent of one JVM needs at most: two encoders and a table of sites. With less it would stop the
// recording that it has just started.
const leastMemory = 64 << 20

func newAgentCmd() *cobra.Command { return (&agentOptions{}).command() }

func (o *agentOptions) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "Record many JVMs as a daemon, and answer the other verbs",
		Long: `The service runs this verb (` + "`heapcam service install`" + `). Run it yourself if another
supervisor starts your daemons, or to record the JVMs of your own user.

The agent records every JVM that loads the probe and creates its shared ring in the agent's folder. A JVM loads the
probe through ` + "`heapcam attach`" + `, through --discover, or through the option ` +
			"`-agentpath:LIB=dir=FOLDER`" + ` of its own; the agent logs that option when it starts.
After a restart the agent resumes each recording from the JVM's shared ring. These verbs ask it through its socket:
attach, detach, pause, resume, references, status, pull and reload.

- With --discover the agent attaches to every JVM as it starts. Rules in the configuration make exceptions
  (` + "`heapcam help config`" + `).
- With --spool DIR the agent also takes shared rings from DIR, which JVMs with the option
  ` + "`-agentpath:LIB=spool:DIR`" + ` create there. Use it for JVMs that the agent cannot reach, such as those in
  another container. It also takes recordings that you move to DIR.`,
		Example: `  heapcam agent --out /data/heap --max-trace-size 2GiB --metrics 127.0.0.1:9464
  heapcam agent --discover --config heapcam.yaml`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return asService(o.service, func(ctx context.Context) error { return o.run(ctx, c) })
		},
	}
	o.rec.add(c)
	bind(c.Flags(), "socket", &o.socket)
	f := c.Flags()
	f.StringVar(&o.config, "config", "", "Configuration file. Default "+systemConfig+", if it exists.")
	f.BoolVar(&o.service, "service", false, "Run under the control manager of Windows, and log to its event log.")
	f.StringVar(&o.disabled, "disabled", hostSwitch, "File that stops all recording while it exists.")
	_ = f.MarkHidden("disabled") // only for tests
	bind(f, "discover", &o.discover)
	bind(f, "overhead_pause", &o.pause)
	bind(f, "agent_max_cpu", &o.cpu)
	bind(f, "agent_max_memory", &o.memory)
	bind(f, "verdict_interval", &o.verdicts)
	bind(f, "metrics", &o.metrics)
	bind(f, "remote", &o.remote.Listen)
	bind(f, "remote_cert", &o.remote.Cert)
	bind(f, "remote_key", &o.remote.Key)
	bind(f, "remote_tokens", &o.remote.Tokens)
	bind(f, "remote_client_ca", &o.remote.ClientCA)
	bind(f, "remote_rate", &o.rate)
	bind(f, "remote_max_pull", &o.maxPull)
	o.upload.add(f)
	o.profiles.add(f)
	bind(f, "kubernetes_api", &o.kubernetes)
	bind(f, "spool", &o.spool)
	bind(f, "shm_dir", &o.shmDir)
	o.shmDir = defaultRings // of this platform
	return c
}

// check finds wrong settings before the agent starts.
func (o *agentOptions) check() error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if o.memory != 0 && o.memory < leastMemory {
		return usage("--agent-max-memory %s: it must be 0 (unlimited) or at least %s", &o.memory,
			ui.Bytes(int64(leastMemory)))
	}
	if o.verdicts != 0 && (o.verdicts < 10*time.Minute || o.verdicts > 24*time.Hour) {
		return usage("--verdict-interval %v: it must be 0 (incidents only), or from 10m to 24h", o.verdicts)
	}
	if o.pause < 0 {
		return usage("--overhead-pause %v: it must not be negative", o.pause)
	}
	if strings.ContainsAny(o.shmDir, optionSeparators) {
		return usage("--shm-dir %s: its name must not contain any of %q, which separate the probe's options", o.shmDir,
			optionSeparators)
	}
	if o.spool != "" && !filepath.IsAbs(o.spool) {
		return usage("--spool %s: it must be an absolute path", o.spool)
	}
	for _, a := range []struct{ flag, address, like string }{{"metrics", o.metrics, "127.0.0.1:9464"},
		{"remote", o.remote.Listen, "0.0.0.0:9465"}} {
		if _, _, err := net.SplitHostPort(a.address); a.address != "" && err != nil {
			return usage("--%s %s: it is not an address (like %s)", a.flag, a.address, a.like)
		}
	}
	if err := cmp.Or(o.upload.check(), o.profiles.check(o.metrics)); err != nil {
		return err
	}
	if o.remote.Listen != "" && (o.remote.Cert == "" || o.remote.Key == "" || o.remote.Tokens == "" &&
		o.remote.ClientCA == "") {
		return usage("--remote needs --remote-cert and --remote-key, and --remote-tokens or --remote-client-ca")
	}
	for _, f := range []struct{ flag, path string }{{"cert", o.remote.Cert}, {"key", o.remote.Key},
		{"tokens", o.remote.Tokens}, {"client-ca", o.remote.ClientCA}} {
		if o.remote.Listen == "" || f.path == "" {
			continue
		}
		if _, err := os.Stat(f.path); errors.Is(err, fs.ErrNotExist) {
			return usage("--remote-%s %s: there is no such file", f.flag, f.path)
		}
	}
	return nil
}

// daemon is a running agent, with the parts of its process.
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
	kept := svc.Stored() // before a child could inherit them
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

// folders creates the folders of the socket and of shared rings.
func (d *daemon) folders() (err error) {
	if d.socket, err = socketPath(d.options.socket); err != nil {
		return err
	}
	if err := socketFolder(d.socket); err != nil {
		return fmt.Errorf("cannot create the folder of the socket: %w", err)
	}
	d.rings = filepath.Join(d.options.shmDir, ringFolder())
	err = place.OwnFolder(d.rings, os.Getuid())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another user has taken its name
		spare := spareRings()
		if spare != "" && os.MkdirAll(filepath.Dir(spare), 0o755) == nil &&
			place.OwnFolder(spare, os.Getuid()) == nil {
			ui.Fprintf(ui.Stderr, "heapcam: shared rings are in %s, since %s cannot be used: %v\n", spare, d.rings, err)
			d.rings, err = spare, nil
		}
	}
	if err != nil {
		return fmt.Errorf("cannot create the folder %s for shared rings (--shm-dir must exist): %w", d.rings, err)
	}
	return nil
}

// configure derives the agent's configuration from the settings, and passes it the descriptors that systemd stored.
func (d *daemon) configure(kept []*os.File) {
	o := d.options
	logTo := ui.Stderr
	if o.service {
		logTo = svc.Log(logTo)
	}
	d.config = o.rec.config(logTo)
	d.config.PullOut = "" // `heapcam pull` asks the agent
	level := zerolog.InfoLevel
	if o.rec.verbose {
		level = zerolog.DebugLevel
	}
	log := newLog(logTo, level)
	d.config.Log = log
	d.config.Watch, d.config.Spool = []string{d.rings}, o.spool
	if spare := spareRings(); spare != "" && spare != d.rings {
		if _, err := os.Stat(spare); err == nil { // an agent before had rings there
			d.config.Watch = append(d.config.Watch, spare)
		}
	}
	d.config.Probe, d.config.Switch = probe.Version(), o.disabled
	d.config.Upload = o.upload.config()
	d.config.Tables = o.upload.tablesOf(d.config.Upload)
	d.config.Profiles = o.profiles.config()
	d.config.Judge, d.config.JudgeEvery = judge, o.verdicts
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

// discovery connects the agent with the discovery of JVMs.
func (d *daemon) discovery() {
	d.found = jvms.NewDiscovery(jvms.DiscoveryConfig{Log: d.config.Log, Decide: d.live.decide})
	d.config.Attributes = d.live.attributes
	if d.options.kubernetes {
		if in, err := pods.InCluster(d.config.Log); err != nil { // names are no reason not to record
			logs.Write(&d.config.Log, logs.PodsNotListed, logs.Err.Of(err))
		} else {
			pod := pods.New(in).Attributes
			d.config.Pod, d.found.Pod = pod, pod
		}
	}
	d.found.Recorded = func(j jvms.JVM) bool { return recording(d.agent, j) != nil }
	d.found.Attach = func(ctx context.Context, j jvms.JVM, options string) error {
		_, err := d.attach(ctx, api.AttachRequest{JVM: j.ID, Options: options})
		return err
	}
	d.config.Others = func() []api.Other { return others(d.found) }
	d.found.Wait = func() (jvms.Unrecorded, bool) {
		if d.agent.Off() {
			return jvms.Unrecorded{Why: "switch", Reason: "recording is switched off on this host",
				Remedy: "remove " + hostSwitch}, true
		}
		if err := d.agent.Room(); err != nil { // attaching would cost the JVM time in vain
			return jvms.Unrecorded{Why: "agent memory", Reason: err.Error(),
				Remedy: "raise agent_max_memory, or exclude some JVMs by a rule"}, true
		}
		return jvms.Unrecorded{}, false
	}
	d.found.DetachedBy = func(j jvms.JVM) string { return d.agent.DetachedBy(j.PID, j.StartTicks, j.UID) }
	d.found.TakeOver = func(ctx context.Context, j jvms.JVM) {
		ctx, stop := context.WithTimeout(ctx, jvms.TakeOverWithin)
		defer stop()
		// a JVM that was detached, or belongs to another recorder, is not taken over
		_, _ = d.agent.Await(ctx, j.PID, j.StartTicks)
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

// logOption logs the option with which a JVM loads the probe by itself.
func (d *daemon) logOption() {
	lib, err := place.ProbeForOptions()
	if err != nil {
		logs.Write(&d.config.Log, logs.ProbeNotInstalled, logs.Err.Of(err))
		return
	}
	logs.Write(&d.config.Log, logs.ProbeOption,
		logs.Option.Of("-agentpath:"+lib+"="+d.options.rec.probeOptions(d.rings)))
}

// serve records and answers until ctx is done. It returns when all of its goroutines have ended.
func (d *daemon) serve(ctx context.Context) error {
	// Most of what it holds stays. This saves a fifth of the memory for a hundred JVMs.
	keepSmall(50)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() { _ = d.agent.Run(ctx) })
	wait.Go(func() { svc.Notify(ctx, agentAlive(d.agent, d.socket)) })
	recorder := place.Recorder{Out: d.agent.Out(), Watch: d.agent.Watch, Await: func(ctx context.Context, j jvms.JVM) {
		_, _ = awaitRing(ctx, d.agent, j)
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
		Incidents: a.Incidents, Spool: a.Spool, Upload: a.Upload, Tables: a.Tables,
		Profiles: a.Profiles(), Version: version}
	h := metrics.Handler(source, func(context.Context) error {
		_, err := alive()
		return err
	})
	l, err := net.Listen("tcp", d.options.metrics)
	if err == nil {
		err = metrics.Serve(ctx, l, h, &d.config.Log)
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

// limit copies the agent's own limits among limitKeys into cfg.
func (o *agentOptions) limit(cfg *agent.Config) {
	cfg.BudgetPause = o.pause
	cfg.MaxCPU, cfg.MaxMemory = float64(o.cpu), int64(o.memory)
}

// others gives the JVMs that discovery does not record.
func others(d *jvms.Discovery) (out []api.Other) {
	for _, u := range d.Unrecorded() {
		out = append(out, api.Other(u))
	}
	return out
}

// recording says that a records j now. A probe that was detached stays mapped: j.Recorded says too much.
func recording(a *agent.Agent, j jvms.JVM) *session.Status {
	for _, s := range a.Of(j.PID, j.StartTicks, j.UID) {
		if !s.Phase.Over() {
			return &s
		}
	}
	return nil
}

func (o *agentOptions) attach(ctx context.Context, a *agent.Agent, r api.AttachRequest) (api.AttachReply, error) {
	j, err := resolve(r.JVM)
	if err != nil {
		return api.AttachReply{}, err
	}
	if a.Off() {
		return api.AttachReply{}, withCode(exitNoRecord, "recording is switched off on this host; to switch it on, "+
			"remove %s", o.disabled)
	}
	if err := a.Room(); err != nil {
		return api.AttachReply{}, err
	}
	if st := recording(a, j); st != nil {
		return api.AttachReply{}, jvms.Errorf(jvms.Already, "pid %d (%s) is already recorded, into %s: read it with "+
			"`heapcam report %s`, or end it with `heapcam detach %d`", j.PID, j.Name, st.Dir,
			ui.ShellWord(st.ID), j.PID)
	}
	opts := o.rec.attachOptions()
	if o.disabled != hostSwitch {
		opts += ",disabled=" + o.disabled
	}
	if r.Options != "" {
		opts += "," + r.Options // a later option overrides an earlier one
	}
	if err := place.Refusal(j, opts); err != nil {
		return api.AttachReply{}, err
	}
	ring, err := place.RingDirFor(j, o.shmDir)
	if err != nil {
		return api.AttachReply{}, err
	}
	a.Watch(ring.Ours)
	// The probe stays where storing fails: the agent tries again by itself.
	st, _, err := load(ctx, a, j, ring.AsJVM, opts)
	if err != nil {
		return api.AttachReply{}, err
	}
	return api.AttachReply{ID: st.ID, PID: j.PID, Name: j.Name, Dir: st.Dir}, nil
}
