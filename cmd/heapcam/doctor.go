package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/trace"
)

type doctorRow struct {
	jvms.JVM
	jvms.Verdict
	// Resource says whose it is, as a recording of it would; without the rules of heapcam.yaml.
	Resource trace.Resource `json:"resource,omitempty"`
}

func newDoctorCmd() *cobra.Command {
	asJSON, options, configFile := false, false, ""
	c := &cobra.Command{
		Use:   "doctor [JVM]",
		Short: "Say which JVMs of this host heapcam can record, and if not, why",
		Long: `Run this first on a new host, and whenever a JVM is not recorded. It looks at JVMs from outside and
changes nothing. For each JVM that heapcam cannot record it gives the reason and a remedy.

Some JVMs refuse an attach: with -XX:+DisableAttachMechanism, -XX:-EnableDynamicAgentLoading or a read-only /tmp.
JVMs of JDK 21 and later print a warning on stderr when a library is attached. Give such a JVM the environment variable
that --java-tool-options prints: it then loads the probe by itself. An agent with ` + "`discover: true`" + `, as the
packages configure it, finds and records it. The variable keeps the present value of JAVA_TOOL_OPTIONS.`,
		Example: "  heapcam doctor\n  heapcam doctor 4711\n  export \"$(heapcam doctor --java-tool-options)\"",
		Args:    atMostOne("JVM"),
		RunE: func(_ *cobra.Command, args []string) error {
			if options {
				if len(args) > 0 || asJSON {
					return usage("doctor: --java-tool-options takes neither a JVM nor --json")
				}
				return printToolOptions(configFile)
			}
			var all []jvms.JVM
			var err error
			if len(args) == 1 {
				var j jvms.JVM
				if j, err = resolve(args[0]); err != nil {
					return err
				}
				all = []jvms.JVM{j}
			} else if all, err = jvms.List(); err != nil {
				return err
			}
			rows := make([]doctorRow, len(all))
			bad := 0
			for i, j := range all {
				rows[i] = doctorRow{j, jvms.Doctor(j), j.Resource(jvms.Sources{})}
				if !rows[i].Recordable {
					bad++
				}
			}
			_, perr := probe.Library()
			if asJSON {
				err = ui.JSON(ui.Stdout, doctorReply{ui.NewEnvelope("doctor", 1), perr == nil, rows})
			} else {
				printDoctor(rows)
				if perr != nil {
					ui.Fprintf(ui.Stderr, "heapcam: %v\n", perr)
				}
			}
			if err == nil && len(args) == 1 && rows[0].Problem == jvms.NoRights {
				return status(exitDenied)
			}
			if err == nil && len(args) == 1 && bad > 0 {
				return status(exitNoRecord)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.doctor/1).")
	c.Flags().BoolVar(&options, "java-tool-options", false,
		"Print JAVA_TOOL_OPTIONS=… for JVMs that refuse an attach.")
	c.Flags().StringVar(&configFile, "config", "",
		"Configuration of the agent, for --java-tool-options. Default "+systemConfig+", if it exists.")
	exitsWith(c, "0", "heapcam can record the JVM that you named, or you named none.")
	exitsWith(c, "4", "The JVM that you named belongs to another user.")
	exitsWith(c, "5", "heapcam cannot record the JVM that you named.")
	return c
}

// printToolOptions prints the environment that has a JVM load the probe, as the agent's configuration says.
func printToolOptions(file string) error {
	o := &agentOptions{}
	if _, _, err := configure(o.command(), file); err != nil {
		return err
	}
	option, err := o.toolOption()
	if err != nil {
		return err
	}
	env := withToolOptions([]string{"JAVA_TOOL_OPTIONS=" + os.Getenv("JAVA_TOOL_OPTIONS")}, option)
	ui.Fprintf(ui.Stdout, "%s\n", ui.Text(env[0])) // whole: it is this user's own
	return nil
}

func printDoctor(rows []doctorRow) {
	if len(rows) == 0 {
		ui.Fprintf(ui.Stderr, "heapcam: this user sees no running JVM on this host; as root, doctor sees those of all "+
			"users\n")
		return
	}
	t := ui.NewColumns(0, "ID", "NAME", "JDK", "COLLECTOR", "RECORDABLE")
	for _, r := range rows {
		ok := "yes"
		switch {
		case !r.Recordable:
			ok = "no"
		case r.Recorded:
			ok = "recorded now"
		}
		t.Row(r.ID, or(r.Name, "?"), or(r.Version, "?"), or(r.Collector, "?"), ok)
		if who := r.Resource.String(); who != "" {
			t.Under(2, ui.Sprintf("service: %s", who))
		}
		if !r.Recordable {
			t.Under(2, ui.Sprintf("reason: %s", ui.Prose(r.Reason)))
		}
		if r.Remedy != "" {
			t.Under(2, ui.Sprintf("remedy: %s", ui.Prose(r.Remedy)))
		}
		for _, x := range r.Warnings {
			t.Under(2, ui.Sprintf("note: %s", ui.Prose(x)))
		}
	}
	t.Write(ui.Stdout)
	for _, r := range rows {
		if r.Recordable && !r.Recorded {
			ui.Next(ui.Stdout, ui.Sprintf("heapcam record --for 10m %d", r.PID),
				ui.Sprintf("heapcam attach %d", r.PID))
			return
		}
	}
	for _, r := range rows {
		if r.Recorded {
			ui.Next(ui.Stdout, "heapcam status")
			return
		}
	}
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
