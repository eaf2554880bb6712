package main

import (
	"fmt"

	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
)

// checkReferences checks the reference listings of a recording.
func (out *verifyReply) checkReferences(rec *ringstore.Recording) error {
	var srcs []*source
	defer func() {
		for _, s := range srcs {
			s.Close()
		}
	}()
	cs, err := retention.CheckAll(func() reflisting.Source {
		srcs = append(srcs, newWholeSource(rec.Files...))
		return srcs[len(srcs)-1]
	})
	if err != nil {
		return fmt.Errorf("%s: %w", rec.Path, err)
	}
	out.References = append(out.References, cs...)
	return nil
}

// printReferences prints what was found in reference listings.
func printReferences(cs []retention.Check) {
	if len(cs) == 0 {
		return
	}
	ui.Section(ui.Stdout, "Reference listings")
	for _, c := range cs {
		if c.Unreadable != "" {
			ui.Fprintf(ui.Stdout, "  after collection %d: cannot be read: %s\n", c.GC, ui.Prose(c.Unreadable))
			continue
		}
		ui.Fprintf(ui.Stdout, "  after collection %d: %s reached, with %s; of these, %d lead to no listed object, "+
			"%d to one of another type\n", c.GC, ui.Plural(c.Reached, "object"), ui.Plural(c.References, "reference"),
			c.Dangling, c.Unfit)
		if c.First != "" {
			ui.Fprintf(ui.Stdout, "    the first: %s\n", c.First)
		}
		if c.Misplaced > 0 {
			ui.Fprintf(ui.Stdout, "    %d of %s are at no listed object\n", c.Misplaced, ui.Plural(c.Samples, "sample"))
		}
		if c.Roots > 0 {
			ui.Fprintf(ui.Stdout, "    %d roots name no listed object\n", c.Roots)
		}
	}
}
