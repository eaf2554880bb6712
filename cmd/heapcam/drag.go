package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/drag"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

type dragOptions struct {
	by   string
	top  int
	json bool
}

func newDragCmd() *cobra.Command {
	var o dragOptions
	c := &cobra.Command{
		Use:   "drag FILE|DIR|JVM",
		Short: "Show how long objects live after their last use (experimental)",
		Long: `Use it to find objects that the program holds although it no longer uses them.

Drag is the size of an object times the time between its last use and its death. It needs a recording of
heapcam run --drag, which notes when sampled objects are used: with app by code of the application, with all also by
code of the JDK. Uses by native code, by reflection, and by methods that compilers replace are not seen: with all,
bytes of strings may seem unused. All figures are estimates from samples. The intervals include that a death is known
only between two collections. ` + fileHelp,
		Example: `  heapcam run --drag app -- java -jar app.jar
  heapcam drag --by site incident.heapcam`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().StringVar(&o.by, "by", "site", "Rows of the table: site or class.")
	c.Flags().IntVar(&o.top, "top", 20, "Number of rows to show; 0 = all.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.drag/1).")
	return c
}

func (o *dragOptions) run(c *cobra.Command, path string) error {
	if o.by != "site" && o.by != "class" {
		return usage("--by %s: it must be site or class", o.by)
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	src := newCensusSource(rec.Files...)
	defer src.Close()
	lives, err := drag.Read(heap.NewCensus(src))
	src.warn(rec)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	report := lives.Make(o.by, o.top)
	if o.json {
		return ui.JSON(c.OutOrStdout(), report)
	}
	report.WriteText(c.OutOrStdout())
	return nil
}
