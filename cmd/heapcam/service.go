package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/svc"
)

// serviceWait is how long a verb waits for the service's manager: it has given up on an agent whose disk hangs by then.
const serviceWait = 2 * time.Minute

func newServiceCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "service",
		Short: "The agent as this host's service: install, uninstall, start, stop, restart, status",
		Long: "service installs this binary's agent into systemd (or the control manager of Windows), and removes " +
			"it. Where a package installed heapcam the package manager does that; start, stop, " +
			"restart and status work all the same.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verb := func(use, short string, f func() error, done string) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: func(*cobra.Command, []string) error {
			_, err, answered := within(serviceWait, func() (struct{}, error) { return struct{}{}, f() })
			if !answered {
				return fmt.Errorf("not done after %v, and not waited for any longer: `heapcam service status` says "+
					"how it goes on", serviceWait)
			}
			if err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "heapcam: %s\n", done)
			return nil
		}}
	}
	purge := false
	uninstall := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service and remove it; recordings stay",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := svc.Uninstall(purge); err != nil {
				return err
			}
			kept := "recordings stay in " + svc.StateDir()
			if purge {
				kept = svc.StateDir() + " is removed"
			}
			ui.Fprintf(ui.Stderr, "heapcam: the service is removed; %s\n", kept)
			return nil
		},
	}
	uninstall.Flags().BoolVar(&purge, "purge", false, "remove the recordings in "+svc.StateDir()+" too")
	c.AddCommand(
		verb("install", "Install this binary as a service that starts with the host, and start it", svc.Install,
			"the service is installed and runs"),
		uninstall,
		verb("start", "Start the service", svc.Start, "the service runs"),
		verb("stop", "Stop the service; JVMs run on, and the next start goes on with their recordings", svc.Stop,
			"the service is stopped"),
		verb("restart", "Stop and start the service", svc.Restart, "the service runs"),
		newServiceStatusCmd(),
	)
	return c
}

func newServiceStatusCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "status",
		Short: "Whether the service is installed and runs",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err, answered := within(agentWait, svc.Query)
			if !answered {
				return fmt.Errorf("the service's manager has not answered for %v", agentWait)
			}
			if err != nil {
				return err
			}
			if asJSON {
				if err := ui.JSON(ui.Stdout, struct {
					ui.Envelope
					svc.State
				}{ui.NewEnvelope("service-status", 1), s}); err != nil {
					return err
				}
			} else {
				ui.Fprintf(ui.Stdout, "%s\n", ui.Prose(serviceLine(s)))
			}
			if !s.Running {
				return status(exitNotFound)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// serviceLine says in one line how the service is.
func serviceLine(s svc.State) string {
	if !s.Installed {
		return "not installed"
	}
	line := s.Detail
	if s.PID != 0 {
		line += fmt.Sprintf(", pid %d", s.PID)
	}
	if s.Restarts != 0 {
		line += fmt.Sprintf(", restarted %d times", s.Restarts)
	}
	if s.Text != "" {
		line += ": " + s.Text
	}
	if !s.Enabled {
		line += " (does not start with the host)"
	}
	if s.Packaged {
		line += " (from a package)"
	}
	return line
}

// aliveWithin is how long an agent may take to answer, and its loop to come around, to count as alive. Opening a
// ring after a crash takes a second; the watchdog's own interval comes on top.
const aliveWithin = 10 * time.Second

// agentAlive asks an agent, over its own socket, what it records: an agent that does not answer there is of no use
// to anybody.
func agentAlive(a *agent.Agent, sock string) svc.Alive {
	return func() (string, error) {
		if t := a.LastScan(); time.Since(t) > aliveWithin {
			return "", errors.New("the loop that looks for rings does not come around")
		}
		cl, err := api.Dial(sock)
		if err != nil {
			return "", err
		}
		ctx, stop := context.WithTimeout(context.Background(), aliveWithin)
		defer stop()
		r, err := cl.Status(ctx)
		if err != nil {
			return "", err
		}
		n := 0
		var disk int64
		for _, s := range r.JVMs {
			disk += s.TraceBytes
			if !s.Phase.Over() {
				n++
			}
		}
		return fmt.Sprintf("records %d JVMs, %d MiB on disk", n, disk>>20), nil
	}
}

// asService runs f until a signal, or until the control manager of Windows says stop if that started us.
func asService(service bool, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	if !service {
		return f(ctx)
	}
	return svc.Run(ctx, f)
}
