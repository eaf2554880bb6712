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
	"github.com/heapcam/heapcam/agent/place"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

type recordVerb struct {
	rec recordOptions
	dur time.Duration
}

func newRecordCmd() *cobra.Command {
	var o recordVerb
	c := &cobra.Command{
		Use:   "record JVM",
		Short: "Record a running JVM until Ctrl-C, its end, or --for is over",
		Long: "record loads the probe into JVM (a pid, the beginning of an id, or a name), records with the " +
			"recorder inside, and detaches.",
		Args: exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam doctor`)"),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args[0]) },
	}
	o.rec.add(c)
	c.Flags().DurationVar(&o.dur, "for", 0, "record for so long (like 90s or 15m; 0: until Ctrl-C or the JVM's end)")
	return c
}

func (o *recordVerb) run(ref string) error {
	if err := o.rec.check(); err != nil {
		return err
	}
	if o.dur < 0 {
		return usage("--for %v: it is negative", o.dur)
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
		a.Run(ctx)
	}()
	defer func() { cancel(); <-done }()

	if err := place.Load(sig, j, ring.AsJVM, opts); err != nil {
		return err
	}
	st, err := awaitRing(sig, a, j)
	if sig.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	ui.Fprintf(ui.Stderr, "heapcam: recording %s (pid %d) into %s; Ctrl-C ends it\n", j.Name, j.PID, ui.Path(st.Dir))
	until := sig
	if o.dur > 0 {
		t, stop := context.WithTimeout(sig, o.dur)
		defer stop()
		until = t
	}
	if err := a.Idle(until); err != nil { // time is over, or Ctrl-C
		if _, err := a.Detach(""); err != nil {
			ui.Fprintf(ui.Stderr, "heapcam: detach: %v\n", err)
		}
		wait, stop := context.WithTimeout(context.Background(), detachTime)
		defer stop()
		if err := a.Idle(wait); errors.Is(err, context.DeadlineExceeded) {
			ui.Fprintf(ui.Stderr, "heapcam: the JVM did not confirm that the probe has stopped\n")
		}
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
	return nil
}
