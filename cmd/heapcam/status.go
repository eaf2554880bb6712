package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

type statusOptions struct {
	out    string
	socket string
	json   bool
	watch  bool
	remote remoteOptions

	listing atomic.Bool // the disk has not answered yet
}

const (
	// agentWait is how long the agent has to answer, diskWait the folder for recordings: who is awake at night
	// learns what hangs, and is not kept.
	agentWait = 10 * time.Second
	diskWait  = 5 * time.Second
)

// watchEvery is how often status --watch looks.
const watchEvery = time.Second

func newStatusCmd() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status",
		Short: "List running and past recordings",
		Long: `Use it to see what heapcam records, whether it works, and which recordings you can read.

The verb asks the agent, if one runs, and lists the recordings in the folder of --out. Below the table it names
problems, such as lost collections or a full disk, and JVMs that are not recorded, each with the reason. With
--remote it asks only the agent of another host.`,
		Example: `  heapcam status
  heapcam status --watch
  heapcam status --json | jq '.jvms[].id'
  heapcam status --remote https://db7:9465 --token-file ~/.heapcam-token`,
		Args: noArgs, Annotations: mayLeaveDisk,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
			defer stop()
			return o.run(ctx)
		},
	}
	addOut(c, &o.out)
	addSocket(c, &o.socket)
	o.remote.add(c)
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.status/1).")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"Print again each second until Ctrl-C. If the agent stops meanwhile, say so and wait for it.")
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	if o.remote.address != "" && (o.out != "" || o.socket != "") {
		return usage("status --remote asks the agent of another host: --out and --socket are about this one")
	}
	if !o.watch {
		return o.once(ctx)
	}
	for tick := time.NewTicker(watchEvery); ; {
		if ui.IsTerminal(ui.RawStdout()) && !o.json {
			ui.ClearScreen()
		}
		if !o.json {
			ui.Fprintf(ui.Stdout, "%s\n", time.Now().Format(time.DateTime))
		}
		if err := o.once(ctx); err != nil && ctx.Err() == nil {
			ui.Fprintf(ui.Stderr, "heapcam: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !ui.IsTerminal(ui.RawStdout()) && !o.json {
			ui.Fprintf(ui.Stdout, "\n")
		}
	}
}

// once prints the state as it is now.
func (o *statusOptions) once(ctx context.Context) (err error) {
	if o.remote.address != "" {
		r, err := o.afar(ctx)
		if err != nil {
			return err
		}
		return o.print(r, true)
	}
	r := api.StatusReply{Schema: api.StatusSchema, JVMs: []session.Status{}}
	path, err := clientSocket(o.socket)
	closed := false
	if err == nil {
		if cl, derr := api.Dial(path); derr == nil {
			asked, stop := context.WithTimeout(ctx, agentWait)
			r, err = cl.Status(asked)
			late := asked.Err() != nil && ctx.Err() == nil
			stop()
			if late {
				return fmt.Errorf("the agent on %s has not answered for %v: `heapcam service status` says how it "+
					"is, its watchdog ends it if it hangs", path, agentWait)
			}
			if err != nil {
				return err
			}
		} else if err := noAgent(path, derr); o.socket != "" {
			return err
		} else if exitCode(err) == exitDenied {
			ui.Fprintf(ui.Stderr, "heapcam: %v\n", err)
			closed = true
		}
	}
	known := map[string]bool{}
	for _, s := range r.JVMs {
		known[s.Dir] = true
	}
	var recs []session.Status
	answered := o.listing.CompareAndSwap(false, true) // else it is asked already
	if answered {
		recs, err, answered = within(diskWait, func() ([]session.Status, error) {
			defer o.listing.Store(false)
			return recordings(outDirs(o.out))
		})
	}
	if err != nil {
		return err
	}
	if !answered {
		defer func() {
			if err == nil {
				err = withCode(exitFailed, "the disk has not answered for %v: recordings in %s that the agent does "+
					"not tell of are not listed", diskWait, strings.Join(outDirs(o.out), " and "))
			}
		}()
	}
	for _, s := range recs {
		if !known[s.Dir] {
			r.JVMs = append(r.JVMs, s)
		}
	}
	return o.print(r, closed)
}

// afar asks the agent of another host.
func (o *statusOptions) afar(ctx context.Context) (r api.StatusReply, err error) {
	cl, err := o.remote.dial()
	if err != nil {
		return r, err
	}
	asked, stop := context.WithTimeout(ctx, agentWait)
	defer stop()
	if r, err = cl.Status(asked); err != nil && asked.Err() != nil && ctx.Err() == nil {
		return r, fmt.Errorf("the agent on %s has not answered for %v", o.remote.address, agentWait)
	}
	return r, err
}

// print prints an agent's answer, or what lies on the disk. closed: that there is no agent is known, or no matter.
func (o *statusOptions) print(r api.StatusReply, closed bool) error {
	if o.json {
		return ui.JSON(ui.Stdout, r)
	}
	if !r.Agent && !closed {
		ui.Fprintf(ui.Stderr, "heapcam: no agent runs; these are recordings on disk%s\n", recordedNow(r.JVMs))
	}
	spool := r.Spool != nil && (r.Spool.Error != "" || len(r.Spool.Left) > 0)
	if len(r.JVMs)+len(r.Others) == 0 && !spool {
		ui.Fprintf(ui.Stderr, "heapcam: nothing is being recorded and there are no recordings\n")
		return nil
	}
	w := ui.NewTable(ui.Stdout)
	ui.Fprintf(w, "RECORDING\tSTATE\tDEPTH\tGCS\tLIVE\tDISK\tFILES\tMEMORY\tOUR SHARE\tLOST\tSINCE\t\n")
	var about []ui.Text
	var rings uint64
	for _, s := range r.JVMs {
		rings += s.RingBytes
		share := "-"
		if s.PauseNS > 0 && s.UpNS > 0 {
			share = fmt.Sprintf("%.2f%%", 100*float64(s.ProbeNS)/float64(s.UpNS))
		}
		live := "-"
		if s.LiveBytes > 0 { // nothing is known before the first collection, nor of what lies on the disk alone
			live = ui.Bytes(int64(s.LiveBytes))
		}
		ui.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t\n", s.ID, s.Phase, or(s.Depth, "-"),
			s.Collections, live,
			ui.Bytes(s.TraceBytes), s.Files, ui.Bytes(int64(s.RingBytes)), share,
			s.Dropped.RingEpochs+s.Dropped.StoreEpochs, s.Since.Format(time.DateTime))
		about = append(about, remarks(&s)...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if rings > 0 {
		ui.Fprintf(ui.Stdout, "MEMORY is each JVM's shared ring. The JVM maps it twice, so its RSS counts it twice; "+
			"its cgroup is charged once.\n")
	}
	if r.Self != nil {
		ui.Fprintf(ui.Stdout, "\n%s\n", selfLine(r.Self))
	}
	if len(about) > 0 {
		ui.Fprintf(ui.Stdout, "\nto know:\n")
		for _, line := range about {
			ui.Fprintf(ui.Stdout, "  %s\n", line)
		}
	}
	if spool {
		ui.Fprintf(ui.Stdout, "\nleft in the spool folder %s:\n", ui.Path(r.Spool.Dir))
		if r.Spool.Error != "" {
			ui.Fprintf(ui.Stdout, "  it can not be looked into: %s\n", r.Spool.Error)
		}
		for _, i := range r.Spool.Left {
			ui.Fprintf(ui.Stdout, "  %s (uid %d, %s): %s\n", i.Name, i.UID, ui.Bytes(i.Bytes), i.Reason)
		}
	}
	if len(r.Others) == 0 {
		return nil
	}
	ui.Fprintf(ui.Stdout, "\nnot recorded:\n")
	for _, j := range r.Others {
		ui.Fprintf(ui.Stdout, "  %d %s: %s", j.PID, or(j.Name, "?"), ui.Prose(j.Reason))
		if j.Remedy != "" {
			ui.Fprintf(ui.Stdout, " (%s)", ui.Prose(j.Remedy))
		}
		ui.Fprintf(ui.Stdout, "\n")
	}
	return nil
}

// recordedNow says how many of the recordings on disk are being written to, as the end of a line.
func recordedNow(all []session.Status) string {
	n := 0
	for _, s := range all {
		if s.Phase == session.Recording {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of them still being recorded", n)
}

// selfLine says what the agent itself takes.
func selfLine(s *quota.Self) string {
	line := fmt.Sprintf("the agent itself takes %.1f %% of a core", 100*s.CPU)
	if s.MaxCPU > 0 {
		line += fmt.Sprintf(" (at most %.3g %%)", 100*s.MaxCPU)
	}
	line += " and " + ui.Bytes(s.Memory)
	if s.MaxMemory > 0 {
		line += fmt.Sprintf(" (at most %s)", ui.Bytes(s.MaxMemory))
	}
	return line
}

// mayLeaveDisk marks the verbs that end although they have had to leave the disk behind.
var mayLeaveDisk = map[string]string{"disk": "left behind"}

func leavesDisk(c *cobra.Command) bool { return c.Annotations["disk"] != "" }

// within gives what f does, or says that it did not answer in time; then f is left behind.
func within[T any](d time.Duration, f func() (T, error)) (v T, err error, answered bool) {
	type answer struct {
		v   T
		err error
	}
	c := make(chan answer, 1)
	go func() { v, err := f(); c <- answer{v, err} }()
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case a := <-c:
		return a.v, a.err, true
	case <-late.C:
		return v, nil, false
	}
}

// untilStuck gives what f does, or says that it was left behind: for d it has not called tick, which tells that the
// disk answers.
func untilStuck(d time.Duration, f func(tick func()) error) (err error, answered bool) {
	done, ticks := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		done <- f(func() {
			select {
			case ticks <- struct{}{}:
			default:
			}
		})
	}()
	late := time.NewTimer(d)
	defer late.Stop()
	for {
		select {
		case err := <-done:
			return err, true
		case <-ticks:
			late.Reset(d)
		case <-late.C:
			return nil, false
		}
	}
}

// remarks gives what an operator should know of a recording, a line each.
func remarks(s *session.Status) (out []ui.Text) {
	say := func(format string, args ...any) {
		out = append(out, ui.Sprintf("%s: %s", s.ID, ui.Sprintf(format, args...)))
	}
	switch {
	case s.Reason != "" && s.Phase == session.Paused:
		say("paused: %s", ui.Prose(s.Reason))
	case s.Reason != "":
		say("%s", ui.Prose(s.Reason))
	}
	if s.Incident != "" {
		say("a window was frozen by itself: `heapcam pull --incident %s -o FILE`", s.Incident)
	}
	if s.Spool {
		say("from the spool folder: its pid is its own container's or host's")
	}
	if s.Missed > 0 {
		say("%s without events, pauses unknown (jcmd GC.class_histogram and GC.heap_dump)",
			ui.Plural(s.Missed, "collection"))
	}
	if s.NoSites {
		say("another agent in it holds allocation sampling: no allocation sites")
	}
	switch {
	case s.Stuck():
		say("%s: its recording stands still, what its shared ring does not hold is lost", s.StoreError)
	case s.StoreError != "":
		say("the disk refused: %s", s.StoreError)
	}
	if s.NeededTraceSize > 0 {
		say("no listing fits into the ring: nothing is listed; --max-trace-size %s would do",
			ui.Bytes(s.NeededTraceSize))
	}
	if s.DiskFull {
		say("the disk is full: the ring goes on inside %s", ui.Bytes(s.TraceLimit))
	}
	if s.ForeignFiles > 0 {
		say("%s of other recordings in its folder, which nothing reads: `heapcam verify %s` names them",
			ui.Plural(uint64(s.ForeignFiles), "file"), s.Dir)
	}
	if s.Phase.Over() {
		return out
	}
	if s.DepthWhy != "" && s.Depth != s.DepthAsked {
		say("depth %s was asked for. Now %s", s.DepthAsked, s.DepthWhy)
	}
	if s.RingOnDisk {
		say("its shared ring lies on a disk: a collection may have to wait for it")
	}
	if s.Renew {
		say("it has the probe %s: restart this JVM to renew it", s.Probe)
	}
	if !s.GuaranteeMet && s.NeededTraceSize == 0 && !s.DiskFull {
		say("the ring is too small for this heap: see --max-trace-size")
	}
	return out
}
