package main

import (
	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

func newLoadersCmd() *cobra.Command {
	var o retaining
	top := 20
	c := &cobra.Command{
		Use:   "loaders FILE|DIR|JVM",
		Short: "Show class loaders, what holds them, and classes that were loaded repeatedly",
		Long: `Use it when each redeployment of a program costs memory: an old class loader stays, with all its classes.

The verb groups class loaders by their class. For each group it prints what holds the loaders. An object keeps its class
alive, and the class its loader: such a step of a path has the name (class). Then follow names of classes that several
loaders have defined, as after a redeployment.` + listingHelp + fileHelp,
		Example: `  heapcam loaders incident.heapcam
  heapcam loaders --json incident.heapcam | jq '.duplicates[0]'`,
		Args: exactly(1, readingArg),
		RunE: func(c *cobra.Command, args []string) error {
			return o.with(args[0], func(_ *ringstore.Recording, h *retention.Heap) error {
				r := h.Loaders()
				if o.json {
					return ui.JSON(c.OutOrStdout(), r)
				}
				r.WriteText(c.OutOrStdout(), top)
				return nil
			})
		},
	}
	o.add(c, "loaders")
	c.Flags().IntVar(&top, "top", top, "Number of rows of each table to print; 0 = all.")
	return c
}
