package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

type lifetimesOptions struct {
	by   string
	top  int
	json bool
}

func newLifetimesCmd() *cobra.Command {
	var o lifetimesOptions
	c := &cobra.Command{
		Use:   "lifetimes FILE|DIR|JVM",
		Short: "Show how long objects live, by class, size or allocation site",
		Long: `Use it to see which objects die young and which reach old space, independent of the heap's sizes.

A lifetime is the number of bytes that the program allocated while the object lived. A collection only shows that an
object died after the collection before it, so the verb estimates the most likely distribution. In a recording at depth
full it counts every object. At depth survivors, and with --by site, it counts only sampled allocations. ` + fileHelp,
		Example: `  heapcam lifetimes incident.heapcam
  heapcam lifetimes --by site --top 5 incident.heapcam`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args[0]) },
	}
	c.Flags().StringVar(&o.by, "by", "type", "Rows of the table: type, size or site.")
	c.Flags().IntVar(&o.top, "top", 20, "Number of rows to show; 0 = all.")
	c.Flags().BoolVar(&o.json, "json", false, "Print JSON (heapcam.lifetimes/1).")
	return c
}

func (o *lifetimesOptions) run(c *cobra.Command, path string) error {
	switch o.by {
	case "type", "size", "site":
	default:
		return usage("--by %s: it must be type, size or site", o.by)
	}
	rec, err := openReading(path)
	if err != nil {
		return err
	}
	defer rec.Close()
	src := newSource(rec.Files...)
	defer src.Close()
	r := heap.NewReplay(src)
	tape, err := lifetimes.Read(r)
	src.warn(rec)
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	report := tape.Make(r.Symbols, o.by, o.top)
	if o.json {
		return ui.JSON(c.OutOrStdout(), report)
	}
	report.WriteText(c.OutOrStdout())
	return nil
}
