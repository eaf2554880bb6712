package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// askVerb is a verb that asks the agent to do something to one recorded JVM, or to all.
type askVerb struct {
	use, short, long, done string
	ask                    func(*api.Client, context.Context, api.DetachRequest) (api.DetachReply, error)
}

// ownersToo ends the help of the verbs that users may apply to their own JVMs.
const ownersToo = "\n\nYou may do this with JVMs of your own user. For other JVMs you must be root, or in the " +
	"group heapcam."

func newDetachCmd() *cobra.Command {
	return askVerb{
		use: "detach", short: "End the recording of a JVM; the files stay",
		long: `Use it when a JVM should no longer be recorded. To stop for a while, use ` + "`heapcam pause`" + `.

The probe stops its events and its sampling, and removes its shared ring. Its library stays in the JVM, idle, until
the JVM ends: a JVM cannot unload it. Discovery does not attach to a detached JVM again, and ` + "`heapcam status`" + `
shows who detached it. ` + "`heapcam attach`" + ` starts a new recording.` + ownersToo,
		done: "stopped recording", ask: (*api.Client).Detach,
	}.command()
}

func newPauseCmd() *cobra.Command {
	return askVerb{
		use: "pause", short: "Stop recording a JVM until you resume it",
		long: `Use it when you suspect that heapcam slows a JVM down.

Within a tenth of a second the probe stops sampling allocations. In a collection it then only checks whether it is
still paused. The JVM
stays paused when the agent restarts. To stop recording on the whole host, including JVMs that start later, create
the file ` + hostSwitch + `.` + ownersToo,
		done: "paused", ask: (*api.Client).Pause,
	}.command()
}

func newResumeCmd() *cobra.Command {
	return askVerb{
		use: "resume", short: "Continue to record a paused JVM",
		long: `Use it after ` + "`heapcam pause`" + `. The recording has no data of the time in between. The next
collection lists all live objects (a sync point), and from there on the heap is known again.

An operator is root or a member of the group heapcam. Only an operator can resume a JVM that an operator paused. If its
own user paused it, that user can resume it, and so can an operator who names it: --all leaves it paused. A JVM
that the file ` + hostSwitch + ` stopped resumes when you remove the file.` +
			ownersToo,
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
				return usage("%s needs one JVM (a pid, a name, or the beginning of an id; see `heapcam status`), or "+
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
				// only users who may see all JVMs get the figures of the agent itself
				if err != nil && exitCode(err) == exitNotFound && st.Self == nil {
					return withCode(exitNotFound,
						"%q: no recorded JVM of this user has that name; only root and members of the group %s "+
							"see JVMs of other users", args[0], api.Group)
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
			switch {
			case r.Asked == 0:
			case v.use == "pause":
				paused(func() (api.StatusReply, error) { return cl.Status(c.Context()) }, req.ID)
			case v.use == "detach":
				if ok, err := clientConfirms(c.Context(), cl, req.ID); err != nil {
					return err
				} else if !ok {
					return fmt.Errorf("%s. It is about %s", stillLoaded, what)
				}
			}
			if asJSON {
				return ui.JSON(ui.Stdout, askReply{ui.NewEnvelope(v.use, 1), req.ID, r.Asked})
			}
			if all {
				what = ui.Plural(uint64(r.Asked), "JVM")
			}
			ui.Fprintf(ui.Stderr, "heapcam: %s %s\n", v.done, what)
			return nil
		},
	}
	addSocket(c, &socket)
	c.Flags().BoolVar(&all, "all", false, "Apply to every JVM that the agent records now.")
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam."+v.use+"/1).")
	return c
}

// pickRunning picks the JVM that ref names among those that are recorded now. DIR/NAME and a ring folder, which reading
// verbs take, too, name one of them.
func pickRunning(all []session.Status, ref string) (session.Status, error) {
	running := slices.DeleteFunc(slices.Clone(all), func(s session.Status) bool { return s.Phase.Over() })
	s, err := pick(running, ref)
	if exitCode(err) != exitNotFound || !strings.ContainsRune(ref, os.PathSeparator) {
		return s, err
	}
	dir, name := filepath.Split(filepath.Clean(ref))
	there, serr := os.Stat(filepath.Clean(dir))
	if serr != nil {
		return s, err
	}
	return pick(slices.DeleteFunc(running, func(s session.Status) bool {
		at, err := os.Stat(filepath.Dir(s.Dir))
		return err != nil || !os.SameFile(at, there)
	}), name)
}

// pick finds the one recording that ref names: by id, else by pid, else by name, else by the beginning of the id with
// or without the name.
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
		if live := slices.DeleteFunc(slices.Clone(hits), func(s session.Status) bool {
			return s.Phase.Over()
		}); len(hits) > 1 && len(live) == 1 { // of a name or a pid that came again, the one that is recorded now
			return live[0], nil
		}
		if len(hits) > 1 {
			ids := make([]string, len(hits))
			for i, h := range hits {
				ids[i] = h.ID
			}
			return session.Status{}, withCode(exitUsage, "%q matches several recordings: %s; name one of "+
				"them", ref, strings.Join(ids, ", "))
		}
	}
	if len(all) == 0 {
		return session.Status{}, withCode(exitNotFound,
			"%q: no JVM is recorded: see `heapcam status`", ref)
	}
	return session.Status{}, withCode(exitNotFound, "%q: no such recording: `heapcam status` lists them", ref)
}
