package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent"
)

type detachOptions struct {
	socket string
	json   bool
}

func newDetachCmd() *cobra.Command {
	var o detachOptions
	c := &cobra.Command{
		Use:   "detach JVM",
		Short: "Have the agent stop recording a JVM; the recording stays",
		Args:  exactly(1, "one JVM: a pid, the beginning of an id, or a name (see `heapcam status`)"),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := dialAgent(o.socket)
			if err != nil {
				return err
			}
			st, err := cl.Status(c.Context())
			if err != nil {
				return remote(err)
			}
			var running []agent.Status
			for _, s := range st.JVMs {
				if !s.Phase.Over() {
					running = append(running, s)
				}
			}
			s, err := pick(running, args[0])
			if err != nil {
				return err
			}
			r, err := cl.Detach(c.Context(), agent.DetachRequest{ID: s.ID})
			if err != nil {
				return remote(err)
			}
			if o.json {
				return printJSON(os.Stdout, struct {
					Schema string `json:"schema"`
					ID     string `json:"id"`
					Asked  int    `json:"asked"`
				}{"heapcam.detach/1", s.ID, r.Asked})
			}
			fmt.Fprintf(os.Stderr, "heapcam: detaching from %s (pid %d); the recording stays in %s\n", s.Name, s.PID, s.Dir)
			return nil
		},
	}
	addSocket(c, &o.socket)
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// pick finds the one recording that ref means: its pid; else its name; else the beginning of its folder's name or of its id.
func pick(all []agent.Status, ref string) (agent.Status, error) {
	tests := []func(agent.Status) bool{
		func(s agent.Status) bool { return s.ID == ref },
		func(s agent.Status) bool { return strconv.Itoa(s.PID) == ref },
		func(s agent.Status) bool { return s.Name == ref || strings.EqualFold(s.Name, ref) },
		func(s agent.Status) bool {
			return strings.HasPrefix(s.ID, ref) || strings.HasPrefix(strings.TrimPrefix(s.ID, s.Name+"-"), ref)
		},
	}
	for _, test := range tests {
		var hits []agent.Status
		for _, s := range all {
			if test(s) {
				hits = append(hits, s)
			}
		}
		if len(hits) == 1 {
			return hits[0], nil
		}
		if len(hits) > 1 {
			ids := make([]string, len(hits))
			for i, h := range hits {
				ids[i] = h.ID
			}
			return agent.Status{}, withCode(exitUsage, "%q means several: %s", ref, strings.Join(ids, ", "))
		}
	}
	if len(all) == 0 {
		return agent.Status{}, withCode(exitNotFound, "%q: there is no recording", ref)
	}
	return agent.Status{}, withCode(exitNotFound, "%q: no such recording (`heapcam status` lists them)", ref)
}
