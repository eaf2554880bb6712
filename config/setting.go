package config

import (
	"slices"
	"strings"
)

// Kind says how the value of a setting is written.
type Kind int

// The kinds, each with its unit.
const (
	Bytes    Kind = iota // a size like 512KiB or 16GiB, powers of 1024
	Rate                 // a size per second
	Duration             // like 250ms, 90s or 1h30m
	Percent              // like 2%
	Fraction             // a number like 0.25
	Count                // a whole number
	Bool                 // true or false
	Choice               // one of Def.Choices
	Text                 // a path or an address
)

// Unit names what a value of the kind looks like.
func (k Kind) Unit() string {
	return [...]string{"size", "size per second", "duration", "percent", "fraction", "number", "true or false",
		"word", "text"}[k]
}

// Reload says when a changed value takes effect.
type Reload int

// When a change takes effect, and what the user must do.
const (
	Restart    Reload = iota // only after a restart of the agent
	AtOnce                   // with `heapcam reload`, for running recordings too
	NextAttach               // with `heapcam reload`, for JVMs that the agent attaches to afterwards; rules may set it
)

// String gives the end of a sentence that begins "a change takes effect".
func (r Reload) String() string {
	return [...]string{"after a restart of the agent", "at once with `heapcam reload`, for running recordings too",
		"with `heapcam reload`, for JVMs that the agent attaches to afterwards; a rule may set it"}[r]
}

// Def defines one setting. Help, `heapcam config explain`, the sample file and the reference page are generated from
// it, so each fact has one place.
type Def struct {
	Key         string   // name in the file; Flag and Env follow from it
	Kind        Kind     // how the value is written
	Choices     []string // of Choice: the words
	Placeholder string   // of Choice and Text: what --help shows for the value; see Def.Value

	Default  string // as a user would write it; "" is the empty text
	Packaged string // what the packaged file sets instead of leaving the default; "" sets nothing

	Help string // what it sets, sentences for --help
	Zero string // what 0, or an empty text, means; "" if it means nothing special
	More string // what only the reference and `config explain` say
	Wins string // which limit wins if another one applies too

	Reload Reload
}

// Flag is the name of its flag, without dashes.
func (d *Def) Flag() string { return strings.ReplaceAll(d.Key, "_", "-") }

// Env is the name of its environment variable.
func (d *Def) Env() string { return "HEAPCAM_" + strings.ToUpper(d.Key) }

// Value is the placeholder of the value in --help.
func (d *Def) Value() string {
	switch d.Kind {
	case Bytes, Rate:
		return "SIZE"
	case Duration:
		return "DURATION"
	case Percent:
		return "PERCENT"
	case Fraction:
		return "FRACTION"
	case Count:
		return "N"
	}
	return d.Placeholder
}

// ZeroValue is the value that Zero explains, as it is written.
func (d *Def) ZeroValue() string {
	switch d.Kind {
	case Text:
		return "empty"
	case Duration:
		return "0s"
	case Percent:
		return "0%"
	}
	return "0"
}

// Usage is the text of its flag in --help: what it sets, the default, what 0 means.
func (d *Def) Usage() string {
	switch {
	case d.Kind == Bool:
		return d.Help
	case d.Default == "" && d.Zero != "":
		return d.Help + " Default: " + d.Zero + "."
	case d.Default == "":
		return d.Help
	case d.Zero == "":
		return d.Help + " Default " + d.Default + "."
	case d.Default == d.ZeroValue():
		return d.Help + " Default " + d.Default + " = " + d.Zero + "."
	}
	return d.Help + " Default " + d.Default + "; " + d.ZeroValue() + " = " + d.Zero + "."
}

// Group is the settings of one subject.
type Group struct {
	Title string
	Defs  []Def
}

// Lookup gives the setting of that key, nil if there is none. The registry's own entry must not be changed.
func Lookup(key string) *Def {
	for g := range Groups {
		for i := range Groups[g].Defs {
			if Groups[g].Defs[i].Key == key {
				return &Groups[g].Defs[i]
			}
		}
	}
	return nil
}

// Names gives the keys of all settings, sorted.
func Names() []string {
	var out []string
	for _, g := range Groups {
		for _, d := range g.Defs {
			out = append(out, d.Key)
		}
	}
	slices.Sort(out)
	return out
}

// Reloading gives the keys whose changes take effect at that time, in the order of the registry.
func Reloading(when Reload) []string {
	var out []string
	for _, g := range Groups {
		for _, d := range g.Defs {
			if d.Reload == when {
				out = append(out, d.Key)
			}
		}
	}
	return out
}

// Known gives the keys that the agent's file may contain.
func Known() Keys { return Keys{Settings: Names(), JVM: Reloading(NextAttach)} }
