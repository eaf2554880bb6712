package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/internal/ui"
)

// jvmKeys are settings that a rule may set for the JVMs that it matches. limitKeys take effect at a reload, also for
// running recordings. All others need a restart of the agent.
var (
	jvmKeys   = config.Reloading(config.NextAttach)
	limitKeys = config.Reloading(config.AtOnce)
)

func flagOf(key string) string { return config.Lookup(key).Flag() }
func envOf(key string) string  { return config.Lookup(key).Env() }

// setting is a value in force.
type setting struct {
	Key    string `json:"key"`    // Name of the setting.
	Value  string `json:"value"`  // Value in force.
	Source string `json:"source"` // Where it is from: default, FILE:LINE:COLUMN, HEAPCAM_KEY or flag.
}

// configure sets the flags of the agent that the command line does not set, from the environment or the file, in this
// order. A file that the user names must exist; the system's need not.
func configure(c *cobra.Command, name string) (*config.File, []setting, error) {
	explicit := name != ""
	if !explicit {
		name = systemConfig
	}
	file, err := config.Read(name, config.Known())
	switch {
	case err == nil:
	case !explicit && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)):
		file, err = &config.File{}, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, nil, fmt.Errorf("cannot read the configuration: %w", err)
	default:
		return nil, nil, usage("%v", err)
	}
	var out []setting
	for _, key := range config.Names() {
		f := c.Flags().Lookup(flagOf(key))
		s := setting{Key: key, Source: "default"}
		set := func(text, source string) error {
			if err := f.Value.Set(text); err != nil {
				return usage("%s: %s: %s", source, key, plainly(err))
			}
			s.Source = source
			return nil
		}
		at := slices.IndexFunc(file.Settings, func(s config.Setting) bool { return s.Key == key })
		if f.Changed {
			s.Source = "flag"
		} else if v, ok := os.LookupEnv(envOf(key)); ok {
			err = set(v, envOf(key))
		} else if at >= 0 {
			e := file.Settings[at]
			err = set(e.Text, fmt.Sprintf("%s:%d:%d", file.Name, e.Line, e.Column))
		}
		if err != nil {
			return nil, nil, err
		}
		s.Value = f.Value.String()
		out = append(out, s)
	}
	for _, r := range file.Rules { // check them as they would be used
		if _, err := ruleOptions(c, file, &r); err != nil {
			return nil, nil, located(err, out)
		}
	}
	return file, out, nil
}

// located turns an error about a flag, "--depth ful: …", into one about the place where its value was set.
func located(err error, all []setting) error {
	if err == nil {
		return nil
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(err.Error(), "--"), " ")
	for _, s := range all {
		if flagOf(s.Key) == name && s.Source != "flag" && s.Source != "default" {
			return withCode(exitCode(err), "%s: %s %s", s.Source, s.Key, rest)
		}
	}
	return err
}

// ruleOptions gives the options of the probe for JVMs that a rule matches.
func ruleOptions(c *cobra.Command, file *config.File, r *config.Rule) (*recordOptions, error) {
	var o recordOptions
	fresh := &cobra.Command{}
	o.add(fresh)
	for _, key := range jvmKeys {
		if err := fresh.Flags().Set(flagOf(key), c.Flags().Lookup(flagOf(key)).Value.String()); err != nil {
			return nil, err
		}
	}
	if r != nil {
		for _, s := range r.Settings {
			if err := fresh.Flags().Set(flagOf(s.Key), s.Text); err != nil {
				return nil, usage("%s:%d:%d: %s", file.Name, s.Line, s.Column, plainly(err))
			}
		}
	}
	var own []setting
	if r != nil {
		for _, s := range r.Settings {
			own = append(own, setting{Key: s.Key, Source: fmt.Sprintf("%s:%d:%d", file.Name, s.Line, s.Column)})
		}
	}
	return &o, located(o.check(), own)
}

func newConfigCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "config VERB",
		Short: "Check, show and explain the agent's configuration",
		Long: `The agent reads ` + systemConfig + ` or the file of --config. A key is the name of a flag of
` + "`heapcam agent`" + ` with _ instead of -. A flag wins over an environment variable (HEAPCAM_ and the
key in capitals), a variable over the file, and the file over the default.
Rules in the file say which JVMs the agent records, and how.

After a change run ` + "`heapcam config check`" + `, then ` + "`heapcam reload`" + `.`,
		Example: "  heapcam config check\n  heapcam config explain max_trace_size\n  heapcam config show",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigCheckCmd(), newConfigShowCmd(), newConfigExplainCmd())
	return c
}

func newConfigCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration file, by default " + systemConfig,
		Long: "The verb also lists for each key whether `heapcam reload` applies a change or a restart is needed. An " +
			"error names the line and the column.",
		Example: "  heapcam config check\n  heapcam config check heapcam.yaml",
		Args:    atMostOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := systemConfig
			if len(args) > 0 {
				name = args[0]
			}
			o := &agentOptions{}
			c := o.command()
			file, all, err := configure(c, name)
			if err == nil {
				err = located(o.check(), all)
			}
			if err != nil {
				return err
			}
			ui.Fprintf(ui.Stderr, "heapcam: %s is valid: %s, %s\n", name,
				ui.Plural(uint64(len(file.Settings)), "setting"), ui.Plural(uint64(len(file.Rules)), "rule"))
			printReload(ui.Stderr, file)
			return nil
		},
	}
}

// printReload says which settings of a file `heapcam reload` applies, and when.
func printReload(w io.Writer, file *config.File) {
	var now, later, restart []string
	for _, s := range file.Settings {
		switch {
		case slices.Contains(limitKeys, s.Key):
			now = append(now, s.Key)
		case slices.Contains(jvmKeys, s.Key):
			later = append(later, s.Key)
		default:
			restart = append(restart, s.Key)
		}
	}
	if len(file.Rules) > 0 {
		later = append(later, "rules")
	}
	for _, part := range []struct {
		what string
		keys []string
	}{{"`heapcam reload` applies changes at once", now},
		{"`heapcam reload` applies changes to JVMs that the agent attaches to afterwards", later},
		{"changes need a restart of the agent (`heapcam service restart`)", restart}} {
		if len(part.keys) > 0 {
			ui.Fprintf(w, "heapcam: %s: %s\n", part.what, strings.Join(part.keys, ", "))
		}
	}
}

func newConfigShowCmd() *cobra.Command {
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use:     "show",
		Short:   "Show every setting that an agent would have if it started now, and its source",
		Long:    "The source is default, FILE:LINE:COLUMN, or the name of an environment variable.",
		Example: "  heapcam config show\n  heapcam config show --config heapcam.yaml",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			file, all, err := configure((&agentOptions{}).command(), name)
			if err != nil {
				return err
			}
			if asJSON {
				return ui.JSON(ui.Stdout, configReply{ui.NewEnvelope("config", 1), all, len(file.Rules)})
			}
			w := ui.NewTable(ui.Stdout)
			ui.Fprintf(w, "KEY\tVALUE\tFROM\n")
			for _, s := range all {
				ui.Fprintf(w, "%s\t%s\t%s\n", s.Key, or(s.Value, `""`), s.Source)
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&name, "config", "", "Configuration file. Default "+systemConfig+", if it exists.")
	c.Flags().BoolVar(&asJSON, "json", false, "Print JSON (heapcam.config/1).")
	return c
}

func newConfigExplainCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [KEY]",
		Short: "Explain a setting, or all of them",
		Long: "For each setting: what it sets, its default, what 0 means, which limit wins over it, its flag and " +
			"environment\nvariable, and when a change takes effect.",
		Example: "  heapcam config explain max_trace_size\n  heapcam config explain | less",
		Args:    atMostOne("KEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			keys := config.Names()
			if len(args) == 1 {
				key := keyOf(args[0])
				if config.Lookup(key) == nil {
					return usage("unknown key %q%s", args[0], config.Suggest(key, keys))
				}
				keys = []string{key}
			}
			for _, key := range keys {
				explain(ui.Stdout, config.Lookup(key))
			}
			return nil
		},
	}
}

// keyOf gives the key of a setting that is named by its key, its flag or its variable.
func keyOf(name string) string {
	key := strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_")
	return strings.ToLower(strings.TrimPrefix(key, "HEAPCAM_"))
}

// explain prints all that the registry says of a setting.
func explain(w io.Writer, d *config.Def) {
	ui.Fprintf(w, "%s (%s)\n", d.Key, or(strings.Join(d.Choices, ", "), d.Kind.Unit()))
	for _, line := range []struct{ name, text string }{
		{"sets", d.Help},
		{"", d.More},
		{"default", or(d.Default, `""`)},
		{"packaged", d.Packaged},
		{d.ZeroValue(), d.Zero},
		{"limits", d.Wins},
		{"flag", "--" + d.Flag()},
		{"variable", d.Env()},
		{"change", "takes effect " + d.Reload.String()},
	} {
		if line.text != "" {
			const indent = 12
			ui.Paragraph(w, ui.Flowf("  %s", ui.Flow(line.name)), indent, ui.Flow(line.text))
		}
	}
}
