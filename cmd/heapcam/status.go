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
				return fmt.Errorf("the agent on %s has not answered for %s: see `heapcam service status`; if the "+
					"agent "+
					"hangs, its watchdog ends it", path, ui.Duration(agentWait))
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
				err = withCode(exitFailed, "the disk has not answered for %s: recordings in %s that the agent does "+
					"not know are not listed", ui.Duration(diskWait), strings.Join(outDirs(o.out), " and "))
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
		return r, fmt.Errorf("the agent on %s has not answered for %s: check that host and the network",
			o.remote.address, ui.Duration(agentWait))
	}
	return r, err
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

// untilStuck gives what f does, or says that it was left behind: for d it has not called tick, which shows that the
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
