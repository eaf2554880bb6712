package main

import (
	"bufio"
	"errors"
	"io"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

func newDumpCmd() *cobra.Command {
	brief := false
	c := &cobra.Command{
		Use:   "dump FILE|DIR|JVM",
		Short: "Print a recording as text, for debugging heapcam",
		Long:  "Each block and each event of the recording is a line. docs/format/stream.md explains them. " + fileHelp,
		Example: `  heapcam dump --brief incident.heapcam | less
  heapcam dump incident.heapcam | grep -c sample`,
		Args: exactly(1, readingArg),
		RunE: func(_ *cobra.Command, args []string) error {
			rec, err := openReading(args[0])
			if err != nil {
				return err
			}
			defer rec.Close()
			out := bufio.NewWriterSize(ui.Stdout, 1<<16)
			bad, err := dump(out, rec, brief)
			if err == nil {
				err = out.Flush()
			}
			if errors.Is(err, syscall.EPIPE) { // head has seen enough
				return nil
			}
			if err == nil && bad > 0 {
				return withCode(exitDamaged, "%s cannot be read: see `heapcam verify`", ui.Plural(bad,
					"damaged section"))
			}
			return err
		},
	}
	c.Flags().BoolVar(&brief, "brief", false, "Leave out the events of single objects.")
	return c
}

func dump(w io.Writer, rec *ringstore.Recording, brief bool) (bad uint64, err error) {
	t := trace.NewTextWriter(w)
	t.Brief = brief
	for _, f := range rec.Files {
		if _, err := ui.Fprintf(w, "# file %s\n", f.Name); err != nil {
			return bad, err
		}
		for b, err := range f.Blocks() {
			if err != nil {
				bad++
				ui.Fprintf(ui.Stderr, "heapcam: %v\n", err)
				continue
			}
			if err := t.Block(b); err != nil {
				return bad, err
			}
		}
	}
	return bad, nil
}
