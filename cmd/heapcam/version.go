package main

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/trace"
)

func newVersionCmd() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the formats, and whether the probe is built in",
		Example: "  heapcam version",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			lib, err := probe.Library()
			sum := ""
			if err == nil {
				s := sha256.Sum256(lib)
				sum = hex.EncodeToString(s[:8])
			}
			if asJSON {
				return ui.JSON(ui.Stdout, versionReply{ui.NewEnvelope("version", 1), version, commit,
					trace.FormatVersion, trace.ABIVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH, sum})
			}
			ui.Fprintf(ui.Stdout, "heapcam %s (stream format %d, ring ABI %d, %s %s/%s)\n", version,
				trace.FormatVersion, trace.ABIVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if commit != "" {
				ui.Fprintf(ui.Stdout, "commit %s\n", commit)
			}
			if err != nil {
				ui.Fprintf(ui.Stdout, "no probe inside: %v\n", err)
			} else {
				ui.Fprintf(ui.Stdout, "probe inside: %s/%s, %d bytes, %s\n", runtime.GOOS, runtime.GOARCH,
					len(lib), sum)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.version/1).")
	return c
}
