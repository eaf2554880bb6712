package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

type whatifOptions struct {
	young, old, heap string
	ratio            uint64
	tenuring         int
	collector, goal  string
	mode             string
	seeds            int
	marked, survived string
	json             bool
}

func newWhatifCmd() *cobra.Command {
	var o whatifOptions
	c := &cobra.Command{
		Use:   "whatif FILE|DIR|JVM",
		Short: "Predict the collections that the program would have with another heap",
		Long: `Use it to choose heap sizes without restarting the program for each of them. It is experimental: use its
figures only where its own check says that the model fits.

The verb takes from the recording when each object was allocated and when it died. It then simulates the collections of
other heaps. First it predicts the recorded configuration itself, and prints measured against predicted. If these differ
by more than 15 % in the number of collections or in their time, the model does not fit the program, and the verb says
why. Its first line names other figures that are off by more.

Each prediction has an interval, because the recording shows only between which collections an object died. The verb
assumes heap sizes that never change. So record with the Serial or the Parallel collector, and with fixed sizes: -Xms
equal to -Xmx, -Xmn, and -XX:-UseAdaptiveSizePolicy. G1 chooses its sizes by the length of its pauses, so its
predictions are only approximate: ask for heaps with --heap, and for a fixed size of eden with --young. Choose an old
space so small that full collections happen. With depth full the verb can predict young generations down to 1/32 of the
recorded one, with depth survivors down to 1/4.

--mode chooses what the verb predicts from. observed uses each object's birth, size and death. lifetimes forgets when
objects were born. generated draws objects from the distribution of sizes and lifetimes. probabilities knows only which
share of each space a collection finds alive. All but the first show how much a prediction depends on such detail.

Without sizes the verb predicts a grid around the recorded ones. --goal tries a finer grid, and prints the flags of the
smallest heap that meets the goal at the upper end of its interval. ` + fileHelp,
		Example: `  heapcam whatif incident.heapcam
  heapcam whatif --young 64MiB,128MiB --old 512MiB,1GiB incident.heapcam
  heapcam whatif --goal pause=50ms,gc=2% incident.heapcam`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	f := c.Flags()
	f.StringVar(&o.young, "young", "", "Sizes of the young generation to predict, separated by commas. Default: 1/2, "+
		"1, "+
		"2 and 4 times the recorded one.")
	f.StringVar(&o.old, "old", "", "Sizes of old space to predict, separated by commas. Default: multiples of what "+
		"lives.")
	f.StringVar(&o.heap, "heap", "", "Sizes of the whole heap to predict, instead of --old.")
	f.Uint64Var(&o.ratio, "survivor-ratio", 0, "Size of eden divided by that of a survivor space. Default: the "+
		"recorded "+
		"one.")
	f.IntVar(&o.tenuring, "tenuring", -1, "Collections that an object survives before it is promoted, 0 to 15. "+
		"Default: "+
		"the recorded one.")
	f.StringVar(&o.collector, "collector", "", "Collector to simulate: parallel, serial or, approximately, "+
		"g1. Default: the recorded one.")
	f.StringVar(&o.mode, "mode", "observed", "What to predict from: observed, lifetimes, generated or probabilities.")
	f.IntVar(&o.seeds, "seeds", 0, "Number of inputs to draw, 1 to 100; 0 = 3 with mode observed, else 5.")
	f.StringVar(&o.marked, "marked", "", "Share of eden that a young collection finds alive, such as 5%, with mode "+
		"probabilities. Default: as recorded.")
	f.StringVar(&o.survived, "survived", "", "Share of survivors that the next collection finds alive, such as 40%, "+
		"with mode probabilities. Default: as recorded.")
	f.StringVar(&o.goal, "goal", "", "Print the smallest heap that keeps to this, such as pause=50ms,gc=2%.")
	f.BoolVar(&o.json, "json", false, "Print JSON (heapcam.whatif/1).")
	return c
}

// sizes reads sizes that commas separate.
func sizes(flag, text string) (out []uint64, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := ui.ParseSize(part)
		if err != nil {
			return nil, usage("--%s: %v", flag, err)
		}
		if n < 1<<20 || n > 1<<44 {
			return nil, usage("--%s %s: it must be from 1 MiB to 16 TiB", flag, strings.TrimSpace(part))
		}
		out = append(out, uint64(n))
	}
	if len(out) > 64 {
		return nil, usage("--%s: at most 64 sizes", flag)
	}
	return out, nil
}

// request reads the flags.
func (o *whatifOptions) request(c *cobra.Command) (r whatif.Request, err error) {
	if r.Young, err = sizes("young", o.young); err != nil {
		return r, err
	}
	if r.Old, err = sizes("old", o.old); err != nil {
		return r, err
	}
	if r.Heap, err = sizes("heap", o.heap); err != nil {
		return r, err
	}
	switch o.collector {
	case "":
	case "parallel":
		r.Collector = trace.CollectorParallel
	case "serial":
		r.Collector = trace.CollectorSerial
	case "g1":
		r.Collector = trace.CollectorG1
	default:
		return r, usage("--collector %s: it must be parallel, serial or g1", o.collector)
	}
	if r.Tenuring = o.tenuring; c.Flags().Changed("tenuring") && (o.tenuring < 0 || o.tenuring > 15) {
		return r, usage("--tenuring %d: it must be from 0 to 15", o.tenuring)
	}
	if r.Ratio = o.ratio; c.Flags().Changed("survivor-ratio") && (o.ratio < 1 || o.ratio > 1000) {
		return r, usage("--survivor-ratio %d: it must be from 1 to 1000", o.ratio)
	}
	if len(r.Old) > 0 && len(r.Heap) > 0 {
		return r, usage("whatif: --old and --heap exclude each other")
	}
	if r.How, err = o.how(); err != nil {
		return r, err
	}
	if o.goal != "" {
		if r.Goal, err = whatif.ParseGoal(o.goal); err != nil {
			return r, usage("--goal: %v", err)
		}
	}
	return r, nil
}

// how reads the flags that say what to predict from.
func (o *whatifOptions) how() (h whatif.How, err error) {
	h = whatif.How{Mode: whatif.Mode(o.mode), Seeds: o.seeds, Given: whatif.Probabilities{Marked: -1, Survived: -1}}
	if !slices.Contains(whatif.Modes, h.Mode) {
		return h, usage("--mode %s: it must be observed, lifetimes, generated or probabilities", o.mode)
	}
	if o.seeds < 0 || o.seeds > 100 {
		return h, usage("--seeds %d: it must be from 1 to 100, or 0 for the default", o.seeds)
	}
	for _, x := range []struct {
		name, text string
		to         *float64
	}{{"marked", o.marked, &h.Given.Marked}, {"survived", o.survived, &h.Given.Survived}} {
		if x.text == "" {
			continue
		}
		var p ui.Percent
		if err := p.Set(x.text); err != nil {
			return h, usage("--%s: %v", x.name, err)
		}
		if h.Mode != whatif.ModeProbabilities {
			return h, usage("--%s needs --mode probabilities", x.name)
		}
		*x.to = float64(p)
	}
	return h, nil
}

func (o *whatifOptions) run(c *cobra.Command, path string) error {
	request, err := o.request(c)
	if err != nil {
		return err
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	src := newSource(rec.Files...)
	defer src.Close()
	tape, err := lifetimes.Read(heap.NewReplay(src))
	src.warn(rec)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	ctx, stop := interruptible(c.Context())
	defer stop()
	var progress func(float64)
	if ui.IsTerminal(ui.RawStderr()) {
		p := ui.NewProgress("simulating")
		defer p.Done()
		progress = func(share float64) { p.At(int64(1000*share), 1000) }
	}
	m, err := whatif.New(tape)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	r, err := m.Answer(ctx, request, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	if o.json {
		return ui.JSON(c.OutOrStdout(), r)
	}
	r.WriteText(c.OutOrStdout())
	return nil
}
