package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// liveConfig is the configuration in force. Only settings of JVMs, limits and rules change while the agent runs.
type liveConfig struct {
	name  string
	flags map[string]string // of the command line

	mu       sync.Mutex
	cmd      *cobra.Command // its flags have the values in force
	file     *config.File
	settings []setting
}

func newLiveConfig(c *cobra.Command, name string) (*liveConfig, error) {
	l := &liveConfig{name: name, flags: map[string]string{}, cmd: c}
	c.Flags().Visit(func(f *pflag.Flag) { l.flags[f.Name] = f.Value.String() })
	var err error
	l.file, l.settings, err = configure(c, name)
	return l, err
}

// reload reads the configuration again, and gives the options in force. If it gives an error, it has changed nothing.
func (l *liveConfig) reload() (*agentOptions, error) {
	o := &agentOptions{}
	c := o.command()
	for name, v := range l.flags {
		if err := c.Flags().Set(name, v); err != nil {
			return nil, err
		}
	}
	file, all, err := configure(c, l.name)
	if err == nil {
		err = located(o.check(), all)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var fixed []string
	for i, s := range all {
		if was := l.settings[i]; s.Value != was.Value && !slices.Contains(jvmKeys, s.Key) &&
			!slices.Contains(limitKeys, s.Key) {
			fixed = append(fixed, fmt.Sprintf("%s (%s: %s, in force: %s)", s.Key, s.Source, or(s.Value, `""`),
				or(was.Value, `""`)))
		}
	}
	if len(fixed) > 0 {
		return nil, usage("the agent did not reload its configuration, because these changes need a restart "+
			"(`heapcam service restart`): %s", strings.Join(fixed, "; "))
	}
	l.cmd, l.file, l.settings = c, file, all
	return o, nil
}

// decide applies the rules to a JVM. It gives the options of the probe, or why the JVM is not recorded.
func (l *liveConfig) decide(j config.JVM) (options, why string, record bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.file.Decide(j)
	if r != nil && !r.Record {
		return "", fmt.Sprintf("the rule at %s:%d excludes it", l.file.Name, r.Line), false
	}
	o, err := ruleOptions(l.cmd, l.file, r)
	if err != nil { // never: configure has tried each rule
		return "", err.Error(), false
	}
	return o.attachOptions(), "", true
}

// attributes gives the attributes of OpenTelemetry that the rules set for a JVM.
func (l *liveConfig) attributes(j config.JVM) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.file.Decide(j); r != nil {
		if !r.Redact {
			return r.Resource
		}
		out := map[string]string{trace.AttrRedact: "true"}
		maps.Copy(out, r.Resource)
		return out
	}
	return nil
}

// onReload reloads at each SIGHUP until ctx is done.
func onReload(ctx context.Context, reload func() error) {
	c, stop := hangups()
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c:
			_ = reload() // which logs it
		}
	}
}

func newReloadCmd() *cobra.Command {
	var socket string
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make the agent read its configuration again, without a restart",
		Long: "Changes of these settings take effect at once, also for running recordings: " +
			strings.Join(limitKeys, ", ") + ".\n\n" +
			"Changes of rules and of these settings apply to JVMs that the agent attaches to afterwards: " +
			strings.Join(jvmKeys, ", ") + ".\n\n" +
			"If any other setting has changed, or the file has an error, the agent refuses the reload and keeps its " +
			"old configuration. SIGHUP to the agent does the same as this verb.",
		Example: "  heapcam config check && heapcam reload",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := dialAgent(socket)
			if err != nil {
				return err
			}
			if err := cl.Reload(context.Background()); err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "heapcam: the agent reloaded its configuration\n")
			return nil
		},
	}
	addSocket(c, &socket)
	return c
}
