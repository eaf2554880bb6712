package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/ringstore"
)

// incidentsIn gives the incidents of a folder for recordings.
func incidentsIn(out string, max int64) *ringstore.Incidents {
	return &ringstore.Incidents{Dir: filepath.Join(out, agent.IncidentsName), Max: max, Every: agent.IncidentEvery}
}

func newFreezeCmd() *cobra.Command {
	var out, reason string
	asJSON := false
	max := size(agent.DefaultIncidents)
	c := &cobra.Command{
		Use:   "freeze [JVM]",
		Short: "Keep the present window of a recording as an incident",
		Long: `freeze keeps what the ring of a JVM, running or ended, holds now: its closed files as hard links, the one that is being written to as a copy.
The ring goes on. Incidents together never take more than --max-incidents-size; older ones that were made automatically go first.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("freeze takes one JVM, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir, err := recordingOf(out, args)
			if err != nil {
				return err
			}
			i, err := incidentsIn(filepath.Dir(dir), int64(max)).Freeze(dir, reason, false)
			switch {
			case errors.Is(err, ringstore.ErrIncidentRoom):
				return fmt.Errorf("%w of %s: delete some (`heapcam incidents delete ID`)", err, &max)
			case err != nil:
				return err
			case asJSON:
				return printJSON(c.OutOrStdout(), i)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s\n", i.ID)
			fmt.Fprintf(os.Stderr, "heapcam: kept %s of %s in %s, collections %d to %d\n", humanBytes(i.Bytes), i.JVM, plural(uint64(i.Files), "file"), i.FirstGC, i.LastGC)
			for _, f := range i.Foreign {
				fmt.Fprintf(os.Stderr, "heapcam: left out: %s is of another recording\n", f)
			}
			for _, l := range i.Left {
				fmt.Fprintf(os.Stderr, "heapcam: left out: %s\n", l)
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "", "folder for recordings (default as pull)")
	f.StringVar(&reason, "reason", "by hand", "why; stands in the incident")
	f.Var(&max, "max-incidents-size", "what all incidents may take")
	f.BoolVar(&asJSON, "json", false, "print JSON (heapcam.incident/1)")
	return c
}

func newIncidentsCmd() *cobra.Command {
	var out string
	asJSON := false
	c := &cobra.Command{
		Use:   "incidents",
		Short: "List, show and delete what was frozen",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := listIncidents(out)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]any{"schema": "heapcam.incidents/1", "incidents": all})
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "INCIDENT\tFROZEN\tBY\tSIZE\tGCS\tREASON\t")
			for _, i := range all {
				by := "hand"
				if i.Auto {
					by = "itself"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d-%d\t%s\t\n", i.ID, i.Created.Local().Format(time.DateTime), by, humanBytes(i.Bytes), i.FirstGC, i.LastGC, i.Reason)
			}
			return w.Flush()
		},
	}
	c.PersistentFlags().StringVar(&out, "out", "", "folder for recordings (default as pull)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(&cobra.Command{
		Use: "show ID", Short: "Show one incident (JSON) and where it is",
		Args: exactly(1, "one ID, or its beginning"),
		RunE: func(c *cobra.Command, args []string) error {
			n, i, err := findIncident(out, args[0])
			if err != nil {
				return err
			}
			return printJSON(c.OutOrStdout(), struct {
				ringstore.Incident
				Dir string `json:"dir"`
			}{i, n.Path(i.ID)})
		},
	}, &cobra.Command{
		Use: "delete ID", Short: "Delete one incident",
		Args: exactly(1, "one ID, or its beginning"),
		RunE: func(c *cobra.Command, args []string) error {
			n, i, err := findIncident(out, args[0])
			if err != nil {
				return err
			}
			return n.Delete(i.ID)
		},
	})
	return c
}

func listIncidents(out string) ([]ringstore.Incident, error) {
	all := []ringstore.Incident{}
	for _, d := range outDirs(out) {
		is, err := incidentsIn(d, 0).List()
		if err != nil && !errors.Is(err, os.ErrPermission) {
			return nil, err
		}
		all = append(all, is...)
	}
	return all, nil
}

func findIncident(out, id string) (*ringstore.Incidents, ringstore.Incident, error) {
	for _, d := range outDirs(out) {
		n := incidentsIn(d, 0)
		i, err := n.Find(id)
		if err == nil {
			return n, i, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, i, usage("%v", err)
		}
	}
	return nil, ringstore.Incident{}, withCode(exitNotFound, "no incident %q: `heapcam incidents` lists them", id)
}
