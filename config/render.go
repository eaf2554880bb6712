package config

import (
	"fmt"
	"regexp"
	"strings"
)

// sampleHead and sampleRules surround the settings in the sample file.
const (
	sampleHead = `# Configuration of heapcam's agent. Generated from the registry of settings (go generate ./config).
# The file has every setting. One that is commented out has its default. A key is the name of a flag of "heapcam agent"
# with _ instead of -. A flag wins over an environment variable (HEAPCAM_ and the key in capitals), a variable over this
# file, and this file over the default.
#
#   heapcam config check         checks this file, and says what a reload does with each key
#   heapcam config explain KEY   explains a setting, and says which limit wins over it
#   heapcam config show          shows every value in force, and its source
#   heapcam reload               makes the agent read this file again
`
	sampleRules = `
# ---- Rules
# The first rule that matches a JVM decides. If no rule matches, heapcam records the JVM. All conditions of a match
# must be true: user, main (main class or jar), flag (one of the JVM's options), cgroup, unit (of systemd), service
# (as heapcam doctor prints it), container (true: the JVM has a root folder of its own). Patterns
# may contain *, ? and [a-z]. A rule may set attributes of OpenTelemetry (resource), and for the JVMs that it matches:
%s#rules:
#  - match: {user: jenkins, main: "*Tool"}
#    record: false
#  - match: {unit: shop.service}
#    depth: full
#    resource: {service.name: shop, deployment.environment.name: production}
`
	sampleWidth = 112
)

// Sample is the packaged configuration file: every setting, commented, with its default or the package's value.
func Sample() []byte {
	var b strings.Builder
	b.WriteString(sampleHead)
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n# ---- %s\n", g.Title)
		for i := range g.Defs {
			d := &g.Defs[i]
			comment(&b, d.Usage()+d.packaged())
			if d.Packaged != "" {
				fmt.Fprintf(&b, "%s: %s\n", d.Key, d.Packaged)
			} else {
				fmt.Fprintf(&b, "#%s: %s\n", d.Key, quoted(d.Default))
			}
		}
	}
	var keys strings.Builder
	comment(&keys, strings.Join(Reloading(NextAttach), ", ")+".")
	fmt.Fprintf(&b, sampleRules, keys.String())
	return []byte(b.String())
}

// packaged says, in a comment beside another value, what the default is. Usage says it of all kinds but Bool.
func (d *Def) packaged() string {
	if d.Kind == Bool {
		return " Default " + d.Default + "."
	}
	return ""
}

func quoted(text string) string {
	if text == "" {
		return `""`
	}
	return text
}

// comment writes text as lines that begin with "# ".
func comment(b *strings.Builder, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > sampleWidth && line != "#" {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

const referenceHead = `<!-- Generated from the registry of settings: go generate ./config. Do not edit. -->
# Settings

Each setting is a flag of ` + "`heapcam agent`" + `, a key of ` + "`/etc/heapcam/heapcam.yaml`" + ` and an environment
variable: ` + "`--max-trace-size`, `max_trace_size`, `HEAPCAM_MAX_TRACE_SIZE`" + `. A flag wins over a variable, a
variable over the file, and the file over the default. ` + "`run`, `record` and `attach`" + ` have some of these
flags: the [verbs](verbs.md) list them. ` + "`heapcam config explain KEY`" + ` prints the text of a setting.
[Configure](../how-to/configure.md) shows how to change settings, and [sizing](../how-to/sizing.md) how to choose sizes.

A size looks like ` + "`512KiB` or `16GiB`" + ` (powers of 1024), a duration like ` + "`250ms`, `90s` or `1h30m`" + `, a
percentage like ` + "`2%`" + `. The file ` + "`/etc/heapcam/disabled`" + ` stops all recording. *Packaged* is the value
that the packages (deb, rpm) set, if they set one. *Limited by* names what overrides the setting.
If several limits apply at once, the strictest counts: the lowest depth, the longest interval, the smallest size.
`

// referenceRules describes the one key that is no setting.
const referenceRules = `
## Rules

` + "`rules`" + ` is a key of the file only: a list. The first rule that matches a JVM decides how it is recorded. A JVM
that no rule matches is recorded with the settings of the file.

` + "```yaml" + `
rules:
  - match: {user: jenkins, main: "*Tool"}
    record: false
  - match: {unit: shop.service}
    depth: full
` + "```" + `

| key of a rule | meaning |
|---|---|
| ` + "`match`" + ` | All conditions must be true. Without it the rule matches every JVM. |
| ` + "`match.user`, `match.main`" + ` | User; main class or file name of the jar. |
| ` + "`match.flag`" + ` | One of the JVM's options. |
| ` + "`match.cgroup`, `match.unit`" + ` | Path of the cgroup; unit of systemd. |
| ` + "`match.container`" + ` | ` + "`true`" + `: the JVM has a root folder of its own. |
| ` + "`record`" + ` | ` + "`false`" + `: the JVM is not recorded. |
| a setting | Its value for these JVMs: each setting that takes effect at the next attach. |

Texts are patterns with ` + "`*`, `?` and `[a-z]`" + `.
`

// Reference is the page docs/reference/settings.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("\n| a change takes effect | settings |\n|---|---|\n")
	for _, r := range []Reload{AtOnce, NextAttach, Restart} {
		keys := Reloading(r)
		if r == NextAttach {
			keys = append(keys, "rules")
		}
		fmt.Fprintf(&b, "| %s | `%s` |\n", r, strings.Join(keys, "`, `"))
	}
	for _, g := range Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| key | value | default | packaged | meaning | limited by |\n"+
			"|---|---|---|---|---|---|\n", g.Title)
		for i := range g.Defs {
			d := &g.Defs[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", d.Key, d.values(), code(d.Default), code(d.Packaged),
				escapeCell(d.meaning()), escapeCell(d.Wins))
		}
	}
	b.WriteString(referenceRules)
	return []byte(b.String())
}

// values says what may be written.
func (d *Def) values() string {
	switch d.Kind {
	case Choice:
		return "`" + strings.Join(d.Choices, "`, `") + "`"
	case Text:
		return strings.ToLower(d.Placeholder)
	}
	return d.Kind.Unit()
}

// meaning is Help, what 0 means, and More.
func (d *Def) meaning() string {
	text := d.Help
	if d.Zero != "" {
		if d.Kind == Text {
			text += fmt.Sprintf(" If it is not set: %s.", d.Zero)
		} else {
			text += fmt.Sprintf(" `%s` = %s.", d.ZeroValue(), d.Zero)
		}
	}
	if d.More != "" {
		text += " " + d.More
	}
	return text
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// code names are keys, flags and variables.
var codeName = regexp.MustCompile(`\$?\b[A-Za-z]+(?:_[A-Za-z]+)+\b(?:=\S+)?|--[a-z]+(?:-[a-z]+)*`)

// escapeCell keeps text inside a cell of a Markdown table: keys, flags and variables become code, and asterisks stay.
func escapeCell(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 { // outside of code
		parts[i] = codeName.ReplaceAllString(strings.NewReplacer("|", `\|`, "*", `\*`).Replace(parts[i]), "`$0`")
	}
	return strings.Join(parts, "`")
}
