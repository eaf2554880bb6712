package main

import (
	"context"
	"fmt"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/svc"
)

// serviceWait is how long a verb waits for the service manager. It is longer than the manager waits for an agent whose
// disk hangs.
const serviceWait = 2 * time.Minute

func newServiceCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "service VERB",
		Short: "Install, start, stop and remove the agent as a service of this host",
		Long: `The service records JVMs from the start of the host on, and restarts the agent if it fails. It uses
systemd, or the control manager of Windows. A deb or rpm package installs and removes the service itself. Start,
stop, restart and status work in both cases.`,
		Example: "  sudo heapcam service install\n  heapcam service status",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verb := func(use, short string, f func() error, done string) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Example: "  sudo heapcam service " + use, Args: noArgs}
		c.RunE = func(*cobra.Command, []string) error {
			_, err, answered := within(serviceWait, func() (struct{}, error) { return struct{}{}, f() })
			if !answered {
				return fmt.Errorf("the service manager has not finished after %v, and heapcam no longer waits for it; "+
					"`heapcam service status` shows the state", serviceWait)
			}
			if err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "heapcam: %s\n", done)
			return nil
		}
		return c
	}
	purge := false
	uninstall := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop the service and remove it; recordings stay",
		Long:    "Only root may do this. The configuration and the recordings stay, unless you give --purge.",
		Example: "  sudo heapcam service uninstall\n  sudo heapcam service uninstall --purge",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := svc.Uninstall(purge); err != nil {
				return err
			}
			kept := "recordings stay in " + svc.StateDir()
			if purge {
				kept = "its configuration and " + svc.StateDir() + " are removed"
			}
			ui.Fprintf(ui.Stderr, "heapcam: the service is removed; %s\n", kept)
			return nil
		},
	}
	uninstall.Flags().BoolVar(&purge, "purge", false,
		"Also remove the configuration, and the recordings in "+svc.StateDir()+".")
	c.AddCommand(
		verb("install", "Install this binary as a service that starts with the host, and start it", svc.Install,
			"the service is installed and running"),
		uninstall,
		verb("start", "Start the service", svc.Start, "the service runs"),
		verb("stop", "Stop the service; JVMs continue, and the next start resumes their recordings", svc.Stop,
			"the service is stopped"),
		verb("restart", "Stop and start the service", svc.Restart, "the service runs"),
		newServiceStatusCmd(),
	)
	return c
}

func newServiceStatusCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the service is installed and runs",
		Long:    "The line has the state, the pid, the number of restarts, and what the agent last reported.",
		Example: "  heapcam service status",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err, answered := within(agentWait, svc.Query)
			if !answered {
				return fmt.Errorf("the service manager has not answered for %v", agentWait)
			}
			if err != nil {
				return err
			}
			if asJSON {
				if err := ui.JSON(ui.Stdout, serviceReply{ui.NewEnvelope("service-status", 1), s}); err != nil {
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
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.service-status/1).")
	exitsWith(c, "0", "The service runs.")
	exitsWith(c, "3", "The service does not run, or is not installed.")
	return c
}

// serviceLine gives the state of the service in one line.
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

// aliveWithin is how long an agent may take to answer, and to run its main loop once, to count as alive. Opening a ring
// after a crash takes a second. The watchdog's own interval is added to it.
const aliveWithin = 10 * time.Second

// agentAlive asks an agent, through its own socket, what it records. An agent that does not answer there does not work.
func agentAlive(a *agent.Agent, sock string) svc.Alive {
	return func() (string, error) {
		if t := a.LastScan(); time.Since(t) > aliveWithin {
			return "", fmt.Errorf("the agent's main loop has not run for %v", aliveWithin)
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
		return fmt.Sprintf("recording %s, %d MiB on disk", ui.Plural(uint64(n), "JVM"), disk>>20), nil
	}
}

// asService runs f until a signal. If the control manager of Windows started the process, it runs f until that stops
// it.
func asService(service bool, f func(ctx context.Context) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), endSignals()...)
	defer stop()
	if !service {
		return f(ctx)
	}
	return svc.Run(ctx, f)
}
