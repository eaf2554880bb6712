package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// askVerb is a verb that asks the agent something about one JVM, or all.
type askVerb struct {
	use, short, long, done string
	ask                    func(*api.Client, context.Context, api.DetachRequest) (api.DetachReply, error)
}

// ownersToo ends the help of what a JVM's own user may ask of the host's agent.
const ownersToo = "The user of a JVM may do that with the own JVMs."

func newDetachCmd() *cobra.Command {
	return askVerb{
		use: "detach", short: "Have the agent stop recording a JVM, or all, for good; the recording stays",
		long: "detach ends a recording: the probe gives up its events and its sites, and makes its ring go. The " +
			"library stays mapped in the JVM, idle, until " +
			"the JVM ends: no way leads out of a JVM. `heapcam attach` begins a new recording; discovery does not " +
			"come back to a JVM that was detached " +
			"from, and status says who asked for it. For a while only: `heapcam pause`. " + ownersToo,
		done: "stopped recording", ask: (*api.Client).Detach,
	}.command()
}

func newPauseCmd() *cobra.Command {
	return askVerb{
		use: "pause", short: "Stop recording a JVM, or all, until resume",
		long: "pause has the probe do nothing but read a flag in each collection, and no longer see allocations, " +
			"within a tenth of a second. It stays paused " +
			"over restarts of the agent. For the whole host, JVMs that are yet to come included: make the file " +
			hostSwitch + ".\n" +
			ownersToo,
		done: "paused", ask: (*api.Client).Pause,
	}.command()
}

func newResumeCmd() *cobra.Command {
	return askVerb{
		use: "resume", short: "Let what was paused go on",
		long: "resume has a probe record again. What happened meanwhile is not known: the next collection lists " +
			"what lives then (a sync point).\n" +
			"What the host's switch (" + hostSwitch +
			") stops goes on when that file is removed. What root paused only root resumes; " +
			"what a JVM's user paused goes on when that user resumes it, or root names it (--all leaves it paused).",
		done: "resumed", ask: (*api.Client).Resume,
	}.command()
}

func (v askVerb) command() *cobra.Command {
	var socket string
	var all, asJSON bool
	c := &cobra.Command{
		Use: v.use + " [JVM]", Short: v.short, Long: v.long,
		Example: "  heapcam " + v.use + " 4711\n  heapcam " + v.use + " --all",
		Args: func(c *cobra.Command, args []string) error {
			if all == (len(args) > 0) || len(args) > 1 {
				return usage("%s needs one JVM (a pid, the beginning of an id, or a name: see `heapcam status`) or "+
					"--all", v.use)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := dialAgent(socket)
			if err != nil {
				return err
			}
			st, err := cl.Status(c.Context())
			if err != nil {
				return err
			}
			var running []session.Status
			for _, s := range st.JVMs {
				if !s.Phase.Over() {
					running = append(running, s)
				}
			}
			req, what := api.DetachRequest{All: all}, "all JVMs"
			if !all {
				s, err := pick(running, args[0])
				// an agent tells of itself to those who see all
				if err != nil && exitCode(err) == exitNotFound && st.Self == nil {
					return withCode(exitNotFound,
						"%q: no JVM of this user is recorded under that name; only root and the members of the group"+
							" %s see those of other users", args[0], api.Group)
				}
				if err != nil {
					return err
				}
				req.ID, what = s.ID, fmt.Sprintf("%s (pid %d); the recording is in %s", s.Name, s.PID, s.Dir)
			}
			r, err := v.ask(cl, c.Context(), req)
			if err != nil {
				return err
			}
			if asJSON {
				return ui.JSON(ui.Stdout, struct {
					ui.Envelope
					ID    string `json:"id,omitempty"`
					Asked int    `json:"asked"`
				}{ui.NewEnvelope(v.use, 1), req.ID, r.Asked})
			}
			if all {
				what = ui.Plural(uint64(r.Asked), "JVM")
			}
			ui.Fprintf(ui.Stderr, "heapcam: %s %s\n", v.done, what)
			return nil
		},
	}
	addSocket(c, &socket)
	c.Flags().BoolVar(&all, "all", false, "every JVM that is recorded now")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// pick finds the one recording that ref means: its pid; else its name; else the beginning of its folder's name or
// of its id.
func pick(all []session.Status, ref string) (session.Status, error) {
	tests := []func(session.Status) bool{
		func(s session.Status) bool { return s.ID == ref },
		func(s session.Status) bool { return strconv.Itoa(s.PID) == ref },
		func(s session.Status) bool { return s.Name == ref || strings.EqualFold(s.Name, ref) },
		func(s session.Status) bool {
			return strings.HasPrefix(s.ID, ref) || strings.HasPrefix(strings.TrimPrefix(s.ID, s.Name+"-"), ref)
		},
	}
	for _, test := range tests {
		var hits []session.Status
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
			return session.Status{}, withCode(exitUsage, "%q means several recordings: %s; name one of them", ref,
				strings.Join(ids, ", "))
		}
	}
	if len(all) == 0 {
		return session.Status{}, withCode(exitNotFound,
			"%q: no JVM is recorded: see `heapcam status`", ref)
	}
	return session.Status{}, withCode(exitNotFound, "%q: no such recording: `heapcam status` lists them", ref)
}
