package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/ui"
)

// defaultReferencePause is how long a reference listing may stop the JVM unless a flag says otherwise.
const defaultReferencePause = 250 * time.Millisecond

func newReferencesCmd() *cobra.Command {
	var socket string
	var asJSON bool
	most := defaultReferencePause
	c := &cobra.Command{
		Use: "references JVM", Short: "Record all references of a JVM's heap now",
		Long: `Use it when you want to know what keeps objects alive. An agent must record the JVM (` +
			"`heapcam attach`" + `). ` + "`heapcam holders`, `paths` and `dominators`" + ` show what was recorded.

The probe stops the JVM once and copies the references of all objects: addresses, but no values and no
characters. The recording then also has the roots, and the names of classes and fields.

The stop takes about 10 ms for a million objects. heapcam predicts it, and refuses a listing that would take
longer than --max-reference-pause. The copy needs memory in the JVM's process until it is sent: 4 bytes
for each reference, 2 for each object. A listing that does not fit into the memory limit of the JVM's cgroup is
refused.` + ownersToo,
		Example: "  heapcam references 4711\n  heapcam references shop --max-reference-pause 1s",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("references needs one JVM: a pid, a name, or the beginning of an id; see " +
					"`heapcam status`")
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
			s, err := pickRunning(st.JVMs, args[0])
			if err != nil {
				return err
			}
			r, err := askReferences(c.Context(), cl, s.ID, most)
			if err != nil {
				return err
			}
			if asJSON {
				return ui.JSON(ui.Stdout, referencesReply{ui.NewEnvelope("references", 1), s.ID, s.Dir, r})
			}
			ui.Fprintf(ui.Stderr, "heapcam: recorded %s, %s and %s of %s (pid %d) after collection %d; the JVM "+
				"stopped for %s; the recording is in %s\n", ui.Plural(r.Objects, "object"),
				ui.Plural(r.Slots, "reference"), ui.Plural(r.Roots, "root"), s.Name, s.PID, r.GC,
				ui.Nanoseconds(r.StopNS), s.Dir)
			for _, m := range r.Missing {
				ui.Fprintf(ui.Stderr, "heapcam: not recorded: %s\n", m)
			}
			return nil
		},
	}
	addSocket(c, &socket)
	c.Flags().DurationVar(&most, "max-reference-pause", most,
		"Longest time that the JVM may be stopped. A listing that needs more is refused.")
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.references/1).")
	return c
}

// askReferences has the agent take a reference listing. A JVM that is stopped, as by a signal, answers nobody.
func askReferences(ctx context.Context, cl *api.Client, id string, most time.Duration) (session.References, error) {
	r, err := cl.References(ctx, api.ReferencesRequest{ID: id, Most: int64(most)})
	if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
		return r, errors.New("the JVM did not list its references in time: it hangs or is stopped, or the machine is " +
			"busy")
	}
	return r, err
}
