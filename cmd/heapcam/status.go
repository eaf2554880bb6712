package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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
}

// watchEvery is how often status --watch looks.
const watchEvery = time.Second

func newStatusCmd() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status",
		Short: "What is being recorded, and what recordings there are",
		Long:  "status asks the agent, if one runs, and lists the recordings in the folder for recordings.",
		Args:  noArgs,
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
func (o *statusOptions) once(ctx context.Context) error {
	r := agent.StatusReply{Schema: agent.StatusSchema, JVMs: []agent.Status{}}
	path, err := clientSocket(o.socket)
	if err == nil {
		if cl, derr := agent.Dial(path); derr == nil {
			if r, err = cl.Status(ctx); err != nil {
				return remote(err)
			}
		} else if o.socket != "" {
			return withCode(exitNotFound, "no agent listens on %s: %v", path, derr)
		}
	}
	known := map[string]bool{}
	for _, s := range r.JVMs {
		known[s.Dir] = true
	}
	recs, err := recordings(outDirs(o.out))
	if err != nil {
		return err
	}
	for _, s := range recs {
		if !known[s.Dir] {
			r.JVMs = append(r.JVMs, s)
		}
	}
	if o.json {
		return printJSON(os.Stdout, r)
	}
	if !r.Agent {
		fmt.Fprintln(os.Stderr, "heapcam: no agent runs; these are recordings on disk")
	}
	if len(r.JVMs)+len(r.Others) == 0 {
		fmt.Fprintln(os.Stderr, "heapcam: nothing is being recorded and there are no recordings")
		return nil
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "RECORDING\tSTATE\tDEPTH\tGCS\tLIVE\tDISK\tFILES\tMEMORY\tOUR SHARE\tLOST\tSINCE\t")
	for _, s := range r.JVMs {
		share := "-"
		if s.PauseNS > 0 && s.UpNS > 0 {
			share = fmt.Sprintf("%.2f%%", 100*float64(s.ProbeNS)/float64(s.UpNS))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%s\t\n", s.ID, s.Phase, or(s.Depth, "-"), s.Collections, humanBytes(int64(s.LiveBytes)),
			humanBytes(s.TraceBytes), s.Files, humanBytes(int64(s.RingBytes)), share, s.Dropped.RingEpochs+s.Dropped.StoreEpochs, s.Since.Format(time.DateTime))
		if s.Reason != "" {
			fmt.Fprintf(w, "  %s\t\n", s.Reason)
		}
		if s.NoSites {
			fmt.Fprint(w, "  another agent in it holds allocation sampling: no allocation sites\t\n")
		}
		if s.Renew && !s.Phase.Over() {
			fmt.Fprintf(w, "  it has the probe %s: restart this JVM to renew it\t\n", s.Probe)
		}
		if s.StoreError != "" {
			fmt.Fprintf(w, "  the disk refused: %s\t\n", s.StoreError)
		}
		if s.NeededTraceSize > 0 {
			fmt.Fprintf(w, "  no listing fits into the ring: nothing is listed; --max-trace-size %s would do\t\n", humanBytes(s.NeededTraceSize))
		}
		if s.DiskFull {
			fmt.Fprintf(w, "  the disk is full: the ring goes on inside %s\t\n", humanBytes(s.TraceLimit))
		}
		if !s.GuaranteeMet && s.NeededTraceSize == 0 && !s.DiskFull && !s.Phase.Over() {
			fmt.Fprint(w, "  the ring is too small for this heap: see --max-trace-size\t\n")
		}
	}
	if err := w.Flush(); err != nil || len(r.Others) == 0 {
		return err
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
