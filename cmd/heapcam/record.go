package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

type recordVerb struct {
	rec recordOptions
	dur time.Duration
	yes bool
}

func newRecordCmd() *cobra.Command {
	var o recordVerb
	c := &cobra.Command{
		Use:   "record JVM",
		Short: "Record a running JVM, without an agent",
		Long: `Use it to look at one JVM now, on a host where no agent runs.

heapcam loads the probe into JVM and records until you press Ctrl-C, until JVM ends, or until --for has passed.
Then it detaches, and JVM continues. JVM is a pid, a name (main class or jar), or the beginning of an id;
` + "`heapcam doctor`" + ` lists them. The recording is in the folder of --out, by default ./heapcam-recordings.`,
		Example: `  heapcam record 4711
  heapcam record --for 15m --max-trace-size 500MiB shop`,
		Args: exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam doctor`)"),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.rec.add(c)
	addYes(c, &o.yes)
	exitsWith(c, "4", "JVM belongs to another user.")
	exitsWith(c, "5", "heapcam cannot record JVM, or the probe stopped. `heapcam doctor JVM` says why.")
	c.Flags().DurationVar(&o.dur, "for", 0, "Record for this long, such as 90s or 15m. Default 0 = until "+
		"Ctrl-C or the end of JVM.")
	return c
}

func (o *recordVerb) run(ref string) error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if err := o.rec.confirmed(o.yes); err != nil {
		return err
	}
	if o.dur < 0 {
		return usage("--for %v: it must not be negative", o.dur)
	}
	j, err := resolve(ref)
	if err != nil {
		return err
	}
	opts := strings.TrimPrefix(o.rec.probeOptions("-"), "dir=-,")
	if err := place.Refusal(j, opts); err != nil {
		return err
	}
	ring, err := place.OneRingDir(j, rand.Text()[:8])
	if err != nil {
		return err
	}
	defer ring.Remove()
	cfg := o.rec.config(ui.Stderr)
	cfg.Watch = []string{ring.Ours}
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	sig, stopSig := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stopSig()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.Run(ctx)
	}()
	defer func() { cancel(); <-done }()

	st, loaded, err := load(sig, a, j, ring.AsJVM, opts)
	if err != nil {
		cancel()
		<-done
		if loaded {
			unload(j, cfg.MaxRing)
		}
		if sig.Err() != nil {
			return nil
		}
		return err
	}
	ui.Fprintf(ui.Stderr, "heapcam: recording %s (pid %d) into %s; Ctrl-C ends it\n", j.Name, j.PID, ui.Path(st.Dir))
	until := sig
	if o.dur > 0 {
		t, stop := context.WithTimeout(sig, o.dur)
		defer stop()
		until = t
	}
	detached := true
	if err := a.Idle(until); err != nil { // --for has passed, or Ctrl-C
		detached = detach(a)
	}
	cancel()
	<-done
	report(a, 0)
	for _, s := range a.Status() {
		switch s.Phase {
		case session.Refused, session.ProbeStopped:
			return status(exitNoRecord)
		case session.Quarantined:
			return status(exitDamaged)
		}
	}
	if !detached {
		return status(exitFailed)
	}
	return nil
}

// detach ends the recording of a. false: the JVM has not confirmed it.
func detach(a *agent.Agent) bool {
	if _, err := a.Detach(""); err != nil {
		ui.Fprintf(ui.Stderr, "heapcam: cannot detach from the JVM: %v\n", err)
	}
	ok := agentConfirms(a)
	if !ok {
		ui.Fprintf(ui.Stderr, "heapcam: %s\n", stillLoaded)
	}
	return ok
}

// unload has the probe that this command loaded stop, since the command does not record: no other one would read its
// ring.
func unload(j jvms.JVM, maxRing uint64) {
	ctx, stop := context.WithTimeout(context.Background(), detachTime)
	defer stop()
	switch err := place.Unload(ctx, j, maxRing); {
	case errors.Is(err, context.DeadlineExceeded):
		ui.Fprintf(ui.Stderr, "heapcam: %s\n", stillLoaded)
	case err != nil:
		ui.Fprintf(ui.Stderr, "heapcam: cannot detach from the JVM: %v\n", err)
	}
}
