package main

import (
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/heap"
)

type reportOptions struct{ json bool }

func newReportCmd() *cobra.Command {
	var o reportOptions
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "What happened in this window, on one screen",
		Long: `Says what happened in the window of a recording: collections and pauses with heapcam's own share, heap used, what grew most and the
sites that grow, how far the figures can be trusted, and what to look at first. FILE is a pulled file, a ring folder or one ring file.`,
		Example: "  heapcam report incident.heapcam\n  heapcam report --json incident.heapcam | jq .suspects[0]",
		Args:    exactly(1, "FILE"),
		RunE:    func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().BoolVar(&o.json, "json", false, "print JSON (heapcam.report/1)")
	return c
}

func (o *reportOptions) run(c *cobra.Command, path string) error {
	rec, err := openRecording(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	rep, err := indexed(ownIndex(), keptReport, rec.Path, func() (*analysis.Report, error) {
		src := newSource(rec.Files...)
		defer src.Close()
		r := heap.NewReplayer(src)
		r.Damage = append(r.Damage, rec.Problems...)
		return analysis.MakeReport(r)
	})
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(c.OutOrStdout(), rep)
	}
	rep.WriteText(c.OutOrStdout())
	return nil
}
