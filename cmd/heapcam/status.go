package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
)

type statusOptions struct {
	out    string
	socket string
	json   bool
	watch  bool

	listing atomic.Bool // the disk has not answered yet
}

const (
	// agentWait is how long the agent has to answer, diskWait the folder for recordings: who is awake at night learns what hangs, and is not kept.
	agentWait = 10 * time.Second
	diskWait  = 5 * time.Second
)

// watchEvery is how often status --watch looks.
const watchEvery = time.Second

func newStatusCmd() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status",
		Short: "What is being recorded, and what recordings there are",
		Long:  "status asks the agent, if one runs, and lists the recordings in the folder for recordings.",
		Args:  noArgs, Annotations: mayLeaveDisk,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
			defer stop()
			return o.run(ctx)
		},
	}
	c.Flags().StringVar(&o.out, "out", "", "folder for recordings (default $HEAPCAM_OUT, else ./heapcam-recordings, else /var/lib/heapcam)")
	addSocket(c, &o.socket)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "print it anew each second until Ctrl-C; an agent that goes away meanwhile is told, and waited for")
	return c
}

func (o *statusOptions) run(ctx context.Context) error {
	if !o.watch {
		return o.once(ctx)
	}
	for tick := time.NewTicker(watchEvery); ; {
		if isTerminal(os.Stdout) && !o.json {
			fmt.Print("\x1b[H\x1b[2J") // home, and nothing below
		}
		if !o.json {
			fmt.Println(time.Now().Format(time.DateTime))
		}
		if err := o.once(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "heapcam:", message(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !isTerminal(os.Stdout) && !o.json {
			fmt.Println()
		}
	}
}

// once prints the state as it is now.
func (o *statusOptions) once(ctx context.Context) (err error) {
	r := agent.StatusReply{Schema: agent.StatusSchema, JVMs: []agent.Status{}}
	path, err := clientSocket(o.socket)
	closed := false
	if err == nil {
		if cl, derr := agent.Dial(path); derr == nil {
			asked, stop := context.WithTimeout(ctx, agentWait)
			r, err = cl.Status(asked)
			late := asked.Err() != nil && ctx.Err() == nil
			stop()
			if late {
				return fmt.Errorf("the agent on %s has not answered for %v: `heapcam service status` says how it is, its watchdog ends it if it hangs", path, agentWait)
			}
			if err != nil {
				return remote(err)
			}
		} else if err := noAgent(path, derr); o.socket != "" {
			return err
		} else if exitCode(err) == exitDenied {
			fmt.Fprintf(os.Stderr, "heapcam: %v\n", err)
			closed = true
		}
	}
	known := map[string]bool{}
	for _, s := range r.JVMs {
		known[s.Dir] = true
	}
	var recs []agent.Status
	answered := o.listing.CompareAndSwap(false, true) // else it is asked already
	if answered {
		recs, err, answered = within(diskWait, func() ([]agent.Status, error) {
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
				err = withCode(exitFailed, "the disk has not answered for %v: recordings in %s that the agent does not tell of are not listed", diskWait, strings.Join(outDirs(o.out), " and "))
			}
		}()
	}
	for _, s := range recs {
		if !known[s.Dir] {
			r.JVMs = append(r.JVMs, s)
		}
	}
	if o.json {
		return printJSON(os.Stdout, r)
	}
	if !r.Agent && !closed {
		fmt.Fprintln(os.Stderr, "heapcam: no agent runs; these are recordings on disk")
	}
	spool := r.Spool != nil && (r.Spool.Error != "" || len(r.Spool.Left) > 0)
	if len(r.JVMs)+len(r.Others) == 0 && !spool {
		fmt.Fprintln(os.Stderr, "heapcam: nothing is being recorded and there are no recordings")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RECORDING\tSTATE\tDEPTH\tGCS\tLIVE\tDISK\tFILES\tMEMORY\tOUR SHARE\tLOST\tSINCE\t")
	var about []string
	for _, s := range r.JVMs {
		share := "-"
		if s.PauseNS > 0 && s.UpNS > 0 {
			share = fmt.Sprintf("%.2f%%", 100*float64(s.ProbeNS)/float64(s.UpNS))
		}
		live := "-"
		if s.LiveBytes > 0 { // nothing is known before the first collection, nor of what lies on the disk alone
			live = humanBytes(int64(s.LiveBytes))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t\n", s.ID, s.Phase, or(s.Depth, "-"), s.Collections, live,
			humanBytes(s.TraceBytes), s.Files, humanBytes(int64(s.RingBytes)), share, s.Dropped.RingEpochs+s.Dropped.StoreEpochs, s.Since.Format(time.DateTime))
		about = append(about, remarks(&s)...)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Self != nil {
		fmt.Println("\n" + selfLine(r.Self))
	}
	if len(about) > 0 {
		fmt.Println("\nto know:")
		for _, line := range about {
			fmt.Println("  " + line)
		}
	}
	if spool {
		fmt.Printf("\nleft in the spool folder %s:\n", r.Spool.Dir)
		if r.Spool.Error != "" {
			fmt.Printf("  it can not be looked into: %s\n", r.Spool.Error)
		}
		for _, i := range r.Spool.Left {
			fmt.Printf("  %s (uid %d, %s): %s\n", i.Name, i.UID, humanBytes(i.Bytes), i.Reason)
		}
	}
	if len(r.Others) == 0 {
		return nil
	}
	fmt.Println("\nnot recorded:")
	for _, j := range r.Others {
		fmt.Printf("  %d %s: %s", j.PID, or(j.Name, "?"), j.Reason)
		if j.Remedy != "" {
			fmt.Printf(" (%s)", j.Remedy)
		}
		fmt.Println()
	}
	return nil
}

// selfLine says what the agent itself takes.
func selfLine(s *agent.Self) string {
	line := fmt.Sprintf("the agent itself takes %.1f %% of a core", 100*s.CPU)
	if s.MaxCPU > 0 {
		line += fmt.Sprintf(" (at most %.3g %%)", 100*s.MaxCPU)
	}
	line += " and " + humanBytes(s.Memory)
	if s.MaxMemory > 0 {
		line += fmt.Sprintf(" (at most %s)", humanBytes(s.MaxMemory))
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

// untilStuck gives what f does, or says that it was left behind: for d it has not called tick, which tells that the disk answers.
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
func remarks(s *agent.Status) (out []string) {
	say := func(format string, args ...any) { out = append(out, s.ID+": "+fmt.Sprintf(format, args...)) }
	if s.Reason != "" {
		say("%s", s.Reason)
	}
	if s.Incident != "" {
		say("a window was frozen by itself: `heapcam pull --incident %s -o FILE`", s.Incident)
	}
	if s.Spool {
		say("from the spool folder: its pid is its own container's or host's")
	}
	if s.Missed > 0 {
		say("%s without events, pauses unknown (jcmd GC.class_histogram and GC.heap_dump)", plural(s.Missed, "collection"))
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
		say("no listing fits into the ring: nothing is listed; --max-trace-size %s would do", humanBytes(s.NeededTraceSize))
	}
	if s.DiskFull {
		say("the disk is full: the ring goes on inside %s", humanBytes(s.TraceLimit))
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
